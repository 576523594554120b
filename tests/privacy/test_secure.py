"""Secure noise: what OpenDP proves is what is charged, and a draw without a secure sampler is refused."""

import numpy as np
import pytest
from scipy import stats

import confide
from confide.privacy import Free, Gaussian, PureDP, epsilon
from confide.privacy.secure import SecureNoise, charge, rho


def test_the_charge_is_the_gaussian_cost_and_a_little_more():
    for sensitivity, scale, width in ((0.05, 0.1, 10), (1e-4, 3e-3, 100), (2.0, 5.0, 1)):
        exact = 0.5 * (sensitivity / scale) ** 2
        assert exact <= rho(sensitivity, scale, width) < exact * (1 + 1e-6)
    # a coarser grid or more numbers cost more: the rounding term is there
    assert rho(1e-9, 1.0, 1000) > 0.5e-18


def test_charging_replaces_gaussian_events_only():
    rounds = [[Gaussian(np.array([0.1, 0.2]), 1.0)], [Free()], [PureDP(0.5)]]
    paid = charge(rounds, width=5)
    assert paid[1:] == rounds[1:]
    assert np.allclose(paid[0][0].rho, [0.005, 0.02], rtol=1e-6)
    one = Gaussian(0.1, 1.0)
    gaussian, secure = epsilon([one] * 50, 1e-5), epsilon([*charge([[one]], 5)[0]] * 50, 1e-5)
    assert gaussian < secure < 1.3 * gaussian  # zCDP is what is proven; the Gaussian-DP value is a little smaller


def test_draws_are_gaussian_on_a_grid():
    noise = SecureNoise().at(1)
    value = np.full((1, 1, 20_000), 0.3)
    out = noise.gaussian("primal", value, np.array([[0.25]]))
    assert stats.kstest((out[0, 0] - 0.3) / 0.25, "norm").pvalue > 1e-4
    grid = out[0, 0] * 2.0**41  # frexp(0.25) = (0.5, -1): the grid is 2^-41
    assert np.array_equal(grid, np.round(grid))
    again = SecureNoise().at(1).gaussian("primal", value, np.array([[0.25]]))
    assert not np.array_equal(out, again)


def test_a_second_draw_of_the_same_noise_is_refused():
    noise = SecureNoise()
    one = np.zeros((1, 1, 2))
    noise.at(1).gaussian("primal", one, np.array([[1.0]]))
    noise.at(2).gaussian("primal", one, np.array([[1.0]]))
    with pytest.raises(RuntimeError, match="drawn already"):
        noise.at(1).gaussian("primal", one, np.array([[1.0]]))


@pytest.mark.parametrize("draw", ["gamma_norm", "ball"])
def test_a_draw_without_a_secure_sampler_is_refused(draw):
    with pytest.raises(ValueError, match="no secure sampler"):
        getattr(SecureNoise(), draw)("objective", 3)
    with pytest.raises(ValueError, match="no secure sampler"):
        SecureNoise().once()


def test_a_party_runs_a_proven_method_with_secure_noise():
    """The same algorithm code, one agent at a time, with noise that protects."""
    from confide.node.party import Party

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    shards = confide.Shards.split(X, X @ [1.0, -1.0, 0.5], 3).clip_rows(2.0)
    problem = confide.Problem(shards, confide.losses.Huber(1.0), confide.penalties.L2(0.1))
    graph = confide.Graph.complete(3)
    public = problem.public(graph)
    for kind in (confide.algorithms.CDPADMM, confide.algorithms.DPSGD, confide.algorithms.PrivateZeroth):
        method = kind(rounds=3, clip=1.0).calibrated(public, 5.0, 1e-5)
        parties = [Party(k, method, public, problem.only(k), SecureNoise()) for k in range(3)]
        for _ in range(3):
            sent = {k: party.send() for k, party in enumerate(parties)}
            assert sent == {k: party.send() for k, party in enumerate(parties)}  # the same bytes, no second noise
            for party in parties:
                party.receive({k: sent[k] for k in party.weights})
        assert np.all(np.isfinite([party.estimate for party in parties]))
    with pytest.raises(ValueError, match="no secure sampler"):
        method = confide.algorithms.RADMM(rounds=2, noise_rate=1.0)
        Party(0, method, confide.Problem(
            confide.Shards.split(X, np.sign(X[:, 0]), 3).clip_rows(1.0), confide.losses.Logistic()
        ).public(graph), problem.only(0), SecureNoise()).send()  # fmt: skip
