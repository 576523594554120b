"""The private second moment: exact without noise, and its sensitivity is attained."""

import numpy as np
import pytest

import confide
from confide.algorithms import JointMoment, SecondMoment
from confide.privacy.noise import SimulatedNoise
from confide.problem.questions import pack, unpack
from confide.runs.driver import Driver
from confide.runs.party import Party

RING = confide.Graph.ring(3)
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4)) * rng.uniform(0.1, 2, size=(60, 1))


def problem(rows=X):
    groups = np.repeat(np.arange(3), [10, 30, 20])
    return confide.Problem(confide.Shards.from_groups(rows, np.zeros(60), groups), confide.losses.Squared())


def test_without_noise_it_is_the_mean_of_the_clipped_moments():
    driver = Driver(problem(), RING, SecondMoment(norm=1.0), (0,))
    driver.step()
    clipped = X * np.minimum(1, 1 / np.linalg.norm(X, axis=1))[:, None]
    parts = [clipped[:10], clipped[10:40], clipped[40:]]
    expected = np.mean([part.T @ part / len(part) for part in parts], axis=0)
    assert np.allclose(driver.algorithm.matrix(driver.state, driver.public)[0, 0], expected)


def test_packing_keeps_the_norm():
    A = rng.normal(size=(5, 5))
    A = A + A.T
    assert np.isclose(np.linalg.norm(pack(A)), np.linalg.norm(A))
    assert np.allclose(unpack(pack(A), 5), A)


def test_the_sensitivity_is_a_bound_and_attained():
    method, public = SecondMoment(norm=1.5), problem().public(RING)
    bound = method.sensitivity(1, public)[:, 0]
    worst = 0.0
    for trial in range(200):
        other = X.copy()
        other[3] = 3 * np.eye(4)[trial % 4] if trial < 4 else rng.normal(size=4) * 5  # agent 0's row 3
        first = X.copy()
        first[3] = 3 * np.eye(4)[(trial + 1) % 4] if trial < 4 else X[3]
        a, b = (pack(problem(rows).block.second_moment(1.5)[0]) for rows in (first, other))
        worst = max(worst, np.linalg.norm(a - b))
    assert worst <= bound[0] * (1 + 1e-12)
    assert worst == pytest.approx(bound[0])  # two orthogonal long rows


def test_noise_is_symmetric_with_the_stated_spread_and_the_total_is_the_budget():
    method = SecondMoment(norm=1.0).calibrated(problem().public(RING), 1.0, 1e-5)
    driver = Driver(problem(), RING, method, range(4000))
    message = unpack(driver.step(), 4) - problem().block.second_moment(1.0)
    s = method.noise_scale(1, driver.public)[:, 0]
    assert np.allclose(message[..., 0, 0].std(axis=0), s, rtol=0.05)
    assert np.allclose(message[..., 0, 1].std(axis=0), s / np.sqrt(2), rtol=0.05)
    privacy = driver.privacy()
    assert privacy.epsilon(1e-5) == pytest.approx(1.0, rel=1e-9) and privacy.guarantee.label == "proven"


def test_vectorised_equals_agent_by_agent():
    method = SecondMoment(noise=2.0)
    together = Driver(problem(), RING, method, (5,))
    together.step()
    public = problem().public(RING)
    noise = [SimulatedNoise(np.array([5]), np.array([k])) for k in range(3)]
    parties = [Party(k, method, public, problem().only(k), noise[k]) for k in range(3)]
    sent = {k: party.send() for k, party in enumerate(parties)}
    for party in parties:
        party.receive(sent)
    assert np.allclose([party.estimate for party in parties], together.estimates[0], rtol=1e-12)


# --- as one private sum -----------------------------------------------------------------------------------------------


def test_the_joint_moment_counts_every_row_alike():
    task = confide.Problem(problem().shards, confide.losses.Squared(), weighting="rows")
    driver = Driver(task, RING, JointMoment(norm=1.0), (0,))
    driver.step()
    clipped = X * np.minimum(1, 1 / np.linalg.norm(X, axis=1))[:, None]
    assert np.allclose(unpack(driver.estimates[0], 4), clipped.T @ clipped / 60)


def test_the_joint_moment_has_a_curators_noise_but_for_the_colluders():
    """Δ = √2/n; three parties of which one may collude: σ√3 in the sum, σ = Δ/(μ√2)."""
    task = confide.Problem(problem().shards, confide.losses.Squared(), weighting="rows")
    method = JointMoment(norm=1.0).calibrated(task.public(RING), mu=0.5)
    driver = Driver(task, RING, method, range(4000))
    driver.step()
    clipped = X * np.minimum(1, 1 / np.linalg.norm(X, axis=1))[:, None]
    noise = unpack(driver.estimates[:, 0], 4) - clipped.T @ clipped / 60
    want = np.sqrt(2) / 60 / 0.5 * np.sqrt(3 / 2)
    assert noise[:, 0, 0].std() == pytest.approx(want, rel=0.05)
    assert noise[:, 0, 1].std() == pytest.approx(want / np.sqrt(2), rel=0.05)
    with pytest.raises(ValueError, match="rounds must be 1"):
        JointMoment(rounds=2).check(task.public(RING))
