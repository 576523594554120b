"""Only a method whose local step depends on rows and public sums alone may divide its noise by √h."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from contract_cases import GRAPHS, problem

from confide.algorithms import REGISTRY, SUMMED, JointDescent, SummedMethod
from confide.problem.questions import Gradient

GRAPH = GRAPHS["ring"]
PUBLIC = problem("logistic").public(GRAPH)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_methods_with_a_primal_or_dual_of_their_own_keep_full_noise(name):
    """Every published method, masked or not: no event of theirs is against fewer than everyone."""
    kind = REGISTRY[name]
    assert name not in SUMMED and not issubclass(kind, SummedMethod)
    assert not any(hasattr(kind, one) for one in ("collusion", "honest", "against"))


class Pair(NamedTuple):
    model: np.ndarray
    dual: np.ndarray


@dataclass(frozen=True, eq=False)
class HiddenDual(SummedMethod):
    """ADMM behind a mask: each party keeps a dual that grows with its own message, which nobody else has."""

    def question(self, t, public):
        return Gradient(self.enforced_bound(public))

    def init(self, public):
        zero = np.zeros((1, len(public.agents), public.width))
        return Pair(zero, zero)

    def points(self, t, state, public):
        return (state.model,)

    def absorb(self, t, state, message, received, public):
        mean = received / public.count
        dual = state.dual + message - mean
        return Pair(state.model - 0.1 * (mean + dual), dual)

    def estimate(self, state, public):
        return state.model


@dataclass(frozen=True, eq=False)
class HiddenPrimal(JointDescent):
    """Sends its answer and a part of the last one, which it remembers."""

    def message(self, t, state, ask, public):
        return super().message(t, state, ask, public) + 0.1 * state.gradient


@dataclass(frozen=True, eq=False)
class OwnLocal(JointDescent):
    """Meets the rows itself."""

    def local(self, t, state, block, public, noise):
        return super().local(t, state, block, public, noise)


@dataclass(frozen=True, eq=False)
class Quieter(JointDescent):
    """Divides its noise once more."""

    def noise_scale(self, t, public):
        return super().noise_scale(t, public) / 2


@dataclass(frozen=True, eq=False)
class Trusting(JointDescent):
    """Says that more are honest than c leaves."""

    def honest(self, public):
        return public.count


@pytest.mark.parametrize("kind", [HiddenDual, HiddenPrimal, OwnLocal, Quieter, Trusting])
def test_a_method_that_hides_state_behind_the_mask_is_not_proven(kind):
    guarantee = kind(noise=1.0, clip=1.0).guarantee(PUBLIC)
    assert guarantee.label == "assumed" and "of its own, which nobody has proven" in guarantee.reason
    assert JointDescent(noise=1.0).guarantee(PUBLIC).label == "proven"


def test_what_a_hidden_point_would_really_cost():
    """Why: the smallest method that keeps a point hidden behind the mask, worked out exactly.

    Round 1 asks for a sum at a public point; each party moves to a point of its own, by -L times its own message, and
    round 2 asks there, where rows of curvature κ answer κL times the move more. Of h honest parties one has a row that
    moves its first answer by 1; noise has deviation 1. What is seen, (S_1, S_2), is Gaussian. The claim is μ² = 2/h.
    """
    honest, rng = 10, np.random.default_rng(0)
    for gain in (0.0, 1.0, 30.0):
        first, second = rng.normal(size=(2, 200_000, honest))
        seen = np.stack([first.sum(axis=1), second.sum(axis=1) - gain * first[:, 0]])
        moved = np.array([1.0, 1.0 - gain])  # a row moves both of its answers, and the party's point
        true = float(moved @ np.linalg.solve(np.cov(seen), moved)) ** 0.5
        claim = math.sqrt(2 / honest)
        if gain == 0:  # public points: the theorem holds
            assert true == pytest.approx(claim, rel=0.01)
        if gain == 30:
            assert true > 2 * claim  # all that protects is the party's own noise, √h times less
