"""Distinguishers: scores of a transcript that are larger, as a rule, in the second world.

All are fitted on repetitions of their own. The likelihood ratio is exact where Gaussian (or Laplace) noise is added to
the message; the learned ones need no model of the method. Where a run breaks off is a message, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from confide.audit.transcript import Transcript

Array = NDArray[np.float64]
Score = Callable[[Transcript], Array]
RIDGES = (1e-2, 1e-10)  # of unit variances: for few repetitions, and for noise that cancels between rounds
LEAST = 1e-100  # a shorter shift, whose square would be 0, tells nothing
TINY = 1e-6  # in units of the noise: nobody would see it


@dataclass(frozen=True)
class Distinguisher:
    """A name and a score, (S,) from a transcript; `predicts` if it needs the predictions."""

    name: str
    score: Score
    predicts: bool = True


def fit(one: Transcript, other: Transcript) -> list[Distinguisher]:
    """Every distinguisher, fitted on these repetitions of the two worlds."""
    found = likelihood(one, other)
    if np.any(one.stopped) or np.any(other.stopped):
        found.append(stops(one, other))
    views: dict[str, Score] = {
        "messages": lambda x: x.messages,
        "residuals": lambda x: x.residual,
        "messages and their squares": lambda x: np.hstack([x.messages, x.messages**2]),
    }
    for name, view in views.items():
        a, b = view(one), view(other)
        if a.shape[1] <= len(a) // 3:  # else there is too little to learn from
            found += [
                Distinguisher(f"learned from {name}", linear(a, b, ridge, view), name == "residuals")
                for ridge in RIDGES
            ]
    return found


def likelihood(one: Transcript, other: Transcript) -> list[Distinguisher]:
    """Σ_t of the log-likelihood ratio of round t given the messages before; the noise's scale is estimated."""
    typical, centred = lengths_and_noise(one, other)
    telling = typical > LEAST
    floor = np.where(telling, 1e-9 * typical, 1.0)  # a round without noise tells everything
    sd, spread = (np.maximum(s, floor) for s in (centred.std(axis=0), np.abs(centred).mean(axis=0)))
    best = np.zeros(len(sd))
    best[np.argmax(typical / sd)] = 1.0

    def gaussian(x: Transcript) -> Array:
        along, norm = projections(x)
        return (along * norm) @ (telling / sd**2)

    def laplace(x: Transcript) -> Array:
        along, norm = projections(x)
        return np.clip(2 * along, -norm, norm) @ (telling / spread)

    def single(x: Transcript) -> Array:
        return projections(x)[0] @ best

    return [
        Distinguisher("likelihood ratio, Gaussian", gaussian), Distinguisher("likelihood ratio, Laplace", laplace),
        Distinguisher("the most telling round", single),
    ]  # fmt: skip


def lengths_and_noise(one: Transcript, other: Transcript) -> tuple[Array, Array]:
    """The mean length of each round's shift (rounds,), and the noise along it in both worlds (2S, rounds)."""
    noise, length = [], []
    for x, sign in ((one, 0.5), (other, -0.5)):
        along, norm = projections(x)
        noise.append(along + sign * norm)
        length.append(norm)
    return np.mean(np.vstack(length), axis=0), np.vstack([n - n.mean(axis=0) for n in noise])


def stops(one: Transcript, other: Transcript) -> Distinguisher:
    """How much oftener the second world breaks off in the same round, or in none."""
    last = int(max(one.stopped.max(), other.stopped.max())) + 1
    a, b = (np.bincount(x.stopped, minlength=last) + 0.5 for x in (one, other))
    odds = np.append(np.log(b / a), 0.0)  # rounds in which none of these broke off
    return Distinguisher("where it breaks off", lambda x: odds[np.minimum(x.stopped, last)], predicts=False)


def signal(one: Transcript, other: Transcript) -> float:
    """About the μ of a Gaussian mechanism as telling as these few repetitions: shift over noise, or breaking off."""
    if one.predicted and other.predicted:
        typical, centred = lengths_and_noise(one, other)
        sd = np.maximum(centred.std(axis=0), np.maximum(1e-9 * typical, LEAST))
        by_shift = max(float(np.linalg.norm(np.where(typical > LEAST, typical / sd, 0.0))), between_rounds(one, other))
    else:
        apart = np.abs(other.messages.mean(axis=0) - one.messages.mean(axis=0))
        spread = np.sqrt(0.5 * (one.messages.var(axis=0) + other.messages.var(axis=0)))
        by_shift = float(np.max(apart / np.maximum(spread, np.maximum(1e-9 * apart, LEAST))))
    last = int(max(one.stopped.max(), other.stopped.max())) + 1
    rates = [(np.bincount(x.stopped, minlength=last) + 0.5) / (len(x.stopped) + 1) for x in (one, other)]
    by_stop = float(np.max(np.abs(ndtri(rates[1]) - ndtri(rates[0]))))
    return max(by_shift, by_stop)


def between_rounds(one: Transcript, other: Transcript) -> float:
    """The same of what a round sends less what the one before did, each in units of its noise.

    No more than all rounds tell where noise is drawn afresh, and nearly everything where two rounds share it and a row
    moves them differently.
    """
    noise = np.vstack([x.residual + s * x.shift for x, s in ((one, 0.5), (other, -0.5))])
    noise -= np.repeat([n.mean(axis=0) for n in np.split(noise, 2)], len(noise) // 2, axis=0)
    shift = np.vstack([one.shift, other.shift])
    parts = np.split(np.arange(len(one.rounds)), np.flatnonzero(np.diff(one.rounds)) + 1)
    best = 0.0
    for a, b in pairwise(parts):
        units = [float(noise[:, part].std()) for part in (a, b)]
        if len(a) != len(b) or min(units) <= LEAST:
            continue
        rest, moved = (x[:, b] / units[1] - x[:, a] / units[0] for x in (noise, shift))
        length = np.sqrt(np.sum(moved**2, axis=1))
        along = np.divide(np.sum(rest * moved, axis=1), length, out=np.zeros_like(length), where=length > 0)
        typical = float(np.mean(length))
        if typical > TINY:  # else what is left is rounding
            best = max(best, typical / max(float(along.std()), 1e-9 * typical))
    return best


def noise_fell(x: Transcript) -> float:
    """The spread of the last round's residuals over that of the round which has most: 1 where noise is constant."""
    spread = np.sqrt(np.maximum.reduceat(x.residual.var(axis=0), np.flatnonzero(np.diff(x.rounds, prepend=-1))))
    return float(spread[-1] / spread.max()) if spread.max() > 0 else 1.0


def projections(x: Transcript) -> tuple[Array, Array]:
    """Of each round: the residual along the shift, and the shift's length; both (S, rounds)."""
    starts = np.flatnonzero(np.diff(x.rounds, prepend=-1))
    norm = np.sqrt(np.add.reduceat(x.shift**2, starts, axis=1))
    along = np.add.reduceat(x.residual * x.shift, starts, axis=1)
    return np.divide(along, norm, out=np.zeros_like(along), where=norm > 0), norm


def linear(a: Array, b: Array, ridge: float, view: Score) -> Score:
    """Fisher's linear discriminant of the features a (S, F) of one world and b of the other."""
    within = np.vstack([a - a.mean(axis=0), b - b.mean(axis=0)])
    apart = b.mean(axis=0) - a.mean(axis=0)
    largest = np.maximum(np.abs(a).max(axis=0), np.abs(b).max(axis=0))  # means are rounded to 1e-15 of it
    scale = np.maximum.reduce([within.std(axis=0), 1e-12 * np.abs(apart), 1e-15 * largest, np.full_like(apart, LEAST)])
    z = within / scale
    covariance = z.T @ z / len(z) + ridge * np.eye(len(scale))
    weights = np.linalg.lstsq(covariance, apart / scale, rcond=1e-13)[0] / scale
    return lambda x: view(x) @ weights
