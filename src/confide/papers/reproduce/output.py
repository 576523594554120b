"""The files of one experiment: data.csv, data.json, NAME.png, on demand NAME.svg. The same run gives the same bytes."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._version import __version__
from confide.files import write_whole
from confide.files.pictures import check_drawing
from confide.files.plain import without_infinity
from confide.papers.reproduce.provenance import judged

if TYPE_CHECKING:
    from confide.papers.reproduce.runner import Outcome

STYLE: dict[str, Any] = {  # one look for all figures; colours told apart by all eyes
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 11, "axes.titlelocation": "left",
    "axes.grid": True, "grid.alpha": 0.25, "grid.linewidth": 0.6, "legend.frameon": False, "legend.fontsize": 9,
    "font.size": 10, "lines.linewidth": 1.7, "figure.constrained_layout.use": True, "svg.hashsalt": "confide",
    "savefig.facecolor": "white",
}  # fmt: skip
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#22303c")
DPI = 110
FORMATS: tuple[tuple[str, dict[str, None]], ...] = (
    ("png", {"Software": None}),
    ("svg", {"Date": None, "Creator": None}),
)


def write(outcome: Outcome, tasks: list[dict[str, Any]], svg: bool = False) -> None:
    """Write all files, each whole or not at all."""
    experiment, folder, trials = outcome.experiment, outcome.folder, outcome.experiment.trials
    folder.mkdir(parents=True, exist_ok=True)
    pictures = draw(outcome, svg)
    write_whole(folder / "data.csv", as_csv(outcome.table))
    for ending, content in pictures.items():
        write_whole(folder / f"{experiment.name}.{ending}", content)
    write_whole(folder / "timing.json", as_json({"core_seconds": round(outcome.seconds, 3), "tasks": len(tasks)}))
    write_whole(folder / "data.json", as_json({
        "paper": experiment.paper, "name": experiment.name, "title": experiment.title, "text": experiment.text,
        "confide": __version__, "code": experiment.digest, "data": list(experiment.data),
        "trials": {"measured": outcome.trials, "full": trials.full, "published": trials.published},
        "settings": experiment.settings, "findings": [f.to_json() for f in outcome.findings],
        "unexplained": len(outcome.unexplained), "judged": judged(folder / "tasks", experiment.paper), "tasks": tasks,
    }))  # fmt: skip


def draw(outcome: Outcome, svg: bool = False) -> dict[str, bytes]:
    """The figure as PNG, and as SVG if wanted, without date or program in them."""
    check_drawing()
    import cycler
    from matplotlib import rc_context

    files = {}
    with rc_context({**STYLE, "axes.prop_cycle": cycler.cycler(color=COLOURS)}):
        figure = outcome.experiment.module.draw(outcome.results)
        for ending, without in FORMATS[: 1 + svg]:
            buffer = io.BytesIO()
            figure.savefig(buffer, format=ending, dpi=DPI, metadata=without)
            files[ending] = buffer.getvalue()
    return files


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    """Rows under the union of their columns, in the order they first occur."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([[_cell(row.get(name)) for name in columns] for row in rows])
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return "" if value is None else f"{value:.10g}" if isinstance(value, float) else value


def as_json(document: Any) -> bytes:
    return (json.dumps(without_infinity(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
