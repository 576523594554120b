"""The least noise that a federation's cap allows, with room for rounds that crashes make parties pay for twice."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from confide.algorithms import GaussianRelease, SummedMethod
from confide.node import federation as federations
from confide.node.federation import Federation
from confide.privacy import Total
from confide.privacy.secure import budget
from confide.problem.problem import Public

ROUNDS_PER_RESTART = 30


def usual_restarts(rounds: int) -> int:
    """Attempts held by default: a node that crashes between payment and journal pays for that round again."""
    return math.ceil(rounds / ROUNDS_PER_RESTART)


def calibrated(document: dict[str, Any], given: Federation, restarts: int | None = None) -> Federation:
    """The federation with its noise, if `document` says none: all rounds and `restarts` more cost the cap.

    Attempts are held at the price of the dearest rounds, each once. Where the noise is given, so is what it costs, and
    none is held unless `restarts` says so.
    """
    method = given.algorithm
    fixed = not isinstance(method, GaussianRelease) or "noise" in document["algorithm"]
    more = restarts if restarts is not None else 0 if fixed else usual_restarts(method.rounds)
    if more:
        document["budget"]["restarts"] = more
    if not fixed:
        assert given.epsilon is not None and given.delta is not None and isinstance(method, GaussianRelease)
        noised = with_room(method, given.public, given.epsilon, given.delta, more)
        document["algorithm"] |= settled(method, noised, given.public)
    return federations.from_document(document)


def with_room(method: GaussianRelease, public: Public, epsilon: float, delta: float, restarts: int) -> GaussianRelease:
    """The method with the least noise for which all rounds and `restarts` more cost (ε, δ), as nodes charge it."""
    for _ in range(2):  # what is asked, and so how many numbers carry noise, may follow from what can be paid for
        noised = method.schedule(public).noised
        mu = budget(epsilon, delta, np.append(noised, [noised.max()] * restarts))
        method = method.calibrated(public, mu=mu)
    if restarts:
        method = method.calibrated(public, mu=mu / math.sqrt(1 + attempts_share(method, public, restarts)))
    return method


def settled(before: GaussianRelease, method: GaussianRelease, public: Public) -> dict[str, Any]:
    """What calibration chose, as the file says it; and how many may collude, which nobody should have to guess."""
    chosen = {field.name: getattr(method, field.name) for field in fields(method)}
    found = {name: value for name, value in chosen.items() if value is not getattr(before, name)}
    if isinstance(method, SummedMethod):
        found["collusion"] = method.colluders(public)
    return {**found, "noise": np.asarray(method.noise).tolist()}


def attempts_share(method: GaussianRelease, public: Public, attempts: int) -> float:
    """What so many attempts take beside all rounds, as a share of their μ²; the largest, over parties (see `caps`)."""
    rounds = np.array([np.broadcast_to(Total.of(now).gaussian, public.count) for now in method.events(public)])
    again = np.resize(-np.sort(-rounds, axis=0), (attempts, public.count))
    return float((again.sum(axis=0) / rounds.sum(axis=0)).max())
