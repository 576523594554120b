"""The panels on convergence and on the run itself."""

from __future__ import annotations

import numpy as np

from confide.report.charts import Chart, Series, chart
from confide.report.markup import Child, Markup, element, facts, shown
from confide.report.subject import Subject, card
from confide.runs.run import Run

METRICS = {
    "error": "squared distance to the centralised optimum, relative",
    "consensus": "largest distance of a party's model from the average",
    "risk": "mean loss of the parties on their own rows",
    "objective": "objective at the average model",
    "augmented": "augmented Lagrangian",
    "test": "on the public test set: accuracy, or mean loss",
    "test_standard_error": "standard error of `test` for the chance of which rows are in the test set",
    "moved": "how far the average model moved in the round",
    "signal": "length of the round's sum over that of its noise: about 1 where nothing else is in it",
    "distance": "distance to the neighbours' messages, relative",
}


def convergence(subject: Subject) -> list[Markup]:
    run = subject.run
    names = [name for name in run.history if name != "round"]
    shown_names = [name for name in names if subject.simulated or name in run.public]
    cards: list[Markup] = []
    if left_out := [name for name in names if name not in shown_names]:
        cards.append(
            card(
                "Left out",
                element(
                    "p",
                    f"{', '.join(left_out)}: computed from private rows. Showing them would be a release that nobody "
                    "paid for.",
                ),
            )
        )
    if not shown_names:
        cards.append(card("Convergence", element("p", "No metric was recorded that may be shown.", class_="absent")))
    for name in shown_names:
        cards.append(_metric(run, name))
    return cards


def _metric(run: Run, name: str) -> Markup:
    values = np.asarray(run.history[name], float)
    values = values.reshape(len(values), -1)
    many = values.shape[1] > 1
    x = np.asarray(run.history["round"], float)
    line = Series(
        "mean of the seeds" if many else name,
        x,
        values.mean(axis=1),
        values.min(axis=1) if many else None,
        values.max(axis=1) if many else None,
    )
    positive = bool(np.all(values > 0))
    text = METRICS.get(name, "a metric of the run's own")
    if many:
        text += f"; the band is from the smallest to the largest of {values.shape[1]} seeds"
    text += f". After the last round {_last(run, name)}"
    mark: Markup | None = None
    if name not in run.public:
        mark = element("p", "From private rows: not for release where those are real.", class_="private")
    picture = chart(
        Chart(
            f"metric-{name}",
            name,
            "round",
            name,
            [line],
            f"{text[0].upper()}{text[1:]}.",
            log=(name not in ("test",)) if positive else None,
        )
    )
    return element("section", picture, mark, class_="card")


def _last(run: Run, name: str) -> str:
    """The last value and its error bars: over seeds, and of a test set also for the rows that it happens to have."""
    last = run.last(name)
    parts = [] if last.error is None else [f"± {shown(last.error, 2)}, the standard error over the seeds"]
    if name == "test" and "test_standard_error" in run.history:
        rows = run.last("test_standard_error").mean
        parts.append(f"± {shown(rows, 2)}, the standard error for the chance of which rows are in the test set")
    return "; ".join([shown(last.mean), *parts])


def about(subject: Subject) -> list[Markup]:
    run, setting = subject.run, subject.run.setting
    what: list[tuple[Child, Child]] = [("run", element("code", run.id)), ("method", run.algorithm)]
    if setting is not None:
        what += [
            ("loss", setting.loss),
            ("penalty", setting.penalty),
            ("weighting", {"parties": "every party the same", "rows": "every row the same"}[setting.weighting]),
            ("features", f"{len(setting.features):,}{' and an intercept' if setting.intercept else ''}"),
            ("network", {"peer": "peers", "all": "peers with a hub that relays sums"}.get(setting.topology, "none")),
        ]
    what.append(("sent", f"{run.bytes_sent:,} bytes in {run.rounds:,} rounds"))
    if subject.simulated and len(run.seeds):
        seeds = ", ".join(map(str, run.seeds[:10])) + (f", … ({len(run.seeds):,})" if len(run.seeds) > 10 else "")
        what += [("seeds", seeds), ("took", f"{run.seconds:.2f} s")]
    parameters = [(name, _parameter(value)) for name, value in run.parameters.items()]
    noted = element(
        "p",
        "The run's id is no hash of the data, which would tell whoever guesses the data that the guess is right: it is "
        "random, or the hash of a federation's public file.",
        class_="soft",
    )
    return [
        card("This run", facts([*subject.facts, *what]), noted),
        card("Parameters", facts(parameters) if parameters else element("p", "none"), id="parameters"),
        card("Versions", facts(run.versions), id="versions"),
    ]


def _parameter(value: object) -> Child:
    if isinstance(value, list) and len(value) > 8:
        every = ", ".join(_text(v) for v in value)
        return element("details", element("summary", f"{len(value)} values"), every)
    return ", ".join(_text(v) for v in value) if isinstance(value, list) else _text(value)


def _text(value: object) -> str:
    return shown(value, 6) if isinstance(value, float) else "not set" if value is None else str(value)
