"""Every proven method stands, what is refuted falls, and known mistakes are caught by the command that passes."""

import ast
import json
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from buggy import FOUND, SLIPS, Sound
from scipy.stats import binom
from typer.testing import CliRunner

import confide
from confide import audit
from confide.algorithms import REGISTRY, Algorithm
from confide.algorithms.base import Consensus
from confide.audit.prepare import LOSSES, named, prepare
from confide.cli import app
from confide.errors import ConfideError

L, A = confide.losses, confide.algorithms
EPSILON, DELTA = 4.0, 1e-5
COMMAND = ["--epsilon", "4", "--rounds", "3", "--repetitions", "1000", "--json"]  # the sound method passes it
PROVEN = [name for name in REGISTRY if hasattr(REGISTRY[name], "calibrated") and name != "PDML"]


def attack(name, loss=None, rounds=3, repetitions=2000, published=False, epsilon=EPSILON, delta=DELTA, seed=0):
    job = prepare(name, loss, epsilon, delta, rounds, published)
    return audit.run(job.method, job.canary, epsilon=job.epsilon, delta=delta, mu=job.mu, repetitions=repetitions,
                     seed=seed)  # fmt: skip


def command(name, output, *more):
    out = CliRunner().invoke(app, ["audit", name, *COMMAND, *more, "--output", str(output)])
    return out.exit_code, json.loads(out.stdout) if out.exit_code < 2 else out.stderr


# --- (a) proven methods ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROVEN)
def test_a_proven_method_is_not_contradicted(name):
    result = attack(name)
    job = prepare(name, None, EPSILON, DELTA, 3, False)
    assert job.method.guarantee(job.canary.public(job.method)).label == "proven"
    assert not result.refuted and 0 < result.epsilon_low <= result.epsilon
    assert str(result).startswith("not contradicted: lower bound ")


@pytest.mark.parametrize("loss", ["absolute", "quantile", "squared", "logistic", "hinge", "huber", "multinomial"])
def test_the_bound_is_tight_where_the_canary_saturates_the_clipping(loss):
    result = attack("CDPADMM", loss)
    assert result.mu / 1.5 < result.mu_low <= result.mu


@pytest.mark.parametrize("name", ["LinearizedADMM", "DDPADMM", "DPADMM", "FDPADMM", "DPSGD", "PVP", "PrivateZeroth",
                                  "PrivatePDML"])  # fmt: skip
def test_the_bound_is_tight_for_every_gaussian_method(name):
    result = attack(name)
    assert result.mu / 1.5 < result.mu_low <= result.mu


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVEN)
def test_few_seeds_contradict_a_proven_method(name):
    """A tight audit at 95 % may be wrong one time in twenty, not more."""
    found = [attack(name, epsilon=1.0, rounds=2, repetitions=1000, seed=seed).refuted for seed in range(20)]
    assert sum(found) <= binom.ppf(0.999, 20, 0.05)


# --- (b), (c) what does not hold ------------------------------------------------------------------------------------


def test_d_zoas_published_claim_is_refuted():
    result = attack("DZOA", rounds=1, repetitions=300, epsilon=0.15, delta=1e-3)
    assert result.refuted and result.epsilon < 0.2 and result.epsilon_low > 4
    assert str(result).startswith("refuted: lower bound ") and "exceeds the claim" in result.verdict


def test_pdml_hides_no_features_quick():
    """Few repetitions can show no more than ln(repetitions/3): perfect separation shows it."""
    result = attack("PDML", rounds=60, repetitions=400, published=True, epsilon=4.0)
    assert result.refuted and (result.false_alarms, result.misses) == (0, 0)


@pytest.mark.slow
def test_pdmls_features_cost_more_than_10():
    """The first 60 of the published 100 rounds; the others can only tell more."""
    assert attack("PDML", rounds=60, repetitions=36_000, published=True, epsilon=10.0).epsilon_low > 10


def test_cdp_admm_with_an_assumed_bound_is_refuted():
    result = attack("CDPADMM", "squared", published=True)
    assert result.parameters["assumed_bound"] == 1.0 and result.refuted and result.mu_low > 5 * result.mu


def test_a_central_method_without_noise_of_its_own_is_told_apart():
    result = audit.run(A.ORZO(rounds=2), L.Absolute(), epsilon=1.0, delta=DELTA, repetitions=200)
    assert result.refuted


# --- (d) seeded mistakes --------------------------------------------------------------------------------------------


def test_the_sound_method_passes_the_command(tmp_path, monkeypatch):
    monkeypatch.setitem(REGISTRY, "CDPADMM", Sound)
    code, document = command("CDPADMM", tmp_path)
    assert code == 0 and not document["refuted"] and document["mu"] / 1.5 < document["mu_low"]
    saved = json.loads((tmp_path / "CDPADMM.json").read_text())
    assert saved["verdict"] == document["verdict"] and [len(s) for s in saved["scores"]] == [1000, 1000]
    assert (tmp_path / "CDPADMM.png").read_bytes().startswith(b"\x89PNG")
    assert len(document["tried"]) > 200 and {t["setting"] for t in document["tried"]} == {
        "plain", "intercept and L2(100), proximal"
    }  # fmt: skip


@pytest.mark.parametrize("bug", SLIPS, ids=lambda bug: bug.__name__)
def test_a_slip_fails_the_same_command(bug, tmp_path, monkeypatch):
    monkeypatch.setitem(REGISTRY, "CDPADMM", bug)
    code, document = command("CDPADMM", tmp_path)
    assert code == 1 and document["refuted"] and document["algorithm"] == bug.__name__
    assert document["epsilon"] == pytest.approx(EPSILON), "the accountant is told the same as by the sound method"


@pytest.mark.parametrize(("bug", "loss", "where", "words"), FOUND, ids=lambda part: getattr(part, "__name__", None))
def test_what_an_attack_found_is_found_again(bug, loss, where, words, tmp_path, monkeypatch):
    """And by the right end: the rows, the lie or the sign that show this kind of mistake."""
    monkeypatch.setitem(REGISTRY, "CDPADMM", bug)
    code, document = command("CDPADMM", tmp_path, "--loss", loss)
    assert code == 1 and document["refuted"] and document["algorithm"] == bug.__name__
    assert words in document[where] and document["epsilon"] == pytest.approx(EPSILON)


@pytest.mark.parametrize("bug", [one[0] for one in FOUND], ids=lambda bug: bug.__name__)
def test_an_honest_neighbour_and_the_old_rows_would_not_have_found_it(bug, tmp_path, monkeypatch):
    monkeypatch.setitem(REGISTRY, "CDPADMM", bug)
    code, document = command("CDPADMM", tmp_path, "--canary", "opposite", "--adversary", "silent")
    assert code == 0 and not document["refuted"]


# --- statistics -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Mean(Algorithm):
    """The Gaussian mechanism: the mean of the rows and noise of sd 1."""

    rounds: int = 1

    def local(self, t, state, block, public, noise):
        return noise.gaussian("mean", block.gradient(np.zeros_like(state.primal)), np.ones((1, 1)))

    def absorb(self, t, state, message, received, public):
        return Consensus(message, state.dual, received)


@pytest.mark.parametrize("gaussian", [True, False])
def test_an_audits_bound_holds_as_often_as_it_says(gaussian):
    """The whole audit, choices included, on a mechanism whose μ is known exactly: 2·slope·length/rows."""
    canary = audit.worst_case(L.Absolute(), Mean(), rows=2)
    mu = 1.0
    truth = audit.bounds.gaussian_epsilon(mu, DELTA)
    claim = {"epsilon": truth, "delta": DELTA, "mu": mu if gaussian else None, "repetitions": 200}
    results = [audit.run(Mean(), canary, seed=seed, **claim) for seed in range(150)]
    assert sum(r.refuted for r in results) <= binom.ppf(0.999, 150, 0.05)
    assert np.mean([r.epsilon_low for r in results]) > (0.5 if gaussian else 0.1) * truth


def test_repetitions_for_fitting_choosing_and_testing_share_no_seed(monkeypatch):
    seen = []
    real = audit.engine.observe
    monkeypatch.setattr(audit.engine, "observe", lambda *a: (seen.append(a[3]), real(*a))[1])
    for seed in (0, 1):
        audit.run(Mean(), audit.worst_case(L.Absolute(), Mean()), epsilon=1, delta=DELTA, repetitions=5000, seed=seed)
    together = np.concatenate(seen)
    once = 2 * 4000 * 2 + 2 * 5000
    assert len(together) == len(np.unique(together)) == 2 * once
    seen.clear()
    pair = audit.trials(Mean(), audit.family(L.Absolute(), Mean())[:2], [audit.ADVERSARIES["silent"]])
    audit.run(Mean(), pair, epsilon=1, delta=DELTA, repetitions=5000)
    tested = np.concatenate(seen[-4:])  # two batches of two worlds
    assert len(np.unique(tested)) == 10_000 and not np.isin(tested, np.concatenate(seen[:-4])).any()


def test_the_same_seed_gives_the_same_result():
    a, b = (audit.run(Mean(), L.Absolute(), epsilon=1, delta=DELTA, repetitions=200, seed=3) for _ in range(2))
    assert a.to_json() == b.to_json()
    assert audit.run(Mean(), L.Absolute(), epsilon=1, delta=DELTA, repetitions=200, seed=4).to_json() != a.to_json()


# --- independence, canaries, words, bad input -----------------------------------------------------------------------


def test_the_audit_imports_nothing_that_accounts():
    for file in Path(audit.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0 and node.module
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                assert not name.startswith("confide.privacy") or name.startswith(
                    ("confide.privacy.noise.", "confide.privacy.labels.")
                ), f"{file.name} imports {name}"


def test_every_loss_has_a_canary_with_opposite_gradients_at_the_clip():
    method = A.CDPADMM(clip=0.1, noise=1.0)
    for name in LOSSES:
        canary = audit.worst_case(named(name), method)
        one, other = (b.gradient(np.zeros((1, 1, canary.one.width)), 0.1)[0, 0] for b in canary.blocks(method))
        assert np.allclose(one, -other) and np.linalg.norm(one) == pytest.approx(0.1 / 5), name


def test_every_loss_of_the_library_has_a_name():
    assert {type(named(name)) for name in LOSSES} == set(L.ALL)


def test_a_canary_replaces_exactly_one_row_of_its_target():
    one = audit.worst_case(L.Absolute(), Mean())
    with pytest.raises(ValueError, match=r"no row replaced: a canary replaces one row of agent 0"):
        audit.Canary(one.one, one.one, one.graph, "nothing changes")
    with pytest.raises(ValueError, match="replaces one row of agent 1"):
        audit.Canary(one.one, one.other, one.graph, "another agent's row", target=1)
    with pytest.raises(ValueError, match="equal sizes"):
        audit.Canary(one.one, audit.worst_case(L.Absolute(), Mean(), rows=7).other, one.graph, "more rows")
    with pytest.raises(ValueError, match="rows only"):
        audit.Canary(one.one, audit.worst_case(L.Hinge(), Mean()).other, one.graph, "another loss")


def test_an_audit_never_confirms():
    result = attack("CDPADMM")
    words = str(result) + json.dumps(result.to_json(), ensure_ascii=False)
    assert not any(w in words.lower() for w in ("confirm", "proven", "verified", "safe", "is private"))
    assert result.verdict == f"not contradicted: lower bound {result.epsilon_low:.3g} at confidence 95 %; claim 4"
    assert str(result).index("what it could not have seen") > str(result).index("what it could have seen")


def test_predictions_are_what_the_method_sends_without_its_noise():
    """The residual of a method whose noise is all additive has the mean ∓ ½ shift, round by round."""
    method = A.CDPADMM(rounds=3, clip=0.1, noise=1e-12)
    canary = audit.worst_case(L.Logistic(), method)
    for world, sign in ((0, -0.5), (1, 0.5)):
        x = audit.transcript.observe(method, canary, world, np.arange(5))
        assert np.allclose(x.residual, sign * x.shift, atol=1e-9) and np.all(x.shift != 0)


@pytest.mark.parametrize(
    ("wrong", "named_in_it"),
    [
        ({"epsilon": 0}, "epsilon=0"), ({"epsilon": np.inf}, "epsilon=inf"), ({"delta": 0}, "delta=0"),
        ({"delta": 1}, "delta=1"), ({"mu": -1}, "mu=-1"), ({"repetitions": 10}, "repetitions=10"),
        ({"repetitions": 200.5}, "repetitions=200.5"), ({"confidence": 1}, "confidence=1"), ({"seed": -1}, "seed=-1"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(wrong, named_in_it):
    with pytest.raises(ValueError, match=named_in_it) as error:
        audit.run(Mean(), L.Absolute(), **{"epsilon": 1.0, "delta": DELTA, "repetitions": 200} | wrong)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("method", "canary", "said"),
    [
        ("CDPADMM", L.Absolute(), "algorithm='CDPADMM': must be one of"),
        ("NoSuch", L.Absolute(), "algorithm='NoSuch': must be one of"),
        (A.CDPADMM, L.Absolute(), "algorithm=<class .*: must be one of"),
        (Mean(), "logistic", "canary='logistic': must be a Canary"), (Mean(), 3, "canary=3: must be a Canary"),
        (Mean(), [L.Absolute()], "canary=.*: must be a Canary"),
    ],
)  # fmt: skip
def test_a_name_where_an_object_belongs_is_one_line(method, canary, said):
    with pytest.raises(TypeError, match=said) as error:
        audit.run(method, canary, epsilon=1.0, delta=DELTA)
    assert isinstance(error.value, ConfideError) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("args", "named_in_it"),
    [
        (["NoSuch"], "method 'NoSuch': must be"), (["ADMM"], "ADMM claims no privacy"), (["ORZO"], "ORZO claims no"),
        (["CDPADMM", "--loss", "cubic"], "unknown loss 'cubic'"), (["CDPADMM", "--epsilon", "0"], "epsilon=0"),
        (["CDPADMM", "--delta", "2"], "delta=2"), (["DVP", "--loss", "squared"], "unbounded"),
        (["CDPADMM", "--rounds", "0"], "rounds=0"), (["PVP", "--published"], "no published form"),
        (["CDPADMM", "--canary", "yellow"], "unknown canary 'yellow'"), (["CDPADMM", "--rows", "0"], "rows=0"),
        (["CDPADMM", "--adversary", "honest"], "unknown adversary 'honest'"),
        (["PDML", "--published", "--canary", "blank"], "leave out --canary"),
        (["CDPADMM", "--repetitions", "5"], "repetitions=5"), (["CDPADMM", "--output", __file__], "not a folder"),
    ],
)  # fmt: skip
def test_a_bad_command_is_one_line_and_exit_code_2(args, named_in_it, tmp_path):
    place = [] if "--output" in args else ["--output", str(tmp_path / "new")]
    out = CliRunner().invoke(app, ["audit", *args, *place])
    assert out.exit_code == 2 and out.stdout == "" and out.stderr.count("\n") == 1 and named_in_it in out.stderr
    assert not (tmp_path / "new").exists()


def test_the_claim_is_the_accountants():
    job = prepare("CDPADMM", "absolute", 1.0, DELTA, 4, False)
    events = list(chain.from_iterable(job.method.events(job.canary.public(job.method))))
    assert job.epsilon == pytest.approx(1.0) and job.mu == pytest.approx(float(np.max(confide.privacy.mu(events))))
    assert prepare("DVP", None, 1.0, DELTA, 4, False).mu is None, "a pure-ε claim is not a Gaussian one"


def test_plain_words_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setitem(REGISTRY, "DPSGD", Sound)
    args = ["audit", "DPSGD", "--repetitions", "200", "--rounds", "2", "--output", str(tmp_path)]
    out = CliRunner().invoke(app, [*args, "--canary", "zero row"])
    assert out.exit_code == 0 and out.stdout.startswith("not contradicted: lower bound ")
    assert "canary: 1 of 5 rows, all zero" in out.stdout and "DPSGD.png" in out.stdout
    report = out.stdout.split(f"  {tmp_path}")[0]  # the folder's name may be of any length
    assert max(map(len, report.splitlines())) <= 80
