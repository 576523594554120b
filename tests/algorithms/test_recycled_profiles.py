"""α_i(k), η_i(2k-1) and f_i(0) of Recycled ADMM: constant ones are the plain method, others what a loop gives."""

import numpy as np
import pytest

import confide
from confide.algorithms import MRADMM, RADMM
from confide.errors import ConfideError


def pose():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    shards = confide.Shards.split(X, np.sign(X[:, 0] + 0.3 * rng.normal(size=90)), 3, seed=0).clip_rows(1.0)
    return confide.Problem(shards, confide.losses.Logistic(), confide.penalties.L2(0.5)), confide.Graph.path(3)


def test_profiles_of_ones_and_of_powers_are_the_plain_methods():
    task, graph = pose()
    growth = np.array([1.02, 1.05, 1.1])
    plain = confide.simulate(task, graph, MRADMM(rounds=6, growth=growth, noise_rate=5.0), record=()).estimates
    given = MRADMM(rounds=6, noise_rate=5.0, coupling_profile=[growth**k for k in (1, 2, 3)], noise_profile=np.ones(3))
    assert np.allclose(confide.simulate(task, graph, given, record=()).estimates, plain)


def test_a_noise_profile_scales_each_rounds_cost_and_calibration_keeps_it():
    task, graph = pose()
    public = task.public(graph)
    method = RADMM(rounds=6, noise_rate=2.0, noise_profile=[[1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [4.0, 1.0, 1.0]])
    rates = [events[0].noise_rate for events in method.events(public)[::2]]
    assert np.allclose(rates, 2.0 * np.array(method.noise_profile))
    fitted = method.calibrated(public, 3.0)
    total = confide.privacy.epsilon([e for events in fitted.events(public) for e in events], 0.0)
    assert np.allclose(total, 3.0, rtol=1e-9)


def test_a_random_start_is_public_and_forgotten():
    task, graph = pose()
    starts = [confide.simulate(task, graph, RADMM(rounds=2, start_size=1.0, start_seed=s), record=()).estimates
              for s in (1, 1, 2)]  # fmt: skip
    assert np.array_equal(starts[0], starts[1]) and not np.allclose(starts[0], starts[2])
    long = confide.simulate(task, graph, RADMM(rounds=600, start_size=1.0), record=())
    assert np.allclose(long.estimates[0], task.solve(), atol=1e-4)
    start = np.random.default_rng(1).normal(size=(3, 2))  # round 2 by hand, from (19)
    f1 = confide.simulate(task, graph, RADMM(rounds=1, start_size=1.0, start_seed=1), record=()).estimates[0]
    A, V = graph.adjacency.toarray(), graph.degrees[:, None]
    step = 1.0 / (2 * V + 0.5) * (2 * A @ f1 - V * start - A @ start)
    assert np.allclose(starts[0][0], f1 + step)


@pytest.mark.parametrize("wrong", [np.ones(2), np.ones((3, 2)), [1.0, 0.0, 1.0], [1.0, np.nan, 1.0]])
def test_a_profile_of_another_shape_is_refused_in_one_line(wrong):
    task, graph = pose()
    for name in ("noise_profile", "coupling_profile"):
        with pytest.raises(ConfideError, match=f"{name} of shape"):
            confide.simulate(task, graph, MRADMM(rounds=6, noise_rate=1.0, **{name: wrong}), record=())
