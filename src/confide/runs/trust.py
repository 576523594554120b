"""Whom parties trust where they share their noise: what is promised against a few, and what is left against all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from confide import privacy
from confide.algorithms.summed import SummedMethod
from confide.problem.problem import Public


class Trust(NamedTuple):
    """`spent` holds against any `colluders` of `parties` who pool all they know; `everyone` is ε against all others."""

    colluders: int
    parties: int
    everyone: float

    def line(self, spent: float) -> str:
        return (
            f"ε = {spent:.4g} if at most {self.colluders} of {self.parties} collude, "
            f"ε = {self.everyone:.4g} against all others together"
        )


def trusted(method: Any, public: Public) -> int | None:
    """The c that a method's promise holds against: all others where noise is not shared; None where there are none."""
    if public.count == 1:
        return None
    return method.colluders(public) if isinstance(method, SummedMethod) else public.count - 1


def trust(phases: Sequence[tuple[Any, Public]], delta: float) -> Trust | None:
    """Whom the parties trust where they share their noise; None where nobody is, or nobody else is there."""
    method, public = phases[-1]
    if not isinstance(method, SummedMethod) or method.honest(public) == 1 or not method.private(public):
        return None
    K = public.count
    alone = [
        event
        for method, public in phases
        for now in (
            method.charged_against(K - 1, public) if isinstance(method, SummedMethod) else method.charged(public)
        )
        for event in now
    ]
    return Trust(method.colluders(public), K, float(np.max(privacy.epsilon(alone, delta))))
