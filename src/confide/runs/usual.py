"""What a method promises at best, and which of its parameters ask for it: known without a row."""

from __future__ import annotations

from dataclasses import fields
from itertools import product

import numpy as np

from confide.algorithms import Algorithm
from confide.errors import ConfideError
from confide.network.graph import Graph
from confide.privacy import Guarantee, Label
from confide.problem import losses
from confide.problem.penalties import L2
from confide.problem.problem import Public

# Ways to ask a method for privacy, the usual last; a method takes those whose names it knows.
SETTINGS: tuple[dict[str, float], ...] = (
    {}, {"noise_rate": 1.0}, {"noise_rate": 1.0, "release_noise": 1.0}, {"noise": 1.0}, {"noise": 1.0, "clip": 1.0},
)  # fmt: skip
SILENT = "messages carry no noise"


def usual_guarantee(kind: type[Algorithm]) -> tuple[Guarantee, dict[str, float]]:
    """The best guarantee the method gives under the settings above, and the setting."""
    order = [Label.PROVEN, Label.ASSUMED, Label.REFUTED, Label.NONE]
    best, how, found = Guarantee(Label.NONE, SILENT), dict[str, float](), False
    for settings, public in product(SETTINGS[::-1], _publics(kind)[::-1]):
        if not settings.keys() <= {f.name for f in fields(kind)}:
            continue
        try:
            method = kind(**settings)  # type: ignore[arg-type]
            method.check(public)
            given = method.guarantee(public)
        except ConfideError:  # not this loss, or not these parameters together
            continue
        if not found or order.index(given.label) < order.index(best.label):
            best, how, found = given, settings, True
        if best.label == Label.PROVEN:  # nothing is better
            break
    return best, how


def _publics(kind: type[Algorithm]) -> list[Public]:
    """Small public networks of bounded rows, one for each loss a method may ask for."""
    sizes, agents = np.full(3, 100), np.arange(3)
    whole = [
        Public(Graph.ring(3), sizes, loss, L2(0.01), 4, weighting="rows", row_norm=1.0, agents=agents)
        for loss in (losses.Logistic(), losses.Quantile(0.5), losses.NoisyLabels(losses.Logistic(), 1.0))
    ]
    return [public.as_one() for public in whole] if kind.topology == "central" else whole
