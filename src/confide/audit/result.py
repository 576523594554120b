"""`AuditResult`: what an audit found, in words, as JSON and as a picture. An audit never confirms."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from confide._version import __version__
from confide.audit.adversary import ADVERSARIES
from confide.audit.canary import Coalition
from confide.files import write_whole
from confide.files.pictures import new_figure, write_picture
from confide.files.plain import without_infinity

Array = NDArray[np.float64]
COLOURS, INK, WARNING = ("#0072B2", "#E69F00"), "#22303c", "#D55E00"  # told apart by all eyes
POOLED = "they pool rows, noise and messages, subtract what they know of every sum, and see what is left of the others'"
FALLING = 0.9  # of the largest noise of a round: below, later rounds may have less yet


class Tried(NamedTuple):
    """A canary against an adversary, and about the μ that a few repetitions let one expect; 0: not screened."""

    setting: str
    canary: str
    adversary: str
    signal: float


@dataclass(frozen=True, eq=False)
class AuditResult:
    """Claim and lower bound on the privacy loss, the attack behind it, and what that attack could have seen.

    algorithm, parameters, loss, setting    what was attacked
    canary, adversary, distinguisher        the attack that was best, of those `tried`
    bound                                   how errors became a bound: "accuracy" or "rates"
    epsilon, delta, mu                      the claim; mu is None where it is not Gaussian
    epsilon_low, mu_low                     the lower bound, at `delta`
    epsilon_any                             the same errors' bound on ε for a loss of any form, not that of a Gaussian
    epsilon_most, mu_most                   these had no guess been wrong: so many repetitions can't show more
    confidence                              that the lower bound is one, between 0 and 1
    repetitions, rounds, seed               of each world; of the method; of the noise
    threshold, false_alarms, misses         of the final test, and how often it erred
    rarest                                  what happens more rarely in a run may not have happened in any
    noise_fell                              the last round's noise over that of the noisiest round, as measured
    coalition                               of a private sum who attacked it: so many of the parties, and outsiders
    scores                                  of the final test in both worlds, (repetitions,) each
    """

    algorithm: str
    parameters: dict[str, Any]
    loss: str
    setting: str
    canary: str
    adversary: str
    distinguisher: str
    bound: str
    epsilon: float
    delta: float
    mu: float | None
    epsilon_low: float
    mu_low: float | None
    epsilon_any: float
    epsilon_most: float
    mu_most: float | None
    confidence: float
    repetitions: int
    rounds: int
    seed: int
    threshold: float
    false_alarms: int
    misses: int
    rarest: float
    noise_fell: float
    tried: tuple[Tried, ...]
    scores: tuple[Array, Array]
    coalition: Coalition | None = None

    @property
    def refuted(self) -> bool:
        """Whether the lower bound exceeds the claim."""
        if self.mu is not None and self.mu_low is not None:
            return self.mu_low > self.mu
        return self.epsilon_low > self.epsilon

    @property
    def verdict(self) -> str:
        """One line; it never says that a claim is true."""
        sure = f"at confidence {100 * self.confidence:g} %"
        if self.refuted:
            return f"refuted: lower bound {self.epsilon_low:.3g} exceeds the claim {self.epsilon:.3g} {sure}"
        return f"not contradicted: lower bound {self.epsilon_low:.3g} {sure}; claim {self.epsilon:.3g}"

    @property
    def could_see(self) -> list[str]:
        """What this audit would have noticed, in sentences."""
        settings, canaries, adversaries, _ = (list(dict.fromkeys(part)) for part in zip(*self.tried, strict=True))
        gaussian = "" if self.mu_most is None else f"a μ of at most {self.mu_most:.3g}, or "
        said = [
            f"{gaussian}an ε of at most {self.epsilon_most:.3g} at δ={self.delta:g}: what {self.repetitions:,} "
            f"repetitions without an error prove at confidence {100 * self.confidence:g} %",
            f"rows: {', '.join(canaries)}, over {self.rounds} round{'s' * (self.rounds > 1)}",
            f"what is said to the target: {', '.join(adversaries)}",
        ]
        if self.coalition is not None:
            said.insert(0, f"{self.coalition}: {POOLED}")
        named = [s for s in settings if s]
        return [*said, f"settings: {'; '.join(named)}"] if named else said

    @property
    def could_not_see(self) -> list[str]:
        """What would have escaped it, in sentences."""
        rounds = f"rounds after round {self.rounds}"
        if self.noise_fell < FALLING:
            rounds += (
                f": noise fell to {self.noise_fell:.2g} of its largest and may go on falling, so that later rounds "
                "tell more (PDML as published passes at 5 rounds, whose noise still covers a row, and is refuted at 60)"
            )
        said = [
            rounds,
            f"what happens in fewer than 1 of {int(1 / self.rarest):,} runs",
            "other rows, losses, settings, graphs and lies than these; guesses cleverer than these",
            "how noise is drawn on a node (this noise is seeded), timing, and anything but messages",
        ]
        if self.coalition is not None:
            said.append(
                "masks: the sum is simply taken here, so that neither what hides a message is attacked nor how secrets "
                "are made and kept"
            )
        left = [name for name in ADVERSARIES if name not in {t.adversary for t in self.tried}]
        if left:
            said.insert(1, f"what these adversaries of ours would have found: {', '.join(left)}")
        out_of_reach = self.epsilon_most <= self.epsilon if self.mu is None else (self.mu_most or 0.0) <= self.mu
        if out_of_reach:
            said.insert(0, f"any breach of the claim: ε={self.epsilon:.3g} is more than so few repetitions can show")
        return said

    def __str__(self) -> str:
        gaussian = "" if self.mu is None else (
            f" of a Gaussian with μ ≥ {self.mu_low:.3g}, claim {self.mu:.3g}; of any other loss, "
            f"ε ≥ {self.epsilon_any:.3g}"
        )  # fmt: skip
        n = self.repetitions
        setting = f", {self.setting}" if self.setting else ""
        lines = [
            f"{self.algorithm}, {self.loss}{setting}: ε at δ={self.delta:g}{gaussian}",
            f"canary: {self.canary}",
            f"adversary: {self.adversary}",
            f"distinguisher: {self.distinguisher}, by {self.bound}; errors {self.false_alarms} and {self.misses} "
            f"of {n:,} each",
        ]
        return "\n".join([
            self.verdict, *(wrap(line, "  ") for line in lines),
            "what it could have seen", *(wrap(line, "  - ") for line in self.could_see),
            "what it could not have seen", *(wrap(line, "  - ") for line in self.could_not_see),
        ])  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Everything, scores to six digits."""
        names = [name for name in self.__dataclass_fields__ if name not in ("scores", "tried")]
        scores = [[float(f"{s:.6g}") for s in part] for part in self.scores]
        out = {"version": __version__, "verdict": self.verdict, "refuted": self.refuted}
        out |= {name: getattr(self, name) for name in names}
        out["coalition"] = None if self.coalition is None else self.coalition._asdict()
        out["tried"] = [without_infinity(t._asdict()) for t in self.tried]
        out |= {"could_see": self.could_see, "could_not_see": self.could_not_see}
        return out | {"parameters": without_infinity(self.parameters), "scores": scores}

    def save(self, path: str | Path) -> Path:
        """Write JSON, whole or not at all."""
        return write_json(path, self.to_json())

    def draw(self, path: str | Path) -> Path:
        """Draw the scores in both worlds, and the errors of every threshold beside those the claim allows."""
        figure = new_figure(11, 5)
        left, right = figure.subplots(1, 2, width_ratios=(1.6, 1))
        self._histograms(left)
        self._errors(right)
        figure.suptitle(f"{self.algorithm}, {self.loss}\n{self.verdict}", color=WARNING if self.refuted else INK)
        return write_picture(made_room(path), figure)

    def _histograms(self, ax: Any) -> None:
        both = np.concatenate(self.scores)
        centre, unit = np.median(both), np.std(self.scores[0]) or np.std(both) or 1.0
        low, high = (np.quantile(both, [0.0005, 0.9995]) - centre) / unit
        edges = np.linspace(low, high + 1e-9, 61)
        for part, name, colour in zip(self.scores, ("data set D", "its neighbour D′"), COLOURS, strict=True):
            scaled = (part - centre) / unit
            ax.hist(scaled, edges, color=colour, alpha=0.35, density=True)
            ax.hist(scaled, edges, color=colour, histtype="step", linewidth=1.6, density=True, label=name)
        ax.axvline((self.threshold - centre) / unit, color=INK, linewidth=1, linestyle="--", label="threshold")
        ax.set(xlabel=f"score of one transcript: {self.distinguisher}", yticks=[])
        ax.set_title(f"{self.repetitions:,} runs on each of two neighbouring data sets", color=INK, fontsize=11)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.legend(frameon=False)

    def _errors(self, ax: Any) -> None:
        one, other = (np.sort(part) for part in self.scores)
        cuts = np.quantile(np.concatenate([one, other]), np.linspace(0, 1, 400))
        fpr = 1 - np.searchsorted(one, cuts, "right") / len(one)
        fnr = np.searchsorted(other, cuts, "right") / len(other)
        alpha = np.linspace(1e-6, 1 - 1e-6, 400)
        if self.mu is not None:
            allowed = ndtr(ndtri(1 - alpha) - self.mu)
        else:
            e = np.exp(min(self.epsilon, 700.0))
            allowed = np.maximum(0.0, np.maximum(1 - self.delta - e * alpha, (1 - self.delta - alpha) / e))
        ax.fill_between(alpha, 0, allowed, color=WARNING, alpha=0.12, linewidth=0, label="contradicts the claim")
        ax.plot(alpha, allowed, color=WARNING, linewidth=1.2)
        ax.plot(fpr, fnr, color=INK, linewidth=1.6, label="measured, every threshold")
        here = self.false_alarms / self.repetitions, self.misses / self.repetitions
        ax.plot(*here, "o", color=INK, markersize=6, clip_on=False, label="the test")
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="false alarms", ylabel="misses")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, loc="upper right")


def wrap(text: str, mark: str) -> str:
    """Within 80 columns, what follows the first line indented under it."""
    return fill(text, 80, initial_indent=mark, subsequent_indent=" " * len(mark) + ("" if "-" in mark else "  "))


def write_json(path: str | Path, document: dict[str, Any]) -> Path:
    return write_whole(made_room(path), json.dumps(document, ensure_ascii=False, allow_nan=False).encode())


def made_room(path: str | Path) -> Path:
    """The path, its folder made where there is none."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return Path(path)
