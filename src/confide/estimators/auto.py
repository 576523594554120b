"""`algorithm="auto"`: joint descent on private sums, set up and explained by public quantities only.

It was better than the peer methods wherever one of them learned anything: with one party and with many, with shared
noise and with independent noise (docs/auto.md has the measurements). So what is left to choose is what it buys in its
first round, which `JointDescent` does by the loudness g of the noise beside the rows.
"""

from __future__ import annotations

import math
from dataclasses import replace

from confide.algorithms.joint_descent import JointDescent
from confide.problem.problem import Public

BOUGHT = {
    "moments": "round 1 buys each feature's mean and square, whose noise is {g:.2g} of a row's length",
    "spread": "round 1 buys how far apart rows are: features' scales would have noise of {g:.2g} of a row's length",
    "gradient": "round 1 buys no scale of the features: its noise would be {g:.2g} of a row's length",
}


ONE_UNIT = "features have one unit, so that no scale is bought"


def choose(rounds: int | None = None, collusion: int | None = None, one_unit: bool = False) -> JointDescent:
    """The method, whose noise and first round are still to be calibrated.

    Where features have one unit, as scores in an orthonormal basis do, none is stretched: a function would carry much
    noise where curves do not vary.
    """
    method = JointDescent(collusion=collusion, first="gradient" if one_unit else None)
    return method if rounds is None else replace(method, rounds=rounds)


def why(method: JointDescent, public: Public, mu: float, one_unit: bool = False) -> str:
    """What decided, in words; `method` is calibrated to μ."""
    K, c = public.count, method.colluders(public)
    loud, independent = math.sqrt(K / (K - c)), math.sqrt(K)
    if K == 1:
        noise = "one party holds all rows, so that sums carry a curator's noise"
    elif c < K - 1:
        noise = (
            f"at most {c} of {K} parties collude, so that sums carry {loud:.3g} times a curator's noise; "
            f"independent noise would be {independent:.3g} times"
        )
    else:
        noise = f"no other party is trusted, so that sums carry {independent:.3g} times a curator's noise"
    bought = ONE_UNIT if one_unit else BOUGHT[method.buys(public)].format(g=method.loudness(public, mu))
    return f"{method.name} on private sums: {noise}; {bought}"
