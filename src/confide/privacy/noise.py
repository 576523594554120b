"""Noise by name: every draw is keyed by (seed, agent, round, name), so any subset of agents or seeds repeats its part.

`SimulatedNoise` is the counter-based generator Philox-4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011): the key is the
seed, the counter (block, agent, round, name). It protects nobody: whoever knows the seed can subtract it.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from confide import threads
from confide.compiled import njit
from confide.errors import ConfideError
from confide.privacy.philox import MASK, SHIFT, philox
from confide.privacy.ziggurat import fill_normals

Array = NDArray[np.float64]
Index = NDArray[np.int64]

NORMAL, EXPONENTIAL, UNIFORM = 0, 1, 2


@njit
def _unit(high: Any, low: Any) -> float:
    """A double in (0, 1): 52 random bits and a half, so that its logarithm is finite."""
    return (float((high << np.uint64(20)) | (low >> np.uint64(12))) + 0.5) / 4503599627370496.0


@njit(nogil=True)
def fill(seeds: Index, agents: Index, t: int, name: int, kind: int, out: Array, first: int, end: int) -> None:
    """out[s, a, :] for the jobs first..end (job = s·agents + a): normal, exponential or uniform draws."""
    width = out.shape[2]
    for job in range(first, end):
        i, j = job // agents.size, job % agents.size
        seed = np.uint64(seeds[i])
        k0, k1 = seed & MASK, seed >> SHIFT
        for b in range((width + 1) // 2):
            w = philox(np.uint64(b), np.uint64(agents[j]), np.uint64(t), np.uint64(name), k0, k1)
            u, v = _unit(w[0], w[1]), _unit(w[2], w[3])
            if kind == NORMAL:  # Box and Muller
                r = math.sqrt(-2.0 * math.log(u))
                u, v = r * math.cos(2.0 * math.pi * v), r * math.sin(2.0 * math.pi * v)
            elif kind == EXPONENTIAL:
                u, v = -math.log(u), -math.log(v)
            out[i, j, 2 * b] = u
            if 2 * b + 1 < width:
                out[i, j, 2 * b + 1] = v


def key(name: str) -> int:
    """The part of the counter that a draw's name is."""
    return zlib.crc32(name.encode())


class Noise(Protocol):
    """What `local` may draw: arrays (seeds, agents, width) of the round at hand, each draw with a name of its own."""

    def gaussian(self, name: str, value: Array, scale: Array) -> Array:
        """`value` with Gaussian noise of standard deviation `scale` (agents, 1): the release of a Gaussian event."""

    def gamma_norm(self, name: str, width: int) -> Array:
        """Density ∝ exp(-‖·‖₂): the norm is Gamma(width, 1), the direction uniform."""

    def ball(self, name: str, width: int) -> Array:
        """Uniform in the unit ball."""

    def public_normal(self, name: str, width: int) -> Array:
        """Standard normal entries on which no privacy rests, such as search directions."""

    def once(self) -> Noise:
        """The same draws in every round: PDML's η_i."""


@dataclass(frozen=True, eq=False)
class SimulatedNoise:
    """Seeded draws for a simulation; `seeds` (S,) and `agents` (A,) name the rows of every array."""

    seeds: Index
    agents: Index
    round: int = 0

    def at(self, t: int) -> SimulatedNoise:
        """The draws of round t."""
        return replace(self, round=t)

    def once(self) -> SimulatedNoise:
        return replace(self, round=0xFFFFFFFF)

    def _fill(self, kind: int, name: str, width: int) -> Array:
        out = np.empty((len(self.seeds), len(self.agents), width))
        jobs = len(self.seeds) * len(self.agents)
        threads.run(fill, jobs, 40 * out.size, self.seeds, self.agents, self.round, key(name), kind, out)
        return out

    def gaussian(self, name: str, value: Array, scale: Array) -> Array:
        if value.shape[:2] != (len(self.seeds), len(self.agents)):
            raise ConfideError(
                f"noise for {value.shape[:2]} seeds and agents: there are "
                f"{(len(self.seeds), len(self.agents))}, and each has noise of its own"
            )
        return value + scale * self.normal(name, value.shape[2])

    def public_normal(self, name: str, width: int) -> Array:
        out = np.empty((len(self.seeds), len(self.agents), width))
        jobs = len(self.seeds) * len(self.agents)
        threads.run(fill_normals, jobs, 10 * out.size, self.seeds, self.agents, self.round, key(name), out)
        return out

    def normal(self, name: str, width: int) -> Array:
        """Standard normal entries."""
        return self._fill(NORMAL, name, width)

    def uniform(self, name: str, width: int) -> Array:
        """Entries uniform in (0, 1)."""
        return self._fill(UNIFORM, name, width)

    def direction(self, name: str, width: int) -> Array:
        """Uniform on the unit sphere."""
        g = self.normal(name, width)
        return np.asarray(g / np.linalg.norm(g, axis=2, keepdims=True))

    def gamma_norm(self, name: str, width: int) -> Array:
        norm = self._fill(EXPONENTIAL, name + ".norm", width).sum(axis=2, keepdims=True)
        return self.direction(name, width) * norm

    def ball(self, name: str, width: int) -> Array:
        radius = self.uniform(name + ".radius", 1) ** (1.0 / width)
        return self.direction(name, width) * radius
