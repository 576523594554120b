"""A site is lost in the middle of a run: the others go on to their own optimum, and no round is made anew."""

import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
import scipy.special
from village import FEATURES, NAMES, SIZES, Village, rows

import confide
from confide.algorithms import REGISTRY
from confide.errors import ConfideError
from confide.network import wire
from confide.node import federation as federations
from confide.node import office
from confide.node.agreement import Papers
from confide.node.amendment import KEEPS, Amendment, amended
from confide.node.contributions import contributions
from confide.node.journal import Journal
from confide.node.member import Trainer
from confide.node.purse import Purse
from confide.privacy.ledger import Ledger

PLAIN = {
    "ADMM": {"rounds": 160, "coupling": 0.05},
    "LinearizedADMM": {"rounds": 700, "coupling": 0.05, "step": 4.0},
    "CDPADMM": {"rounds": 700, "coupling": 0.05, "step": 4.0},
    "DDPADMM": {"rounds": 700, "coupling": 0.05, "step": 4.0},
}
SECURE = {"name": "CDPADMM", "rounds": 8, "coupling": 0.2, "step": 2.0, "clip": 0.5, "noise": 3.0}


class Members:
    """All parties in this process, each with its journal on disk, exchanging frames as nodes do."""

    def __init__(self, village, paying=False):
        self.village, self.paying, self.members = village, paying, {}
        self.papers = Papers(village.federation)
        for name in NAMES:
            self.join(name, village.federation)

    def join(self, name, federation):
        """Begin, or begin again from the journal, under the federation as it is now."""
        if name in self.members:
            self.leave(name)
        village = self.village
        journal = Journal(village.run_folder(name), federation.digest, aliases=federation.aliases)
        purse = None
        if self.paying:
            ledger = village.folder / name / "ledger.sqlite"
            purse = Purse(federation, federation.parties.index(name), name, ledger, 0)
        member = Trainer(federation, village.identities[name], journal, purse, village.folder / f"{name}.npz")
        member.open()
        member.begin()
        self.members[name] = member

    def leave(self, name):
        member = self.members.pop(name)
        if member.purse is not None:
            member.purse.close()
        member.journal.close()

    def close(self):
        for name in [*self.members]:
            self.leave(name)

    def step(self, name):
        """One round of one member, if every neighbour has sent it; whether it was possible."""
        member = self.members[name]
        t, frames = member.t + 1, {}
        if t > member.rounds:
            return False
        for near, card in member.neighbours.items():
            other = self.members.get(near)
            frame = member.journal.get(card.digest, t)
            if frame is None:
                if other is None or other.sent < t:
                    return False
                frame = other.frame(t)
                member.check(near, t, frame)
            frames[near] = frame
        member.step(frames)
        return True

    def run(self, until=10**9):
        while sum(self.step(name) for name in list(self.members) if self.members[name].t < until):
            pass

    def amend(self, names, **what):
        """All of `names` sign; nobody holds to it yet."""
        now = self.papers.current
        change = Amendment(now.digest, now.head, len(now.history), **what)
        for name in names:
            self.papers.sign_amendment(self.village.identities[name], change)
        assert self.papers.current.head == change.hash
        return self.papers.current


@pytest.fixture
def members(tmp_path):
    made = []

    def make(algorithm, **options):
        paying = options.pop("paying", False)
        made.append(Members(Village(tmp_path, algorithm, **options), paying))
        return made[-1]

    yield make
    for one in made:
        one.close()


def optimum(names):
    """By cvxpy, of these parties: Σ_k mean logistic loss of k's rows + R."""
    X, y = rows()
    X = X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    owner, beta = np.repeat(NAMES, SIZES), cp.Variable(FEATURES)
    loss = sum(
        cp.sum(cp.logistic(cp.multiply(-y[owner == name], X[owner == name] @ beta))) / np.sum(owner == name)
        for name in names
    )
    problem = cp.Problem(cp.Minimize(loss + 0.25 * cp.sum_squares(beta)))  # L2 of strength ½ is ¼‖β‖²
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where the last digits are in doubt: the gradient tells
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    share = sum((owner == name) / np.sum(owner == name) for name in names)
    slope = -X.T @ (share * y * scipy.special.expit(-y * (X @ beta.value))) + 0.5 * beta.value
    assert np.linalg.norm(slope) < 2e-6  # ½-strongly convex: within 4e-6 of the optimum
    return beta.value


@pytest.mark.slow
@pytest.mark.parametrize("method", PLAIN)
def test_the_others_reach_their_own_optimum(members, method):
    """Cedar is lost at a different round for each neighbour; members hear of the amendment one after the other."""
    all_of_us = members({"name": method, **PLAIN[method]})
    all_of_us.run(until=30)
    all_of_us.step("cedar")
    all_of_us.step("birch")  # has cedar's round 31, doum has not
    all_of_us.leave("cedar")
    all_of_us.run()
    stuck = {name: one.t for name, one in all_of_us.members.items()}
    assert len(set(stuck.values())) > 1 and max(stuck.values()) < 40
    stay = [name for name in NAMES if name != "cedar"]
    before = {name: frames(one) for name, one in all_of_us.members.items()}
    now = all_of_us.amend(stay, without=("cedar",))
    for name in stay:
        all_of_us.join(name, now)
        for _ in range(3):  # it goes on while others do not know yet
            all_of_us.step(name)
    all_of_us.run()
    assert {one.t for one in all_of_us.members.values()} == {PLAIN[method]["rounds"]}
    states = [one.party.state for one in all_of_us.members.values()]
    duals = np.array([state.dual[0, 0] for state in states])
    assert np.abs(duals.sum(axis=0)).max() <= 1e-12 * np.abs(duals).sum()
    found = np.array([one.estimate for one in all_of_us.members.values()])
    assert np.abs(found - optimum(stay)).max() < 5e-6
    assert np.abs(optimum(stay) - optimum(NAMES)).max() > 1e-3  # which is another one
    for name, one in all_of_us.members.items():  # what was sent stands, byte for byte
        assert frames(one)[: len(before[name])] == before[name]
        assert len(frames(one)) == PLAIN[method]["rounds"]
    said = contributions(now, all_of_us.members["ash"].journal, one.t)
    assert said.startswith(f"ash, birch, doum, elm: rounds 1 to {PLAIN[method]['rounds']}; cedar: rounds 1 to 3")
    assert said.endswith("left by amendment 1")


def frames(member):
    mine = member.identity.card.digest
    return [member.journal.frame(mine, t) for t in range(1, member.sent + 1)]


@pytest.mark.slow
def test_a_network_mended_by_a_link_counts_it_from_the_first_round(members):
    """The middle of a path is lost; the new neighbours hand each other all they sent, and nothing is made anew."""
    all_of_us = members({"name": "LinearizedADMM", **PLAIN["LinearizedADMM"]}, graph=confide.Graph.path(5))
    all_of_us.run(until=25)
    all_of_us.leave("cedar")
    all_of_us.run()
    stay = [name for name in NAMES if name != "cedar"]
    sent = {name: frames(one) for name, one in all_of_us.members.items()}
    now = all_of_us.amend(stay, without=("cedar",), edges=(("birch", "doum"),))
    for name in stay:
        all_of_us.join(name, now)
    assert all_of_us.members["birch"].t == 0 and all_of_us.members["birch"].sent == len(sent["birch"])
    all_of_us.run()
    duals = np.array([one.party.state.dual[0, 0] for one in all_of_us.members.values()])
    assert np.abs(duals.sum(axis=0)).max() <= 1e-12 * np.abs(duals).sum()
    found = np.array([one.estimate for one in all_of_us.members.values()])
    assert np.abs(found - optimum(stay)).max() < 5e-6
    for name, one in all_of_us.members.items():
        assert frames(one)[: len(sent[name])] == sent[name]


def test_no_round_is_paid_for_again(members):
    """With secure noise and ledgers: each round once, at what it cost when it was sent."""
    all_of_us = members(SECURE, seed=None, budget=(20.0, 1e-5), paying=True)
    all_of_us.run(until=3)
    all_of_us.leave("cedar")
    all_of_us.run()
    stay = [name for name in NAMES if name != "cedar"]
    before = {name: frames(one) for name, one in all_of_us.members.items()}
    now = all_of_us.amend(stay, without=("cedar",))
    for name in stay:
        all_of_us.join(name, now)
    all_of_us.run()
    for name, one in all_of_us.members.items():
        assert one.t == 8 and frames(one)[: len(before[name])] == before[name]
        with Ledger(all_of_us.village.folder / name / "ledger.sqlite") as ledger:
            assert [(e.round, e.attempt) for e in ledger.entries(name)] == [(t, 1) for t in range(1, 9)]
        heads = [wire.run_of(frame) for frame in frames(one)]
        turn = len(before[name])
        assert set(heads[:turn]) == {now.before.head} and set(heads[turn:]) == {now.head}


def test_added_rounds_are_trained_and_paid_for_within_the_raised_cap(members):
    """The population's budget was the federation's cap: it follows, as its owner signed."""
    rounds = {**SECURE, "noise": 0.4, "noise_decay": 1.0}
    all_of_us = members(rounds, seed=None, budget=(3.0, 1e-5), paying=True)
    all_of_us.run()
    assert {one.t for one in all_of_us.members.values()} == {8}
    change = office.compose(all_of_us.village.federation, [], [], {}, [], 80, None)
    assert change.epsilon > 3.0
    now = all_of_us.amend(NAMES, rounds=80, epsilon=change.epsilon)
    for name in NAMES:
        all_of_us.join(name, now)
    assert "is raised to" in all_of_us.members["ash"].notice
    all_of_us.run()
    for name, one in all_of_us.members.items():
        assert one.t == 80
        with Ledger(all_of_us.village.folder / name / "ledger.sqlite") as ledger:
            assert [(e.round, e.attempt) for e in ledger.entries(name)] == [(t, 1) for t in range(1, 81)]
            assert ledger.spent(name) <= change.epsilon
    assert all_of_us.members["ash"].spent() > 3.0  # twelve rows: the dearest


def test_rows_that_count_more_after_the_loss_cost_more(members):
    """Weighted by rows, each counts 1/n: with fewer rows in all it counts more, and the amendment must say so."""
    village = members(SECURE, seed=None, budget=(20.0, 1e-5)).village
    by_rows = federations.from_document(
        {**village.document, "model": {**village.document["model"], "weighting": "rows"},
         "algorithm": {**SECURE, "noise": 0.02}, "budget": {"epsilon": 2.0, "delta": 1e-5}}
    )  # fmt: skip
    office_says = office.compose(by_rows, ["cedar"], [], {}, [], None, None)
    ratio = sum(SIZES) / (sum(SIZES) - SIZES[2])
    mu = [np.sqrt(sum(float(e.sensitivity[0] / e.scale[0]) ** 2 for now in one.algorithm.events(one.public.at(0))
                      for e in now)) for one in (by_rows, amended(by_rows, office_says))]  # fmt: skip
    assert mu[1] / mu[0] == pytest.approx(ratio, rel=1e-9)
    assert office_says.epsilon is not None and office_says.epsilon > 2.0
    with pytest.raises(ConfideError, match="the amendment must raise the cap"):
        amended(by_rows, replace(office_says, epsilon=None))


def test_the_left_member_comes_back_and_is_not_listened_to(members):
    """Its frames of later rounds, with its own good key, belong to nobody's neighbour."""
    all_of_us = members(SECURE, seed=None, budget=(20.0, 1e-5))
    all_of_us.run(until=2)
    all_of_us.leave("cedar")
    stay = [name for name in NAMES if name != "cedar"]
    now = all_of_us.amend(stay, without=("cedar",))
    for name in stay:
        all_of_us.join(name, now)
    birch, cedar = all_of_us.members["birch"], all_of_us.village.identities["cedar"]
    assert "cedar" not in birch.neighbours
    for head in (now.head, now.before.head):
        with pytest.raises(ConfideError, match="frame of cedar, who is no neighbour"):
            birch.check("cedar", 3, wire.pack(cedar, head, 3, np.zeros(4).tobytes()))
    all_of_us.run()
    assert {one.t for one in all_of_us.members.values()} == {8}


def test_methods_that_do_not_survive_a_loss_refuse(tmp_path):
    """Every method on nodes is either tested above or refuses in one line."""
    assert set(KEEPS) == set(PLAIN)
    village = Village(
        tmp_path, {"name": "DPSGD", "rounds": 4, "clip": 0.5, "noise": 3.0}, seed=None, budget=(90.0, 1e-5)
    )
    with pytest.raises(ConfideError, match=r"DPSGD does not survive a lost member, as ADMM, .* do: begin another run"):
        amended(village.federation, leaving(village))
    hub = Village(tmp_path / "hub", {"name": "DPADMM", "rounds": 3}, hub=True)
    with pytest.raises(ConfideError, match="nobody's part can be taken out of a hub's sums"):
        amended(hub.federation, leaving(hub))
    uneven = Village(
        tmp_path / "uneven", {**SECURE, "coupling": [0.1, 0.2, 0.2, 0.2, 0.2]}, seed=None, budget=(20.0, 1e-5)
    )
    with pytest.raises(ConfideError, match="coupling per agent: its duals never sum to 0"):
        amended(uneven.federation, leaving(uneven))
    assert all(REGISTRY[name].topology == "peer" for name in KEEPS)


def leaving(village):
    return Amendment(village.federation.digest, village.federation.head, 1, without=("cedar",))
