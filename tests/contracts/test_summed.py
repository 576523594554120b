"""What methods on private sums promise: they know nothing but the sums, and share the noise that they charge for."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from contract_cases import GRAPHS, problem

import confide
from confide.algorithms import DPSGD, SUMMED, JointDescent, JointMoment, JointTally, PrivateZeroth, SummedMethod
from confide.privacy import mu as total_mu
from confide.privacy.noise import SimulatedNoise
from confide.problem.questions import Gradient, OuterProducts
from confide.runs.driver import Driver
from confide.runs.party import Party

NOISY = {
    f"JointDescent {first}": JointDescent(rounds=6, noise=1e-3, first=first)
    for first in ("moments", "spread", "gradient")
} | {
    "JointMoment": JointMoment(noise=1e-3, norm=2.0),
    "JointTally": JointTally(noise=1e-3, edges=(0.0,)),
}
GRAPH = GRAPHS["ring"]
every = pytest.mark.parametrize("method", NOISY.values(), ids=NOISY)


def total(events):
    return float(np.max(total_mu(itertools.chain.from_iterable(events))))


def test_every_method_on_sums_is_under_contract():
    assert {type(m).__name__ for m in NOISY.values()} == set(SUMMED)


# --- the sums, and nothing else ---------------------------------------------------------------------------------------


@every
def test_every_agent_has_the_same_state(method):
    driver = Driver(problem("logistic"), GRAPH, method, (0, 1))
    for _ in range(method.rounds):
        driver.step()
        for value in driver.state:
            assert np.array_equal(value, np.broadcast_to(value[:, :1], value.shape))
    assert np.ptp(driver.estimates) > 0


@every
def test_what_is_learned_follows_from_the_sum_alone(method):
    """Whatever a party sent itself, and whatever its rows are."""
    task = problem("logistic")
    driver = Driver(task, GRAPH, method, (0,))
    other = Driver(problem("logistic", flip=True), GRAPH, method, (0,))
    for t in range(1, method.rounds + 1):
        before = driver.state
        message = driver.step()
        other.step(force=message)
        received = driver.received(t, message)
        again = method.absorb(t, before, np.full_like(message, 7.0), received, driver.public)
        for mine, theirs, same in zip(driver.state, again, other.state, strict=True):
            assert np.array_equal(mine, theirs) and np.array_equal(mine, same)


@every
def test_messages_do_depend_on_the_rows(method):
    a, b = (Driver(problem("logistic", flip=flip), GRAPH, method, (0,)) for flip in (False, True))
    for _ in range(method.rounds):
        message = a.step()
        assert (
            not np.allclose(message, b.step(force=None), rtol=1e-9, atol=1e-12)
            or getattr(method, "first", "") == "spread"
        )


@every
def test_vectorised_equals_agent_by_agent_and_seeds_a_loop(method):
    task = problem("logistic")
    public = task.public(GRAPH)
    parties = [Party(k, method, public, task.only(k), SimulatedNoise(np.array([5]), np.array([k]))) for k in range(5)]
    together = confide.simulate(task, GRAPH, method, seeds=(3, 5), record=())
    for _ in range(method.rounds):
        sent = {k: party.send() for k, party in enumerate(parties)}
        for party in parties:
            party.receive(sent)
    assert np.allclose([party.estimate for party in parties], together.estimates[1], rtol=1e-10, atol=1e-10)
    alone = confide.simulate(task, GRAPH, method, seeds=(5,), record=())
    assert np.array_equal(alone.estimates[0], together.estimates[1])


@every
def test_resuming_gives_the_same_bytes(method, tmp_path):
    args = problem("logistic"), GRAPH, method
    kept = {"seeds": (0, 1), "record": ("consensus",)}
    whole = confide.simulate(*args, **kept)
    for cut in range(1, method.rounds):
        file = tmp_path / f"{cut}.npz"
        confide.simulate(*args, **kept, checkpoint=file, stop=lambda t, _, cut=cut: t == cut)
        assert confide.simulate(*args, **kept, checkpoint=file).estimates.tobytes() == whole.estimates.tobytes()


# --- shared noise -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("parties", "collusion", "colluders"), [(2, None, 1), (3, None, 1), (5, None, 2), (5, 1, 1),
                                                                  (5, 4, 4), (20, None, 9)])  # fmt: skip
def test_the_cost_against_so_many_colluders(parties, collusion, colluders):
    X, y = np.zeros((40, 2)), np.ones(40)
    task = confide.Problem(confide.Shards.split(X, y, parties).clip_rows(1.0), confide.losses.Logistic(), None, "rows")
    public = task.public(confide.Graph.complete(parties))
    method = JointDescent(collusion=collusion).calibrated(public, mu=0.5)
    h = parties - colluders
    assert method.colluders(public) == colluders and method.honest(public) == h
    assert 0.5 * (1 - 1e-9) < total(method.events(public)) <= 0.5
    for j in range(parties):
        assert total(method.against(j, public)) == pytest.approx(0.5 * math.sqrt(h / (parties - j)))
    assert total(method.against(parties - 1, public)) == pytest.approx(0.5 * math.sqrt(h))
    kinds = {e.adversary for now in method.events(public) for e in now}
    told = str(method.guarantee(public))
    if h == 1:
        assert kinds == {"network"} and "computational" not in told
    else:
        assert kinds == {f"outsiders and any {colluders} of {parties} parties together"}
        assert f"computational, if at most {colluders} of {parties} parties collude" in told
    assert told.startswith("proven")
    for j in (-1, parties, 0.5):
        with pytest.raises(ValueError, match=f"colluders={j}: must be a whole number from 0 to {parties - 1}"):
            method.against(j, public)


@pytest.mark.parametrize("weighting", ["rows", "parties"])
@every
def test_parties_add_up_to_the_noise_that_is_charged(method, weighting):
    """One agent's noise in the simulator, the sum's, and that of honest parties in the events; round by round."""
    plain = problem("logistic")
    task = confide.Problem(plain.shards, plain.loss, weighting=weighting, intercept=True)
    public = task.public(GRAPH)
    method = replace(method, collusion=1).calibrated(public, mu=0.3)
    driver = Driver(task, GRAPH, method, range(400))
    for t in range(1, method.rounds + 1):
        at = method.points(t, driver.state, public)
        exact = method.question(t, public).answer(driver.block, *at)
        noise = driver.step() - exact
        sigma = method.noise_scale(t, public)
        share = 1 / (4 * noise.size) ** 0.5
        assert np.std(noise) == pytest.approx(sigma[0, 0], rel=6 * share)
        assert np.std(noise.sum(axis=1)) == pytest.approx(method.sum_scale(t, public)[0, 0], rel=14 * share)
        (event,) = method.events(public)[t - 1]
        assert np.allclose(event.scale, 2.0 * sigma[:, 0])  # four honest parties
        assert np.allclose(event.sensitivity, method.question(t, public).sensitivity(public)[:, 0])
    assert total(method.events(public)) == pytest.approx(0.3)


@pytest.mark.parametrize("collusion", [0, 5, -1, 1.5, True, "2"], ids=str)
def test_collusion_is_a_number_of_other_parties(collusion):
    with pytest.raises(ValueError, match=f"collusion={collusion}: must be a whole number from 1 to 4"):
        JointDescent(collusion=collusion).check(problem("logistic").public(GRAPH))


@pytest.mark.parametrize(("given", "match"), [
    ({"noise": [1.0] * 5}, "parties share their noise, give one number"),
    ({"assumed_bound": 1.0}, "assumed_bound=1.0: its questions enforce theirs"),
    ({"first": "medians"}, "first='medians': must be one of moments, spread, gradient"),
    ({"rounds": 1, "first": "moments"}, "rounds=1: round 1 buys moments, give at least 2"),
])  # fmt: skip
def test_what_it_refuses(given, match):
    with pytest.raises(ValueError, match=match):
        JointDescent(**given).check(problem("logistic").public(GRAPH))


def test_rows_of_any_length_prove_nothing():
    plain = problem("logistic").shards
    loose = confide.Shards(plain.X, plain.y, plain.offsets, plain.names)
    public = confide.Problem(loose, confide.losses.Logistic(), weighting="rows").public(GRAPH)
    method = JointDescent(noise=1.0)
    assert method.guarantee(public).label == "none" and math.isinf(total(method.events(public)))
    with pytest.raises(ValueError, match="rows must be within a norm"):
        method.check(public)


@dataclass(frozen=True, eq=False)
class Remembers(JointDescent):
    """Learns from its own message, which others do not have."""

    def absorb(self, t, state, message, received, public):
        return self.learn(t, state, message, public)


@dataclass(frozen=True, eq=False)
class Cheap(SummedMethod):
    """Asks one question and charges nothing for it."""

    def question(self, t, public):
        return Gradient(public.each(1.0))

    def sensitivity(self, t, public):
        return public.each(1e-9)


@dataclass(frozen=True, eq=False)
class Unmasked(JointDescent):
    """Shows its messages to its neighbours, as a peer method does: each with a share of the noise."""

    topology = "peer"


@dataclass(frozen=True, eq=False)
class Weighed(JointDescent):
    """Would have every party told a sum of its own."""

    def weights(self, graph):
        return np.eye(graph.n)


@dataclass(frozen=True, eq=False)
class Insists(JointDescent):
    """Asks more often than a sum is charged for."""

    def asks(self, t):
        return 2


class Mixed(DPSGD, SummedMethod):
    """Keeps a primal of its own, as DPSGD does, behind masks."""


class Shown(DPSGD, JointDescent):
    """The same, and neighbours see its messages."""

    topology = "peer"


class Often(PrivateZeroth, SummedMethod):
    """Asks many times in a round."""


class Wavers(JointDescent):
    """Has another noise at every look."""

    @property
    def noise(self):
        return next(self._looks)

    @noise.setter
    def noise(self, given):
        object.__setattr__(self, "_looks", itertools.cycle([given, 1e-9]))


class Alters(JointMoment):
    """Asks one of the engine's questions, with a sensitivity of its own."""

    def question(self, t, public):
        asked = OuterProducts(public.each(1.0), rows_alike=True)
        object.__setattr__(asked, "exact_sensitivity", lambda public: public.each(1e-12))
        return asked


@pytest.mark.parametrize("kind", [Mixed, Shown, Often, Wavers, Alters])
def test_a_mixture_or_what_changes_behind_a_name_is_not_proven(kind):
    public = problem("logistic").public(GRAPH)
    assert kind(noise=1.0, clip=1.0).guarantee(public).label == "assumed"


def test_trust_in_every_single_party_is_refused_whatever_a_subclass_checks():
    class Unchecked(JointDescent):
        def check(self, public):
            pass

    with pytest.raises(ValueError, match="collusion=0: must be a whole number from 1"):
        Unchecked(rounds=3, noise=1.0, collusion=0).guarantee(problem("logistic").public(GRAPH))


@pytest.mark.parametrize("kind", [Remembers, Cheap, Unmasked, Weighed, Insists])
def test_private_state_or_an_own_price_is_not_proven(kind):
    public = problem("logistic").public(GRAPH)
    guarantee = kind(noise=1.0, clip=1.0).guarantee(public)
    assert guarantee.label == "assumed" and "of its own, which nobody has proven" in guarantee.reason


# --- one party --------------------------------------------------------------------------------------------------------


def alone(n=400, **options):
    rng = np.random.default_rng(2)
    X = rng.uniform(-0.5, 0.5, size=(n, 3))
    y = np.where(X @ [3.0, -2.0, 1.0] + rng.logistic(size=n) > 0, 1.0, -1.0)
    rows = confide.Shards.from_groups(X, y, ["all"] * n).clip_rows(1.0)
    return confide.Problem(rows, confide.losses.Logistic(), weighting="rows", intercept=True, **options)


def test_one_party_adds_a_curators_noise_and_needs_no_network():
    """σ = Δ/μ for one round that has all of μ², in the sum as in its own answer."""
    task = alone()
    public = task.public(None)
    method = JointDescent(rounds=1, first="gradient").calibrated(public, mu=0.3)
    assert method.colluders(public) == 0 and method.honest(public) == 1
    delta = 2 * 0.5 * math.sqrt(1.25) / 400  # two slopes of ½ on a row of norm √1.25, of which each counts 1/n
    assert method.noise_scale(1, public)[0, 0] == pytest.approx(delta / 0.3, rel=1e-6)
    assert method.sum_scale(1, public)[0, 0] == pytest.approx(delta / 0.3, rel=1e-6)
    told = method.guarantee(public)
    assert told.label == "proven" and "computational" not in told.reason and "collude" not in told.reason
    assert {e.adversary for now in method.events(public) for e in now} == {"network"}
    assert total(method.against(0, public)) == pytest.approx(0.3)
    run = confide.simulate(task, None, JointDescent().calibrated(public, 1.0, 1e-5), seeds=(0, 1), record=())
    assert run.estimates.shape == (2, 1, 4) and run.bytes_sent == 0
    assert run.privacy.epsilon(1e-5) == pytest.approx(1.0)


def test_one_party_learns_what_five_learn_without_noise():
    task = alone()
    split = confide.Problem(confide.Shards.split(task.shards.X, task.shards.y, 5).clip_rows(1.0), task.loss,
                            weighting="rows", intercept=True)  # fmt: skip
    method = JointDescent(rounds=40, first="moments")
    one = confide.simulate(task, None, method, record=()).estimates[0, 0]
    five = confide.simulate(split, GRAPH, method, record=()).estimates[0]
    assert np.allclose(one, five, rtol=1e-9)


def test_one_party_has_nobody_to_collude_with():
    with pytest.raises(ValueError, match="collusion=1: one party has no others, leave it None"):
        JointDescent(collusion=1).check(alone().public(None))
    with pytest.raises(ValueError, match="1 party: CDPADMM learns over a network, which needs at least 2"):
        confide.simulate(alone(), None, confide.algorithms.CDPADMM(rounds=2))
    with pytest.raises(ValueError, match="JointDescent with graph=None: needs a graph"):
        confide.simulate(problem("logistic"), None, JointDescent(rounds=2))


def test_a_single_round_buys_nothing_but_its_gradient():
    assert JointDescent(rounds=1).calibrated(alone().public(None), mu=1.0).first == "gradient"
