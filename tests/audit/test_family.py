"""Rows and lies: what a family holds, what adversaries say, runs that break off, and what an audit can't see."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from buggy import Sound
from scipy.stats import binom
from test_audit import DELTA, PROVEN, Mean

import confide
from confide import audit
from confide.algorithms import REGISTRY
from confide.audit.adversary import adversary, within
from confide.audit.prepare import LOSSES, cases, named, prepare, prepare_all
from confide.audit.transcript import observe
from confide.problem.block import SolverError

L, A = confide.losses, confide.algorithms
CLIPPED = A.CDPADMM(rounds=3, clip=0.1, noise=1.0)
BOUNDED = A.PVP(rounds=3, noise=1.0)  # takes rows of norm 1


# --- canaries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [CLIPPED, BOUNDED], ids=["clipped", "bounded"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_family_differs_in_private_rows_only(loss, intercept, method):
    """One claim is for all of them; that each replaces one row is checked where it is made."""
    canaries = audit.family(named(loss), method, intercept=intercept, penalty=confide.penalties.L2(1.0))
    names = [c.name for c in canaries]
    assert len(set(names)) == len(names) >= 9 and names[0] == "opposite"
    assert ("zero row" in names) == intercept
    views = [c.public(method) for c in canaries]
    shared = [(v.sizes.tolist(), v.loss, v.penalty, v.features, v.intercept, v.row_norm) for v in views]
    assert all(one == shared[0] for one in shared)


def test_a_zero_row_moves_the_intercept_alone():
    canary = next(c for c in audit.family(L.Logistic(), CLIPPED, intercept=True) if c.name == "zero row")
    one, other = (b.gradient(np.zeros((1, 1, 3)), 0.1)[0, 0] for b in canary.blocks(CLIPPED))
    assert np.array_equal((other - one)[:2], [0.0, 0.0]) and (other - one)[2] == pytest.approx(2 * 0.1 / 5)


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_some_crowds_sums_lie_on_either_side_of_a_power_of_two_whatever_they_are_multiplied_by(loss):
    """Rounding to doubles turns at powers of two; a method scales the gradient by a number that it chooses."""
    crowds = [c for c in audit.family(named(loss), CLIPPED) if c.name.startswith("crowd")]
    sums = []
    for c in crowds:
        both = [np.linalg.norm(b.gradient(np.zeros((1, 1, 2)), 0.1)) for b in c.blocks(CLIPPED)]
        sums.append((min(both), max(both)))
    for factor in 2.0 ** np.linspace(-1, 1, 101):
        assert any(np.floor(np.log2(low * factor)) < np.floor(np.log2(high * factor)) for low, high in sums)


# --- adversaries ----------------------------------------------------------------------------------------------------


def test_adversaries_say_finite_numbers_whatever_they_heard():
    sent = [np.array([[1.7e308, -5e-324], [0.0, 3.0]])]
    for one in audit.ADVERSARIES.values():
        for t in range(1, 6):
            said = one.heard(t, sent, 0.1)
            assert said.shape == (2, 2) and np.all(np.isfinite(said)), one.name


@pytest.mark.parametrize("bound", [1e-3, 0.1, 1.0, 7.0])
@pytest.mark.parametrize("power", [-2, -1, 0, 1, 2])
def test_the_doubles_beside_a_rounding_lie_are_as_far_apart_as_it_says(bound, power):
    said = audit.ADVERSARIES[f"near 2^{52 + power}"].heard(1, [np.zeros((1, 1))], bound)[0, 0]
    assert 2.0**power * bound < np.spacing(said) <= 2.0 ** (power + 1) * bound


def test_numbers_are_said_in_turn_and_an_echo_is_the_message():
    sent = [np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])]
    turns = adversary((20.0, -20.0))
    assert [turns.heard(t, sent, 1.0)[0, 1] for t in (1, 2, 3)] == [20.0, -20.0, 20.0]
    assert np.array_equal(audit.ADVERSARIES["echo"].heard(2, sent, 1.0), -sent[-1])


@pytest.mark.parametrize("given", [(), (np.inf,), "honest"])
def test_a_bad_adversary_is_one_line(given):
    with pytest.raises(ValueError, match="adversar") as error:
        adversary(given)
    assert "\n" not in str(error.value)


def test_a_ball_holds_every_double():
    x = np.array([[1.7e308, -1.7e308], [5e-324, 0.0], [3.0, 4.0], [0.0, 0.0]])
    short = within(x, 5.0)
    assert np.all(np.linalg.norm(short, axis=1) <= 5 * (1 + 1e-15))
    assert np.array_equal(short[1:], x[1:]) and short[0, 0] == -short[0, 1] == pytest.approx(5 / np.sqrt(2))


def test_what_is_heard_is_what_the_method_absorbs():
    heard = []

    class Listens(Sound):
        def absorb(self, t, state, message, received, public):
            heard.append(received - 0.0)
            return super().absorb(t, state, message, received, public)

    method = Listens(rounds=3, noise=1.0)
    canary = audit.worst_case(L.Squared(), method, heard="amplify")
    x = observe(method, canary, 0, np.arange(4))
    assert np.allclose(np.hstack([h[:, 0] for h in heard]), 1000 * x.messages, rtol=1e-15)
    heard.clear()
    observe(replace(method, ball=7.0), canary.against("once 5e+307"), 0, np.arange(4))
    assert np.allclose(heard[0], 7.0) and not np.any(heard[1])


# --- runs that break off --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BreaksOff(Sound):
    """Sends no number in round 2, or gives up, where the first row is not blank and the noise is high."""

    raises: bool = False
    always: bool = False

    def local(self, t, state, block, public, noise):
        message = super().local(t, state, block, public, noise)
        if t == 2 and np.any(block.shards.X[0]):
            gone = (message[:, 0, 0] > 0) | self.always
            if self.raises and np.any(gone):
                raise SolverError("stopped above the tolerance")
            message = np.where(gone[:, None, None], np.nan, message)
        return message


@pytest.mark.parametrize("raises", [False, True])
def test_a_run_that_breaks_off_is_seen_one_by_one(raises):
    method = BreaksOff(rounds=3, noise=1.0, raises=raises)
    canary = audit.worst_case(L.Squared(), method, contrast="blank")
    whole = observe(Sound(rounds=3, noise=1.0), canary, 0, np.arange(40))
    x, y = (observe(method, canary, world, np.arange(40)) for world in (0, 1))
    gone = whole.messages[:, 1] > 0
    assert 0 < gone.sum() < 40 and np.array_equal(x.stopped, np.where(gone, 2, 0)) and not y.stopped.any()
    assert np.array_equal(x.messages[~gone], whole.messages[~gone]), "the others go on as if nothing had happened"
    assert np.array_equal(x.messages[gone, 0], whole.messages[gone, 0]) and not x.messages[gone, 1:].any()


def test_breaking_off_alone_refutes_a_claim():
    method = BreaksOff(rounds=2, noise=1e3, always=True)
    canary = audit.worst_case(L.Squared(), method, contrast="blank")
    result = audit.run(method, canary, epsilon=1.0, delta=DELTA, repetitions=300)
    assert result.refuted and result.distinguisher == "where it breaks off"
    assert (result.false_alarms, result.misses) == (0, 0)


# --- choosing among many --------------------------------------------------------------------------------------------


def test_a_bound_holds_as_often_as_it_says_after_choosing_among_many():
    """The mean of rows with noise of sd 1: every pair here has μ = 1, so that only chance tells them apart."""
    pairs = audit.trials(Mean(), [audit.worst_case(L.Absolute(), Mean(), rows=2)], list(audit.ADVERSARIES.values())[:6])
    results = [
        audit.run(Mean(), pairs, epsilon=audit.bounds.gaussian_epsilon(1.0, DELTA), delta=DELTA, mu=1.0,
                  repetitions=150, seed=seed)
        for seed in range(60)
    ]  # fmt: skip
    assert sum(r.refuted for r in results) <= binom.ppf(0.999, 60, 0.05)
    assert np.mean([r.mu_low for r in results]) > 0.5


@pytest.mark.parametrize(("loss", "seed"), [("squared", 1), ("logistic", 2)])
def test_the_sound_method_withstands_the_family(loss, seed, monkeypatch):
    monkeypatch.setitem(REGISTRY, "CDPADMM", Sound)
    found = cases(prepare_all("CDPADMM", loss, 1.0, DELTA, 3, False), None, None)
    result = audit.attack(found, delta=DELTA, repetitions=1000, seed=seed)
    assert not result.refuted and result.mu_low <= result.mu


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVEN)
def test_a_proven_method_withstands_the_family(name):
    found = cases(prepare_all(name, None, 4.0, DELTA, 3, False), None, None)
    assert not audit.attack(found, delta=DELTA, repetitions=300).refuted


def test_pvp_breaks_off_whatever_its_rows_are_or_never():
    job = prepare("PVP", None, 1.0, DELTA, 3, False)
    canary = next(c for c in job.family if c.name == "subnormal")
    one, other = (observe(job.method, canary, world, np.arange(4)) for world in (0, 1))
    assert np.array_equal(one.stopped, other.stopped)


# --- what it says of itself -----------------------------------------------------------------------------------------


def test_an_audit_says_what_it_could_have_seen():
    """At most ln((1 - w)/w) with w from Clopper and Pearson: without an error in 2n guesses, w = 1 - 0.05^(1/2n)."""
    method = Sound(rounds=2, noise=1.0)
    pairs = audit.trials(method, audit.family(L.Squared(), method)[:2], [audit.ADVERSARIES["echo"]])
    result = audit.run(method, pairs, epsilon=1.0, delta=DELTA, repetitions=500)
    w = 1 - 0.05 ** (1 / 1000)
    assert result.epsilon_most == pytest.approx(np.log((1 - DELTA - w) / w)) and result.mu_most is None
    assert result.rarest == pytest.approx(1 - 0.05 ** (1 / 500))
    seen, unseen = "\n".join(result.could_see), "\n".join(result.could_not_see)
    assert "500 repetitions" in seen and "opposite, blank, over 2 rounds" in seen and "echo" in seen
    assert "rounds after round 2" in unseen and "near 2^52" in unseen, "what was not tried is named"
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert document["could_not_see"] == result.could_not_see and len(document["tried"]) == 2
    assert max(map(len, str(result).splitlines())) <= 80


def test_a_claim_out_of_reach_is_said_to_be_so():
    method = Sound(rounds=1, noise=1.0)
    canary = audit.worst_case(L.Squared(), method)
    near, far = (audit.run(method, canary, epsilon=e, delta=DELTA, repetitions=100) for e in (3.0, 9.0))
    assert far.could_not_see[0].startswith("any breach of the claim: ε=9") and "any breach" not in str(near)


def test_pdml_at_five_rounds_is_missed_and_the_audit_says_why():
    job = prepare("PDML", None, 4.0, DELTA, 5, True)
    result = audit.run(job.method, job.canary, epsilon=job.epsilon, delta=DELTA, repetitions=300)
    assert not result.refuted and result.noise_fell == pytest.approx(0.8**2, abs=0.08)
    assert "noise fell to" in result.could_not_see[0] and "later rounds tell more" in result.could_not_see[0]


def test_noise_that_stays_is_not_said_to_fall():
    method = Sound(rounds=3, noise=1.0)
    result = audit.run(method, audit.worst_case(L.Squared(), method), epsilon=4.0, delta=DELTA, repetitions=1000)
    assert result.noise_fell > 0.9 and result.could_not_see[0] == "rounds after round 3"
