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
made it: stopped and started again, it goes on.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path

import accuracy_sets as sets
import numpy as np
from accuracy_kept import HOME, Kept, Result, result
from sklearn.linear_model import LogisticRegression, Ridge

import confide
from confide.algorithms import JointDescent

DELTA, FIRST = 1e-5, sets.FIRST
EPSILONS, FEW_EPSILONS = (0.1, 0.3, 1.0, 3.0), (1.0, 3.0, 8.0)
EASY, HARD = ("waveform", "twonorm", "cohort"), ("breast cancer", "german", "image", "ringnorm", "splice")
TABLES = ("wine", "digits", "breast cancer", "diabetes", "adult")
PARTS = ("regression", "quantiles", "tables", *EASY, *HARD, "adult", "curves", "adult curator")  # the last takes long


# --- beside a curator -------------------------------------------------------------------------------------------------


def joint(
    split: sets.Split, epsilon: float, seed: int, parties: int = 5, collusion: int | None = 1, **options
) -> float:
    """Test error of one fit, in per cent."""
    shards = (
        confide.Shards.split(split.X, split.y, parties, seed=seed) if split.groups is None
        else confide.Shards.from_groups(split.X, split.y, split.groups)
    ).clip_rows(1.0)  # fmt: skip
    problem = confide.Problem(shards, confide.losses.Logistic(), weighting="rows", intercept=True)
    graph = confide.Graph.ring(shards.parties)
    method = JointDescent(collusion=collusion, **options).calibrated(problem.public(graph), epsilon, DELTA)
    run = confide.simulate(problem, graph, method, seeds=(seed,), record=())
    return 100 * float(np.mean(problem.predict(split.test_X, run.estimates[0, 0]) != split.test_y))


ROUNDS = {"adult": (30, 100, 300, 1000)}  # its features are far from alike, and plain descent is slow; others:
FEW = (10, 30, 100, 300)
STEPS, TAILS, SLOPE = 2.0 ** np.arange(-3, 7), (0.0, 0.5), 0.5


def curator(split: sets.Split, epsilon: float, seed: int, rounds: int, steps=STEPS) -> list[list[float]]:
    """Test error in per cent of the last model and of the mean of the last half (`TAILS`), for each of `steps`."""
    rng, mu = np.random.default_rng([seed, rounds, 1]), float(confide.privacy.mu_for(epsilon, DELTA))
    n, p = len(split.y), split.X.shape[1]
    sigma = 2 * SLOPE * math.sqrt(1.25) / n * math.sqrt(rounds) / mu
    theta, half = np.zeros((p + 1, len(steps))), np.zeros((p + 1, len(steps)))
    for t in range(rounds):
        z = (split.X @ theta[:p] + 0.5 * theta[p]) * split.y[:, None]
        s = -np.minimum(1 / (1 + np.exp(np.minimum(z, 500))), SLOPE) * split.y[:, None] / n
        g = np.vstack([split.X.T @ s, 0.5 * s.sum(axis=0)])
        theta = theta - np.asarray(steps) * (g + sigma * rng.normal(size=g.shape))
        if 2 * t >= rounds:
            half += (theta - half) / (t - math.ceil(rounds / 2) + 1)
    wrong = [(split.test_X @ m[:p] + 0.5 * m[p] >= 0) != (split.test_y[:, None] > 0) for m in (theta, half)]
    return [(100 * w.mean(axis=0)).tolist() for w in wrong]


def settings(tries) -> list[tuple[int, float, float]]:
    """(rounds, part that is averaged, step): what a curator may choose."""
    return list(itertools.product(tries, TAILS, STEPS.tolist()))


def beside(
    kept: Kept, name: str, count: int, networks, limits: Callable[[str, float], float | None], slow: bool = True
) -> Iterator[Result]:
    """Ours in each of the networks {what: (parties, collusion)}, the curator, and the difference."""
    parts = list(sets.splits(name, count))
    draws, tries = 1 if name == "adult" else 2, ROUNDS.get(name, FEW)  # of noise for a split; of rounds
    ours = {}
    for epsilon, (what, (parties, collusion)) in itertools.product(EPSILONS, networks.items()):
        ours[epsilon, what] = np.array([
            np.mean([kept(f"{name} {what} {epsilon:g} {i} {j}",
                          lambda a=(s, epsilon, FIRST + 1000 * j + i, parties, collusion): joint(*a), "method")
                     for j in range(draws)])
            for i, s in enumerate(parts)
        ])  # fmt: skip
        yield result(name, name, what, epsilon, ours[epsilon, what], limits(what, epsilon), of="method")
    if name == "adult" and not slow:
        return
    for epsilon in EPSILONS:
        chosen = np.array([[[kept(f"{name} curator {epsilon:g} {i} {j} {rounds}",
                                  lambda a=(s, epsilon, 1000 * i + j, rounds): curator(*a)) for rounds in tries]
                            for j in range(draws)] for i, s in enumerate(parts)])  # fmt: skip
        best = int(np.argmin(chosen.mean(axis=(0, 1)).ravel()))
        rounds, tail, step = settings(tries)[best]
        tuned = np.array([
            np.mean([kept(f"{name} chosen curator {epsilon:g} {i} {j} {rounds} {step:g}",
                          lambda a=(s, epsilon, 1000 * i + draws + j, rounds, (step,)): curator(*a))
                     [TAILS.index(tail)] for j in range(draws)])
            for i, s in enumerate(parts)
        ])  # fmt: skip
        averaged = f"mean of the last {tail:.0%}" if tail else "the last model"
        yield result(name, name, f"curator: {rounds} rounds, step {step:g}, {averaged}", epsilon, tuned)
        for what in networks:
            yield result(name, name, f"{what}: above the curator", epsilon, ours[epsilon, what] - tuned,
                         limits("above", epsilon), "points", "method")  # fmt: skip


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
        for epsilon, (what, parties) in itertools.product(FEW_EPSILONS, (("alone", None), ("5 parties", 5))):
            values = [kept(f"table {name} {what} {epsilon:g} {i}",
                           lambda a=(rows, s, epsilon, i, parties): estimator_score(*a), "estimators")
                      for i, s in enumerate(parts)]  # fmt: skip
            yield result("tables", name, what, epsilon, values, unit=unit, of="estimators")
        if regress:
            for epsilon in FEW_EPSILONS:
                values = [kept(f"table {name} bought {epsilon:g} {i}",
                               lambda a=(rows, s, epsilon, i, None, True): estimator_score(*a), "estimators")
                          for i, s in enumerate(parts)]  # fmt: skip
                yield result("tables", name, "alone, range bought", epsilon, values, unit=unit, of="estimators")
        key = f"table {name} diffprivlib {count}"
        peer = kept(key, lambda a=(rows, parts): by_diffprivlib(*a)) if kept.peers or key in kept.known else None
        for epsilon in FEW_EPSILONS:
            if peer is not None:
                scores: dict[str, list[float]] = {}
                for key, value in peer.items():
                    _, e, setting = key.split()
                    if float(e) == epsilon:
                        scores.setdefault(setting, []).append(value if regress else 100 * value)
                yield result("tables", name, "diffprivlib", epsilon, max(scores.values(), key=np.mean), unit=unit)
        yield result("tables", name, "none", math.inf, [plain_score(rows, s) for s in parts], unit=unit)


def estimator_score(rows: sets.Known, split: sets.Split, epsilon: float, seed: int, parties, bought=False) -> float:
    """As a user calls it: public ranges, or what is bought."""
    options = {"epsilon": epsilon, "delta": DELTA, "parties": parties, "random_state": seed}
    options |= {"row_norm": 1.0} if rows.scale is None else {"scale": rows.scale}
    if rows.target_range is not None:
        model = confide.PrivateRidge(**options, target_range=None if bought else rows.target_range)
        return float(model.fit(split.X, split.y).score(split.test_X, split.test_y))
    model = confide.PrivateLogisticRegression(**options, classes=np.unique(rows.y).tolist())
    return 100 * float(model.fit(split.X, split.y).score(split.test_X, split.test_y))


def plain_score(rows: sets.Known, split: sets.Split) -> float:
    (X, norm), (test_X, _) = (sets.scaled(rows, part) for part in (split.X, split.test_X))
    if rows.target_range is not None:
        return float(Ridge(alpha=1e-3).fit(X, split.y).score(test_X, split.test_y))
    model = LogisticRegression(C=100 / norm**2, max_iter=3000).fit(X, split.y)
    return 100 * float(model.score(test_X, split.test_y))


def by_diffprivlib(rows: sets.Known, parts: list[sets.Split]) -> dict[str, float] | None:
    """Scores by split, ε and setting; None where it can't be installed, or fails."""
    try:
        python = peer_environment()
        with tempfile.TemporaryDirectory() as folder:
            for i, split in enumerate(parts):
                (X, norm), (test_X, _) = (sets.scaled(rows, part) for part in (split.X, split.test_X))
                extra = {} if rows.target_range is None else dict(zip(("low", "high"), rows.target_range, strict=True))
                np.savez(
                    Path(folder) / f"{i}.npz", X=X, y=split.y, test_X=test_X, test_y=split.test_y, norm=norm, **extra
                )
            script = Path(__file__).with_name("with_diffprivlib.py")
            done = subprocess.run([python, script, folder], capture_output=True, text=True, check=True)
            return json.loads(done.stdout)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        said = getattr(error, "stderr", None) or str(error)
        print(f"diffprivlib is missing: {str(said).strip().splitlines()[-1]}", file=sys.stderr)
        return None


@cache
def peer_environment() -> str:
    """The interpreter of an environment that has diffprivlib, made where there is none."""
    home = HOME / "diffprivlib"
    python = home / "bin" / "python"
    if not (home / "made").exists():
        venv.create(home, with_pip=True, clear=True)
        # 0.6 imports a name that scikit-learn 1.6 no longer has
        install = [python, "-m", "pip", "install", "--quiet", "diffprivlib==0.6.6", "scikit-learn<1.6", "numpy<2.3"]
        subprocess.run(install, capture_output=True, text=True, check=True)
        (home / "made").touch()
    return str(python)


# --- generated lines, and curves --------------------------------------------------------------------------------------


def predicted(split: sets.Split, loss, penalty, epsilon: float, seed: int) -> np.ndarray:
    shards = confide.Shards.split(split.X, split.y, 5, seed=seed).clip_rows(1.0)
    problem = confide.Problem(shards, loss, penalty, weighting="rows", intercept=True)
    graph = confide.Graph.ring(5)
    method = JointDescent(collusion=1).calibrated(problem.public(graph), epsilon, DELTA)
    run = confide.simulate(problem, graph, method, seeds=(seed,), record=())
    return problem.predict(split.test_X, run.estimates[0, 0])


def unexplained(split: sets.Split, _, z) -> float:
    """1 - R², in per cent."""
    return 100 * float(np.mean((split.test_y - z) ** 2) / split.test_y.var())


def excess(split: sets.Split, truth, z) -> float:
    """Mean absolute error above the true line's, in per cent."""
    return 100 * float(np.mean(np.abs(split.test_y - z)) / np.mean(np.abs(split.test_y - truth)) - 1)


def regressions(kept: Kept, count: int) -> Iterator[Result]:
    """R² of at least .68 and .70 are at most 32 and 30 % left unexplained."""
    losses, penalties = confide.losses, confide.penalties
    kinds = {
        "ridge": (losses.Squared(), penalties.L2(1e-5), unexplained),
        "lasso": (losses.Squared(), penalties.L1(1e-3), unexplained),
        "Huber": (losses.Huber(0.125), penalties.L2(1e-5), unexplained),
        "median": (losses.Quantile(0.5), penalties.L2(1e-5), excess),
    }

    def one(n: int, epsilon: float, what: str, seed: int) -> float:
        loss, penalty, score = kinds[what]
        split, truth = sets.line(n, seed)
        return score(split, truth, predicted(split, loss, penalty, epsilon, seed))

    for (n, epsilon), what in itertools.product(((1_000, 1.0), (10_000, 0.1)), kinds):
        values = [kept(f"line {what} {n} {epsilon:g} {seed}", lambda a=(n, epsilon, what, seed): one(*a), "method")
                  for seed in range(FIRST, FIRST + count)]  # fmt: skip
        most = {"ridge": {1_000: 32.0, 10_000: 30.0}, "median": {1_000: 5.0}}.get(what, {}).get(n)
        unit = "excess absolute error, %" if what == "median" else "variance left unexplained, %"
        yield result(
            "regression", f"line, {n:,} rows", f"{what}, 5 parties, c=1", epsilon, values, most, unit, "method"
        )


def quantiles(kept: Kept, count: int) -> Iterator[Result]:
    """Pinball loss above that of the true quantile, which a normal error has at a known place."""
    from auto import ERROR, SLOPES
    from auto import line as normal_line
    from scipy.stats import norm
    from sklearn.metrics import mean_pinball_loss

    def one(level: float, epsilon: float, seed: int) -> float:
        X, y = normal_line(1_000, seed)
        options = {
            "quantile": level,
            "epsilon": epsilon,
            "target_range": (-2, 2),
            "row_norm": 1.0,
            "random_state": seed,
        }
        got = confide.PrivateQuantileRegressor(**options).fit(X[:1_000], y[:1_000]).predict(X[1_000:])
        best = X[1_000:] @ SLOPES + ERROR * norm.ppf(level)
        lost, least = (mean_pinball_loss(y[1_000:], z, alpha=level) for z in (got, best))
        return 100 * float(lost / least - 1)

    for level, epsilon in itertools.product((0.5, 0.9), (1.0, 3.0)):
        values = [
            kept(f"quantile {level} {epsilon:g} {s}", lambda a=(level, epsilon, s): one(*a), "estimators")
            for s in range(FIRST, FIRST + count)
        ]
        yield result("quantiles", "line, 1,000 rows", f"τ={level:g}, alone", epsilon, values,
                     unit="excess pinball loss, %", of="estimators")  # fmt: skip


def curves(kept: Kept, count: int) -> Iterator[Result]:
    """Zhou and Xiang's design: 100,000 curves, 50 parties, τ=.5, μ=.189."""
    from auto import curve_error

    values = [
        kept(f"curves bspline 5 {s}", lambda s=s: curve_error("bspline", 5, s), "estimators") for s in range(count)
    ]
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
    if name in ("adult", "adult curator"):
        yield from beside(kept, "adult", count or 6, ADULT, lambda what, e: (
            None if what == "above" else limit("majority" if "majority" in what else "c=1", e)),
            slow=name == "adult curator")  # fmt: skip
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
    parser.add_argument("--no-peers", action="store_true", help="leave diffprivlib out where it has not run before")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each number")
    given = parser.parse_args()
    names = [] if given.page else list(PARTS) if given.only == "all" else given.only.split(",")
    known = dict.fromkeys([*PARTS, *(f"{name} table" for name in TABLES), *TABLES])
    if wrong := [name for name in names if name not in known]:
        parser.error(f"--only {wrong[0]}: must be of {', '.join(known)}")
    kept, missed = Kept(given.keep, given.again, not given.no_peers), 0
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
