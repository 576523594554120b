"""D-ZOA's compiled inner loop does what its pages of algebra say, with one number of directions an agent."""

import numpy as np
import pytest

import confide
from confide.algorithms import DVP, DZOA
from confide.runs.driver import Driver

GRAPH = confide.Graph.from_edges([(0, 1), (0, 3), (1, 2), (2, 3), (3, 4)])
SIZES = (20, 12, 33, 20, 15)
L, P = confide.losses, confide.penalties


def problem(loss=None, penalty=None, intercept=False, weight=1.0):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(sum(SIZES), 6))
    y = X @ rng.normal(size=6) + 0.3 * rng.normal(size=len(X))
    loss = loss or L.Squared()
    target = np.where(y > 0, 1.0, -1.0) if loss.labels == "sign" else y
    columns = {"weight": np.full(len(X), weight)}
    shards = confide.Shards.from_groups(X, target, np.repeat(np.arange(5), SIZES), columns)
    return confide.Problem(shards, loss, penalty or P.L2(0.5), intercept=intercept)


class Drawn:
    """The same draws without their counters, so that the step-by-step path is taken."""

    def __init__(self, noise):
        self.noise = noise

    def at(self, t):
        return Drawn(self.noise.at(t))

    def public_normal(self, name, width):
        return self.noise.public_normal(name, width)


@pytest.mark.parametrize("loss", [L.Squared(), L.Absolute(), L.Logistic(), L.NoisyLabels(L.Logistic(), 1.0)], ids=repr)
@pytest.mark.parametrize("penalty", [P.L2(0.5), P.ElasticNet(0.4, 0.6)], ids=repr)
def test_compiled_equals_step_by_step(loss, penalty):
    method = DZOA(rounds=3, inner_steps=20, directions=(1, 40, 3, 300, 7))
    p = problem(loss, penalty, intercept=True, weight=2.0)
    one, other = (Driver(p, GRAPH, method, [5, 8]) for _ in range(2))
    other.noise = Drawn(other.noise)
    for _ in range(3):
        assert np.allclose(one.step(), other.step(), rtol=0, atol=1e-8)


def test_one_direction_by_the_paper():
    """(7) to (9) written out in NumPy for one agent, one direction and two inner steps, in round 1."""
    p = problem()
    driver = Driver(p, GRAPH, DZOA(rounds=1, inner_steps=2, directions=1), [4])
    X, y = p.shards.part(3)
    draws = [driver.noise.at(1).public_normal(f"inner {i}", 12)[0, 3].reshape(2, 6) for i in range(2)]

    def F(b):
        return 0.5 * np.mean((X @ b - y) ** 2) + 0.5 * 0.5 / 5 * b @ b + 4.0 * 3 * b @ b

    b = np.zeros(6)
    for t, (v1, v2) in enumerate(draws, start=1):
        u1, u2 = 1 / t, 1 / (6 * t) ** 2
        g = (F(b + u1 * v1 + u2 * v2) - F(b + u1 * v1)) / u2 * v2
        b = b - 0.54 / (2.5 * np.sqrt(t * 6 * np.log(12))) * g
    assert np.allclose(driver.step()[0, 3], b, rtol=1e-9, atol=0)


def test_claims_take_each_agents_directions():
    p = problem()
    public = p.public(GRAPH)
    few, many, mixed = (DZOA(directions=j).claims(public, 1e-3)[0].epsilon for j in (4, 64, (4, 4, 4, 4, 64)))
    assert many == pytest.approx(4 * few) and mixed == pytest.approx(many)  # ε ∝ √J, and agent 4 has degree 1


@pytest.mark.parametrize("bad", [0, 2.5, (1, 2, 3, 4, 0), True, (1, 2)])
def test_directions_are_whole_numbers_one_an_agent(bad):
    with pytest.raises(ValueError, match=r"directions|one per agent"):
        confide.simulate(problem(), GRAPH, DZOA(rounds=1, inner_steps=1, directions=bad))


def test_gaussian_dvp_draws_its_noise_and_claims_nothing():
    p = problem()
    public = p.public(GRAPH)
    quiet = confide.simulate(p, GRAPH, DVP(rounds=1, coupling=0.5), record=()).estimates
    noisy = confide.simulate(p, GRAPH, DVP(rounds=1, coupling=0.5, noise=0.3), seeds=range(4000), record=()).estimates
    for k in range(5):  # squared loss: f = f_0 - H⁻¹e, so its covariance is 0.09·H⁻²
        H = p.block.gram[k] + (0.5 / 5 + 2 * 0.5 * GRAPH.degrees[k]) * np.eye(6)
        expected = 0.09 * np.linalg.inv(H @ H)
        assert np.allclose(np.cov((noisy - quiet)[:, k].T), expected, atol=0.1 * expected.max())
    method = DVP(rounds=2, noise=0.3)
    assert method.guarantee(public).label == "none"
    assert all(isinstance(e, confide.privacy.Unbounded) for cost in method.events(public) for e in cost)
    with pytest.raises(ValueError, match="no account"):
        method.calibrated(public, 1.0)
    with pytest.raises(ValueError, match="give one of them"):
        DVP(noise=0.3, noise_rate=1.0).check(public)


def test_compiled_equals_step_by_step_with_few_rows():
    """Fewer rows than half the coefficients: the squared loss goes by rows."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(15, 9))
    p = confide.Problem(confide.Shards.from_groups(X, X[:, 0], np.repeat(np.arange(5), 3)), L.Squared(), P.L1(0.3))
    one, other = (Driver(p, GRAPH, DZOA(rounds=2, inner_steps=20, directions=5), [5]) for _ in range(2))
    other.noise = Drawn(other.noise)
    for _ in range(2):
        assert np.allclose(one.step(), other.step(), rtol=0, atol=1e-8)
