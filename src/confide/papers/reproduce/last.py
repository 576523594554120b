"""The last run: what it left out, and how long everything took when it was measured in one piece."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from confide.files import write_whole
from confide.papers.reproduce.experiment import names

NAME = "run.json"


def note(
    out: Path, finished: Mapping[str, str], skipped: Mapping[str, str], seconds: float | None, processes: int | None
) -> None:
    """Write `out`/run.json after a run of `finished` (experiment -> hash of its code).

    skipped   experiment -> why it was left out; one that an earlier run left out stays here until it is measured
    seconds   of the whole run, by the clock; None if anything in it was measured before, or with fewer trials
    """
    before = read(out)
    left = {name: why for name, why in {**before["skipped"], **skipped}.items() if name not in finished}
    every = {f"{paper} {name}" for paper, name in names()}
    took = before["took"]
    if seconds is not None and every <= {*finished, *skipped}:
        took = {"seconds": round(seconds, 1), "processes": processes, "measured": dict(finished)}
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / NAME, (json.dumps({"skipped": left, "took": took}, indent=1) + "\n").encode())


def read(out: Path) -> dict[str, Any]:
    """`skipped`, and `took`, which is None where everything was never measured in one piece."""
    try:
        known = json.loads((out / NAME).read_text(encoding="utf-8"))
        return {"skipped": dict(known["skipped"]), "took": known["took"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {"skipped": {}, "took": None}


def took(out: Path, shown: Mapping[str, str]) -> str:
    """How long the run took that all of `shown` (experiment -> hash of its code) come from; empty if none did."""
    known = read(out)["took"]
    if not known or any(known["measured"].get(name) != code for name, code in shown.items()):
        return ""
    return f", {minutes(known['seconds'])}{on(known['processes'])} in one run"


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} s"


def on(processes: int | None) -> str:
    return "" if processes is None else f" on {processes} core{'s' if processes > 1 else ''}"


def left_out(skipped: Iterable[str]) -> str:
    """One sentence for the page; empty if nothing was."""
    some = ", ".join(skipped)
    said = "**Not measured in the last run**, since their data was missing; what is shown of them is older"
    return f"{said}: {some}.\n" if some else ""
