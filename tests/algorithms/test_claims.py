"""The papers' own bounds stand beside the exact total, and say where they do not hold."""

import math

import numpy as np
import pytest

import confide
from confide.algorithms import ADMM, CDPADMM, DZOA, FDPADMM, RADMM

RING = confide.Graph.ring(4)
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
y = X @ [1.0, -1.0, 0.5]


def problem(loss=None):
    loss = loss or confide.losses.Squared()
    target = np.where(y > 0, 1.0, -1.0) if loss.labels == "sign" else y
    return confide.Problem(confide.Shards.split(X, target, 4).clip_rows(1.0), loss, confide.penalties.L2(0.1))


def test_cdp_admm_is_held_to_its_corollary():
    method = CDPADMM(rounds=50, clip=1.0, noise=0.5, noise_decay=0.95)
    run = confide.simulate(problem(), RING, method, record=())
    (claim,) = run.privacy.claims
    phi = ((2 / 20) / (1 + 2 * 2) / 0.5) ** 2 / 2 * (1 - 0.95**50) / (0.95**49 - 0.95**50)
    assert claim.epsilon == pytest.approx(phi + 2 * math.sqrt(phi * math.log(1e5)))
    assert claim.valid and run.privacy.epsilon(1e-5) < claim.epsilon
    assert "CDP-ADMM, corollary" in run.privacy.beside()


def test_an_assumed_bound_makes_the_claim_invalid():
    method = CDPADMM(rounds=50, assumed_bound=1.0, noise=0.5)
    run = confide.simulate(problem(), RING, method, record=())
    assert run.privacy.guarantee.label == "assumed"
    assert "NOT VALID" in run.privacy.beside()


def test_fdp_admm_claims_one_iteration_for_all():
    method = FDPADMM(rounds=30, clip=1.0).published(0.4, 1e-5)
    run = confide.simulate(problem(confide.losses.Quantile(0.5)), RING, method, record=())
    (claim,) = run.privacy.claims
    assert claim.epsilon == pytest.approx(0.4) and not claim.valid
    mu = math.sqrt(30) * 0.4 / math.sqrt(2 * math.log(1.25e5))
    exact = confide.privacy.epsilon([confide.privacy.Gaussian(mu, 1.0)], 1e-5)
    assert run.privacy.epsilon(1e-5) == pytest.approx(exact) and exact > 0.4


def test_r_admm_theorem_v1(tmp_path):
    method = RADMM(rounds=10, penalty=0.5, noise_rate=2.0)
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
