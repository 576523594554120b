"""R-ADMM without even steps, with output perturbation, and the published bounds of its relatives."""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import confide
from confide.algorithms import DVP, MADMM, MRADMM, PVP, RADMM

GRAPH = confide.Graph.random(5, 6, seed=3)
ROWS, WIDTH = 30, 4


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(5 * ROWS, WIDTH))
    y = np.where(X[:, 0] + rng.logistic(size=5 * ROWS) > 0, 1.0, -1.0)
    shards = confide.Shards.split(X, y, 5).clip_rows(1.0)
    return confide.Problem(shards, confide.losses.Logistic(), confide.penalties.L2(0.3))


def run(problem, method):
    return confide.simulate(problem, GRAPH, method, range(2), record=()).estimates


def test_without_even_steps_r_admm_is_dvp(problem):
    common = {"rounds": 7, "coupling": 0.3, "noise_rate": 20.0}
    assert_array_equal(run(problem, RADMM(recycle=False, **common)), run(problem, DVP(**common)))
    assert RADMM(recycle=False, **common).schedule(problem.public(GRAPH)).touches.all()


def test_output_perturbation_without_even_steps_is_pvp(problem):
    common = {"rounds": 7, "coupling": 0.3, "noise_rate": 20.0}
    assert_array_equal(run(problem, RADMM(recycle=False, perturbation="output", **common)), run(problem, PVP(**common)))


def test_growth_counts_the_rounds_that_minimise(problem):
    public = problem.public(GRAPH)
    whole, odd = MRADMM(growth=1.1, coupling=2.0), MRADMM(growth=1.1, coupling=2.0, recycle=False)
    assert [float(whole.eta(t, public)[0, 0]) for t in (1, 2, 3)] == pytest.approx([2.2, 2.2, 2.42])
    assert [float(odd.eta(t, public)[0, 0]) for t in (1, 2, 3)] == pytest.approx([2.2, 2.42, 2.662])


def test_even_rounds_of_output_perturbation_are_made_of_messages(problem):
    """The first even round by hand: f(2) = f(1) + η/(2ηV+γ) Σ_j [2f_j(1) - f_i(0) - f_j(0)], with f(0) = 0."""
    common = {"perturbation": "output", "coupling": 0.3, "damping": 0.7, "noise_rate": 20.0}
    sent, after = (run(problem, RADMM(rounds=n, **common)) for n in (1, 2))
    heard = np.einsum("ij,sjp->sip", GRAPH.adjacency.toarray(), sent)
    step = 0.3 / (2 * 0.3 * GRAPH.degrees[:, None] + 0.7)
    np.testing.assert_allclose(after, sent + step * 2 * heard, rtol=1e-10, atol=1e-12)


def test_output_perturbation_costs_the_sensitivity_of_the_argmin(problem):
    public = problem.public(GRAPH)
    method = RADMM(rounds=6, coupling=0.3, noise_rate=20.0, perturbation="output", tolerance=1e-6)
    h = 2 * 0.3 * GRAPH.degrees + 0.3 / 5
    pure = confide.privacy.epsilon(chain.from_iterable(method.events(public)), 0.0)
    np.testing.assert_allclose(pure, 3 * 20 * 2 * (1 / ROWS + 2e-6) / h)  # three odd rounds
    assert method.guarantee(public).label == "proven" and method.claims(public, 1e-5) == []
    fitted = method.calibrated(public, 2.0)
    np.testing.assert_allclose(confide.privacy.epsilon(chain.from_iterable(fitted.events(public)), 0.0), 2.0)


def test_neighbours_argmins_stay_within_the_sensitivity(problem):
    """Replace one row by its opposite: the noiseless message moves, and by no more than the event says."""
    own = problem.shards
    X, y = np.array(own.X), own.y.copy()
    X[0], y[0] = X[0] / np.linalg.norm(X[0]), 1.0
    moved = []
    for label in (1.0, -1.0):
        y = y.copy()
        y[0] = label
        shards = confide.Shards(X, y, own.offsets, own.names).clip_rows(1.0)
        other = confide.Problem(shards, confide.losses.Logistic(), confide.penalties.L2(0.3))
        moved.append(run(other, RADMM(rounds=1, coupling=0.3, perturbation="output"))[0, 0])
    h = 2 * 0.3 * GRAPH.degrees[0] + 0.3 / 5
    gap = np.linalg.norm(moved[0] - moved[1])
    assert 0.1 / (ROWS * h) < gap <= 2 / (ROWS * h)


def test_the_accountants_delta_covers_a_sampled_one():
    """δ(ε) = E(1 - e^(ε-loss))₊ of one round in d = 104, loss = α(‖z + v‖ - ‖z‖), by drawing z."""
    d, rate, shift, epsilon, n = 104, 3.0, 1.0, 0.6, 400_000
    rng = np.random.default_rng(1)
    along = rng.normal(size=n)
    rest = rng.chisquare(d - 1, size=n)
    radius = rng.gamma(d, 1 / rate, size=n)
    first = radius * along / np.sqrt(along**2 + rest)  # the coordinate of z along v
    loss = rate * (np.sqrt(radius**2 + 2 * shift * first + shift**2) - radius)
    sampled = np.maximum(0, 1 - np.exp(epsilon - loss))
    event = confide.privacy.RadialNoise(rate, shift, d)
    got = float(confide.privacy.delta([event], epsilon))
    low = sampled.mean() - 4 * sampled.std() / np.sqrt(n)
    assert low > 0
    assert low <= got < 1.02 * sampled.mean()


def test_published_bounds_of_dvp_and_m_admm(problem):
    public = problem.public(GRAPH)
    alpha, c1, eta = 4.0, 0.25, 0.5
    (dvp,) = DVP(rounds=6, coupling=eta, noise_rate=alpha).claims(public, 1e-5)
    h = 2 * eta * GRAPH.degrees + 0.3 / 5
    np.testing.assert_allclose(dvp.epsilon, 6 * 2 / ROWS * (1.4 * c1 / h + alpha))  # (32), every round
    (m,) = MADMM(rounds=6, coupling=eta, growth=1.2, noise_rate=alpha).claims(public, 1e-5)
    total = sum((1.4 * c1 + alpha) / (eta * 1.2**t * GRAPH.degrees * ROWS) for t in range(1, 7))
    np.testing.assert_allclose(m.epsilon, total)  # ICML 2018
    assert "M-ADMM" in m.name


def test_wrong_options_are_refused(problem):
    public = problem.public(GRAPH)
    with pytest.raises(ValueError, match="'objective' or 'output'"):
        RADMM(perturbation="input").check(public)
    with pytest.raises(ValueError, match="leave release_noise 0"):
        replace(RADMM(perturbation="output"), release_noise=0.1).check(public)
