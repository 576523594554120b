"""Without noise every method reaches an optimum that somebody else computed."""

from dataclasses import replace

import numpy as np
import pytest
from contract_cases import CASES, GRAPHS, LINEAR, NETWORKED, A, P, network, optimum, problem

import confide
from confide.algorithms import REGISTRY


def distance(estimates, best):
    return np.max(np.linalg.norm(estimates - best, axis=-1)) / np.linalg.norm(best)


def test_every_method_is_under_contract():
    assert set(CASES) == set(REGISTRY)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", NETWORKED)
def test_without_noise_the_optimum_is_reached(name, graph):
    case = CASES[name]
    run = confide.simulate(problem(case.kind), GRAPHS[graph], case.quiet, record=())
    assert distance(run.estimates, optimum(case.kind)) < case.distance


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - set(NETWORKED)))
def test_central_methods_reach_the_optimum(name):
    case = CASES[name]
    run = confide.simulate(problem(case.kind), None, case.quiet, record=())
    assert distance(run.estimates, optimum(case.kind)) < case.distance


@pytest.mark.parametrize("name", ["ADMM", "PVP"])
def test_exact_methods_take_nonsmooth_losses(name):
    algorithm = REGISTRY[name](coupling=0.3, rounds=400)
    run = confide.simulate(problem("quantile"), GRAPHS["random"], algorithm, record=())
    assert distance(run.estimates, optimum("quantile")) < 1e-5


@pytest.mark.parametrize("name", ["LinearizedADMM", "CDPADMM", "DDPADMM", "DPADMM", "FDPADMM"])
def test_a_prox_reaches_the_lasso_solution(name):
    algorithm = REGISTRY[name](coupling=0.2, step=1.0, step_decay=0.0, rounds=4000, proximal=True)
    run = confide.simulate(problem("lasso"), GRAPHS["random"], algorithm, record=())
    assert distance(run.estimates, optimum("lasso")) < 1e-6


@pytest.mark.parametrize("name", ["LinearizedADMM", "CDPADMM", "DDPADMM", "DPSGD"])
@pytest.mark.parametrize("kind", ["hinge", "quantile"])
def test_subgradient_steps_come_closer_with_more_rounds(name, kind):
    best = optimum(kind)
    options = {"step": 2.0, "step_decay": 0.5} | ({} if name == "DPSGD" else {"coupling": 0.2})
    far, near = (
        distance(
            confide.simulate(problem(kind), GRAPHS["ring"], REGISTRY[name](rounds=n, **options), record=()).estimates,
            best,
        )
        for n in (500, 20_000)
    )
    assert near < 1e-2
    assert near < 0.7 * far


def test_unequal_penalties_reach_a_weighted_optimum_and_a_common_dual_step_the_true_one():
    eta = (0.1, 0.2, 0.15, 0.3, 0.1)
    published = A.MRADMM(coupling=eta, rounds=1200)
    run = confide.simulate(problem("logistic"), GRAPHS["random"], published, record=())
    weighted = optimum("logistic", tuple(1 / e for e in eta))
    assert distance(run.estimates, weighted) < 1e-6
    assert distance(run.estimates, optimum("logistic")) > 1e-2
    fixed = confide.simulate(problem("logistic"), GRAPHS["random"], replace(published, common_dual=True), record=())
    assert distance(fixed.estimates, optimum("logistic")) < 1e-6


@pytest.mark.parametrize("penalty", [P.MCP(0.3, 3.0), P.SCAD(0.3, 3.7)], ids=repr)
@pytest.mark.parametrize("name", ["LinearizedADMM", "DPADMM"])
def test_concave_penalties_stop_at_a_stationary_point(name, penalty):
    p = problem("squared", penalty)
    algorithm = REGISTRY[name](coupling=0.2, step=1.0, step_decay=0.0, rounds=6000, proximal=True)
    beta = confide.simulate(p, GRAPHS["ring"], algorithm, record=()).estimates[0, 0]
    X, y = p.shards.X, p.shards.y
    scale = np.repeat(1 / p.shards.sizes, p.shards.sizes)
    g = X.T @ (scale * (X @ beta - y))  # plain NumPy: the loss's gradient
    inside = beta != 0
    assert inside.any()
    assert np.allclose((g + penalty.gradient(beta))[inside], 0, atol=1e-7)
    assert np.all(np.abs(g[~inside]) <= penalty.strength + 1e-7)


def test_a_lossy_and_changing_network_still_agrees_on_the_optimum():
    """Dropped links keep Σγ = 0, so that consensus on the optimum is still the only fixed point."""
    graphs = [confide.Graph.ring(5), confide.Graph.star(5)]
    run = confide.simulate(problem("logistic"), graphs, A.LinearizedADMM(**LINEAR | {"rounds": 4000}), record=())
    assert distance(run.estimates, optimum("logistic")) < 1e-6
    lossy = A.LinearizedADMM(**LINEAR | {"rounds": 6000})
    run = confide.simulate(problem("logistic"), network("ADMM"), lossy, seeds=range(3), drop=0.3, record=())
    assert distance(run.estimates, optimum("logistic")) < 1e-6
