"""Attacks that once succeeded, each as it was found. `docs/privacy.md` lists them with what the audit sees of each."""

import math
from dataclasses import replace

import numpy as np
import pytest
from contract_cases import CASES, problem, rows
from scipy.special import ndtr
from scipy.stats import ks_2samp

import confide
from confide.algorithms import PHASES, REGISTRY, GaussianRelease
from confide.privacy.noise import SimulatedNoise
from confide.runs.party import Party

L, P, A = confide.losses, confide.penalties, confide.algorithms
PAIR = confide.Graph.path(2)
REPETITIONS = 4000


def neighbours(row, other, loss, *, count, penalty=None, clip_rows=None, intercept=False, weighting="rows"):
    """Two problems of two parties; party 0's first row is `row` = (x, y) in one and `other` in the other."""
    out = []
    for x, y in (row, other):
        X, Y = np.zeros((2 * count, len(x))), np.ones(2 * count)
        X[0], Y[0] = x, y
        shards = confide.Shards.from_groups(X, Y, np.repeat([0, 1], count))
        shards = shards if clip_rows is None else shards.clip_rows(clip_rows)
        out.append(confide.Problem(shards, loss, penalty, weighting, intercept))
    return out


def messages(method, task, heard, seed=0):
    """(REPETITIONS, rounds·W): party 0's messages, when all that it hears of every round is `heard`."""
    public = task.public(PAIR).at(0)
    seeds = np.arange(REPETITIONS) + REPETITIONS * seed
    noise = SimulatedNoise(seeds, np.zeros(1, np.int64))
    state = method.init(public)
    state = type(state)(*(np.repeat(a, REPETITIONS, axis=0) for a in state))
    radius, sent = method.message_bound(public), []
    for t in range(1, method.rounds + 1):
        message = confide.problem.questions.within(method.local(t, state, task.only(0), public, noise.at(t)), radius)
        sent.append(message[:, 0])
        received = np.full(message.shape, heard)
        if np.max(np.abs(heard)) > radius / math.sqrt(message.shape[2]):
            received = np.sign(received) * radius / math.sqrt(message.shape[2])  # what a receiver lets through
        state = method.absorb(t, state, message, received, public)
    return np.concatenate(sent, axis=1)


def told(a, b):
    """How well the two worlds' messages tell them apart: the largest gap between two distribution functions.

    Of every number sent, and of the best linear score, fitted on one half and seen on the other. No release that is
    μ-Gaussian private shows a gap above 2Φ(μ/2) - 1, up to sampling.
    """
    a, b = a - a[0], b - a[0]  # so that large values do not drown their differences
    half = len(a) // 2
    scores = [(a[:, j], b[:, j]) for j in range(a.shape[1])]
    both = np.vstack([a[:half] - a[:half].mean(axis=0), b[:half] - b[:half].mean(axis=0)])
    scale = np.where(both.std(axis=0) > 0, both.std(axis=0), 1.0)
    gap = (b[:half].mean(axis=0) - a[:half].mean(axis=0)) / scale
    weights = np.linalg.lstsq((both / scale).T @ (both / scale) / half, gap, rcond=1e-10)[0] / scale
    scores.append((a[half:] @ weights, b[half:] @ weights))
    return max(ks_2samp(x, y).statistic for x, y in scores)


def allowed(mu):
    """The gap that μ allows, with room for the sampling error of REPETITIONS / 2 draws and a few dozen scores."""
    return 2 * ndtr(mu / 2) - 1 + 2.2 * math.sqrt(2 / (REPETITIONS / 2))


def claimed_mu(method, task):
    events = [e for now in method.events(task.public(PAIR).at(0)) for e in now]
    return float(np.max(confide.privacy.mu(events)))


@pytest.mark.parametrize("strength", [1.0, 10.0])
def test_an_unpenalised_intercept_is_not_contracted_by_the_penalty(strength):
    """A zero row whose label is flipped moves the intercept alone, which no penalty pulls back."""
    worlds = neighbours(((0.0, 0.0), 1.0), ((0.0, 0.0), -1.0), L.Logistic(), count=1000, penalty=P.L2(strength),
                        clip_rows=1.0, intercept=True)  # fmt: skip
    public = worlds[0].public(PAIR)
    mu = float(confide.privacy.mu_for(1.0, 1e-5))
    method = A.CDPADMM(rounds=20, clip=1.0, coupling=0.01, step=15, proximal=True).calibrated(public, mu=mu)
    assert method.guarantee(public).label == "proven"
    assert told(*(messages(method, task, 0.0, seed) for seed, task in enumerate(worlds))) < allowed(mu)


@pytest.mark.parametrize("heard", [2.0**52, -(2.0**52), 2.0**60, 1e154, 5e307, -1.7e308, 5e-324])
@pytest.mark.parametrize("kind", [A.CDPADMM, A.DPADMM, A.DPSGD, A.PrivatePDML])
@pytest.mark.parametrize("ball", [None, math.inf])
def test_what_a_neighbour_sends_does_not_sharpen_what_a_row_adds(kind, heard, ball):
    """Values near 2^52 once rounded the gradient to whole units before its noise; 5e307 made one row overflow."""
    loss = L.NoisyLabels(L.Logistic(), 1.0) if kind is A.PrivatePDML else L.Logistic()
    worlds = neighbours(((1.0,), 1.0), ((-1.0,), 1.0), loss, count=1000, clip_rows=1.0, weighting="parties")
    method = kind(rounds=3, clip=0.5, ball=ball).calibrated(worlds[0].public(PAIR), 1.0, 1e-5)
    with np.errstate(all="ignore"):  # without a ball the sum of what was heard leaves the doubles
        a, b = (messages(method, task, heard, seed) for seed, task in enumerate(worlds))
    fine = np.isfinite(a).all(axis=0) & np.isfinite(b).all(axis=0)
    assert np.array_equal(np.isfinite(a), np.isfinite(b))  # a stop would tell nothing
    if fine.any():
        assert told(a[:, fine], b[:, fine]) < allowed(claimed_mu(method, worlds[0]))
    assert ball is not None or fine.all()


def test_a_row_too_short_to_square_is_clipped_all_the_same():
    """Its squared norm underflows to 0: nothing was clipped, and y = 1e300 moved the message by 3e128."""
    worlds = neighbours(((1e-170, 0.0), 1e300), ((0.0, 0.0), 0.0), L.Squared(), count=5, weighting="parties")
    method = A.CDPADMM(rounds=2, clip=1.0).calibrated(worlds[0].public(PAIR), 1.0, 1e-5)
    a, b = (messages(method, task, 0.0, seed) for seed, task in enumerate(worlds))
    assert told(a, b) < allowed(claimed_mu(method, worlds[0]))


@pytest.mark.parametrize("name", [n for n, k in {**REGISTRY, **PHASES}.items() if issubclass(k, GaussianRelease)])
@pytest.mark.parametrize("penalty", [P.Zero(), P.MCP(0.1)], ids=repr)
def test_noise_alone_proves_nothing(name, penalty):
    """`noise=1` on rows that nothing bounds was called proven, at ε = ∞."""
    X, y, _ = rows()
    loss = L.NoisyLabels(L.Logistic(), 1.0) if "PDML" in name else L.Squared()
    target = np.sign(y) if loss.labels == "sign" else y
    task = confide.Problem(confide.Shards.split(X, target, 3), loss, penalty)
    public = task.public(confide.Graph.ring(3))
    method = {**REGISTRY, **PHASES}[name](noise=1.0)
    label = method.guarantee(public).label
    events = [e for now in method.events(public) for e in now]
    if name == "SecondMoment":  # it clips rows itself
        assert label == "proven" and np.all(np.isfinite(confide.privacy.epsilon(events, 1e-5)))
    else:
        assert label == "none" and np.all(np.isinf(confide.privacy.epsilon(events, 1e-5)))


@pytest.mark.parametrize("name", list(REGISTRY))
def test_proven_means_finite_and_enforced(name):
    """Over the registry, with and without clipped rows, with tiny and with ordinary noise."""
    case = CASES[name]
    whole = problem(case.kind)
    party = np.repeat(np.arange(5), whole.shards.sizes)
    unclipped = confide.Shards.from_groups(np.asarray(whole.shards.X), whole.shards.y, party)
    free = confide.Problem(unclipped, whole.loss, whole.penalty)
    graph = None if REGISTRY[name].topology == "central" else confide.Graph.ring(5)
    for task in (whole, free):
        public = task.public(graph) if graph is not None else task.public(None).as_one()
        for method in variants(case.noisy):
            if method.guarantee(public).label != "proven":
                continue
            events = [e for now in method.events(public) for e in now]
            assert np.all(np.isfinite(confide.privacy.epsilon(events, 1e-5)))
            if isinstance(method, GaussianRelease):
                bound = method.enforced_bound(public)
                assert np.all(np.isfinite(bound)) and np.all(bound <= method.row_bound(public))
            else:
                assert public.row_norm is not None  # objective perturbation: rows are clipped


def variants(method):
    yield method
    if isinstance(method, GaussianRelease):
        yield replace(method, noise=1e-320)
        yield replace(method, assumed_bound=1e-3)
        yield replace(method, assumed_bound=1e3)
        yield replace(method, **({"clip": math.inf} if hasattr(method, "clip") else {}))


def test_a_local_of_ones_own_is_not_proven():
    class Own(A.CDPADMM):
        def local(self, t, state, block, public, noise):
            return super().local(t, state, block, public, noise)

    public = problem("logistic").public(confide.Graph.ring(5))
    assert A.CDPADMM(noise=1.0, clip=1.0).guarantee(public).label == "proven"
    assert Own(noise=1.0, clip=1.0).guarantee(public).label == "assumed"


# --- the public ball --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["CDPADMM", "DPADMM", "FDPADMM", "DPSGD", "PVP", "RADMM", "PrivateZeroth", "PrivatePDML"]
)
def test_messages_stay_in_the_ball_and_duals_sum_to_zero(name):
    """With a ball small enough to act: the sender absorbs what it sent, so that the duals still cancel."""
    case = CASES[name]
    method = replace(case.noisy, ball=0.05, rounds=10)
    task = problem(case.kind)
    driver = confide.runs.driver.Driver(task, confide.Graph.ring(5), method, (0, 1))
    acted = 0
    for _ in range(10):
        sent = driver.step()
        size = np.linalg.norm(sent, axis=2)
        assert np.all(size <= 0.05)
        acted += np.sum(size > 0.05 * (1 - 1e-9))
        if hasattr(driver.state, "dual"):
            assert np.allclose(driver.state.dual.sum(axis=1), 0.0, atol=1e-12)
    assert acted > 0


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if REGISTRY[n].topology != "central"])
def test_the_default_ball_is_the_same_for_all_and_never_acts(name):
    """Every node derives the same radius from public values; honest messages stay well inside."""
    case = CASES[name]
    task = problem(case.kind)
    public = task.public(confide.Graph.ring(5))
    radius = case.noisy.message_bound(public)
    assert {case.noisy.message_bound(public.at(k)) for k in range(5)} == {radius}
    assert np.isfinite(radius) == (case.noisy.private(public) and name != "PDML")
    driver = confide.runs.driver.Driver(task, confide.Graph.ring(5), case.noisy, range(20))
    for _ in range(case.noisy.rounds):
        assert np.linalg.norm(driver.step(), axis=2).max() < 0.5 * radius


def test_a_party_projects_what_it_sends():
    method = replace(CASES["CDPADMM"].noisy, ball=1e-3)
    task = problem("logistic")
    noise = SimulatedNoise(np.array([0]), np.array([0]))
    party = Party(0, method, task.public(confide.Graph.ring(5)), task.only(0), noise)
    assert np.linalg.norm(np.frombuffer(party.send(), "<f8")) == pytest.approx(1e-3)
