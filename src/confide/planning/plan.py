"""`plan`: what a joint private model would be worth, by simulation, before anyone commits to it.

    forecast = plan(Generated(sizes=(800,) * 5, features=20), [0.5, 1.0, 3.0], seeds=5)
    forecast.joint.mean(axis=(1, 2))        # score at each ε

For every seed there are fresh rows (or a fresh split of the party's own), and on them: all parties together at each ε,
all together without noise, and each party alone, without noise and at each ε. A party's models are scored on rows of
its own kind that nothing learned from: it wants to know what joining adds *for it*.

What is forecast is what nodes do: a part of each ε is held for rounds that crashes make a party pay for twice, so that
`confide fit`, which holds none, has a little less noise.

Forecasts from generated rows reveal nothing. Those from private rows are computed without noise: `for_release` is
False, and every output says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.estimators.fitting import CLASSIFIERS, Array, FitOptions, Index, Learned, PooledRows, learn
from confide.node.calibration import usual_restarts, with_room
from confide.planning.rows import Generated as Generated
from confide.planning.rows import Own as Own
from confide.planning.rows import Source
from confide.privacy.budget import limit
from confide.problem import linear
from confide.problem.checks import finite, whole
from confide.problem.problem import Problem, Public
from confide.runs.evaluation import pinball, same_answer

Watch = Callable[[int, int], None]  # (fits done, of how many)
PRIVATE_ROWS = "NOT FOR RELEASE: computed from private rows without noise"


@dataclass(frozen=True, eq=False)
class Forecast:
    """Scores on rows not learned from, by party; K parties, S seeds, E values of ε."""

    epsilons: tuple[float, ...]
    delta: float
    metric: str
    names: tuple[str, ...]
    sizes: Index  # rows learned from: (K,)
    source: str
    for_release: bool
    guarantee: str
    trust: tuple[str, ...]  # whom one must trust, at each ε; empty where nobody
    joint: Array  # together, private: (E, S, K)
    alone_private: Array  # (E, S, K)
    free: Array  # together, without noise: (S, K)
    alone: Array  # (S, K)
    constant: Array  # the same answer for everyone: (S, K)
    weights: Array  # of a party in an average, by its test rows: (K,)
    rounds: Index  # (E,)
    bytes_sent: Index  # (E,), of all parties together
    seconds: Array  # of computing a fit here: (E,)

    @property
    def gain(self) -> Array:
        """What joining adds for a party over training alone for its own use: (E, S, K)."""
        return np.asarray(self.joint - self.alone)

    @property
    def private_gain(self) -> Array:
        """The same over a model of its own that it could publish: (E, S, K)."""
        return np.asarray(self.joint - self.alone_private)

    @property
    def seeds(self) -> int:
        return int(self.free.shape[0])

    def network_seconds(self, latency: float) -> Array:
        """Of computing here, and every round once over a network that takes `latency` milliseconds: (E,)."""
        return np.asarray(self.seconds + self.rounds * latency / 1000)

    def average(self, scores: Array) -> Array:
        """Over the parties."""
        return np.asarray(scores @ self.weights)

    def to_json(self) -> dict[str, Any]:
        def bar(scores: Array) -> dict[str, Any]:
            return {"mean": float(scores.mean()), "sd": sd(scores)}

        return {
            "source": self.source, "for_release": self.for_release,
            "why": "computed from generated rows" if self.for_release else PRIVATE_ROWS,
            "simulated": True, "metric": self.metric, "seeds": self.seeds, "delta": self.delta,
            "guarantee_with_secure_noise": self.guarantee, "trust": list(self.trust),
            "not_private": bar(self.average(self.free)), "alone_not_private": bar(self.average(self.alone)),
            "constant": bar(self.average(self.constant)),
            "epsilons": [
                {"epsilon": e, "joint": bar(self.average(self.joint[i])),
                 "alone_private": bar(self.average(self.alone_private[i])), "rounds": int(self.rounds[i]),
                 "bytes_sent": int(self.bytes_sent[i]), "seconds": float(self.seconds[i])}
                for i, e in enumerate(self.epsilons)
            ],
            "parties": [
                {"name": name, "rows": int(self.sizes[k]), "alone": bar(self.alone[:, k]),
                 "joining_adds": [{"epsilon": e, **bar(self.gain[i, :, k])} for i, e in enumerate(self.epsilons)],
                 "joining_adds_over_private": [{"epsilon": e, **bar(self.private_gain[i, :, k])}
                                               for i, e in enumerate(self.epsilons)]}
                for k, name in enumerate(self.names)
            ],
        }  # fmt: skip


def sd(scores: Array) -> float | None:
    """Over the seeds; one seed has none."""
    return float(scores.std(ddof=1)) if len(scores) > 1 else None


def plan(source: Source, epsilons: Sequence[float], settings: FitOptions = FitOptions(), seeds: int = 5,  # noqa: B008
         watch: Watch = lambda done, total: None) -> Forecast:  # fmt: skip
    """Simulate; `watch` hears of every fit."""
    check_budgets(epsilons, settings.delta)
    if not (whole(seeds) and seeds >= 1):
        raise ConfideError(f"seeds {seeds}: must be a whole number of at least 1")
    values, K = tuple(sorted(epsilons)), source.parties
    done, total = 0, seeds * (len(values) * (K + 1) + K + 1)

    def tick() -> None:
        nonlocal done
        done += 1
        watch(done, total)

    watch(0, total)
    tables: dict[str, list[Any]] = {"joint": [], "alone_private": [], "free": [], "alone": [], "constant": []}
    seconds: list[list[float]] = []
    for seed in range(seeds):
        rows, test = source.draw(seed)
        scale = scorer(settings, test)
        joint, private, fits = [], [], []
        for epsilon in values:
            now = replace(settings, epsilon=epsilon, seed=seed)
            fits.append(learn(rows, now, calibrate=as_nodes if nodes_learn(settings.model, rows.classes) else None))
            joint.append(scale(fits[-1].estimator.predict(test.X)))
            tick()
            private.append([scale(by_itself(fits[-1], k, test.X, now))[k] for k in each(K, tick)])
        tables["joint"].append(joint)
        tables["alone_private"].append(private)
        tables["free"].append(scale(without_noise(fits[-1], None, test.X)))
        tick()
        tables["alone"].append([scale(without_noise(fits[-1], k, test.X))[k] for k in each(K, tick)])
        constant = same_answer(rows.y, settings.model in CLASSIFIERS, asked_level(settings))
        tables["constant"].append(scale(np.full(len(test.y), constant)))
        seconds.append([fit.seconds for fit in fits])
    held = test.sizes / len(test.y)
    arrays = {name: np.array(table, float) for name, table in tables.items()}
    for name in ("joint", "alone_private"):
        arrays[name] = arrays[name].swapaxes(0, 1)
    method, public = fits[0].phases[0]
    return Forecast(
        values, settings.delta, metric(settings), rows.names, rows.sizes, source.describe(), not source.private,
        str(method.guarantee(public)), tuple(told(fit) for fit in fits if fit.spent.trust is not None), **arrays,
        weights=held,
        rounds=np.array([fit.spent.rounds for fit in fits]), bytes_sent=np.array([fit.bytes_sent for fit in fits]),
        seconds=np.median(seconds, axis=0),
    )  # fmt: skip


def check_budgets(epsilons: Sequence[float], delta: float) -> None:
    """One line where these are no budgets to compare."""
    if not epsilons or len(set(epsilons)) < len(epsilons) or not all(finite(e) and e > 0 for e in epsilons):
        raise ConfideError(f"epsilon {', '.join(map(str, epsilons))}: must be different finite numbers above 0")
    for epsilon in epsilons:
        limit(epsilon, delta)


def nodes_learn(model: str, classes: int) -> bool:
    """Whether one run of nodes learns it: one class against the rest, for each, is several."""
    return model != "svc" or classes == 2


def as_nodes(method: Any, public: Public, mu: float, epsilon: float, delta: float) -> Any:
    """With the noise of `confide federation new`, which leaves room for rounds that crashes make a party pay for."""
    method.check(public)
    return with_room(method, public, epsilon, delta, usual_restarts(method.rounds))


def told(fit: Learned) -> str:
    """Whom a fit trusts, in one line."""
    return str(fit.spent.trust.line(fit.spent.spent))


def each(parties: int, tick: Callable[[], None]) -> Iterator[int]:
    for k in range(parties):
        yield k
        tick()


# --- scores -----------------------------------------------------------------------------------------------------------


def metric(settings: FitOptions) -> str:
    return "accuracy" if settings.model in CLASSIFIERS else "D²" if settings.model == "quantile" else "R²"


def scorer(settings: FitOptions, test: PooledRows) -> Callable[[Any], Array]:
    """Score of predictions for the test rows, by party, such that the parties' average is that of all rows."""
    y, level = test.y, asked_level(settings)

    def loss(predicted: Any) -> NDArray[Any]:
        return (y - predicted) ** 2 if level is None else pinball(y - predicted, level)

    def score(predicted: Any) -> Array:
        if settings.model in CLASSIFIERS:
            good = np.asarray(predicted == y, float)
        else:  # 1 minus the loss, over the loss of the best constant
            good = 1 - loss(predicted) / loss(np.full(len(y), same_answer(y, False, level))).mean()
        return np.bincount(test.party, good, minlength=len(test.names)) / test.sizes

    return score


def asked_level(settings: FitOptions) -> float | None:
    """Of a quantile, by default the median; None where no quantile is asked for."""
    if settings.model != "quantile":
        return None
    return 0.5 if settings.quantile is None else settings.quantile


# --- the others to compare with ---------------------------------------------------------------------------------------


def without_noise(fit: Learned, k: int | None, X: Array) -> Any:
    """Predictions of the optimum for party k's rows, or for all."""
    models = [
        fit.estimator._problem(shards if k is None else shards.only(k), loss, fit.penalty).solve()
        for shards, loss in fit.parts
    ]
    return answer(fit, np.concatenate(models), X)


def by_itself(fit: Learned, k: int, X: Array, settings: FitOptions) -> Any:
    """Predictions of party k's own private model at the same ε: a curator of its own rows, which it may publish."""
    from confide.estimators import one_fit as engine

    models = []
    for shards, loss in fit.parts:
        problem = fit.estimator._problem(shards.only(k), loss, fit.penalty)
        steps = engine.rounds(problem, None, private_alone(problem, settings, len(fit.parts)), settings.seed)
        models.append(engine.follow(steps).estimates[0])
    return answer(fit, np.concatenate(models), X)


def private_alone(problem: Problem, settings: FitOptions, parts: int = 1) -> Any:
    """What `auto` chooses for one party, with the noise that spends ε over all `parts`."""
    from confide.estimators import auto
    from confide.estimators import one_fit as engine

    mu = engine.budget(settings.epsilon, settings.delta) / parts**0.5
    return engine.calibrated(auto.choose(), problem.public(None), mu, settings.epsilon, settings.delta)


def answer(fit: Learned, models: Array, X: Array) -> Any:
    """Predictions of coefficients as the engine has them."""
    e = fit.estimator
    outputs = len(models) // (X.shape[1] + e.fit_intercept)
    coef, constant = e._split(models, outputs)
    z = linear.margins(e._rows(X), coef, constant)
    return e.classes_[linear.answers(z)] if hasattr(e, "classes_") else z[:, 0]
