"""The papers' own bounds stand beside the exact total, and say where they do not hold."""

import math

import numpy as np
import pytest

import confide
from confide.algorithms import ADMM, CDPADMM, DDPADMM, DPADMM, DPSGD, DZOA, FDPADMM, PDML, PVP, RADMM

RING = confide.Graph.ring(4)
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
y = X @ [1.0, -1.0, 0.5]


def problem(loss=None):
    loss = loss or confide.losses.Squared()
    target = np.where(y > 0, 1.0, -1.0) if loss.labels == "sign" else y
    return confide.Problem(confide.Shards.split(X, target, 4).clip_rows(1.0), loss, confide.penalties.L2(0.1))


def test_cdp_admm_is_held_to_its_corollary():
    method = CDPADMM(rounds=50, clip=1.0, noise=0.5 * (1 + 2 * 2), noise_decay=0.95)  # σ_1 = 0.5 on the primal
    run = confide.simulate(problem(), RING, method, record=())
    (claim,) = run.privacy.claims
    phi = ((2 / 20) / (1 + 2 * 2) / 0.5) ** 2 / 2 * (1 - 0.95**50) / (0.95**49 - 0.95**50)
    assert claim.epsilon == pytest.approx(phi + 2 * math.sqrt(phi * math.log(1e5)))
    assert claim.valid is (run.privacy.guarantee.label == "proven") and run.privacy.epsilon(1e-5) < claim.epsilon
    assert "CDP-ADMM, corollary" in run.privacy.beside()


def test_an_assumed_bound_makes_the_claim_invalid():
    method = CDPADMM(rounds=50, assumed_bound=1.0, noise=0.5)
    run = confide.simulate(problem(), RING, method, record=())
    assert run.privacy.guarantee.label == "assumed"
    assert "NOT VALID" in run.privacy.beside()


def test_fdp_admm_claims_one_iteration_for_all():
    task = problem(confide.losses.Quantile(0.5))
    method = FDPADMM(rounds=30, clip=1.0).published(task.public(RING), 0.4, 1e-5)
    run = confide.simulate(task, RING, method, record=())
    (claim,) = run.privacy.claims
    assert claim.epsilon == pytest.approx(0.4) and not claim.valid
    mu = math.sqrt(30) * 0.4 / math.sqrt(2 * math.log(1.25e5))
    exact = confide.privacy.epsilon([confide.privacy.Gaussian(mu, 1.0)], 1e-5)
    assert run.privacy.epsilon(1e-5) == pytest.approx(exact) and exact > 0.4


def test_r_admm_theorem_v1(tmp_path):
    method = RADMM(rounds=10, coupling=0.5, noise_rate=2.0)
    run = confide.simulate(problem(confide.losses.Logistic()), RING, method, record=())
    h = 2 * 0.5 * 2 + 0.1 / 4
    expected = 5 * 2 / 20 * (1.4 * 0.25 / h + 2.0)  # (32), five odd rounds, B = 20, C = 1
    assert np.max(run.privacy.claims[0].epsilon) == pytest.approx(expected)
    again = confide.load_run(run.save(tmp_path / "run.npz"))
    assert again.privacy.beside() == run.privacy.beside()


def test_d_zoa_is_marked_and_methods_without_a_claim_have_none():
    run = confide.simulate(problem(), RING, DZOA(rounds=2, inner_steps=3), record=())
    assert run.privacy.guarantee.label == "refuted" and "NOT VALID" in run.privacy.beside()
    assert confide.simulate(problem(), RING, ADMM(rounds=2), record=()).privacy.claims == ()


@pytest.mark.parametrize("kind", [DPADMM, DDPADMM])
def test_the_root_of_the_rounds_stands_beside_dp_and_ddp_admm(kind):
    """Both count √T·ε with ε by the classical rule; by hand for DP-ADMM, whose rounds all cost the same."""
    method = kind(rounds=30, clip=1.0, noise=0.4)
    run = confide.simulate(problem(), RING, method, record=())
    (claim,) = run.privacy.claims
    total = float(np.max(confide.privacy.mu(e for now in run.privacy.events for e in now)))
    assert claim.epsilon == pytest.approx(total * math.sqrt(2 * math.log(1.25e5)))
    if kind is DPADMM:
        assert claim.epsilon == pytest.approx(math.sqrt(30) * (2 / 20) / 0.4 * math.sqrt(2 * math.log(1.25e5)))
    assert "√T·ε" in run.privacy.beside()


@pytest.mark.parametrize("method", [DPSGD(rounds=30, clip=1.0, noise=0.4), PVP(rounds=30, noise=0.4)])
def test_d_zoas_rule_stands_beside_its_baselines(method):
    run = confide.simulate(problem(confide.losses.Logistic()), RING, method, record=())
    (claim,) = run.privacy.claims
    first = float(np.max(run.privacy.events[0][0].mu))
    assert claim.epsilon == pytest.approx(first * math.sqrt(2 * 30 * math.log(1e5)))  # (20) in (25), simplified
    assert claim.valid is (run.privacy.guarantee.label == "proven") and run.privacy.epsilon(1e-5) < claim.epsilon


def test_pvp_claims_one_iteration():
    method = PVP(rounds=6, coupling=0.5, noise_rate=3.0)
    run = confide.simulate(problem(confide.losses.Logistic()), RING, method, record=())
    (claim,) = run.privacy.claims
    h = 2 * 0.5 * 2 + 0.1 / 4
    assert np.max(claim.epsilon) == pytest.approx(3.0 * 2 / 20 / h) and not claim.valid


def test_pdml_claims_for_labels_and_for_features():
    loss = confide.losses.NoisyLabels(confide.losses.Logistic(), 0.7)
    run = confide.simulate(problem(loss), RING, PDML(rounds=5, noise=0.5), record=())
    labels, features = run.privacy.claims
    assert labels.epsilon == 0.7 and labels.valid and not features.valid
    h, slope = 2 * 0.2 * 2 + 0.1 / 4, (1 + 1 / math.tanh(0.35)) / 2
    assert features.epsilon == pytest.approx(2 * (slope / 20 + 1e-9) / h / 0.5 * math.sqrt(2 * math.log(1.25e5)))


def test_the_former_name_of_the_coupling_is_understood_with_a_warning():
    with pytest.warns(DeprecationWarning, match="CDPADMM: penalty is now called coupling"):
        method = CDPADMM(penalty=0.3)
    assert method.coupling == 0.3
    with pytest.warns(DeprecationWarning, match="penalty is now called coupling"):
        assert method.penalty == 0.3
    with pytest.raises(ValueError, match="leave penalty out"):
        CDPADMM(penalty=0.3, coupling=0.3)
    with pytest.raises(TypeError):
        DPSGD(penalty=0.3)  # has no coupling
    with pytest.raises(AttributeError, match="no attribute 'penalties'"):
        _ = method.penalties
