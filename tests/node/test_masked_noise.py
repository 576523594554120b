"""A whole descent over masked integers: the methods' own functions, real noise, real masks, any graph."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent.parent / "network"))
from summing import Village

import confide
from confide.algorithms import JointDescent
from confide.node.masked_noise import MaskedNoise, grids
from confide.runs.party import Party, encode


def descent(graph, home, mu, rounds=6):
    """Every party's noise, model and totals after a descent over a network in memory."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60 * graph.size, 3))
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=len(X)))
    shards = confide.Shards.split(X, y, graph.size).clip_rows(1.0)
    task = confide.Problem(shards, confide.losses.Logistic(), weighting="rows", intercept=True)
    public = task.public(graph)
    method = JointDescent(rounds=rounds, first="moments").calibrated(public, mu=mu)
    plan = grids(method, public)
    parties = [Party(k, method, public, task.only(k), MaskedNoise(grids=plan)) for k in range(graph.size)]
    village = Village(graph, home, method.schedule(public).noised)
    said = {}

    def values(t, k):
        party = parties[k]
        while party.t < t - 1:  # what came down since
            total = village.parties[k].totals[party.t + 1]
            party.receive_sum(encode(plan[party.t].values(total)))
        party.send()
        said[t, k] = party.noise.steps(t)
        return said[t, k]

    village.run(values)
    for k, party in enumerate(parties):
        while party.t < rounds:
            party.receive_sum(encode(plan[party.t].values(village.parties[k].totals[party.t + 1])))
    return task, method, parties, village, said


@pytest.mark.parametrize("graph", [confide.Graph.ring(5), confide.Graph.star(4)], ids=["ring", "star"])
def test_a_descent_over_masked_integers_ends_with_one_model_bit_for_bit(graph, tmp_path):
    _, method, parties, village, said = descent(graph, tmp_path, mu=2.0)
    first = parties[0].estimate.tobytes()
    assert all(party.estimate.tobytes() == first for party in parties)
    for t in range(1, method.rounds + 1):
        exact = sum(said[t, k] for k in range(graph.size))
        assert all(np.array_equal(one.totals[t], exact) for one in village.parties)


def test_where_noise_is_nothing_it_is_the_simulators_descent(tmp_path):
    """μ so large that noise is far below the rounding of what is compared."""
    task, method, parties, _, _ = descent(confide.Graph.path(3), tmp_path, mu=1e8)
    simulated = confide.simulate(task, confide.Graph.path(3), method, seeds=(0,), record=()).estimates[0, 0]
    assert np.allclose(parties[0].estimate, simulated, rtol=1e-5, atol=1e-5)


def test_whole_numbers_are_handed_out_once_and_noise_is_drawn_once():
    plan = grids_of(mu=1.0)
    noise = MaskedNoise(grids=plan).at(1)
    value, scale = np.zeros((1, 1, 4)), np.full((1, 1), plan[0].scale)
    seen = noise.gaussian("answer", value, scale)
    assert np.array_equal(seen[0, 0], plan[0].values(noise.steps(1)))
    with pytest.raises(KeyError):
        noise.steps(1)
    with pytest.raises(RuntimeError, match="drawn already"):
        noise.gaussian("another", value, scale)
    with pytest.raises(ValueError, match="the grid is for"):
        noise.at(2).gaussian("answer", value, 2 * np.full((1, 1), plan[1].scale))


def grids_of(mu):
    shards = confide.Shards.split(np.zeros((20, 2)), np.ones(20), 4).clip_rows(1.0)
    public = confide.Problem(shards, confide.losses.Logistic(), None, "rows").public(confide.Graph.ring(4))
    method = JointDescent(rounds=3).calibrated(public, mu=mu)
    found = grids(method, public)
    for t, grid in enumerate(found, start=1):
        bound = float(np.max(method.question(t, public).largest(public)))
        assert 4 * (bound / grid.scale + 23) * 2**grid.power < 2**63 and math.isclose(
            grid.scale, float(method.noise_scale(t, public)[0, 0])
        )
    return found
