"""Gaussian methods: what they ask of private rows, the noise on the answer, its cost and its label.

`GaussianMethod` is the base of every method that asks the engine's questions (`problem.questions`): it never meets
rows. `GaussianRelease` is what it shares with methods that minimise, which have a `local` and a sensitivity of their
own.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, Self

import numpy as np

from confide.algorithms.base import Algorithm, Array, Parameter, Schedule, longest_gradient
from confide.errors import ConfideError, WrongType
from confide.privacy import Event, Free, Gaussian, Guarantee, Label, mu_for, published
from confide.privacy import mu as total_mu
from confide.privacy.noise import Noise
from confide.privacy.published import PublishedBound
from confide.problem.block import Block
from confide.problem.checks import finite, whole
from confide.problem.losses import BlackBox
from confide.problem.problem import Public
from confide.problem.questions import QUESTIONS, Differences, Gradient, Question, within

OWNER = logging.getLogger("confide.owner")  # what only the owner of the rows may read


@dataclass(frozen=True, eq=False)
class GaussianRelease(Algorithm):
    """A method whose releases are Gaussian events; `noise=0` switches privacy off.

    A subclass says what bounds a row (`enforced_bound`), how far a release then moves (`sensitivity`) and how loud its
    noise is (`noise_scale`); costs, label and calibration follow. `assumed_bound` is a bound on row gradients that
    nothing enforces: as published, and labelled so.
    """

    assumed_bound: Parameter = None
    noise: Parameter = 0.0

    def check(self, public: Public) -> None:
        super().check(public)
        self.nonnegative("noise")
        if self.assumed_bound is not None:
            self.positive("assumed_bound")

    def noise_scale(self, t: int, public: Public) -> Array:
        """Standard deviation of the noise in round t: (A, 1)."""
        return public.each(self.noise)

    def sensitivity(self, t: int, public: Public) -> Array:
        """How far the release of round t can move when one row is replaced: (A, 1)."""
        raise WrongType(f"{self.name} does not bound its release: a private method needs `sensitivity`")

    def enforced_bound(self, public: Public) -> Array:
        """Largest norm of one row's gradient that the software enforces, ∞ without one: (A, 1)."""
        return np.broadcast_to(longest_gradient(public), (len(public.agents), 1))

    def row_bound(self, public: Public) -> Array:
        """Largest norm of one row's gradient, enforced or assumed: (A, 1)."""
        if self.assumed_bound is None:
            return self.enforced_bound(public)
        return np.minimum(self.enforced_bound(public), public.each(self.assumed_bound))

    def private(self, public: Public) -> bool:
        return bool(np.all(public.each(self.noise) > 0))

    def bounded(self, public: Public) -> bool:
        return bool(np.all(np.isfinite(self.row_bound(public))))

    def events(self, public: Public) -> list[list[Event]]:
        if not (self.private(public) and self.bounded(public)):
            return super().events(public)
        return [
            [Gaussian(self.sensitivity(t, public)[:, 0], self.noise_scale(t, public)[:, 0]) if touch else Free()]
            for t, touch in enumerate(self.schedule(public).touches, start=1)
        ]

    def stated(self, public: Public) -> Guarantee:
        if not self.private(public):
            return super().stated(public)
        if not self.bounded(public):
            return Guarantee(Label.NONE, "nothing bounds a row's gradient: set clip, or clip rows")
        if np.any(self.row_bound(public) < self.enforced_bound(public)):
            return Guarantee(Label.ASSUMED, self._only_assumed())
        if gap := self.gap(public):
            return Guarantee(Label.ASSUMED, gap)
        return Guarantee(Label.PROVEN, f"{self.enforced(public)}, Gaussian noise is accounted exactly")

    def gap(self, public: Public) -> str:
        """What the proof needs beside a row's bound and the software does not enforce; empty if nothing."""
        return ""

    def _only_assumed(self) -> str:
        return f"row gradients are assumed, not forced, to be within {self.assumed_bound}"

    def enforced(self, public: Public) -> str:
        """What bounds a row, in words."""
        return "rows are clipped and the loss's slope is bounded"

    def calibrated(
        self, public: Public, epsilon: float | None = None, delta: float | None = None, *, mu: float | None = None
    ) -> Self:
        """The same method with the least noise that keeps every agent's exact total within (epsilon, delta), or μ."""
        target = wanted_mu(epsilon, delta, mu)
        self.check(public)
        unit = replace(self, noise=1.0)
        if not unit.bounded(public):
            raise ConfideError(f"{self.name}: no noise is enough while row gradients are unbounded: set clip")
        # every μ_t is inversely proportional to `noise`, so one division calibrates; the factor guards rounding, and
        # a noise as large as the sensitivity keeps the squares within the doubles
        size = float(np.max(unit.sensitivity(1, public))) or 1.0
        unit = replace(self, noise=size)
        need = np.asarray(total_mu(chain.from_iterable(unit.events(public))), float) / target * (1 + 1e-12) * size
        return replace(self, noise=need if np.ptp(need) > 0 else float(np.max(need)))


@dataclass(frozen=True, eq=False)
class GaussianMethod(GaussianRelease):
    """A method that asks the engine's questions: the engine answers with noise, all the rest is public arithmetic.

    `noise` is the standard deviation of the noise on the first answer. Each row's gradient is clipped to norm `clip`:
    for a linear model that acts on the scalar slope, so the result is the gradient of a convex (Huberised) loss.
    Without `clip` the bound is the loss's own slope bound times the row norm that `Shards.clip_rows` enforced.

    A subclass writes `message`, and never meets rows: `ask` hands it noised answers. It may name another `question`,
    and say how often it `asks`, for each round. Sensitivities are the questions' own.
    """

    clip: Parameter = math.inf

    def check(self, public: Public) -> None:
        super().check(public)
        bounds = [self.clip] if np.ndim(self.clip) == 0 else list(self.clip)
        if not all(c == math.inf or (finite(c) and 1e-200 <= c <= 1e200) for c in bounds):
            raise ConfideError(f"{self.name} clip={self.clip}: must be between 1e-200 and 1e200; inf does not clip")

    def question(self, t: int, public: Public) -> Question:
        """What round t asks of the rows, with the bound that the engine enforces."""
        return Gradient(self.enforced_bound(public))

    def asks(self, t: int) -> int:
        """How often round t asks."""
        return 1

    def message(self, t: int, state: Any, ask: Ask, public: Public) -> Array:
        """The message of round t, from public values and what `ask` answers."""
        raise WrongType(f"{self.name} does not say what it sends: a method needs `message`")

    def local(self, t: int, state: Any, block: Block | None, public: Public, noise: Noise) -> Array:
        assert block is not None
        scale = self.noise_scale(t, public) if self.private(public) else None
        ask = Ask(self.question(t, public), block, public, noise, scale, self.asks(t))
        return self.message(t, state, ask, public)

    def schedule(self, public: Public) -> Schedule:
        rounds = range(1, self.rounds + 1)
        noised = [self.asks(t) * self.question(t, public).numbers(public) for t in rounds]
        return super().schedule(public)._replace(noised=np.array(noised))

    def enforced_bound(self, public: Public) -> Array:
        return np.minimum(public.each(self.clip), super().enforced_bound(public))

    def sensitivity(self, t: int, public: Public) -> Array:
        """Of all answers of round t together: (A, 1)."""
        question = self.question(t, public)
        if self.assumed_bound is not None:
            question = question.with_bound(np.minimum(question.bound, public.each(self.assumed_bound)))
        return math.sqrt(self.asks(t)) * question.sensitivity(public)

    def gap(self, public: Public) -> str:
        questions = [self.question(t, public) for t in range(1, self.rounds + 1)]
        asked = {type(one) for one in questions}
        altered = [type(one).__name__ for one in questions if set(vars(one)) - {f.name for f in fields(one)}]
        strange = [kind.__name__ for kind in asked if kind not in QUESTIONS] + [f"an altered {one}" for one in altered]
        if strange:
            return f"{self.name} asks {strange[0]}, which is not one of the engine's questions"
        assumed = public.each(math.inf if self.assumed_bound is None else self.assumed_bound)
        if any(np.any(assumed < one.bound) for one in questions):  # a question of its own may exceed `clip`
            return self._only_assumed()
        if isinstance(public.loss, BlackBox) and Differences in asked:
            alone = "remember no row" if public.loss.by_row else "treat each row alone"
            return f"nothing forces a function of yours to {alone}"
        return ""

    def enforced(self, public: Public) -> str:
        clipped = np.any(np.isfinite(public.each(self.clip)))
        return "row gradients are clipped" if clipped else super().enforced(public)

    def longest_answer(self, t: int, public: Public) -> Array:
        """Of one answer, its noise included, but for one chance in 10^15: (A, 1)."""
        question = self.question(t, public)
        loud = math.sqrt(question.numbers(public)) + 9.0
        return question.largest(public) + loud * self.noise_scale(t, public)


class Ask:
    """Private rows behind the engine's door: a question's answer comes out with its noise, and nothing else does.

    Before the noise an answer is held to the largest that it can be; that never acts unless a kernel is at fault, and
    is then told to the owner alone: a stop that depends on rows would itself be a release.

    question, block, public    what is asked, of which rows, and all else that is known
    noise, scale               where noise is drawn from; its standard deviation, (agents, 1); None: no noise
    times                      how often a round may ask, a whole number of at least 1
    """

    def __init__(
        self, question: Question, block: Block, public: Public, noise: Noise, scale: Array | None, times: int
    ) -> None:
        if not (whole(times) and times >= 1):
            raise ConfideError(f"asks={times}: must be a whole number of at least 1")
        if scale is not None and np.shape(scale)[-2:] != (len(public.agents), 1):
            raise ConfideError(f"noise of shape {np.shape(scale)}: must be ({len(public.agents)}, 1), one per agent")
        question.check(public)
        self._question, self._block, self._public = question, block, public
        self._noise, self._scale, self._times, self._asked = noise, scale, times, 0

    def __call__(self, *at: Any) -> Array:
        """The answer at these public points, with its noise: (S, A, numbers)."""
        if self._asked >= self._times:
            raise RuntimeError(f"asked more often than the {self._times} times that the round pays for: see `asks`")
        name = f"answer {self._asked}" if self._times > 1 else "answer"
        self._asked += 1
        answer = self._question.answer(self._block, *at)
        wide = (len(self._public.agents), self._question.numbers(self._public))
        if answer.shape[1:] != wide:
            raise ConfideError(
                f"an answer of shape {answer.shape[1:]} at points of shapes {[np.shape(p) for p in at]}: "
                f"this problem has (agents, numbers) = {wide}"
            )
        if self._scale is None:
            return answer
        held = within(answer, self._question.largest(self._public))
        if held is not answer and not np.array_equal(held, answer):
            OWNER.warning("an answer exceeded its bound and was clipped before its noise: please report this")
        return self._noise.gaussian(name, held, self._scale)

    def public_normal(self, name: str, width: int) -> Array:
        """Standard normal entries on which no privacy rests, such as search directions."""
        return self._noise.public_normal(name, width)


def root_claim(method: GaussianRelease, public: Public, delta: float) -> PublishedBound:
    """√T·ε, as the CDP-ADMM paper counts DP-ADMM and DDP-ADMM, ε being the root mean square over rounds."""
    worst = float(np.max(total_mu(chain.from_iterable(method.events(public)))))
    each = published.classical_epsilon(worst / math.sqrt(method.rounds), delta)
    return published.sqrt_rounds(each, method.rounds, delta, clipped=is_proven(method, public))


def advanced_claims(method: GaussianRelease, public: Public, delta: float) -> list[PublishedBound]:
    """The claim of the D-ZOA paper's comparison, for a method that it compares itself with."""
    if not (method.private(public) and method.bounded(public)):
        return []
    first = float(np.max(method.sensitivity(1, public) / method.noise_scale(1, public)))
    total = float(np.max(total_mu(chain.from_iterable(method.events(public)))))
    return [published.advanced(first, method.rounds, total, delta, clipped=is_proven(method, public))]


def is_proven(method: GaussianRelease, public: Public) -> bool:
    return method.guarantee(public).label == Label.PROVEN


def wanted_mu(epsilon: float | None, delta: float | None, mu: float | None) -> float:
    """The Gaussian-DP parameter to spend: given as such, or by (epsilon, delta)."""
    if mu is None and epsilon is not None and delta is not None:
        return float(mu_for(epsilon, delta))
    if mu is None or epsilon is not None or delta is not None:
        raise ConfideError(f"epsilon={epsilon}, delta={delta}, mu={mu}: give epsilon and delta, or mu alone")
    if not (finite(mu) and mu > 0):
        raise ConfideError(f"mu={mu}: must be finite and above 0")
    return float(mu)
