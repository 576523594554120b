"""`algorithm="auto"`: a proven method and its parameters, from public quantities only.

The method is CDP-ADMM with clipped row gradients. Near consensus its agents together descend the pooled loss with the
step α = 1/(K·h), h = 1/η + 2ρ|N|, and after T rounds the noise has moved the prediction of a row by about

    wander = 2·T·α·c·B·√K / (n·μ)           c: clip of a row's gradient, B: longest row, μ: Gaussian-DP budget

while the model has travelled T·α along its gradient: noise and travel grow together, so what there is to choose is how
far to go, and in how many rounds. docs/auto.md has the measurements behind the constants.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from confide.algorithms.cdp_admm import CDPADMM
from confide.problem.losses import Huber, Logistic, Loss, Multinomial, Quantile, SmoothedHinge, Squared
from confide.problem.problem import Public

FEWEST_ROUNDS, MOST_ROUNDS = 20, 500
COUPLING = 0.5  # the part of h that the network takes, 2ρ|N|; the rest is 1/η
LAST_VARIANCE = 0.1  # of the noise, relative to the first round's


class Taste(NamedTuple):
    """What suits a loss. Targets of regressions lie in [-1, 1]; margins of classifiers are logits."""

    slope: float  # to which a row's is clipped
    curvature: float  # to step by
    gentle: float  # step, in units of 1/curvature
    brisk: float  # the largest step, where the rounds would not suffice otherwise
    wander: float  # of the noise, at the end
    average_from: float  # the model is the mean of the iterates after this part of the rounds


def taste(loss: Loss) -> Taste:
    """Constants by loss. Slopes are clipped to what they are at the start, which halves the noise of the logistic."""
    match loss:
        case Logistic():
            return Taste(0.5, 0.25, 2.0, 4.0, 2.0, 0.9)
        case Multinomial():
            return Taste(math.sqrt(1 - 1 / loss.classes), 0.5, 2.0, 4.0, 1.0, 0.9)
        case SmoothedHinge():
            return Taste(1.0, loss.curvature_bound, 1.0, 1.0, 1.0, 0.9)
        case Squared():
            return Taste(0.25, 1.0, 1.0, 1.0, 0.2, 0.7)
        case Huber():
            return Taste(min(loss.width, 0.25), 1.0, 1.0, 1.0, 0.2, 0.7)
        case Quantile():
            return Taste(loss.slope_bound, 1.0, 1.0, 1.0, 0.2, 0.7)
    raise ValueError(f"algorithm='auto' has no settings for {type(loss).__name__}: give one of confide.algorithms")


def choose(public: Public, mu: float, rounds: int | None = None) -> CDPADMM:
    """The method for this public problem and this Gaussian-DP budget; its noise is still to be calibrated."""
    assert public.graph is not None and public.row_norm is not None
    likes, K, n = taste(public.loss), public.count, int(public.sizes.sum())
    longest = math.sqrt(public.row_norm**2 + public.intercept)
    # travel, in steps of 1/curvature, after which the noise has moved a prediction by `wander`
    travel = likes.wander * likes.curvature * n * mu / (2 * likes.slope * math.sqrt(K))
    T = rounds if rounds is not None else min(max(round(travel / likes.gentle), FEWEST_ROUNDS), MOST_ROUNDS)
    alpha = min(likes.brisk, travel / T) / (likes.curvature * longest**2)
    h = 1 / (K * alpha)
    return CDPADMM(
        rounds=T, clip=likes.slope * longest, step=1 / ((1 - COUPLING) * h),
        penalty=COUPLING * h / (2 * float(public.graph.degrees.mean())), proximal=True,
        noise_decay=LAST_VARIANCE ** (1 / T),
    )  # fmt: skip
