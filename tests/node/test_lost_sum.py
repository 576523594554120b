"""A member of a private sum is lost: those who stay sign, go on by themselves, and pay for all that was released."""

import numpy as np
import pytest
from losing import DESCENT, PATH, RING, ROUNDS, STAR, stay_without
from plain_descent import expected
from village import NAMES, SIZES, rows

import confide
from confide.algorithms.joint_descent import gradient_shares
from confide.network.frames import Phase, Place
from confide.network.wire import stage_in
from confide.node import office
from confide.node.agreement import Papers
from confide.node.amendment import Amendment, amended
from confide.node.caps import promise
from confide.node.review import amendment_page

pytestmark = pytest.mark.usefixtures("used")
FEW = ("row", "replace", "outsiders and any 2 of 5 parties together")


# --- the model --------------------------------------------------------------------------------------------------------


def close(models, truth):
    assert np.max(np.abs(truth)) > 1e-3
    assert all(model.tobytes() == models[0].tobytes() for model in models)
    assert np.max(np.abs(models[0] - truth)) <= 1e-6 * np.max(np.abs(truth))


def test_without_a_loss_the_formulas_are_the_simulators(circle):
    made = circle()
    close([made.simulated()[0]], expected(made.federation, [0] * ROUNDS))


@pytest.mark.parametrize("weighting", ["parties", "rows"])
@pytest.mark.parametrize(("graph", "lost", "edges"), [
    (RING, "cedar", ()), (RING, "ash", ()), (PATH, "elm", ()), (PATH, "cedar", (("birch", "doum"),)),
    (STAR, "ash", (("birch", "cedar"), ("birch", "doum"), ("birch", "elm"))), (STAR, "doum", ()),
], ids=["ring", "ring's root", "path's end", "path's middle", "star's centre", "star's leaf"])  # fmt: skip
def test_those_who_stay_learn_what_the_amendment_implies(circle, graph, lost, edges, weighting):
    """Whether or not all have the last total: that of the farthest counts."""
    made = circle(graph=graph, weighting=weighting).begin()
    made.carry(until=lambda: any(one.t == 3 for name, one in made.members.items() if name != lost))
    T = max(one.t for name, one in made.members.items() if name != lost)
    made.lose(lost, edges=edges)
    assert made.carry()
    for one in made.members.values():
        assert one.made == [0] * T + [1] * (ROUNDS - T)
    close([made.model(name).coefficients.ravel() for name in stay_without(lost)], expected(made.current, one.made))
    for name in stay_without(lost):
        origin = made.model(name).origin
        assert origin["contributed"] == (
            f"{', '.join(stay_without(lost))}: rounds 1 to {ROUNDS}; {lost}: rounds 1 to {T}, left by amendment 1"
        )


@pytest.mark.parametrize("first", ["moments", "spread"])
def test_a_loss_before_the_first_total_begins_with_fewer(circle, first):
    """All that was said is abandoned: the model is that of four members from the start, with their noise."""
    made = circle({**DESCENT, "first": first}, graph=RING).begin()
    made.carry(until=lambda: made.members["birch"].sent == 1)
    made.lose("elm")
    assert made.carry()
    four, sizes = made.current, SIZES[:4]
    X, y = rows()
    keep = np.repeat(np.arange(5), SIZES) < 4
    shards = confide.Shards.from_groups(X[keep], y[keep], np.repeat(np.arange(4), sizes)).clip_rows(1.0)
    run = confide.simulate(confide.Problem(shards, four.loss, four.penalty), four.graph, four.algorithm, seeds=[5],
                           record=())  # fmt: skip
    close([made.model(name).coefficients.ravel() for name in NAMES[:4]], run.estimates[0, 0])


def test_two_are_lost_one_after_the_other(circle):
    made = circle({**DESCENT, "collusion": 1}, graph=confide.Graph.complete(5)).begin()
    made.carry(until=lambda: made.members["ash"].t == 2)
    made.lose("elm")
    made.carry(until=lambda: made.members["ash"].t == 5)
    assert made.members["ash"].made == [0] * 2 + [1] * 3
    made.lose("doum")
    assert made.carry()
    one = made.members["cedar"]
    turn = len(one.made) - one.made[::-1].index(1)
    assert one.made == [0] * 2 + [1] * (turn - 2) + [2] * (ROUNDS - turn) and turn in (5, 6)
    assert {tuple(other.made) for other in made.members.values()} == {tuple(one.made)}
    said = made.model("ash").origin["contributed"]
    assert said == (f"ash, birch, cedar: rounds 1 to 8; doum: rounds 1 to {turn}, left by amendment 2; "
                    "elm: rounds 1 to 2, left by amendment 1")  # fmt: skip


def test_a_link_may_change_while_all_stay(circle):
    """Another tree, the same members: a new stage all the same, and no stream of it was used."""
    made = circle(graph=PATH).begin()
    made.carry(until=lambda: made.members["ash"].t == 3)
    made.lose(edges=(("ash", "elm"),))
    assert made.carry()
    assert made.members["ash"].made[-1] == 1 and made.current.algorithm.noise == made.federation.algorithm.noise


# --- what it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["parties", "rows"])
@pytest.mark.parametrize("lost", NAMES)
def test_noise_is_the_least_that_leaves_every_round_at_its_price(circle, weighting, lost):
    """h = |S| - c; in closed form where rows count alike: n/n'·√(h/h')."""
    made = circle(graph=confide.Graph.complete(5), weighting=weighting, seed=None)
    change = office.compose(made.federation, [lost], [], {}, [], None, None)
    assert change.epsilon is None
    after = amended(made.federation, change)
    n, rest = sum(SIZES), sum(SIZES) - SIZES[NAMES.index(lost)]
    rounding = 2 / 2**26  # √width steps of the grid, in units of the noise
    need, louder = [], np.sqrt(gradient_shares(ROUNDS)[0] / gradient_shares(ROUNDS))  # than in round 1
    for size in (size for name, size in zip(NAMES, SIZES, strict=True) if name != lost):
        old, new = (1 / n, 1 / rest) if weighting == "rows" else (1 / size, 1 / size)  # slopes within ½, replaced
        need.append(np.max(new / louder / (np.sqrt(2 / 3) * (old / (0.5 * louder) + rounding) - rounding)))
    assert after.algorithm.noise == pytest.approx(max(need), rel=1e-8)
    if weighting == "rows":
        assert after.algorithm.noise == pytest.approx(0.5 * n / rest * np.sqrt(3 / 2), rel=1e-5)
    assert (after.algorithm.collusion, after.algorithm.honest(after.public)) == (2, 2)
    ratios = []
    for k, name in enumerate(after.parties):
        for old, new in zip(made.federation.prices(NAMES.index(name)), after.prices(k), strict=True):
            (before,), (now,) = old, new
            assert now.kind == before.kind == FEW
            ratios.append(float(now.mu / before.mu))
            assert float(now.everyone.mu / before.everyone.mu) == pytest.approx(np.sqrt(2 / 3), rel=1e-5)
    assert 1 - 1e-8 <= max(ratios) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("graph", [RING, STAR], ids=["ring", "star"])
def test_all_that_was_released_is_charged_against_a_few_and_against_everyone(circle, graph):
    """In closed form: μ² of Gaussian releases adds up, the abandoned one's too."""
    made = circle(seed=None, graph=graph, weighting="rows").begin()
    made.carry(until=lambda: any(one.sent == 4 for name, one in made.members.items() if name != "elm"))
    made.lose("elm")
    assert made.carry()
    assert any(max(one.attempts) == 2 for one in made.members.values())  # a round was abandoned
    share = gradient_shares(ROUNDS) / gradient_shares(ROUNDS)[0]
    delta = 2 * 0.5 / sum(SIZES)  # slopes within ½, rows within 1, one of n replaced
    for name in stay_without("elm"):
        one = made.members[name]
        everyone, few = one.purse.ledger.balances("people")
        assert few.kind == FEW
        entries = [(e.round, e.attempt) for e in one.purse.ledger.entries("people")]
        again = [t for t, attempt in entries if attempt > 1]
        assert len(again) <= 1 and sorted({t for t, _ in entries}) == list(range(1, 9))
        released = [(t, made_in) for t, made_in in enumerate(one.made, start=1)] + [(t, 0) for t in again]
        for rounding in (0.0, 2 / 2**26):  # to the grid, √width steps: charged, too
            mu = [delta / 0.5 * np.sqrt(share[t - 1]) + rounding for t, _ in released]
            alone = sum(m**2 * (2 / 3 if stage else 1) for m, (_, stage) in zip(mu, released, strict=True))
            if rounding:
                assert few.spent <= sum(m**2 for m in mu) / 3 * (1 + 1e-7)
                assert everyone.spent <= alone * (1 + 1e-7)
            else:
                assert few.spent >= sum(m**2 for m in mu) / 3
                assert everyone.spent >= alone
        one.end()
        assert all(balance.held == 0 for balance in one.purse.ledger.balances("people"))


@pytest.mark.slow
def test_a_lost_ledger_is_charged_anew_with_all_rounds_at_least(circle):
    made = circle(seed=None).begin()
    made.carry(until=lambda: made.members["ash"].t == 3)
    made.lose("elm")
    assert made.carry()
    ledger = made.folder / "ash" / "ledger.sqlite"
    everyone, few = made.members["ash"].purse.ledger.balances("people")
    made.crash("ash")
    for file in (ledger, made.run_folder("ash") / "ledger-head"):
        file.unlink()
    made.begin("ash")
    again = made.members["ash"].purse.ledger.balances("people")
    assert again[0].spent >= everyone.spent * (1 - 1e-12) and again[1].spent >= few.spent * (1 - 1e-12)
    assert again[0].spent <= everyone.spent * 1.5


def test_the_promise_speaks_of_those_who_are_left_and_of_all_that_was_released(circle):
    made = circle(seed=None, graph=RING)
    before = promise(made.federation)
    change = office.compose(made.federation, ["elm"], [], {}, [], None, None)
    papers = Papers(made.federation)
    page = " ".join(" ".join(amendment_page(papers.draft(change))).split())
    after = amended(made.federation, change)
    line = promise(after)
    few, alone = (float(word.split()[0]) for word in line.split("ε = ")[1:])
    few_before, alone_before = (float(word.split()[0]) for word in before.split("ε = ")[1:])
    assert "if at most 2 of 4 collude" in line and few > few_before and alone > alone_before
    for words in ("elm leaves (who was not asked", "does not come back", "abandoned and stays charged",
                  "at most 2 may collude, so that 2 share the noise that 3 shared", line):  # fmt: skip
        assert words in page


# --- what is refused --------------------------------------------------------------------------------------------------


def test_with_fewer_than_two_to_share_the_noise_the_run_ends_with_the_model_so_far(circle):
    made = circle({**DESCENT, "collusion": 3}, graph=RING).begin()
    made.carry(until=lambda: made.members["ash"].t == 3)
    words = (r"without elm there are 4, of whom 3 may collude: fewer than 2 would share the noise, so the run ends "
             r"with the model so far, see `confide node model`; begin another run")  # fmt: skip
    with pytest.raises(ValueError, match=words):
        office.compose(made.federation, ["elm"], [], {}, [], None, None)
    assert made.model("ash").origin["round"] == 3


def test_a_network_that_falls_apart_is_refused_with_links_to_add(circle):
    made = circle(graph=PATH)
    with pytest.raises(ValueError, match=r"without cedar the network falls apart into .*: add links, such as --edge"):
        office.compose(made.federation, ["cedar"], [], {}, [], None, None)


def test_keys_and_rounds_of_a_private_sum_stay(circle):
    made = circle()
    with pytest.raises(ValueError, match=r"keys and rounds of a private sum stay, for .*: begin another run"):
        office.compose(made.federation, [], [], {}, [], 50, None)


def test_without_restarts_the_abandoned_round_raises_the_cap_and_budgets_follow(circle):
    """All sign the higher cap; who has the federation's cap for a budget gets the new one."""
    made = circle(seed=None, graph=RING)
    cost = float(np.max(confide.privacy.epsilon([e for now in made.federation.prices(0) for e in now], 1e-5)))
    made.rewrite(budget={"restarts": 0, "epsilon": cost * 1.0001})
    made.begin()
    made.carry(until=lambda: made.members["ash"].t == 3)
    change = office.compose(made.federation, ["elm"], [], {}, [], None, None)
    assert change.epsilon is not None and change.epsilon > made.federation.epsilon
    made.lose("elm", epsilon=change.epsilon)
    assert "is raised to" in made.members["ash"].notice
    assert made.carry()
    for one in made.members.values():
        assert one.purse.ledger.balances("people")[1].spent_epsilon <= change.epsilon * (1 + 1e-9)


def test_who_leaves_by_its_own_signature_keeps_the_model_of_its_rounds(circle):
    made = circle(graph=RING).begin()
    made.carry(until=lambda: made.members["elm"].t == 3)
    made.lose("elm")
    papers = Papers.of(made.folder / "elm", made.federation)
    papers.take(Papers.of(made.folder / "ash", made.federation).pack())  # it agrees, and knows
    origin = made.model("elm").origin
    assert (origin["round"], origin["parties"]) == (3, 5)
    assert origin["contributed"] == "ash, birch, cedar, doum, elm: rounds 1 to 3"


def test_who_was_lost_is_not_listened_to_any_more(circle):
    made = circle(graph=RING).begin()
    made.carry(until=lambda: made.members["ash"].t == 3)
    elm = made.members["elm"]
    made.lose("elm")
    for one in made.members.values():
        assert "elm" not in one.neighbours
    assert made.carry()
    assert elm.t < ROUNDS


def test_an_amendment_is_of_what_is_in_force(circle):
    """A stage has its number from the members that changed, not from how often something else did."""
    made = circle(graph=RING).begin()
    made.carry(until=lambda: made.members["ash"].t == 2)
    moved = Amendment(made.federation.digest, made.federation.head, 1, epsilon=61.0)
    made.sign(moved, NAMES)
    assert len(made.current.stages) == 1
    made.lose("elm")
    assert len(made.current.stages) == 2 and len(made.current.history) == 3
    assert made.carry()
    assert stage_in(made.members["ash"].last) == 1
    assert made.members["ash"].last == Place(Phase.AGREED_DOWN, ROUNDS + 1, stage=1).number
