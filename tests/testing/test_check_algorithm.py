"""A method from outside is held to the contracts, and each way to break one is named with what to change."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import confide
from confide.algorithms import ADMM, CDPADMM, DPSGD, GaussianMethod, LinearizedADMM
from confide.testing import CONTRACTS, BrokenContract, check_algorithm


def test_our_own_methods_pass_and_say_their_label():
    quiet = CDPADMM(rounds=1500, coupling=0.2, step=2.0)
    assert check_algorithm(CDPADMM(rounds=4, clip=0.5, noise=0.1), quiet=quiet, distance=1e-6).startswith("proven")
    assert check_algorithm(ADMM(rounds=3)).startswith("none")
    assert check_algorithm(DPSGD(rounds=3, clip=1.0, noise=0.1), loss=confide.losses.Hinge()).startswith("proven")


class State(NamedTuple):
    primal: np.ndarray
    mean: np.ndarray


@dataclass(frozen=True, eq=False)
class Fine(GaussianMethod):
    step: float = 0.5

    def init(self, public):
        zero = np.zeros((1, len(public.agents), public.width))
        return State(zero, zero)

    def message(self, t, state, ask, public):
        return state.mean - self.step * (ask(state.primal) + public.penalty_gradient(state.primal))

    def absorb(self, t, state, message, received, public):
        return State(message, (message + received) / (1 + public.degree))

    def longest_step(self, t, public):
        return self.step * self.longest_answer(t, public)


@dataclass(frozen=True, eq=False)
class Remembers(LinearizedADMM):
    """Keeps what it saw of the rows."""

    def local(self, t, state, block, public, noise):
        out = super().local(t, state, block, public, noise)
        object.__setattr__(self, "kept", getattr(self, "kept", 0.0) + out.mean())
        return out

    def absorb(self, t, state, message, received, public):
        new = super().absorb(t, state, message, received, public)
        return new._replace(dual=new.dual + self.kept)


@dataclass(frozen=True, eq=False)
class Blind(Fine):
    def message(self, t, state, ask, public):
        return state.mean + 1.0


@dataclass(frozen=True, eq=False)
class DividesByZero(Fine):
    def local(self, t, state, block, public, noise):
        return np.nan * super().local(t, state, block, public, noise)


@dataclass(frozen=True, eq=False)
class MixesSeeds(Fine):
    def absorb(self, t, state, message, received, public):
        return State(message + 0.1 * message.mean(axis=0, keepdims=True), message)


@dataclass(frozen=True, eq=False)
class KnowsNumbers(Fine):
    def absorb(self, t, state, message, received, public):
        first = np.arange(message.shape[1])[None, :, None] == 0
        return State(message, np.where(first, received, message))


@dataclass(frozen=True, eq=False)
class SpiesOnOthers(Fine):
    def absorb(self, t, state, message, received, public):
        return State(message, message.mean(axis=1, keepdims=True) + 0 * message)


@dataclass(frozen=True, eq=False)
class CountsWrongly(Fine):
    def events(self, public):
        return super().events(public)[:-1]


@dataclass(frozen=True, eq=False)
class Crashes(Fine):
    def message(self, t, state, ask, public):
        raise RuntimeError("not yet")


@dataclass(frozen=True, eq=False)
class Stuck(Fine):
    def absorb(self, t, state, message, received, public):
        return State(0.5 * message, 0.5 * (message + received) / (1 + public.degree))


NOISY = {"rounds": 3, "clip": 1.0, "noise": 0.1}


def test_a_method_from_elsewhere_that_asks_the_engine_is_proven():
    assert check_algorithm(Fine(**NOISY), quiet=Fine(rounds=300, step=0.1), distance=0.1).startswith("proven")


@pytest.mark.parametrize(
    ("method", "contract", "change"),
    [
        (Remembers(rounds=3), "state is public", "keep nothing on `self`"),
        (Blind(**NOISY), "messages depend on rows", "ask for an answer"),
        (DividesByZero(**NOISY), "messages depend on rows", "NaN is sent as 0"),
        (MixesSeeds(**NOISY), "seeds together are seeds alone", "reduce over the last axes only"),
        (KnowsNumbers(**NOISY), "relabelling agents permutes the result", "treat all agents alike"),
        (SpiesOnOthers(**NOISY), "agents together are agents alone", "its own state and `received` only"),
        (CountsWrongly(**NOISY), "events are known before a row is read", "give one per round"),
        (Crashes(**NOISY), "state is public", "it raised RuntimeError (not yet)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_way_to_break_a_contract_is_named(method, contract, change):
    with pytest.raises(BrokenContract) as error:
        check_algorithm(method)
    line = next(line for line in str(error.value).splitlines() if line.startswith(f"- {contract}: "))
    assert change in line


def test_a_method_that_does_not_converge_is_told_how_far_it_is():
    with pytest.raises(BrokenContract, match=r"without noise it ends .* from the optimum"):
        check_algorithm(Stuck(**NOISY), quiet=Stuck(rounds=300, step=0.1))


def test_an_infinite_cost_is_never_proven():
    """The engine's label already refuses it; the contract would find a label that lies."""
    assert not check_algorithm(Fine(rounds=3, noise=0.1), loss=confide.losses.Squared()).startswith("proven")


def test_what_is_no_method_is_one_line():
    with pytest.raises(ValueError, match="must be an instance of a method"):
        check_algorithm(CDPADMM)
    assert len({contract.__name__ for contract in CONTRACTS}) == len(CONTRACTS)
    assert all(contract.__doc__ for contract in CONTRACTS)
