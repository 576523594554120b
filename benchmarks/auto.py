"""What `algorithm="auto"` reaches: the measurements of docs/auto.md, as a table with standard errors.

    python benchmarks/auto.py [--seeds 6] [--only adult,breast,sets,regression,curves,peers] [--json out.json]

Estimators as a user calls them, with seeded noise, so that a run repeats itself; every seed has a split of its own, and
none of these splits had a part in choosing constants. Sets that are not found (CONFIDE_DATA) are left out, with a line
that says so. `peers` is the method that the parties had before sums were private, CDP-ADMM, beside joint descent, on
generated rows; benchmarks/accuracy.py has a tuned curator beside it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from accuracy_fits import ERROR, SLOPES, curve_error
from accuracy_fits import normal_line as line
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import mean_pinball_loss, r2_score

import confide
from confide.algorithms import CDPADMM, JointDescent

# Round numbers above what a cell nucleus can measure: constants, not maxima of this data.
BREAST_RANGES = np.array([
    30, 40, 200, 2500, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1,
    3, 5, 25, 550, 0.04, 0.15, 0.4, 0.06, 0.08, 0.03,
    40, 50, 260, 4500, 0.25, 1.2, 1.3, 0.3, 0.7, 0.25,
])  # fmt: skip
DIVISORS = {"german": 3, "image": 3, "splice": 4, "waveform": 3, "ringnorm": 3, "twonorm": 3}
WHO: dict[str, Any] = {"alone": None, "5 parties": 5, "20 parties": 20}
FIRST = 7_000  # seed of the first split shown
Line = tuple[str, list[float]]


def accuracy(kind: Any, X: Any, y: Any, train: Any, test: Any, **options: Any) -> float:
    model = kind(delta=1e-5, classes=np.unique(y).tolist(), **options)
    return 100 * float(model.fit(X[train], y[train]).score(X[test], y[test]))


def halves(rows: int, count: int, seed: int) -> tuple[Any, Any]:
    order = np.random.default_rng(FIRST + seed).permutation(rows)
    return order[:count], order[count:]


def adult(seeds: int) -> Iterator[Line]:
    X, y = confide.datasets.load_adult()
    for epsilon, (who, parties) in itertools.product((0.1, 1.0, 3.0), WHO.items()):
        yield f"Adult, error, ε={epsilon:g}, {who}", [
            100 - accuracy(confide.PrivateLogisticRegression, X, y, *halves(len(y), 40_000, seed), epsilon=epsilon,
                           parties=parties, random_state=seed) for seed in range(seeds)]  # fmt: skip


def breast(seeds: int) -> Iterator[Line]:
    X, y = load_breast_cancer(return_X_y=True)
    X = 2 * np.clip(X / BREAST_RANGES, 0, 1) - 1
    for epsilon, (who, parties) in itertools.product((0.3, 1.0, 3.0), list(WHO.items())[:2]):
        yield f"breast cancer, accuracy, ε={epsilon:g}, {who}", [
            accuracy(confide.PrivateLogisticRegression, X, y, *halves(len(y), 455, seed), epsilon=epsilon,
                     parties=parties, random_state=seed) for seed in range(5 * seeds)]  # fmt: skip


def sets(seeds: int) -> Iterator[Line]:
    """20 splits and more: on six the difference from what `auto` was before, on the same splits, is mostly chance."""
    for name, divisor in DIVISORS.items():
        found = confide.datasets.load_raetsch(name)
        X, y = found.X / divisor, found.y
        rows = int(0.8 * len(y))
        splits = [halves(len(y), rows, seed) for seed in range(max(seeds, 20))]

        def reached(kind: Any, X: Any = X, y: Any = y, splits: Any = splits, **options: Any) -> list[float]:
            return [accuracy(kind, X, y, *split, random_state=seed, **options) for seed, split in enumerate(splits)]

        for kind, epsilon in itertools.product(
            (confide.PrivateLogisticRegression, confide.PrivateLinearSVC), (1.0, 3.0)
        ):
            label = f"{name}, {kind.__name__[7:]}, accuracy, ε={epsilon:g}"
            yield f"{label}, alone", reached(kind, epsilon=epsilon)
            now = reached(kind, epsilon=epsilon, parties=5)
            yield f"{label}, 5 parties", now
            if kind is confide.PrivateLogisticRegression:
                then = reached(kind, epsilon=epsilon, parties=5, algorithm=before(5, rows, epsilon))
                yield f"{label}, 5 parties, as `auto` was before", then
                yield f"{label}, 5 parties, gained", [a - b for a, b in zip(now, then, strict=True)]


def regression(seeds: int) -> Iterator[Line]:
    """10 features within norm 1, a line and normal errors; R² of the true line is 0.77. And diabetes, 442 rows."""
    kinds: dict[str, Any] = {
        "Ridge": confide.PrivateRidge, "Lasso": confide.PrivateLasso, "Huber": confide.PrivateHuberRegressor,
        "quantile .5": confide.PrivateQuantileRegressor,
    }  # fmt: skip
    for rows, (name, kind), epsilon, (who, parties) in itertools.product(
        (1_000, 10_000), kinds.items(), (0.1, 1.0, 3.0), list(WHO.items())[:2]
    ):
        reached = []
        for seed in range(seeds):
            X, y = line(rows, seed)
            model = kind(epsilon=epsilon, target_range=(-2, 2), parties=parties, random_state=seed)
            reached.append(float(r2_score(y[rows:], model.fit(X[:rows], y[:rows]).predict(X[rows:]))))
        yield f"regression, {rows:,} rows, {name}, R², ε={epsilon:g}, {who}", reached
    for level, epsilon in itertools.product((0.5, 0.9), (1.0, 3.0)):
        above = []
        for seed in range(seeds):
            X, y = line(1_000, seed)
            model = confide.PrivateQuantileRegressor(
                quantile=level, epsilon=epsilon, target_range=(-2, 2), random_state=seed
            )
            got = model.fit(X[:1_000], y[:1_000]).predict(X[1_000:])
            best = X[1_000:] @ SLOPES + ERROR * math.sqrt(2) * float(inverse_erf(2 * level - 1))
            lost, least = (mean_pinball_loss(y[1_000:], z, alpha=level) for z in (got, best))
            above.append(100 * (lost / least - 1))
        yield f"quantile {level:g}, 1,000 rows, pinball loss above the true one, %, ε={epsilon:g}, alone", above
    X, y = load_diabetes(return_X_y=True, scaled=False)
    X = 2 * (X - DIABETES[0]) / (DIABETES[1] - DIABETES[0]) - 1
    for epsilon, (who, parties) in itertools.product((1.0, 3.0), list(WHO.items())[:2]):
        reached = []
        for seed in range(5 * seeds):
            train, test = halves(len(y), 353, seed)
            model = confide.PrivateRidge(
                epsilon=epsilon, row_norm=math.sqrt(10), target_range=(0, 400), parties=parties, random_state=seed
            )
            reached.append(float(r2_score(y[test], model.fit(X[train], y[train]).predict(X[test]))))
        yield f"diabetes, Ridge, R², ε={epsilon:g}, {who}", reached


# round numbers that a diabetes clinic may know: age, sex, bmi, blood pressure, six serum measurements
DIABETES = np.array([[0, 1, 15, 60, 80, 40, 20, 0, 3, 50], [100, 2, 45, 140, 320, 250, 100, 10, 6.5, 130]], float)


def inverse_erf(x: float) -> float:
    from scipy.special import erfinv

    return float(erfinv(x))


def curves(seeds: int) -> Iterator[Line]:
    for basis, count in (("bspline", 5), ("cosine", 8)):
        missed = [curve_error(basis, count, seed) for seed in range(min(seeds, 4))]
        yield f"curves, {basis} of {count}, MISE, 50 parties", missed


def peers(seeds: int) -> Iterator[Line]:
    """Joint descent with an honest majority, with independent noise, and CDP-ADMM with the steps it had in 0.1.0."""
    for parties, rows, epsilon in itertools.product((2, 5, 20), (1_000, 10_000), (0.3, 1.0, 3.0)):
        errors: dict[str, list[float]] = {}
        for seed in range(seeds):
            rng = np.random.default_rng([rows, seed, 1])
            X = rng.normal(size=(rows + 5000, 20)) * np.exp(rng.normal(size=20)) + rng.normal(size=20)
            X /= np.quantile(np.linalg.norm(X, axis=1), 0.95)
            z = X @ (rng.normal(size=20) / X.std(axis=0))
            y = np.where(2.5 * (z - z.mean()) / z.std() + rng.logistic(size=len(z)) > 0, 1, -1)
            for name, method in (
                ("CDP-ADMM", before(parties, rows, epsilon)), ("joint descent", JointDescent()),
                ("joint descent, independent noise", JointDescent(collusion=parties - 1)),
            ):  # fmt: skip
                options = {"algorithm": method, "parties": parties, "epsilon": epsilon, "random_state": seed}
                found = accuracy(confide.PrivateLogisticRegression, X, y, slice(rows), slice(rows, None), **options)
                errors.setdefault(name, []).append(100 - found)
        for name, values in errors.items():
            yield f"generated, error, {parties} parties, {rows:,} rows, ε={epsilon:g}, {name}", values


def before(parties: int, rows: int, epsilon: float) -> CDPADMM:
    """What `auto` was for logistic loss: the distance at which noise has moved a prediction by 2, in steps of 8."""
    from confide.estimators import one_fit

    travel = 2.0 * 0.25 * rows * one_fit.budget(epsilon, 1e-5) / math.sqrt(parties)
    rounds = min(max(round(travel / 2.0), 20), 500)
    h = 0.25 * 5.0 / (parties * min(4.0, travel / rounds))
    degree = 1 if parties == 2 else 2
    return CDPADMM(
        rounds=rounds, clip=0.5 * math.sqrt(5), step=2 / h, coupling=0.25 * h / degree, proximal=True,
        noise_decay=0.1 ** (1 / rounds),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--only", default="adult,breast,sets,regression,curves,peers")
    parser.add_argument("--json", default=None)
    given = parser.parse_args()
    table = {}
    for part in given.only.split(","):
        try:
            for name, values in globals()[part](given.seeds):
                error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
                table[name] = values
                print(f"{name:72s} {np.mean(values):8.3f} ± {error:.3f}", flush=True)
        except FileNotFoundError as missing:
            print(f"{part}: left out, {missing}", flush=True)
    if given.json is not None:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
