"""Penalties against their definitions, brute-force minimisation and finite differences."""

import numpy as np
import pytest

from confide import penalties

CONVEX = [penalties.Zero(), penalties.L1(0.7), penalties.L2(1.3), penalties.ElasticNet(0.9, 0.4)]
CONCAVE = [penalties.MCP(0.8, 2.5), penalties.SCAD(0.6, 3.7)]
each = pytest.mark.parametrize("penalty", CONVEX + CONCAVE, ids=repr)
BETA = np.linspace(-4, 4, 1601)


def integral(rate):
    """Fan and Li, and Zhang, define their penalties by the derivative: integrate it on a fine grid."""
    t = np.linspace(0, 4, 400_001)
    r = rate(t)
    area = np.concatenate([[0], np.cumsum((r[1:] + r[:-1]) / 2) * (t[1] - t[0])])
    return np.interp(np.abs(BETA), t, area)


@pytest.mark.parametrize(("penalty", "expected"), [
    (penalties.Zero(), 0 * BETA),
    (penalties.L1(0.7), 0.7 * abs(BETA)),
    (penalties.L2(1.3), 1.3 * BETA**2 / 2),
    (penalties.ElasticNet(0.9, 0.4), 0.9 * (0.4 * abs(BETA) + 0.6 * BETA**2 / 2)),
    (penalties.MCP(0.8, 2.5), integral(lambda t: np.maximum(0.8 - t / 2.5, 0))),
    (penalties.SCAD(0.6, 3.7), integral(lambda t: np.where(t <= 0.6, 0.6, np.maximum(3.7 * 0.6 - t, 0) / 2.7))),
], ids=lambda x: repr(x) if isinstance(x, penalties.Penalty) else "")  # fmt: skip
def test_terms_are_the_definition(penalty, expected):
    np.testing.assert_allclose(penalty.terms(BETA), expected, atol=1e-9)
    assert penalty.terms(np.zeros((2, 3, 4))).shape == (2, 3, 4)


@each
def test_gradient_by_finite_differences(penalty):
    beta, h = BETA[BETA != 0] + 1.7e-4, 1e-7  # off the joints of the pieces
    difference = (penalty.terms(beta + h) - penalty.terms(beta - h)) / (2 * h)
    np.testing.assert_allclose(penalty.gradient(beta), difference, atol=1e-6)
    assert penalty.gradient(np.zeros(3)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(("penalty", "step"), [
    (p, step) for p in CONVEX + CONCAVE for step in (0.2, 1.0, 2.4, 2.5, 4.0)
    if not isinstance(p, penalties.SCAD) or step < p.a - 1  # longer ones are refused, see below
], ids=repr)  # fmt: skip
def test_prox_is_the_minimiser(penalty, step):
    v = np.linspace(-4.003, 4.01, 97)
    grid = np.linspace(-4.2, 4.2, 84_001)  # 1e-4 apart
    cost = step * penalty.terms(grid) + (grid - v[:, None]) ** 2 / 2
    u = penalty.prox(v, step)
    reached = step * penalty.terms(u) + (u - v) ** 2 / 2
    assert np.all(reached <= cost.min(axis=1) + 1e-12)  # at least as good as every grid point
    if penalty.convex or step < penalty.a:  # the minimiser is unique
        assert np.max(np.abs(u - grid[cost.argmin(axis=1)])) < 1e-3


@each
def test_prox_takes_a_step_an_entry(penalty):
    v, step = np.random.default_rng(0).normal(size=(2, 3, 4)) * 2, np.array([[0.1], [0.5], [1.1]])
    one_by_one = np.stack([penalty.prox(v[:, k], float(step[k, 0])) for k in range(3)], axis=1)
    assert np.array_equal(penalty.prox(v, step), one_by_one)


def test_mcp_becomes_a_hard_threshold():
    """From step = a on the prox's objective is concave: 0 up to strength·√(a·step), itself beyond."""
    penalty, step = penalties.MCP(0.8, 2.5), 6.4
    edge = 0.8 * np.sqrt(2.5 * step)  # 3.2
    v = np.array([-edge - 1e-9, -edge + 1e-9, 0.0, edge - 1e-9, edge + 1e-9])
    assert penalty.prox(v, step).tolist() == [v[0], 0, 0, 0, v[4]]
    mixed = penalty.prox(np.array([3.1, 3.1]), np.array([1.0, step]))  # firm beside hard
    assert mixed.tolist() == [3.1, 0.0]


@pytest.mark.parametrize("step", [2.7, 3.0, [0.1, 9.0]])
def test_scad_refuses_a_long_step(step):
    with pytest.raises(ValueError, match=r"SCAD a=3.7.*needs a > 1 \+ step") as caught:
        penalties.SCAD(1.0, 3.7).prox(np.ones(2), np.asarray(step))
    assert "\n" not in str(caught.value)


@each
def test_flags_tell_the_truth(penalty):
    bend = np.diff(penalty.terms(BETA), 2)
    kink = np.abs(np.diff(penalty.terms(np.array([-1e-9, 0.0, 1e-9])), 2)[0]) / 1e-9
    assert penalty.convex == bool(np.all(bend >= -1e-12))
    assert penalty.smooth == bool(kink < 1e-3)
    rest = penalty.terms(BETA) - penalty.l1 * abs(BETA) - penalty.l2 * BETA**2 / 2
    assert not penalty.convex or np.allclose(rest, 0)  # l1 and l2 are all of a convex penalty


def test_every_penalty_is_tested():
    assert {type(p) for p in CONVEX + CONCAVE} == set(penalties.ALL)
