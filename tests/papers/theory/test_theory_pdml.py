"""PDML's theorems against closed forms, and against ADMM on quadratics computed with plain NumPy."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import confide
from confide.papers.theory import pdml

Graph = confide.Graph
OPEN = {"b": 0.01, "lambda1": 20.0, "lambda2": 2.0, "alpha": 1e-4}


def trajectory(graph, A, c, beta, theta):
    """(15) to (17) for J̃_i = ½wᵀA_i w - c_iᵀw from 0: w̃ and w of every round, (T, n, d)."""
    W = graph.adjacency.toarray()
    D = np.diag(W.sum(axis=1))
    noisy, dual, seen, own = np.zeros_like(c), np.zeros_like(c), [], []
    for shake in theta:
        right = c - dual + beta * (D + W) @ noisy
        w = np.stack([np.linalg.solve(A[i] + 2 * beta * D[i, i] * np.eye(len(c[0])), right[i]) for i in range(len(c))])
        noisy = w + shake
        dual = dual + beta * (D - W) @ noisy
        seen.append(noisy)
        own.append(w)
    return np.array(seen), np.array(own)


def quadratics(n, strong, smooth, seed=0):
    A = np.stack([np.diag([strong, smooth][:: 1 if i % 2 else -1]) for i in range(n)])
    c = np.random.default_rng(seed).normal(size=(n, 2))
    return A, c, np.linalg.solve(A.sum(axis=0), c.sum(axis=0))


@pytest.mark.parametrize("n", [5, 8])
def test_spectra_of_complete_graphs_are_known(n):
    s = pdml.spectrum(Graph.complete(n))
    assert_allclose([s.plus_max, s.plus_min, s.minus_max, s.minus_min, s.degree], [2 * n - 2, n - 2, n, n, n - 1])


def test_spectra_of_rings_and_stars_leave_the_zero_out():
    ring = pdml.spectrum(Graph.ring(6))  # 2 ± 2cos(2πk/6); even rings are bipartite, so that both have a zero
    assert_allclose([ring.plus_max, ring.plus_min, ring.minus_max, ring.minus_min], [4, 1, 4, 1])
    star = pdml.spectrum(Graph.star(7))
    assert_allclose([star.plus_max, star.plus_min, star.minus_min], [7, 1, 1])


def test_the_condition_by_hand():
    found = pdml.condition(Graph.complete(10), strong=0.1, smooth=0.35)
    phi = 2 * 0.1 * 5 * 64 / (0.35**2 * 64 + 2 * 0.1 * 18**2)
    assert_allclose([found.reached, found.needed], [1 + phi, (18 / 8) ** 2])
    assert not found.satisfiable and found.reason.startswith("not satisfiable") and "is 5.06" in found.reason


def test_no_network_of_ten_servers_and_thirteen_links_meets_it():
    for seed in range(20):
        graph = Graph.random(10, 13, seed=seed)
        assert not any(pdml.condition(graph, a / 10, 0.25 + a / 10).satisfiable for a in (0.01, 1.0, 100.0))
        with pytest.raises(pdml.NotSatisfiable, match="not satisfiable"):
            pdml.lemma5(graph, 0.1, 0.35, **OPEN)


@pytest.mark.parametrize(("change", "match"), [
    ({"b": 0.9}, "must be above 0"), ({"alpha": 1.0}, "smaller of M"), ({"b": 0.0}, "must lie in"),
    ({"lambda2": 1.0}, "above 1"),
])  # fmt: skip
def test_open_constants_out_of_range_are_refused(change, match):
    with pytest.raises(ValueError, match=match):
        pdml.lemma5(Graph.complete(2), 0.5, 0.6, **{**OPEN, **change})


@pytest.mark.parametrize(("strong", "smooth"), [(0.2, 1.0), (0.5, 0.6)])
@pytest.mark.parametrize("shaken", [0.0, 1.0])
def test_lemma_5_holds_for_two_servers(strong, smooth, shaken):
    graph, T = Graph.complete(2), 40
    rate = pdml.lemma5(graph, strong, smooth, **OPEN)
    assert 0 < rate.contraction < 1
    lhs, rhs = both_sides(graph, strong, smooth, rate, shaken, T)
    assert np.all(lhs <= rhs)
    if not shaken:
        assert lhs[-1] < 1e-4 * lhs[0]


def test_lemma_5_as_printed_fails_for_sixty():
    """Without noise: so Theorem 1 stays a claim."""
    graph = Graph.complete(60)
    lhs, rhs = both_sides(graph, 0.5, 0.6, pdml.lemma5(graph, 0.5, 0.6, **OPEN), 0.0, 10)
    assert np.max(lhs / rhs) > 10


def both_sides(graph, strong, smooth, rate, shaken, T):
    """Of (26), round by round."""
    A, c, best = quadratics(graph.size, strong, smooth)
    theta = shaken * np.random.default_rng(1).normal(size=(T, graph.size, 2)) * 0.95 ** np.arange(T)[:, None, None]
    seen, _ = trajectory(graph, A, c, rate.coupling, theta)
    values, vectors = np.linalg.eigh((np.diag(graph.degrees) - graph.adjacency.toarray()) / 2)
    inverse = np.where(values > 1e-9, 1 / np.sqrt(np.maximum(values, 1e-9)), 0)
    r_opt = -(vectors * inverse) @ vectors.T @ (np.einsum("nij,j->ni", A, best) - c) / (2 * rate.coupling)
    start = graph.size * best @ best + rate.dual * np.sum(r_opt**2)
    t, size = np.arange(1, T + 1), np.sum(theta**2, axis=(1, 2))
    rhs = rate.contraction**t * (start + rate.noise * np.cumsum(rate.contraction**-t * size))
    return np.sum((seen - best) ** 2, axis=(1, 2)), rhs


def zero_labels(**other):
    return {"dual_start": 0.0, "labels": 0.0, **other}


@pytest.mark.parametrize("beta", [0.05, 0.5])
@pytest.mark.parametrize("graph", [Graph.ring(6), Graph.star(5), Graph.random(10, 13, seed=0)], ids=repr)
def test_iterates_on_any_graph_stay_below_the_bound_on_average(graph, beta):
    """The bound is on the mean over noise: 300 draws, against it plus four standard errors."""
    n, T, decay = graph.size, 25, 0.8
    A, c, best = quadratics(n, 0.1, 0.4)

    def value(w):
        return np.sum(0.5 * np.einsum("...ni,nij,...nj->...n", w, A, w) - np.sum(c * w, axis=-1), axis=-1)

    gaps = []
    for seed in range(300):
        theta = np.random.default_rng(seed).normal(size=(T, n, 2)) * decay ** (np.arange(T)[:, None, None] / 2)
        _, own = trajectory(graph, A, c, beta, theta)
        gaps.append(value(own).mean() - value(np.tile(best, (n, 1))))
    noise = pdml.NoiseSetting(0.0, [1.0] * n, decay, 2)
    bound = pdml.any_graph(graph, beta, noise, T, radius=1.0, **zero_labels(distance=n * best @ best)).value
    assert np.mean(gaps) <= bound + 4 * np.std(gaps) / math.sqrt(len(gaps))
    still = pdml.theorem2(graph, beta, T, **zero_labels(distance=n * best @ best)).value
    _, own = trajectory(graph, A, c, beta, np.zeros((T, n, 2)))
    assert value(own).mean() - value(np.tile(best, (n, 1))) <= still < bound


def test_theorem_1_is_the_sum_it_prints():
    graph, t, n = Graph.complete(2), 50, 2
    rate = pdml.lemma5(graph, 0.5, 0.6, **{**OPEN, "lambda1": 3.0})
    C, noise = rate.contraction, pdml.NoiseSetting(2.0, [1.0, 0.5], 0.3, 4)
    bound = pdml.theorem1(
        graph, rate, noise, t, a=1.0, kappa=1.0, distance=3.0, dual_distance=5.0, dual_start=0.2, labels=0.7
    )
    total = 4 * 1.25  # Σ dV²
    squares = [
        sum(C**k * (3 + rate.dual * 5) for k in range(1, 400)),  # Σ_k of (26), the noise summed round by round
        sum(C**k * C**-j * rate.noise * total * 0.3 ** (j - 1) for k in range(1, 400) for j in range(1, k + 1)),
    ]
    by_hand = sum(squares) / (2 * t) + 4 / (2 * n)
    assert by_hand <= bound.terms["distance to w̃_opt"] * (1 + 1e-12)
    start, still = 3 + rate.dual * 5, rate.noise * total / (C - 0.3)
    assert_allclose(bound.terms["distance to w̃_opt"], C / (1 - C) / (2 * t) * (start + still) + 1)
    assert_allclose(bound.terms["iterations"], rate.coupling / t * (0.2 + 3 + (0.5 + 2) * total / 0.7))  # L₊, L₋: 2
    assert_allclose(bound.terms["objective noise"], 4.0)
    assert_allclose(bound.value, sum(bound.terms.values()))
    with pytest.raises(pdml.NotSatisfiable, match="needs it below C"):
        pdml.theorem1(graph, rate, pdml.NoiseSetting(1, [1, 1], 0.99, 4), t, a=1, kappa=1, distance=1, dual_distance=1,
                      **zero_labels())  # fmt: skip


def test_objective_noise_of_the_two_shapes():
    """argmin of aκ/2‖w‖² + mean(η)ᵀw is -mean(η)/(aκ): its excess ‖mean η‖²/(2aκ) per server is within (35)."""
    rng = np.random.default_rng(0)
    for shape, eta in (("ball", rng.normal(size=(10, 6))), ("cube", rng.uniform(-1, 1, size=(10, 6)))):
        if shape == "ball":
            eta /= np.linalg.norm(eta, axis=1, keepdims=True)
        bound = pdml.corollary1(10, pdml.NoiseSetting(3.0, [1.0], 0.5, 6, shape), a=2.0, kappa=1.0, labels=0.0).value
        assert_allclose(bound, 9 * (6 if shape == "cube" else 1) / (10 * 2))
        assert np.sum((3 * eta.mean(axis=0)) ** 2) / (2 * 2.0 * 10) <= bound


def test_lemmas_1_and_3_are_the_eigenvalues_of_the_stacked_hessian():
    rng, n, a = np.random.default_rng(0), 4, 0.7
    hessians = []
    for _ in range(n):
        x = rng.normal(size=(9, 3))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        hessians.append(x.T @ x / 4 / 9 + a / n * np.eye(3))
    eigenvalues = np.concatenate([np.linalg.eigvalsh(h) for h in hessians])  # block-diagonal
    c3 = pdml.logistic_bounds(1.0, 1.0).curvature
    assert pdml.strong_convexity(a, 1.0, n) <= eigenvalues.min()
    assert eigenvalues.max() <= pdml.smoothness(c3, a, 1.0, n) < n * c3 + a


def test_the_label_term_by_hand_and_its_factor():
    assert_allclose(pdml.label_factor(0.4), (math.exp(0.4) + 1) / (math.exp(0.4) - 1))
    loss = pdml.logistic_bounds(2.0, 1.0)
    assert_allclose([loss.value, loss.gradient, loss.curvature], [math.log(1 + math.exp(2)), 1.0, 0.25])
    rad = pdml.linear_rademacher(2.0, 1.0, 400)
    found = pdml.label_term(1.0, [400, 400], [rad, rad], loss, 0.05)
    kappa = 1 / math.tanh(0.5)
    assert_allclose(found, 8 * kappa * (rad + 2 * loss.value * math.sqrt(2 * math.log(80) / 400)))
    assert_allclose(pdml.corollary2(2, labels=found).value, found / 2)


def test_the_rademacher_bound_covers_the_exact_complexity():
    """The supremum is radius·‖Σ ν_j x_j‖, averaged over all signs."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(10, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    signs = np.array(np.meshgrid(*[[-1, 1]] * 10)).reshape(10, -1).T
    exact = 2.0 * np.mean(np.linalg.norm(signs @ x, axis=1)) / 10
    assert 0.9 * pdml.linear_rademacher(2.0, 1.0, 10) < exact <= pdml.linear_rademacher(2.0, 1.0, 10)


def test_one_logarithm_covers_some_servers_and_not_any_number():
    assert pdml.union_holds(10, 0.05) and not pdml.union_holds(10**6, 0.5)
    with pytest.raises(pdml.NotSatisfiable, match="does not cover"):
        pdml.label_term(1.0, [10] * 10**6, [0.1] * 10**6, pdml.logistic_bounds(1, 1), 0.5)


@pytest.mark.parametrize("call", [
    lambda: pdml.logistic_bounds(-1, 1), lambda: pdml.label_factor(0), lambda: pdml.NoiseSetting(1, [1], 1.0, 2),
    lambda: pdml.NoiseSetting(1, [1], 0.5, 2, "disc"), lambda: pdml.condition(Graph.ring(5), 0.0, 1.0),
    lambda: pdml.label_term(1.0, [10], [0.1], pdml.logistic_bounds(1, 1), 1.5),
])  # fmt: skip
def test_bad_input_is_one_line(call):
    with pytest.raises(ValueError) as error:
        call()
    assert "\n" not in str(error.value)
