"""Adversaries: what the target hears, chosen by neighbours or a hub that lie, from everything public.

An adversary is a function of the round and of what the target has sent so far. It answers with what its neighbours'
weighted messages sum to, or with what the hub adds to the target's own message. It sends finite numbers only: others
are refused by their receiver, whatever the rows are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.problem.questions import within

Array = NDArray[np.float64]
Says = Callable[[int, Sequence[Array], float], Any]  # (round from 1, messages (S, W) so far, bound of a row) -> heard
KINDS = ("plain", "rounding", "overflow")  # what each is after; the best of every kind is followed up
LARGEST = float(np.finfo(float).max)


@dataclass(frozen=True, eq=False)
class Adversary:
    """What the neighbours of the attacked agent say.

    name    by which it is asked for
    text    completes the sentence "neighbours say …"
    says    (round from 1, messages so far, bound of a row) -> what is heard
    kind    what it is after: "plain", "rounding" or "overflow"
    """

    name: str
    text: str
    says: Says
    kind: str = "plain"

    def heard(self, t: int, sent: Sequence[Array], bound: float, most: float = LARGEST) -> Array:
        """What round t's messages of the neighbours sum to: (S, W), of norm at most `most`."""
        with np.errstate(over="ignore"):
            said = np.zeros_like(sent[-1]) + np.asarray(self.says(t, sent, bound), float)
        said = np.clip(np.nan_to_num(said, nan=0.0), -LARGEST, LARGEST)
        return within(said, math.inf if most >= LARGEST else most)


def in_turn(*values: float) -> Adversary:
    """The same few numbers in turn, in every coordinate."""
    told = ", ".join(f"{v:g}" for v in values)
    return Adversary(f"constant {told}", told, lambda t, sent, bound: values[(t - 1) % len(values)])


def echo(factor: float) -> Says:
    """The target's last message, multiplied."""
    return lambda t, sent, bound: factor * sent[-1]


def once(value: float) -> Says:
    """One number in the first round, silence afterwards: what it does to the state stays."""
    return lambda t, sent, bound: value if t == 1 else 0.0


def coarse(power: int, sign: int) -> Says:
    """So large a number that the doubles beside it lie 2^power bounds of a row apart, or a little less.

    A sum of it and a gradient, taken before noise is added, is then rounded to about the size of the gradient. Every
    round goes a double further, for what is rounded to even depends on the last bit.
    """
    return lambda t, sent, bound: sign * (1.5 + t * 2.0**-52) * 2.0 ** (52 + power + math.floor(math.log2(2 * bound)))


def _registry() -> dict[str, Adversary]:
    every = [
        Adversary("silent", "0", once(0.0)),
        Adversary("alternating", "20 and -20 in turn", lambda t, sent, bound: 20.0 if t % 2 else -20.0),
        Adversary("large", "1e6", lambda t, sent, bound: 1e6),
        Adversary("tiny", "1e-310", lambda t, sent, bound: 1e-310),
        Adversary("echo", "minus the target's last message", echo(-1.0)),
        Adversary("amplify", "1,000 times the target's last message", echo(1000.0)),
    ]
    for power in (0, -1, 1, -2, 2):
        for sign, mark in ((1, ""), (-1, "-")):
            text = f"some {mark}2^{52 + power} times a row's bound, so that sums are rounded"
            every.append(Adversary(f"near {mark}2^{52 + power}", text, coarse(power, sign), "rounding"))
    for huge in (5e307, -5e307):
        every.append(Adversary(f"once {huge:g}", f"{huge:g} once, next to overflow", once(huge), "overflow"))
    return {one.name: one for one in every}


ADVERSARIES = _registry()
SILENT = ADVERSARIES["silent"]


def adversary(given: str | Sequence[float] | Adversary) -> Adversary:
    """By name, or numbers to be said in turn, or one's own."""
    if isinstance(given, Adversary):
        return given
    if isinstance(given, str):
        if given not in ADVERSARIES:
            raise ConfideError(f"unknown adversary {given!r}: known are {', '.join(ADVERSARIES)}")
        return ADVERSARIES[given]
    if not given or not all(math.isfinite(v) for v in given):
        raise ConfideError(f"heard={given!r}: must be finite numbers, at least one, or an adversary's name")
    return in_turn(*given)
