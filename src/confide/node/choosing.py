"""`algorithm = "auto"` of a federation: the method that nodes run best, and parameters that nobody has set.

Everything here follows from public quantities: sizes, graph, loss, bounds and the budget. Joint descent on private
sums is what `confide plan` forecasts (docs/auto.md). For losses that it has no settings for the method is CDP-ADMM with
clipped row gradients. Near consensus its agents together descend Σ_k f_k with the step α = 1/(K·h), h = 1/η + 2ρ|N|,
and after T rounds the noise has moved the prediction of a row by about

    wander = 2·T·α·c·B·s/μ,  s = √(Σ_k q_k²/M_k²)      c: clip of a row's gradient, B: longest row

while the model has travelled T·α along its gradient: noise and travel grow together, so what there is to choose is how
far to go, and in how many rounds. An h that is the same whatever the graph makes it the same descent on a ring and on
a complete graph; ρ is divided by the mean degree.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from confide.algorithms import Algorithm
from confide.algorithms.base import row_length
from confide.algorithms.joint_descent import JointDescent, descent_constants
from confide.algorithms.linearized_admm import LinearizedADMM
from confide.algorithms.summed import mass
from confide.errors import ConfideError
from confide.privacy import mu_for
from confide.problem.losses import (
    Absolute,
    Huber,
    Logistic,
    Loss,
    Multinomial,
    NoisyLabels,
    Quantile,
    SmoothedHinge,
    Squared,
)
from confide.problem.problem import Public

AUTO = "auto"
OPEN = ("rounds", "collusion")  # what may be set beside "auto"
FEWEST_ROUNDS, MOST_ROUNDS = 20, 500
SHARED = 0.5  # the part of h that the network takes, 2ρ|N|; the rest is 1/η
LAST_VARIANCE = 0.1  # of the noise, relative to the first round's


class ADMMConstants(NamedTuple):
    """What suits a loss. Targets of regressions lie in [-1, 1]; margins of classifiers are logits."""

    slope: float  # to which a row's is clipped
    curvature: float  # to step by
    gentle: float = 1.0  # step, in units of 1/curvature
    brisk: float = 1.0  # the largest step, where the rounds would not suffice otherwise
    wander: float = 0.2  # of the noise, at the end


def admm_constants(loss: Loss) -> ADMMConstants:
    """Constants by loss. Slopes are clipped to what they are at the start, which halves the noise of the logistic."""
    match loss:
        case Logistic():
            return ADMMConstants(0.5, 0.25, 2.0, 4.0, 2.0)
        case Multinomial():
            return ADMMConstants(math.sqrt(1 - 1 / loss.classes), 0.5, 2.0, 4.0, 1.0)
        case SmoothedHinge():
            return ADMMConstants(1.0, loss.curvature_bound, wander=1.0)
        case Squared():
            return ADMMConstants(0.25, 1.0)
        case Huber():
            return ADMMConstants(min(loss.width, 0.25), 1.0)
        case Quantile():  # it bends as densely as targets lie, within [-1, 1] and most of them nearer
            return ADMMConstants(loss.slope_bound, 4.0)
        case Absolute():
            return ADMMConstants(1.0, 8.0)
        case NoisyLabels():  # the correction is linear: it lengthens slopes and bends nothing
            base = admm_constants(loss.base)
            return base._replace(slope=loss.slope_bound if math.isfinite(loss.slope_bound) else base.slope)
    # of hinges; a slope without a bound is clipped to that of a margin of 0
    bends = min(loss.curvature_bound, 1.0)
    return ADMMConstants(min(loss.slope_bound, 1.0), bends, wander=1.0 if loss.labels == "sign" else 0.2)


def joint(loss: Loss) -> bool:
    """Whether joint descent has settings for this loss."""
    try:
        descent_constants(loss)
    except ConfideError:
        return False
    return True


def choose(public: Public, cap: float, delta: float, given: dict[str, Any]) -> dict[str, Any]:
    """The table [algorithm] for this public problem and cap (ε, δ); its noise is still to be calibrated."""
    for name in given:
        if name not in OPEN:
            raise ConfideError(
                f"algorithm {AUTO}: {name} is set by it, only {' and '.join(OPEN)} may be given; or name a method"
            )
    if joint(public.loss):
        return {"name": JointDescent.__name__, **given}
    if "collusion" in given:
        kind = type(public.loss).__name__
        raise ConfideError(f"collusion={given['collusion']}: with {kind} nobody is trusted anyway, leave it out")
    return {"name": "CDPADMM", **peer(public, float(mu_for(cap, delta)), given.get("rounds"))}


def peer(public: Public, mu: float, rounds: int | None = None) -> dict[str, Any]:
    """CDP-ADMM's parameters for the Gaussian-DP budget μ."""
    likes, longest = admm_constants(public.loss), length(public)
    # travel, in steps of 1/curvature, after which the noise has moved a prediction by `wander`
    noise = 2 * likes.slope * math.sqrt(float((public.whole.scale**2).sum())) / (mass(public) * mu)
    travel = likes.wander * likes.curvature / noise
    T = rounds if rounds is not None else min(max(round(travel / likes.gentle), FEWEST_ROUNDS), MOST_ROUNDS)
    if not T >= 1:
        raise ConfideError(f"rounds={T}: must be a whole number of at least 1")
    step = min(likes.brisk, travel / T)
    return {
        "rounds": T, "clip": likes.slope * longest, **pace(public, step), "proximal": True,
        "noise_decay": LAST_VARIANCE ** (1 / T),
    }  # fmt: skip


def pace(public: Public, step: float | None = None) -> dict[str, float]:
    """Step and coupling of a linearised ADMM, whatever the graph's degrees; `step` in units of 1/curvature."""
    likes = admm_constants(public.loss)
    alpha = (likes.brisk if step is None else step) / (likes.curvature * length(public) ** 2 * mass(public))
    h = 1 / (public.count * alpha)
    assert public.graph is not None
    return {"step": 1 / ((1 - SHARED) * h), "coupling": SHARED * h / (2 * float(public.graph.degrees.mean()))}


def length(public: Public) -> float:
    """Of a row with its intercept; 1 where nothing bounds it."""
    longest = row_length(public)
    return longest if math.isfinite(longest) else 1.0


def filled(table: dict[str, Any], method: Algorithm, public: Public) -> dict[str, Any]:
    """The table of a method that was named, with the step and coupling that it leaves open and degrees decide."""
    if not isinstance(method, LinearizedADMM) or public.graph is None:
        return table
    usual = pace(public)
    if isinstance(table.get("step"), int | float):
        usual["coupling"] = 1 / (2 * float(public.graph.degrees.mean()) * table["step"])
    return {**usual, **table}


def why(method: Algorithm, public: Public) -> str:
    """What "auto" chose, in one line."""
    if isinstance(method, JointDescent):
        return "chosen: joint descent on private sums, as `confide plan` forecasts and `confide fit` learns"
    return f"chosen: {method.name}, set up by rows, graph and budget; joint descent does not know {public.loss!r}"
