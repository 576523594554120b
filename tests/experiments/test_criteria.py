"""Every verdict can say yes and no: its criterion is a function of what was measured, and of nothing else.

Measured values are bent at random (exchanged between tasks, scaled, reversed, sorted, negated), and each finding of an
experiment must come out both ways. A verdict that is a constant of the code fails here, whichever constant it is.
A case is of the group of its paper's tests, whose worker has run the experiment.
"""

import warnings

import numpy as np
import pytest

from confide.papers.reproduce import Results
from confide.papers.reproduce.experiment import names
from confide.papers.reproduce.findings import DIFFERS

TRIES = 400
INVENTED = {"larger ε and smaller R give better accuracy"}  # 49 orders at once: test_invented_pdml.py has yes and no


def bent(value, how, rng):
    """A value with its numbers, truth values and words changed; shapes stay."""
    if isinstance(value, dict):
        return {k: bent(v, how, rng) for k, v in value.items()}
    if isinstance(value, bool | np.bool_):
        return bool(rng.random() < 0.5)
    if isinstance(value, str):
        return ("", "proven", "assumed", "refuted", value, value)[rng.integers(6)]
    if isinstance(value, list):
        return [bent(v, how, rng) for v in value]
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        return value
    out = how(np.array(array, float), rng)
    if array.dtype.kind in "iu":
        out = np.rint(np.clip(out, -1e9, 1e9)).astype(array.dtype)
    return out if isinstance(value, np.ndarray) else out.item()


SCALE = 3.0
WAYS = (
    lambda a, rng: a * np.exp(rng.normal(scale=SCALE)),
    lambda a, rng: a * np.exp(rng.normal(scale=0.05)),
    lambda a, rng: a * np.exp(rng.normal(scale=0.5, size=a.shape)),
    lambda a, rng: (
        a * np.exp(rng.normal(scale=SCALE) * np.linspace(0, 1, a.shape[-1] if a.ndim else 1)).reshape(a.shape)
        if a.ndim
        else a
    ),
    lambda a, rng: a[..., ::-1].copy() if a.ndim else a,
    lambda a, rng: np.sort(a.ravel())[:: rng.choice([-1, 1])].reshape(a.shape),
    lambda a, rng: np.full(a.shape, a.mean()) if a.size else a,
    lambda a, rng: a * rng.choice([1e-9, 1e9]),
    lambda a, rng: np.ones(a.shape),
    lambda a, rng: a,
)


def variants(results, rng):
    """Every value bent at random: one way for all, or each its own, perhaps with values exchanged between tasks."""
    pairs = list(results)
    pool = [value for _, value in pairs]
    if rng.random() < 0.6:
        shapes = [repr(sorted((k, np.shape(v)) for k, v in value.items())) for value in pool]
        for shape in set(shapes):
            places = [i for i, s in enumerate(shapes) if s == shape]
            moved = rng.permutation(places) if rng.random() < 0.7 else places[::-1]
            values = [pool[i] for i in places]
            for place, value in zip(moved, values, strict=True):
                pairs[place] = (pairs[place][0], value)
    common = (
        {key: float(np.exp(rng.normal(scale=4.0))) for value in pool for key in value} if rng.random() < 0.4 else {}
    )
    same = WAYS[rng.integers(len(WAYS))] if rng.random() < 0.4 else None
    out = [(task, bent(value, same or WAYS[rng.integers(len(WAYS))], rng)) for task, value in pairs]
    return Results(
        [(task, {k: scaled(v, common.get(k, 1.0)) for k, v in value.items()}) for task, value in out], results.trials
    )


def ordered(results, rng):
    """Every number follows from its task alone: it rises or falls with each parameter, as if there were no chance.

    What many comparisons must say with one voice does not come about by values bent each by itself.
    """
    numbers = {k for task, _ in results for k, v in task.items() if isinstance(v, int | float)}
    levels = {k: sorted({task[k] for task, _ in results if k in task}) for k in numbers}
    trend = {k: rng.choice([-0.3, 0.3]) for k in sorted(numbers)}

    def value_of(task, value):
        level = np.exp(sum(trend[k] * levels[k].index(task[k]) for k in numbers if k in task))
        return bent(value, lambda a, rng: np.full(a.shape, level), rng)

    return Results([(task, value_of(task, value)) for task, value in results], results.trials)


def scaled(value, factor):
    """Numbers times one factor for all tasks, which moves one measured quantity against the others."""
    if (isinstance(value, np.ndarray) and value.dtype.kind == "f") or isinstance(value, float):
        return value * factor
    return value


def case(paper, name):
    group = pytest.mark.xdist_group(f"experiments/test_{paper.replace('-', '_')}.py")
    return pytest.param(paper, name, id=f"{paper} {name}", marks=group)


@pytest.mark.slow
@pytest.mark.parametrize("paper, name", [case(*pair) for pair in names()])
def test_every_verdict_can_say_yes_and_no(quick, paper, name):
    outcome = quick(paper, name)
    rng = np.random.default_rng(0)
    seen = [{f.verdict == DIFFERS} for f in outcome.findings]
    for attempt in range(TRIES + TRIES // 10):
        if all(len(s) == 2 for s in seen):
            break
        make = variants if attempt < TRIES else ordered
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = outcome.experiment.module.findings(make(outcome.results, rng))
        except (ValueError, ArithmeticError, IndexError, np.linalg.LinAlgError):
            continue  # values that no run gives
        assert len(found) == len(seen), "the number of findings depends on values"
        for said, finding in zip(seen, found, strict=True):
            said.add(finding.verdict == DIFFERS)
    stuck = [f"{f.what} ({f.verdict})" for f, s in zip(outcome.findings, seen, strict=True)
             if len(s) < 2 and f.what not in INVENTED]  # fmt: skip
    assert not stuck, stuck
