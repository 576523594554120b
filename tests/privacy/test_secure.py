"""Secure noise: what is charged is the Gaussian that it is, and a draw without a secure sampler is refused."""

import numpy as np
import pytest
from scipy import stats

import confide
from confide.privacy import ZCDP, Free, Gaussian, PureDP, epsilon, mu_for, secure
from confide.privacy.secure import SecureNoise, charge, rho, rounding


@pytest.mark.parametrize(
    ("sensitivity", "scale", "width"),
    [
        (0.05, 0.1, 10),
        (1e-4, 3e-3, 100),
        (2.0, 5.0, 1),
        (1e-9, 1.0, 1000),
        (1e-6, 0.25, 7),
        (0.3, 0.9999, 4),
    ],
)
def test_the_sensitivity_counts_the_grid_and_covers_opendps_own_map(sensitivity, scale, width):
    """OpenDP's zCDP is ½(Δ + √width·2^k)²/σ² on its finer grid; ours is the same with a step of σ/2^26."""
    charged = charge([[Gaussian(sensitivity, scale)]], width)[0][0]
    assert isinstance(charged, Gaussian) and charged.scale == scale
    assert charged.mu == pytest.approx(sensitivity / scale + width**0.5 / 2**26, rel=1e-14)
    theirs = secure._measurement(scale, width).map(sensitivity)
    assert theirs < charged.mu**2 / 2 < rho(sensitivity, scale, width)
    assert sensitivity / scale < charged.mu <= (sensitivity / scale + rounding(width)) * (1 + 1e-12)


def test_opendp_rounds_each_number_to_the_nearest_of_its_grid():
    """Noise is independent of the value, so that a value halfway shows up by the parity of sums: take none instead.

    At a scale of 2^39 grid steps no rounding can be seen in draws; a coarse grid shows it.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=4), dp.l2_distance(T=float)
    nearly_none = dp.m.make_gaussian(*space, scale=1e-3, k=0)  # grid 1: noise of 1e-3 steps is 0 but for e^-500000
    assert nearly_none([0.49, 0.5, -0.5, 7.51]) == [0.0, 1.0, 0.0, 8.0]
    assert nearly_none.map(1.0) == pytest.approx(0.5 * ((1.0 + 2.0) / 1e-3) ** 2)  # √4 numbers, one step each


def test_charging_replaces_gaussian_events_only():
    rounds = [[Gaussian(np.array([0.1, 0.2]), 1.0)], [Free()], [PureDP(0.5)], [Gaussian([0.0, 0.1], [0.0, 1.0])]]
    paid = charge(rounds, width=5)
    assert paid[1:3] == rounds[1:3]
    assert np.allclose(paid[0][0].mu, [0.1, 0.2], rtol=1e-6) and np.all(paid[0][0].mu > [0.1, 0.2])
    assert paid[0][0].slack == pytest.approx(5 * 4.9e-4 / 2.0**104, rel=1e-9)
    assert paid[3][0].mu[0] == paid[3][0].slack[0] == 0 < paid[3][0].slack[1]
    again = Gaussian(0.1, 1.0, unit="label", adversary="server", slack=1e-30)
    assert charge([[again]], 1)[0][0].kind == again.kind and charge([[again]], 1)[0][0].slack > 1e-30


def test_every_round_has_a_width_of_its_own():
    one = Gaussian(1e-9, 1.0)
    by_round = charge([[one], [one]], [1, 400])
    assert by_round == [charge([[one]], 1)[0], charge([[one]], 400)[0]]
    assert by_round[1][0].slack == 400 * by_round[0][0].slack
    moved = [float(events[0].sensitivity) - 1e-9 for events in by_round]
    assert moved[1] == pytest.approx(20 * moved[0], rel=1e-5)
    for bad, line in (([1], "1 widths for 2 rounds"), (-1, "must be at least 0")):
        with pytest.raises(ValueError, match=line):
            charge([[one], [one]], bad)


@pytest.mark.parametrize("scale", [0.0, 1e-320])
def test_noise_too_small_for_its_grid_is_refused(scale):
    with pytest.raises(ValueError, match="needs noise of a finite scale above 0"):
        charge([[Gaussian(0.1, scale)]], 1)


@pytest.mark.parametrize("e", [0.1, 1.0, 3.0])
def test_secure_noise_costs_what_exact_gaussian_noise_does(e):
    """And so 5 to 10 % less noise than zCDP asks for at the same ε."""
    m = mu_for(e, 1e-5)
    one = Gaussian(m / 200**0.5, 1.0)
    charged = [event for events in charge([[one]] * 200, 50) for event in events]
    assert e * (1 - 1e-9) < epsilon(charged, 1e-5) < e * (1 + 1e-4)
    assert 1.04 * e < epsilon([ZCDP(m * m / 2)], 1e-5) < 1.15 * e
    assert epsilon(charged, 1e-5) < epsilon([ZCDP(rho(float(one.sensitivity), 1.0, 50) * 200)], 1e-5)


@pytest.mark.parametrize("e", [1.0, 30.0, 60.0, 1000.0])
def test_a_budget_is_spent_as_far_as_slack_lets_it_be(e):
    """Where e^ε times the slack would drown δ a smaller ε is spent, and nothing is claimed beyond."""
    charged = charge([[Gaussian(secure.budget(e, 1e-5, 50), 1.0)]], 50)[0]
    assert min(e, 35.0) * (1 - 1e-6) < epsilon(charged, 1e-5) <= e
    assert epsilon(charge([[Gaussian(20.0, 1.0)]], 50)[0], 1e-5) == np.inf
    with pytest.raises(ValueError, match="δ must be well above"):
        secure.budget(e, 1e-23)


@pytest.mark.parametrize("sampler", ["confide", "opendp"])
def test_draws_are_gaussian_on_a_grid(sampler):
    noise = SecureNoise(sampler).at(1)
    value = np.full((1, 1, 20_000), 0.3)
    out = noise.gaussian("primal", value, np.array([[0.25]]))
    assert stats.kstest((out[0, 0] - 0.3) / 0.25, "norm").pvalue > 1e-4
    grid = out[0, 0] * (2.0**28 if sampler == "confide" else 2.0**41)  # 0.25/2^26; frexp(0.25) = (0.5, -1)
    assert np.array_equal(grid, np.round(grid))
    again = SecureNoise(sampler).at(1).gaussian("primal", value, np.array([[0.25]]))
    assert not np.array_equal(out, again)


def test_a_second_draw_of_the_same_noise_is_refused():
    noise = SecureNoise()
    one = np.zeros((1, 1, 2))
    noise.at(1).gaussian("primal", one, np.array([[1.0]]))
    noise.at(2).gaussian("primal", one, np.array([[1.0]]))
    with pytest.raises(RuntimeError, match="drawn already"):
        noise.at(1).gaussian("primal", one, np.array([[1.0]]))


def test_noise_is_drawn_before_the_inputs_of_its_round_arrive():
    noise = SecureNoise()
    noise.prepare(5)
    assert len(noise.ahead) == 5
    noise.at(1).gaussian("answer", np.zeros((1, 1, 3)), np.array([[1.0]]))
    assert len(noise.ahead) == 2
    with pytest.raises(ValueError, match="sampler='dice'"):
        SecureNoise("dice")


@pytest.mark.parametrize("draw", ["gamma_norm", "ball"])
def test_a_draw_without_a_secure_sampler_is_refused(draw):
    with pytest.raises(ValueError, match="no secure sampler"):
        getattr(SecureNoise(), draw)("objective", 3)
    with pytest.raises(ValueError, match="no secure sampler"):
        SecureNoise().once()


def test_a_party_runs_a_proven_method_with_secure_noise():
    """The same algorithm code, one agent at a time, with noise that protects."""
    from confide.runs.party import Party

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
