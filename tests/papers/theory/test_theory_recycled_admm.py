"""Recycled ADMM's theorems against closed forms on complete graphs, the paper's special case, and mpmath."""

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import confide
from confide.papers.theory import recycled_admm as theory

Graph = confide.Graph
TAIL = Graph.random(5, 5, seed=2)  # a triangle and a tail of two agents


def complete(n, eta, gamma, M, L, mu):
    """(i) and (ii) on K_n: D ± A share the eigenvectors 1 (2n-2 and 0) and its complement (n-2 and n)."""
    g = 2 * eta * (n - 1) + gamma
    w = L * mu / (2 * g)
    first = min(1 + 2 * eta * (n - 1) / g, 1 + eta * (n - 2) / g - w * M**2 / (eta * n))
    tail = w / (mu - 1) * M**2
    along = 2 * eta * (n - 1) - (2 / L) * (2 * eta * (n - 1)) ** 2 / g - tail
    across = eta * (n - 2) - eta**2 * (n - 2) * n / g - (2 / L) * (eta * (n - 2)) ** 2 / g - tail
    return first, min(along, across) / (2 * eta * (n - 1))


@pytest.mark.parametrize(("n", "eta", "gamma", "M", "L", "mu"), [(3, 1, 0.5, 0.3, 2, 2), (6, 0.4, 30, 5, 0.7, 1.3)])
def test_the_condition_on_complete_graphs(n, eta, gamma, M, L, mu):
    got = theory.condition(Graph.complete(n), eta, gamma, M, L=L, mu=mu)
    assert_allclose([got.first, got.second], complete(n, eta, gamma, M, L, mu), rtol=1e-10)
    assert got.holds == (min(complete(n, eta, gamma, M, L, mu)) > 0)


def test_l_and_mu_of_two_give_the_papers_conditions_iii_and_iv():
    eta, gamma, M = 0.6, 3.0, np.array([0.5, 0.9, 0.2, 0.4, 0.7])
    A = TAIL.adjacency.toarray()
    D = np.diag(A.sum(axis=1))
    inverse = np.diag(1 / (2 * eta * np.diag(D) + gamma))
    least = 2 * eta * np.diag(D).min() + gamma
    iii = np.eye(5) + eta * (D + A) @ inverse - 2 / (eta * least) * np.linalg.pinv(D - A) @ np.diag(M**2)
    iv = eta * (D + A) - 2 * eta * (D + A) @ inverse @ (eta * D) - 2 / least * np.diag(M**2)
    want = [np.linalg.eigvalsh(X + X.T)[0] / 2 for X in (iii, iv)]
    got = theory.condition(TAIL, eta, gamma, M, L=2.0, mu=2.0)
    assert_allclose([got.first, got.second * eta * np.linalg.eigvalsh(D + A)[-1]], want, rtol=1e-9)


@pytest.mark.parametrize("M", [2.0, 20.0])
def test_the_least_damping_is_that_of_a_continuous_search(M):
    n, eta = 5, 0.5

    def best(gamma):
        def worst(v):
            return -min(complete(n, eta, gamma, M, math.exp(v[0]), 1 + math.exp(v[1])))

        starts = [(a, b) for a in np.linspace(-8, 8, 9) for b in (-3, 0, 3)]
        return -min(minimize(worst, x, method="Nelder-Mead").fun for x in starts)

    gamma = theory.least_damping(Graph.complete(n), eta, M)
    assert best(1.001 * gamma) > 0
    assert best(0.95 * gamma) <= 0
    assert theory.best_condition(Graph.complete(n), eta, gamma, M).holds
    assert theory.least_damping(Graph.complete(n), eta, 1e-3) == 0.0


@pytest.mark.parametrize("graph", [Graph.ring(4), Graph.path(3), Graph.star(6), Graph.grid(2, 3)], ids=repr)
def test_no_damping_is_enough_on_a_bipartite_graph(graph):
    with pytest.raises(theory.NotSatisfiable, match="bipartite"):
        theory.least_damping(graph, 1.0, 1e-6)
    assert not theory.best_condition(graph, 1.0, 1e9, 1e-6).holds


def test_very_unequal_penalties_can_not_be_saved_either():
    eta = (1e-4, 1.0, 1.0, 1.0, 1.0)
    half = np.diag(eta) @ TAIL.signless_laplacian.toarray()
    assert np.linalg.eigvalsh(half + half.T)[0] < 0
    with pytest.raises(theory.NotSatisfiable, match="fails for every γ"):
        theory.least_damping(TAIL, eta, 1e-6)


def test_only_constant_penalties_are_bounded_and_never_fall():
    assert theory.schedule_allowed(1.0) and theory.schedule_allowed([1.0, 1.0])
    assert not theory.schedule_allowed(1.04) and not theory.schedule_allowed([1.0, 0.9])


def test_rows_of_theorem_vi1():
    # ‖f‖²·ln(1/δ)/(τ - Δ)² = 4·1/(0.5 - 0.25)² at the worse of the two iterations
    assert theory.rows_needed([0.0, 0.25], 0.5, 2.0, math.exp(-1), w=3.0) == pytest.approx(3 * 64)
    with pytest.raises(theory.NotSatisfiable, match="not above"):
        theory.rows_needed([0.0, 0.5], 0.5, 2.0, 0.1, w=1.0)


SETTING = {"a": 0.3, "width": 104, "loss_weight": 1750.0}


def test_rows_of_theorem_vi2_as_mpmath_computes_them():
    tau, excess, norm, fail, rate, N = 0.3, [0.01, 0.05], 4.0, 0.05, [40.0, 50.0], 5
    m = mpmath.mpf
    want = max(
        m(7) * 1750 * N * mpmath.log(1 / m(fail))
        / (N * m(1750) * (m(tau) - m(e)) ** 2 / (2 * m(norm) ** 2)
           - (1 + m(SETTING["a"])) * N * m(104) ** 2 / (1750 * m(r) ** 2) * mpmath.log(104 / m(fail)) ** 2)
        for e, r in zip(excess, rate, strict=True)
    )  # fmt: skip
    got = theory.private_rows_needed(excess, tau, norm, fail, w=7.0, noise_rate=rate, parties=N, **SETTING)
    assert got == pytest.approx(float(want), rel=1e-9)


def test_below_the_least_noise_rate_no_number_of_rows_is_enough():
    least = theory.least_noise_rate(0.02, 0.1, 5.0, 0.05, **SETTING)
    more = {"w": 1.0, "parties": 5, **SETTING}
    assert theory.private_rows_needed(0.02, 0.1, 5.0, 0.05, noise_rate=1.001 * least, **more) > 0
    with pytest.raises(theory.NotSatisfiable, match="no number of rows"):
        theory.private_rows_needed(0.02, 0.1, 5.0, 0.05, noise_rate=0.999 * least, **more)
    quiet = theory.private_rows_needed(0.02, 0.1, 5.0, 0.05, noise_rate=1e9, **more)
    assert quiet == pytest.approx(2 * theory.rows_needed(0.02, 0.1, 5.0, 0.05, w=1.0))  # not 1 time, as the text says


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: theory.condition(TAIL, 1.0, 0.5, 1.0, L=2, mu=1), "mu > 1"),
        (lambda: theory.condition(TAIL, 1.0, -1.0, 1.0, L=2, mu=2), "damping=-1"),
        (lambda: theory.condition(TAIL, [1.0, 2.0], 1.0, 1.0, L=2, mu=2), "one per agent"),
        (lambda: theory.condition(TAIL, 1.0, 1.0, 0.0, L=2, mu=2), "smoothness=0"),
        (lambda: theory.condition(TAIL, 1.0, 1.0, 1.0, L=2, mu=2, next_coupling=0.9), "η_i\\(t\\+1\\)"),
        (lambda: theory.rows_needed(0.0, 0.1, 1.0, 1.0, w=1.0), "failure=1"),
        (lambda: theory.rows_needed(0.0, 0.1, 0.0, 0.5, w=1.0), "reference_norm=0"),
        (lambda: theory.least_noise_rate(0.0, 0.1, 1.0, 0.5, a=0.0, width=3, loss_weight=1.0), "a=0"),
    ],
)
def test_what_can_not_be_is_refused_in_one_line(call, text):
    with pytest.raises(ValueError, match=text) as error:
        call()
    assert "\n" not in str(error.value)
