"""`AuditResult`: what an audit found, in words, as JSON and as a picture. An audit never confirms."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from confide._version import __version__
from confide.files import write_whole

Array = NDArray[np.float64]
COLOURS, INK, WARNING = ("#0072B2", "#E69F00"), "#22303c", "#D55E00"  # told apart by all eyes


@dataclass(frozen=True, eq=False)
class AuditResult:
    """Claim and lower bound on the privacy loss, and the attack behind it."""

    algorithm: str
    parameters: dict[str, Any]
    loss: str
    canary: str
    distinguisher: str
    bound: str  # how errors became a bound: "accuracy" or "rates"
    epsilon: float  # the claim
    delta: float
    mu: float | None
    epsilon_low: float  # the lower bound, at `delta`
    mu_low: float | None
    confidence: float
    repetitions: int  # of each world
    seed: int
    threshold: float
    false_alarms: int
    misses: int
    scores: tuple[Array, Array]

    @property
    def refuted(self) -> bool:
        """Whether the lower bound exceeds the claim."""
        if self.mu is not None and self.mu_low is not None:
            return self.mu_low > self.mu
        return self.epsilon_low > self.epsilon

    @property
    def verdict(self) -> str:
        """One line; it never says that a claim is true."""
        sure = f"at confidence {100 * self.confidence:g} % with this canary"
        if self.refuted:
            return f"refuted: lower bound {self.epsilon_low:.3g} exceeds the claim {self.epsilon:.3g} {sure}"
        return f"not contradicted: lower bound {self.epsilon_low:.3g} {sure}; claim {self.epsilon:.3g}"

    def __str__(self) -> str:
        gaussian = "" if self.mu is None else f"; as Gaussian-DP μ ≥ {self.mu_low:.3g}, claim {self.mu:.3g}"
        n = self.repetitions
        return (
            f"{self.verdict}\n"
            f"  {self.algorithm}, {self.loss}: ε at δ={self.delta:g}{gaussian}\n"
            f"  canary: {self.canary}\n"
            f"  distinguisher: {self.distinguisher}, by {self.bound}; errors {self.false_alarms} and {self.misses} "
            f"of {n:,} each"
        )

    def to_json(self) -> dict[str, Any]:
        """Everything, scores to six digits."""
        names = [name for name in self.__dataclass_fields__ if name != "scores"]
        scores = [[float(f"{s:.6g}") for s in part] for part in self.scores]
        out = {"version": __version__, "verdict": self.verdict, "refuted": self.refuted}
        out |= {name: getattr(self, name) for name in names}
        return out | {"parameters": {k: _finite(v) for k, v in self.parameters.items()}, "scores": scores}

    def save(self, path: str | Path) -> Path:
        """Write JSON, whole or not at all."""
        return _write(Path(path), json.dumps(self.to_json(), ensure_ascii=False, allow_nan=False).encode())

    def draw(self, path: str | Path) -> Path:
        """Draw the scores in both worlds, and the errors of every threshold beside those the claim allows."""
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError("the picture needs matplotlib: pip install 'confide[plot]'") from None
        figure = Figure(figsize=(11, 5), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.6, 1))
        self._histograms(left)
        self._errors(right)
        figure.suptitle(f"{self.algorithm}, {self.loss}\n{self.verdict}", color=WARNING if self.refuted else INK)
        buffer = io.BytesIO()
        figure.savefig(buffer, dpi=160, format="png")
        return _write(Path(path), buffer.getvalue())

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


def _finite(value: Any) -> Any:
    """JSON has no infinity: null."""
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_whole(path, content)
