"""What a private model is worth, at equal (ε, δ), on fresh splits: the numbers, the plot and docs/accuracy.md.

    python benchmarks/accuracy.py                        every part (or: confide bench --accuracy all)
    python benchmarks/accuracy.py --only adult,wine      some of them
    python benchmarks/accuracy.py --splits 20 --again    more splits; nothing is taken from earlier runs
    python benchmarks/accuracy.py --page                 the page again, from what docs/accuracy.json holds

*curator*: sees all rows and runs noisy gradient descent, slopes clipped at ½ (better than at 1 on Waveform, Twonorm and
Adult); its rounds, steps and averaging are chosen for each set and ε by the test error over the very splits that are
shown, which nobody could do in earnest. Other noise is drawn for what is shown, or the luckiest setting would stand for
the best. *diffprivlib*: in an environment that is made here, its regularisation chosen on the test set; it promises
pure ε. *none*: scikit-learn without privacy. Noise is seeded, so this protects nobody. ± is a standard error over
splits; a difference is taken split by split. Adult and Rätsch's sets come from CONFIDE_DATA, or are downloaded; what is
missing is left out, with a line that says so. Breast cancer, german, image, ringnorm and splice had no part in choosing
constants, nor had digits, wine and diabetes.

Every number is kept as soon as it is there (`--keep`, ~/.cache/confide/accuracy.jsonl), under a hash of the code that
made it: stopped and started again, it goes on. Every core has a fit of its own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

import accuracy_fits as fits
import accuracy_sets as sets
import numpy as np
from accuracy_kept import HOME, Kept, Result, result

FIRST = sets.FIRST
EPSILONS, FEW_EPSILONS = (0.1, 0.3, 1.0, 3.0), (1.0, 3.0, 8.0)
EASY, HARD = ("waveform", "twonorm", "cohort"), ("breast cancer", "german", "image", "ringnorm", "splice")
TABLES = ("wine", "digits", "breast cancer", "diabetes", "adult")
PARTS = ("regression", "quantiles", "tables", *EASY, *HARD, "curves", "adult")


# --- beside a curator -------------------------------------------------------------------------------------------------

ROUNDS = {"adult": (30, 100, 300, 1000)}  # its features are far from alike, and plain descent is slow; others:
FEW = (10, 30, 100, 300)


def settings(tries) -> list[tuple[int, float, float]]:
    """(rounds, part that is averaged, step): what a curator may choose."""
    return list(itertools.product(tries, fits.TAILS, fits.STEPS.tolist()))


def beside(
    kept: Kept, name: str, count: int, networks, limits: Callable[[str, float], float | None]
) -> Iterator[Result]:
    """Ours in each of the networks {what: (parties, collusion)}, the curator, and the difference."""
    draws, tries = 1 if name == "adult" else 2, ROUNDS.get(name, FEW)  # of noise for a split; of rounds
    drawn = [(i, j, s) for i, s in enumerate(sets.splits(name, count)) for j in range(draws)]
    ours = {}
    for epsilon, (what, (parties, collusion)) in itertools.product(EPSILONS, networks.items()):
        values = kept({
            f"{name} {what} {epsilon:g} {i} {j}":
            partial(fits.joint, s, epsilon, FIRST + 1000 * j + i, parties, collusion) for i, j, s in drawn
        }, "method")  # fmt: skip
        ours[epsilon, what] = by_split(values, count)
        yield result(name, name, what, epsilon, ours[epsilon, what], limits(what, epsilon), of="method")
    for epsilon in EPSILONS:
        grid = kept({
            f"{name} curator {epsilon:g} {i} {j} {rounds}": partial(fits.curator, s, epsilon, 1000 * i + j, rounds)
            for i, j, s in drawn for rounds in tries
        })  # fmt: skip
        mean = np.reshape(grid, (len(drawn), -1)).mean(axis=0)
        rounds, tail, step = settings(tries)[int(np.argmin(mean))]
        values = kept({
            f"{name} chosen curator {epsilon:g} {i} {j} {rounds} {step:g}":
            partial(fits.curator, s, epsilon, 1000 * i + draws + j, rounds, (step,)) for i, j, s in drawn
        })  # fmt: skip
        tuned = by_split([value[fits.TAILS.index(tail)][0] for value in values], count)
        averaged = f"mean of the last {tail:.0%}" if tail else "the last model"
        yield result(name, name, f"curator: {rounds} rounds, step {step:g}, {averaged}", epsilon, tuned)
        for what in networks:
            yield result(name, name, f"{what}: above the curator", epsilon, ours[epsilon, what] - tuned,
                         limits("above", epsilon), "points", "method")  # fmt: skip


def by_split(values: list[float], count: int) -> np.ndarray:
    """The mean over the draws of noise, of each split."""
    return np.reshape(values, (count, -1)).mean(axis=1)


# --- tables as scikit-learn has them, beside diffprivlib and no privacy -----------------------------------------------


def tables(kept: Kept, count: int, only: tuple[str, ...] = TABLES) -> Iterator[Result]:
    for name in only:
        try:
            rows = sets.known(name)
        except (OSError, ValueError) as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
            continue
        regress = rows.target_range is not None
        unit = "R²" if regress else "accuracy, %"
        train = int(rows.train if rows.train > 1 else rows.train * len(rows.y))
        parts = [sets.cut(rows.X, rows.y, train, FIRST + i) for i in range(count)]
        ways = {"alone": (None,), "5 parties": (5,)} | ({"alone, range bought": (None, True)} if regress else {})
        for (what, how), epsilon in itertools.product(ways.items(), FEW_EPSILONS):
            values = kept({
                f"table {name} {what} {epsilon:g} {i}": partial(fits.estimator_score, rows, s, epsilon, i, *how)
                for i, s in enumerate(parts)
            }, "estimators")  # fmt: skip
            yield result("tables", name, what, epsilon, values, unit=unit, of="estimators")
        python = fits.peer_environment()
        peer = [] if python is None else kept({
            f"table {name} diffprivlib {i}": partial(fits.by_diffprivlib, python, rows, s, i)
            for i, s in enumerate(parts)
        })  # fmt: skip
        for epsilon in FEW_EPSILONS if peer and None not in peer else ():
            tried = [[one[key] for one in peer] for key in peer[0] if float(key.split()[0]) == epsilon]
            scores = np.array(max(tried, key=np.mean))
            yield result("tables", name, "diffprivlib", epsilon, scores if regress else 100 * scores, unit=unit)
        values = kept({f"table {name} none {i}": partial(fits.plain_score, rows, s) for i, s in enumerate(parts)})
        yield result("tables", name, "none", math.inf, values, unit=unit)


# --- generated lines, and curves --------------------------------------------------------------------------------------


def regressions(kept: Kept, count: int) -> Iterator[Result]:
    """R² of at least .68 and .70 are at most 32 and 30 % left unexplained."""
    for (n, epsilon), what in itertools.product(((1_000, 1.0), (10_000, 0.1)), fits.KINDS):
        values = kept({
            f"line {what} {n} {epsilon:g} {seed}": partial(fits.line_error, what, n, epsilon, seed)
            for seed in range(FIRST, FIRST + count)
        }, "method")  # fmt: skip
        most = {"ridge": {1_000: 32.0, 10_000: 30.0}, "median": {1_000: 5.0}}.get(what, {}).get(n)
        unit = "excess absolute error, %" if what == "median" else "variance left unexplained, %"
        yield result(
            "regression", f"line, {n:,} rows", f"{what}, 5 parties, c=1", epsilon, values, most, unit, "method"
        )


def quantiles(kept: Kept, count: int) -> Iterator[Result]:
    for level, epsilon in itertools.product((0.5, 0.9), (1.0, 3.0)):
        values = kept({
            f"quantile {level} {epsilon:g} {seed}": partial(fits.quantile_excess, level, epsilon, seed)
            for seed in range(FIRST, FIRST + count)
        }, "estimators")  # fmt: skip
        yield result("quantiles", "line, 1,000 rows", f"τ={level:g}, alone", epsilon, values,
                     unit="excess pinball loss, %", of="estimators")  # fmt: skip


def curves(kept: Kept, count: int) -> Iterator[Result]:
    """Zhou and Xiang's design: 100,000 curves, 50 parties, τ=.5, μ=.189."""
    values = kept(
        {f"curves bspline 5 {seed}": partial(fits.curve_error, "bspline", 5, seed) for seed in range(count)},
        "estimators",
    )
    yield result("curves", "100,000 curves", "five B-splines, 50 parties", 0.78, values, 0.015,
                 "integrated squared error", "estimators")  # fmt: skip


# --- what is shown ----------------------------------------------------------------------------------------------------

FIVE = {"5 parties, c=1": (5, 1)}
ADULT = FIVE | {"20 parties, c=1": (20, 1), "5 parties, honest majority": (5, None),
                "20 parties, honest majority": (20, None)}  # fmt: skip
LIMITS = {
    "c=1": (17.8, 16.6, 15.9, 15.6), "majority": (18.0, 16.8, 16.0, 15.6),  # Adult
    "easy": (1.0, 0.5, 0.5, 0.5), "hard": (None, 3.5, 3.0, 2.0),  # above the curator
}  # fmt: skip


def limit(kind: str, epsilon: float) -> float | None:
    return LIMITS[kind][EPSILONS.index(epsilon)]


def measure(kept: Kept, name: str, count: int | None) -> Iterator[Result]:
    if name == "adult":
        yield from beside(kept, name, count or 6, ADULT, lambda what, e: (
            None if what == "above" else limit("majority" if "majority" in what else "c=1", e)))  # fmt: skip
    elif name in EASY + HARD:
        kind = "easy" if name in EASY else "hard"
        yield from beside(kept, name, count or (6 if name == "cohort" else 20), FIVE,
                          lambda what, e: limit(kind, e) if what == "above" else None)  # fmt: skip
    elif name.removesuffix(" table") in TABLES:
        yield from tables(kept, count or 6, (name.removesuffix(" table"),))
    else:
        yield from {"regression": regressions, "quantiles": quantiles, "tables": tables, "curves": curves}[name](
            kept, count or (6 if name in ("tables", "curves") else 20)
        )


def main() -> None:
    import accuracy_page as page

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="all", help=f"of {', '.join(PARTS)}; 'wine table' is one of tables")
    parser.add_argument(
        "--splits", type=int, help="of each set; by default 6 of Adult, cohorts and tables, 20 of others"
    )
    parser.add_argument("--keep", type=Path, default=HOME / "accuracy.jsonl", help="where numbers are kept")
    parser.add_argument("--again", action="store_true", help="compute all numbers again")
    parser.add_argument("--page", action="store_true", help="only write the page, from docs/accuracy.json")
    parser.add_argument("--jobs", type=int, default=-1, help="processes, by default one a core")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each number")
    given = parser.parse_args()
    names = [] if given.page else list(PARTS) if given.only == "all" else given.only.split(",")
    known = dict.fromkeys([*PARTS, *(f"{name} table" for name in TABLES), *TABLES])
    if wrong := [name for name in names if name not in known]:
        parser.error(f"--only {wrong[0]}: must be of {', '.join(known)}")
    kept, missed = Kept(given.keep, given.again, given.jobs), 0
    for name in names:
        found = []
        try:
            for one in measure(kept, name, given.splits):
                found.append(one)
                missed += one.met is False
                print(json.dumps(asdict(one) | {"met": one.met}) if given.json else page.line(one), flush=True)
        except FileNotFoundError as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
        page.note(found)
    page.write()
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
