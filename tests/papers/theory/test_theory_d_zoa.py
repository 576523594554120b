"""The D-ZOA calculators against mpmath, NumPy's matrices written out, and plain search."""

import math

import mpmath as mp
import numpy as np
import pytest

import confide
from confide.papers.theory import d_zoa

SETTING = d_zoa.DZOASetting(1.0, 4.0, 2, 20, 10, 100, 1.0, 0.54, 0.5, 0.8)
GRAPH = confide.Graph.from_edges([(0, 1), (0, 3), (1, 2), (2, 3), (3, 4)])  # the paper's network


def sums(T):
    return mp.nsum(lambda t: 1 / t, [1, T]), mp.nsum(lambda t: t ** mp.mpf("-1.5"), [1, T])


def inherent(T, P=10, R=1.0, alpha=0.54, c=0.5):
    s1, s2 = sums(T)
    return c * (R * alpha) ** 2 / mp.log(2 * P) * (s1 * (1 + mp.log(P)) + s2)


def test_22_and_17_are_those_of_the_paper():
    spread = inherent(100) - 4 * mp.mpf("0.64") / 100
    for J in (1, 7, 142):
        assert d_zoa.variance(SETTING, J) == pytest.approx(float(spread / (10 * J)), rel=1e-12)
        epsilon = mp.mpf(1) / (4 * 2 * 20) * mp.sqrt(2.1 * J * 10 * mp.log(1250) / spread)
        bound = d_zoa.iteration_epsilon(SETTING, J, 1e-3)
        assert bound.epsilon == pytest.approx(float(epsilon), rel=1e-12) and not bound.valid
        if epsilon <= 1:
            assert d_zoa.directions(SETTING, float(epsilon), 1e-3) == J


@pytest.mark.parametrize("norm", [0.0, 0.3, 2.0, 25.0])
@pytest.mark.parametrize("radius", [0.1, 1.0])
def test_23_by_plain_search(norm, radius):
    def met(T):
        s1 = sum(1 / t for t in range(1, T + 1))
        s2 = sum(t**-1.5 for t in range(1, T + 1))
        return 4 * norm**2 * math.log(20) / (0.5 * (radius * 0.54) ** 2 * (s1 * (1 + math.log(10)) + s2)) < T

    T = d_zoa.inner_rounds(10, radius, 0.54, norm, 0.5)
    assert met(T) and (T == 1 or not met(T - 1)) and met(2 * T)
    d_zoa.DZOASetting(1.0, 4.0, 2, 20, 10, T, radius, 0.54, 0.5, norm)  # the denominator of (22) is positive
    if T > 1:
        with pytest.raises(ValueError, match="must satisfy"):
            d_zoa.DZOASetting(1.0, 4.0, 2, 20, 10, T - 1, radius, 0.54, 0.5, norm)


def test_26_term_by_term():
    for alpha, T, P in ((0.54, 100, 10), (3.0, 7, 2)):
        first = max(mp.mpf(alpha), 1 / mp.mpf(alpha)) * mp.sqrt(mp.log(2 * P))
        oracle = 0.5 * 1.5 * 2.5 * mp.sqrt(P) / mp.sqrt(T) * (first + 0.7 * mp.log(2 * T) / mp.sqrt(T))
        assert d_zoa.inner_gap(P, T, 1.5, 2.5, alpha, 0.7, 0.5) == pytest.approx(float(oracle), rel=1e-12)


def test_26_bounds_a_run_of_the_inner_loop():
    """Duchi et al.'s method on ‖β‖₁ in R¹⁰, which is √10-Lipschitz: mean iterate, one direction a step."""
    rng, P, T, start = np.random.default_rng(0), 10, 400, np.full(10, 0.3)
    L, R = math.sqrt(P), float(np.linalg.norm(start))
    gaps = []
    for _ in range(20):
        beta, mean = start.copy(), np.zeros(P)
        for t in range(1, T + 1):
            u1, u2 = 1 / t, 1 / (P * t) ** 2
            v1, v2 = rng.normal(size=(2, P))
            rise = np.abs(beta + u1 * v1 + u2 * v2).sum() - np.abs(beta + u1 * v1).sum()
            beta = beta - R / (L * math.sqrt(t * P * math.log(2 * P))) * rise / u2 * v2
            mean += beta / T
        gaps.append(np.abs(mean).sum())
    assert np.mean(gaps) <= d_zoa.inner_gap(P, T, R, L, 1.0, 1.0, 0.5) < np.abs(start).sum() * 2


def test_29_with_the_matrices_of_section_v_written_out():
    beta, K, P, rho, M, eps, delta = np.array([0.4, -1.0, 0.25]), 5, 3, 4.0, 200, 0.15, 1e-3
    arcs = [(k, int(j)) for k in range(K) for j in np.flatnonzero(GRAPH.adjacency.toarray()[k])]
    A1, A2 = np.zeros((2, len(arcs), K))
    for q, (k, j) in enumerate(arcs):  # A_1 and A_2 of (27)
        A1[q, k], A2[q, j] = 1.0, 1.0
    Mp, Mm = np.kron((A1 + A2).T, np.eye(P)), np.kron((A1 - A2).T, np.eye(P))
    Lp, Lm = 0.5 * Mp @ Mp.T, 0.5 * Mm @ Mm.T
    w = np.tile(beta, K)
    lam = np.linalg.eigvalsh(Lm)
    rows = np.array([20, 20, 30, 20, 10])
    each = [
        2.1
        * P
        * math.log(1.25 / delta)
        * np.linalg.eigvalsh(Lp)[-1] ** 2
        / (2 * rho * d**2 * n**2 * eps**2 * lam[lam > 1e-9][0])
        for d, n in zip(GRAPH.degrees, rows, strict=True)
    ]
    gap = d_zoa.outer_gap(GRAPH, beta, M, eps, delta, gradient_bound=1.0, coupling=rho, rows=rows)
    assert gap.start == pytest.approx(w @ (rho * Lp / 2) @ w / M)
    assert gap.privacy == pytest.approx(sum(each)) and gap.printed == pytest.approx(max(each))
    assert gap.total == gap.start + gap.privacy


@pytest.mark.parametrize(("call", "line"), [
    (lambda: d_zoa.directions(SETTING, 1.5, 1e-3), r"epsilon=1.5: must be in \(0, 1\], as Theorem 1 asks"),
    (lambda: d_zoa.variance(SETTING, 0), "directions=0: must be at least 1"),
    (lambda: d_zoa.inner_rounds(10, 1e-9, 0.54, 1e3, 0.5), r"\(23\) is not met by any T up to"),
    (lambda: d_zoa.inner_rounds(10, 1.0, 0.54, math.nan, 0.5), "solution_norm=.*: must be finite"),
    (lambda: d_zoa.inner_gap(10, 0, 1.0, 1.0, 1.0, 1.0, 0.5), "inner_rounds=0: must be finite and above 0"),
    (lambda: d_zoa.outer_gap(GRAPH, [1.0], 10, 2.0, 1e-3, gradient_bound=1.0, coupling=1.0, rows=5), "as Theorem 1"),
])  # fmt: skip
def test_what_cannot_be_met_is_said_in_one_line(call, line):
    with pytest.raises(ValueError, match=line) as caught:
        call()
    assert "\n" not in str(caught.value)
