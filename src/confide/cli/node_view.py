"""What a person sees of a node: its status in words, and a live view while it runs."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

import typer

from confide.cli.lines import folded
from confide.errors import ConfideError

if TYPE_CHECKING:
    from confide.node.status import Status

SILENT_SECONDS = 10.0
ENDED = ("finished", "stopped", "failed")


def heard(status: dict[str, Any], running: bool) -> dict[str, Any]:
    """The status with a word about it where the node has stopped telling: killed, or on a disk that is full."""
    ago = time() - status["updated"]
    if status["state"] in ENDED:
        return status
    if not running:
        words = f"no node is running: this is what it said {ago:.0f} s ago; run it again to resume"
        return {**status, "state": "interrupted", "reason": words}
    if ago < SILENT_SECONDS:
        return status
    return {**status, "reason": f"running, but no word for {ago:.0f} s: it may be busy, or its disk full"}


def status_lines(status: dict[str, Any]) -> list[str]:
    """A status as people read it, in 80 columns."""
    from confide.node.status import standing_and_way

    out = [
        f"{status['node']} in {status['federation']} ({status['run']}): {status['state']}, "
        f"round {status['round']} of {status['rounds']}",
        *(f"  {words}" for words in (status["reason"], status.get("notice")) if words),
        *([f"  {words}"] if (words := status.get("promise")) else []),
        f"  {status['method']}; guarantee {status['guarantee']}",
    ]
    if status["spent_epsilon"] is not None:
        few = status.get("spent_few")
        first = "" if few is None else f"ε={few:.4g}, against all others together "
        out.append(f"  spent {first}ε={status['spent_epsilon']:.4g}")
    if found := status.get("evaluation"):
        out += evaluation_lines(found)
    if status["consensus_distance"] is not None:
        out.append(f"  distance to the neighbours {status['consensus_distance']:.2g} of the message's length")
    if status.get("unsigned"):
        out.append(f"  not signed yet by {', '.join(status['unsigned'])}")
    if status.get("left"):
        out.append(f"  goes on without {', '.join(status['left'])}")
    out += [f"  papers of {name} are not taken: {why}" for name, why in status.get("papers", {}).items()]
    for name, one in status["neighbours"].items():
        words = f"misbehaved: {bad}" if (bad := one.get("misbehaved")) else one["trouble"]
        out.append(f"  {name:<20} {standing_and_way(one)}{since(one)}" + (f"  {words}" if words else ""))
    if status.get("relay") not in (None, "", "up"):
        out.append(f"  nobody can call through the relay: {status['relay']}")
    if status.get("journal_bytes"):
        out.append(f"  journal of {status['journal_bytes'] / 1e6:.3g} MB")
    if status.get("refused"):
        out.append(f"  {status['refused']} connections and questions turned away")
    return [part for line in out for part in folded(line, rest="    ").splitlines()]


def since(one: dict[str, Any]) -> str:
    """Since when a neighbour is down, as far as this node knows; older statuses do not say."""
    from confide.node.status import standing

    if standing(one) != "down" or not one.get("since"):
        return ""
    return f" since {datetime.fromtimestamp(one['since']):%Y-%m-%d %H:%M:%S}"


def evaluation_lines(found: dict[str, Any]) -> list[str]:
    """What a run found that evaluated a model."""
    cost = "no ε" if found["epsilon"] is None else f"ε={found['epsilon']:.4g} at δ={found['delta']:g} for each of them"
    out = [f"  evaluated on {found['rows']:,} held-out rows, {cost}; 95 % intervals with the noise"]
    for name, one in found["scores"].items():
        out.append(f"  {name} {one['value']:.4g} ({one['low']:.4g} to {one['high']:.4g})")
    for name, counts in zip(found["classes"] or (), found["confusion"] or (), strict=True):
        answers = ", ".join(f"{answer} {count:.1f}×" for count, answer in zip(counts, found["classes"], strict=True))
        out.append(f"  true {name}, answered: {answers}")
    return out


def with_evaluation(status: dict[str, Any], home: Path) -> dict[str, Any]:
    """The status with what an evaluation found, once it is there."""
    from confide.files.plain import without_infinity

    if status["method"] != "JointTally" or status["round"] < status["rounds"]:
        return status
    from confide.report.evaluation import result, to_json

    try:
        found = result(home, home / "runs" / status["run"])
    except ConfideError as error:  # scikit-learn is not here: the run is over all the same, and well
        words = (status["notice"], f"what was found is in the journal, and not read: {error}")
        return {**status, "notice": "; ".join(filter(None, words))}
    return status if found is None else {**status, "evaluation": without_infinity(to_json(*found))}


class view:
    """A live view on a terminal; elsewhere a line on stderr when a neighbour or the state changes, and now and then."""

    def __init__(self, quiet: bool) -> None:
        from confide.cli.progress import Lines

        self.quiet, self.last, self.noticed = quiet, "", ""
        self.rounds = Lines("rounds")
        self.live: Any = None

    def __enter__(self) -> Any:
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self.live = Live(console=Console(stderr=True, highlight=False), transient=True)
            self.live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        if self.live is not None:
            self.live.stop()

    def show(self, status: Status) -> None:
        if self.live is not None:
            from rich.text import Text

            self.live.update(Text("\n".join(status_lines(vars(status)))))
            return
        if not self.quiet and status.notice != self.noticed:
            self.noticed = status.notice
            typer.echo(status.notice, err=True)
        from confide.node.status import standing

        down = [f"{n} {s['trouble'] or 'is down'}" for n, s in status.neighbours.items() if standing(s) == "down"]
        down += [f"{n} misbehaved: {s['misbehaved']}" for n, s in status.neighbours.items() if s.get("misbehaved")]
        if status.state == "agreeing" and status.unsigned:
            down.append(f"waits for the signatures of {', '.join(status.unsigned)}")
        now = "; ".join([status.state, *down])
        if not self.quiet and now != self.last and status.state not in ENDED:
            typer.echo(f"round {status.round}: {now}", err=True)
        self.last = now
        if not self.quiet and status.state == "training":
            self.rounds("training", status.round, status.rounds)
