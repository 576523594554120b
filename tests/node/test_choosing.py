"""A federation without a method gets one that learns, whatever its graph and loss; one set by hand is tried first."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner
from village import NAMES

import confide
from confide.cli import app
from confide.errors import ConfideError
from confide.network.identity import Identity
from confide.node import choosing
from confide.node import federation as federations
from confide.node.founding import new_federation
from confide.planning.ahead import REHEARSAL
from confide.planning.rehearsal import rehearse
from confide.problem.problem import Problem, Public

SIZES = (900, 700, 1200, 600, 800)
GRAPHS = ("ring", "path", "star", "complete")
LOSSES = {
    "Logistic": {}, "Multinomial": {"classes": 3}, "SmoothedHinge": {}, "Hinge": {}, "SquaredHinge": {}, "Squared": {},
    "Huber": {"width": 0.25}, "Absolute": {}, "Quantile": {"level": 0.7}, "NoisyLabels": {"epsilon": 2.0},
}  # fmt: skip


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    home = tmp_path_factory.mktemp("cards")
    made = [Identity.create(home / name, name, f"127.0.0.1:{7001 + k}").card for k, name in enumerate(NAMES)]
    return home, made


def founded(cards, algorithm, loss="Logistic", graph="ring", epsilon=8.0, weighting="rows", **more):
    model = {
        "loss": {"name": loss, **LOSSES[loss]}, "penalty": {"name": "L2", "strength": 1e-6}, "weighting": weighting,
        "features": 6, "row_norm": 1.0, "intercept": True,
    }  # fmt: skip
    members = list(zip(cards[1], SIZES, strict=True))
    return new_federation(members, model, algorithm, {"epsilon": epsilon, "delta": 1e-5}, graph=graph, **more)


def test_every_loss_has_a_case():
    assert set(LOSSES) == {kind.__name__ for kind in confide.losses.ALL}


@pytest.mark.slow
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("loss", LOSSES)
def test_auto_learns_on_every_graph_with_every_loss(cards, graph, loss):
    found, _ = founded(cards, {"name": "auto"}, loss, graph)
    assert found.guarantee.label == "proven"
    kept = rehearse(found.algorithm, found.public, seconds=60)
    assert kept.gap is not None and kept.gap < 0.1, kept.why


@pytest.mark.parametrize("weighting", ["rows", "parties"])
def test_the_same_descent_on_a_ring_and_on_a_complete_graph(cards, weighting):
    """1/η + 2ρ|N| is one over K times the step on the sum: the graph must not change how fast the parties learn."""
    ring, whole = (founded(cards, {"name": "CDPADMM", "clip": 1.0}, graph=g, weighting=weighting)[0] for g in
                   ("ring", "complete"))  # fmt: skip
    assert ring.algorithm.coupling == pytest.approx(2 * whole.algorithm.coupling)  # two neighbours, and four
    assert ring.algorithm.stiffness(1, ring.public) == pytest.approx(whole.algorithm.stiffness(1, whole.public))
    given = founded(cards, {"name": "CDPADMM", "clip": 1.0, "step": 3.0})[0].algorithm
    assert given.step == 3.0 and given.stiffness(1, ring.public) == pytest.approx(np.full((5, 1), 2 / 3.0))


def test_auto_takes_rounds_and_nothing_else(cards):
    found, text = founded(cards, {"name": "auto", "rounds": 33})
    assert found.algorithm.rounds == 33 and "auto" not in text
    with pytest.raises(ConfideError, match="clip is set by it"):
        founded(cards, {"name": "auto", "clip": 1.0})
    with pytest.raises(ConfideError, match="at least 1"):
        founded(cards, {"name": "auto", "rounds": 0})


def test_more_budget_goes_further(cards):
    little, much = (founded(cards, {"name": "auto"}, epsilon=e)[0] for e in (0.05, 8.0))
    assert much.algorithm.noise < little.algorithm.noise
    assert little.algorithm.total_cost(little.public, 1e-5)[0] <= 0.05


def test_collusion_is_of_sums_only():
    public = Public(confide.Graph.ring(3), np.full(3, 100), confide.losses.Logistic(), confide.penalties.L2(1e-6), 4,
                    True, "rows", 1.0, np.arange(3))  # fmt: skip
    chosen = choosing.choose(public, 1.0, 1e-5, {"collusion": 1})
    assert chosen == {"name": "JointDescent", "collusion": 1}
    kinked = replace(public, loss=confide.losses.Absolute())
    assert choosing.choose(kinked, 1.0, 1e-5, {})["name"] == "CDPADMM"
    with pytest.raises(ConfideError, match="leave it out"):
        choosing.choose(kinked, 1.0, 1e-5, {"collusion": 1})


@pytest.mark.slow
def test_a_federation_of_the_first_example_learns(cards, tmp_path):
    """What README's command makes is nearly as good as scikit-learn on pooled rows, at ε = 8."""
    home, _ = cards
    file = tmp_path / "federation.toml"
    parties = [x for name, n in zip(NAMES, SIZES, strict=True) for x in ("--party", f"{home / name}/card.toml={n}")]
    done = CliRunner().invoke(app, ["federation", "new", *parties, "--features", "6", "--epsilon", "8", "--output",
                                    str(file)])  # fmt: skip
    assert done.exit_code == 0, done.output
    found = federations.load(file)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(sum(SIZES) + 5000, 6))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.where(X @ [3, -3, 2, 1, 0, 1] + 0.5 + rng.logistic(size=len(X)) > 0, 1.0, -1.0)
    n = sum(SIZES)
    shards = confide.Shards.from_groups(X[:n], y[:n], np.repeat(np.arange(5), SIZES)).clip_rows(1.0)
    problem = Problem(shards, found.loss, found.penalty, found.weighting, found.intercept)
    run = confide.simulate(problem, found.graph, found.algorithm, range(3), test=(X[n:], y[n:]), record=("test",))
    pooled = LogisticRegression(C=1e6).fit(X[:n], y[:n]).score(X[n:], y[n:])
    assert run.history["test"][-1].mean() > pooled - 0.02


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["step=1", "coupling=1"], "of the way to the optimum left"),  # on a complete graph it hardly moves
        (["step=5000", "coupling=1e-5"], "warning"),
        ([], ""),
    ],
)
def test_who_sets_a_method_by_hand_is_warned(cards, tmp_path, settings, told):
    home, _ = cards
    parties = [x for name, n in zip(NAMES, SIZES, strict=True) for x in ("--party", f"{home / name}/card.toml={n}")]
    done = CliRunner().invoke(
        app,
        ["federation", "new", *parties, "--features", "6", "--epsilon", "1", "--graph", "complete", "--algorithm",
         "CDPADMM", "--set", "rounds=100", "--set", "clip=1", *(x for s in settings for x in ("--set", s)),
         "--output", str(tmp_path / "federation.toml")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert ("warning: CDPADMM" in done.stderr) is bool(told) and told in " ".join(done.stderr.split())
    assert max(map(len, done.stderr.splitlines()), default=0) <= 80


def test_rounds_alone_may_be_too_few(cards, tmp_path):
    """Set beside "auto" they are tried, too; what to do names what can be set there."""
    home, _ = cards
    parties = [x for name, n in zip(NAMES, SIZES, strict=True) for x in ("--party", f"{home / name}/card.toml={n}")]
    new = ["federation", "new", *parties, "--features", "6", "--epsilon", "1", "--set", "rounds=1"]
    done = CliRunner().invoke(app, [*new, "--output", str(tmp_path / "federation.toml")])
    assert done.exit_code == 0, done.output
    said = " ".join(done.stderr.split())
    assert "warning: JointDescent: without noise" in said and said.endswith("set more rounds, or leave them to it")


def made(cards, tmp_path, *more):
    home, _ = cards
    parties = [x for name, n in zip(NAMES, SIZES, strict=True) for x in ("--party", f"{home / name}/card.toml={n}")]
    new = ["federation", "new", *parties, "--features", "6", *more, "--output", str(tmp_path / "federation.toml")]
    return CliRunner().invoke(app, new)


def test_what_a_budget_means_is_said_first(cards, tmp_path, monkeypatch):
    """An ε that is none, one that no noise keeps, and one that is more than can be spent."""
    refused = made(cards, tmp_path, "--epsilon", "inf")
    assert refused.exit_code == 2 and "budget.epsilon=inf: must be finite and above 0" in refused.stderr
    monkeypatch.setattr("confide.cli.compile.compiled", (asked := []).append)
    bare = " ".join(made(cards, tmp_path, "--epsilon", "1", "--algorithm", "ADMM", "--set", "rounds=3").stdout.split())
    assert "3 rounds of ADMM, NOT PRIVATE, no ε holds: messages carry no noise" in bare and "at most" not in bare
    assert asked == [REHEARSAL]  # compiling, if it must be, is said
    (tmp_path / "federation.toml").unlink()
    much = " ".join(made(cards, tmp_path, "--epsilon", "1e6").stdout.split())
    assert "ε=1e+06 is more than secure noise can spend at δ=1e-05" in much and "ε = 35.49 if at most 2" in much
    (tmp_path / "federation.toml").unlink()
    assert "more than" not in made(cards, tmp_path, "--epsilon", "30").stdout


def test_a_review_says_what_becomes_of_other_columns(cards, tmp_path):
    (tmp_path / "schema.toml").write_text(
        '[label]\nname = "ill"\nkind = "binary"\nvalues = ["no", "yes"]\n'
        '[columns.age]\nkind = "numeric"\nlow = 0\nhigh = 100\n[columns.note]\nkind = "ignore"\n'
    )
    home, file = cards[0], str(tmp_path / "federation.toml")
    parties = [x for name in NAMES for x in ("--party", f"{home / name}/card.toml=100")]
    schema = ("--schema", str(tmp_path / "schema.toml"), "--epsilon", "1")
    done = CliRunner().invoke(app, ["federation", "new", *parties, *schema, "--output", file])
    assert done.exit_code == 0, done.output
    page = " ".join(CliRunner().invoke(app, ["federation", "review", file]).stdout.split())
    assert "Not read: note." in page and "A column of your file that is not declared here stops the node" in page


def test_what_diverges_is_said_to(cards, recwarn):
    found, _ = founded(cards, {"name": "CDPADMM", "clip": 1.0, "rounds": 50, "step": 1e9, "coupling": 1e-12})
    out = rehearse(found.algorithm, found.public)
    assert out.far and "it diverges" in out.why and "inf" not in out.why and not recwarn.list


def test_a_rehearsal_says_what_it_did_not_check(cards):
    found, _ = founded(cards, {"name": "CDPADMM", "clip": 1.0, "rounds": 50})
    said = "not checked: the optimum and 0 of 50 rounds took 0 s"  # nothing is left out of the time
    assert rehearse(found.algorithm, found.public, seconds=0.0).why == said
    wide = Public(found.graph, found.public.sizes, found.loss, found.penalty, 30_000, True, "rows", 1.0, np.arange(5))
    assert "not checked" in rehearse(found.algorithm, wide).why
