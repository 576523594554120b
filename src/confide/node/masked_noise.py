"""Noise of a private sum: what a party's answer becomes before it is masked, in whole numbers.

A method's `local` asks for its answer with noise and gets doubles, as with any other noise. Beside them the whole
numbers that they stand for are kept: these are masked and sent, and the doubles never leave.

    noise = MaskedNoise(grids(method, public))
    party.send()                    # the method's own functions; nothing of it is sent
    mine = noise.steps(t)           # goes to `PrivateSum.contribute`
    party.receive_sum(encode(noise.grids[t - 1].values(total)))
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from confide.algorithms.summed import SummedMethod
from confide.errors import ConfideError
from confide.network.masking import Grid
from confide.privacy.noise import SimulatedNoise
from confide.privacy.secure import SecureNoise
from confide.problem.problem import Public

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


def grids(method: SummedMethod, public: Public) -> list[Grid]:
    """The grid of every round, from public bounds: the same at every party."""
    out = []
    for t in range(1, method.rounds + 1):
        scale = float(np.max(method.noise_scale(t, public.whole)))
        bound = float(np.max(method.question(t, public.whole).largest(public.whole)))
        out.append(Grid.fitting(scale, bound, public.count))
    return out


@dataclass(frozen=True, eq=False)
class MaskedNoise(SecureNoise):
    """Secure noise on the grid of each round; one answer per round, whose whole numbers are handed out once."""

    grids: list[Grid] = field(default_factory=list)
    kept: dict[int, Whole] = field(default_factory=dict)

    def gaussian(self, name: str, value: Array, scale: Array) -> Array:
        t = self.round
        if value.shape[:2] != (1, 1):
            raise ConfideError(f"masked noise for {value.shape[:2]} seeds and agents: a node speaks for itself, (1, 1)")
        if self.drawn and any(at == t for at, _ in self.drawn):
            raise RuntimeError(f"round {t}: noise was drawn already; send the stored message again")
        self.drawn.add((t, name))
        grid = self.grids[t - 1]
        if float(np.ravel(scale)[0]) != grid.scale:
            raise ConfideError(f"round {t}: noise of deviation {np.ravel(scale)[0]:g}, the grid is for {grid.scale:g}")
        reservoir = self.ahead if self.ahead.m == grid.power else None
        self.kept[t] = grid.noised(value[0, 0], reservoir)
        return grid.values(self.kept[t])[None, None]

    def steps(self, t: int) -> Whole:
        """The noised answer of round t in steps of its grid: to be masked, and then forgotten."""
        return self.kept.pop(t)

    def again(self, t: int) -> None:
        """Another attempt of round t, which is paid for as such, may draw once more."""
        self.drawn.difference_update([key for key in self.drawn if key[0] == t])
        self.kept.pop(t, None)


@dataclass(frozen=True, eq=False)
class SeededMaskedNoise(SimulatedNoise):
    """A simulation's own noise on the same grids, for tests: it protects nobody."""

    grids: list[Grid] = field(default_factory=list)
    kept: dict[int, Whole] = field(default_factory=dict)

    def gaussian(self, name: str, value: Array, scale: Array) -> Array:
        grid = self.grids[self.round - 1]
        self.kept[self.round] = grid.round(super().gaussian(name, value, scale)[0, 0])
        return grid.values(self.kept[self.round])[None, None]

    def steps(self, t: int) -> Whole:
        return self.kept.pop(t)

    def again(self, t: int) -> None:
        self.kept.pop(t, None)
