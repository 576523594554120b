"""A federation that learns by private sums: what its file says, what its noise costs, and whom it trusts."""

import json
import tomllib

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from typer.testing import CliRunner
from village import NAMES, SIZES, Village

import confide
from confide.cli import app
from confide.files.toml import dumps
from confide.network.identity import Identity
from confide.network.tree import SpanningTree
from confide.node import export
from confide.node import federation as federations
from confide.node.caps import caps, promise
from confide.node.founding import new_federation
from confide.node.journal import Journal
from confide.node.summer import Summer
from confide.privacy.ledger import ROW

MODEL = {"loss": {"name": "Logistic"}, "penalty": {"name": "L2", "strength": 0.01}, "weighting": "rows", "features": 4,
         "row_norm": 1.0, "intercept": True}  # fmt: skip


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    folder = tmp_path_factory.mktemp("members")
    cards = [Identity.create(folder / name, name, f"127.0.0.1:{7001 + k}").card for k, name in enumerate(NAMES)]
    return list(zip(cards, SIZES, strict=True))


def founded(members, epsilon=1.0, delta=1e-5, **given):
    table = {"name": "JointDescent", "rounds": 31} | given.pop("algorithm", {})
    return new_federation(members, MODEL, table, {"epsilon": epsilon, "delta": delta}, **given)


@pytest.mark.parametrize("epsilon", [0.03, 0.3, 1.0], ids=["gradient", "spread", "moments"])
@pytest.mark.parametrize("restarts", [None, 0, 7])
def test_noise_is_the_least_that_the_cap_allows_as_nodes_charge_it(members, epsilon, restarts):
    """Whatever round 1 buys: all rounds and the restarts cost the cap, to a part in 10,000, and no more."""
    found, text = founded(members, epsilon, restarts=restarts)
    assert founded_again(found, text)
    more = 2 if restarts is None else restarts
    assert found.restarts == more
    for k in range(5):
        prices = found.prices(k)
        again = sorted(prices, key=lambda now: float(now[0].mu))[31 - more :]
        spent = confide.privacy.epsilon([event for now in [*prices, *again] for event in now], 1e-5)
        assert epsilon * (1 - 1e-4) <= spent <= epsilon * (1 + 1e-9)
    assert found.algorithm.first == {0.03: "gradient", 0.3: "spread", 1.0: "moments"}[epsilon]


def test_a_model_says_the_price_that_the_ledger_paid(members):
    """Every round as the purse pays for it, slack and all, and more than its exact cost."""
    found, _ = founded(members)
    for k, name in enumerate(NAMES):
        said = export.spent(found, name, [1] * 31, [found.head] * 31)
        paid = [event for now in found.prices(k) for event in now]
        assert any(event.slack > 0 for event in paid)
        assert said.epsilon == confide.privacy.epsilon(paid, 1e-5) > said.exact_epsilon


def founded_again(found, text):
    """The file says all that was chosen."""
    again = federations.from_document(tomllib.loads(text))
    return again.digest == found.digest and again.algorithm.noise == found.algorithm.noise


def test_collusion_is_in_the_file_and_decides_the_noise(members):
    noise = {}
    for c in (None, 1, 2, 3, 4):
        found, text = founded(members, algorithm={"first": "moments"} | ({} if c is None else {"collusion": c}))
        assert f"collusion = {c or 2}" in text
        noise[c] = found.algorithm.noise
    assert noise[None] == noise[2]
    for c in (1, 2, 3, 4):  # a party's noise makes, with that of h - 1 others, what one alone would need
        assert noise[c] == pytest.approx(noise[4] / np.sqrt(5 - c), rel=1e-6)
    with pytest.raises(ValueError, match="collusion=5: must be a whole number from 1 to 4"):
        founded(members, algorithm={"collusion": 5})


def test_a_hub_would_see_what_masks_hide(members):
    hub = members[0][0]
    with pytest.raises(ValueError, match="a hub with JointDescent: needs edges and no hub"):
        founded(members[1:], hub=hub)


def test_a_disconnected_graph_is_refused(members):
    with pytest.raises(ValueError, match="disconnected"):
        founded(members, edges=[["ash", "birch"], ["cedar", "doum"], ["doum", "elm"]])


def delta_of(epsilon, mu):
    """Balle and Wang 2018: δ of a Gaussian release."""
    return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def test_what_is_left_against_everyone_is_a_budget_of_its_own(members):
    """Three of five keep their noise to themselves: alone, each has a third of the variance."""
    found, _ = founded(members, restarts=0)
    budgets = caps(found, 0)
    few = ("row", "replace", "outsiders and any 2 of 5 parties together")
    assert set(budgets) == {ROW, few} and budgets[few] == (1.0, 1e-5)
    mu = brentq(lambda mu: delta_of(1.0, mu) - 1e-5, 1e-3, 10)  # of the cap, in closed form
    alone = brentq(lambda epsilon: delta_of(epsilon, np.sqrt(3) * mu) - 1e-5, 1e-3, 50)
    assert budgets[ROW][0] == pytest.approx(alone, rel=1e-5)
    assert promise(found) == f"ε = 1 if at most 2 of 5 collude, ε = {budgets[ROW][0]:.4g} against all others together"
    trusting_nobody, _ = founded(members, algorithm={"collusion": 4}, restarts=0)
    assert caps(trusting_nobody, 0) == {ROW: (1.0, 1e-5)} and promise(trusting_nobody) == ""


def test_the_tree_follows_from_the_file_and_only_its_links_are_used(tmp_path):
    village = Village(tmp_path, {"name": "JointDescent", "rounds": 3, "noise": 0.5}, graph=confide.Graph.complete(5))
    assert village.federation.summed
    tree = SpanningTree.of(village.federation.graph)
    for k, name in enumerate(NAMES):
        with Journal(village.run_folder(name), village.federation.digest) as journal:
            near = Summer(village.federation, village.identities[name], journal).neighbours
        assert set(near) == {NAMES[l] for l in range(5) if tree.parent[k] == l or tree.parent[l] == k}


def test_the_command_says_whom_one_trusts(members, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parties = []
    for card, rows in members:
        (tmp_path / f"{card.name}.toml").write_text(dumps(card.to_json()))
        parties += ["--party", f"{card.name}.toml={rows}"]
    done = CliRunner().invoke(app, ["federation", "new", *parties, "--features", "4", "--epsilon", "1", "--algorithm",
                                    "JointDescent", "--set", "collusion=1", "--weighting", "rows"])  # fmt: skip
    assert done.exit_code == 0, done.output
    found = federations.load(tmp_path / "federation.toml")
    assert found.algorithm.collusion == 1
    assert f"{promise(found)}\n" in done.output and "if at most 1 of 5 collude" in done.output
    page = CliRunner().invoke(app, ["federation", "review", "federation.toml"]).stdout
    assert page.splitlines()[1] == promise(found) and "behind masks" in page and "cost ε=1." in " ".join(page.split())
    assert "the others may go on without it, once all of them sign" in " ".join(page.split())
    most = max(caps(found, k, found.restarts)[ROW][0] for k in range(5))  # what a node may spend, restarts and all
    told = (
        f"together, if at most 1 of 5 parties pool all they know, and at most ε={most:.4g} against all others together"
    )
    assert told in " ".join(page.split()) and most > caps(found, 0, 0)[ROW][0] * 1.02
    assert "of 100 cases if at most 1 of 5 parties pool all they know" in " ".join(page.split())
    said = json.loads(CliRunner().invoke(app, ["federation", "new", *parties, "--features", "4", "--epsilon", "1",
                                               "--algorithm", "JointDescent", "--output", "second.toml",
                                               "--json"]).stdout)  # fmt: skip
    assert "if at most 2 of 5 collude" in said["promise"]
