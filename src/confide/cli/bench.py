"""`confide bench`: run the benchmarks of a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from confide.errors import ConfideError


def bench(
    network: Annotated[bool, typer.Option("--network", help="Five real nodes, beside a bare TLS ping.")] = False,
    nodes: Annotated[int | None, typer.Option(min=5, help="With --network: so many, from one warm process.")] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="With --nodes: rounds that they train.", show_default="100")
    ] = None,
    peers: Annotated[bool, typer.Option("--peers", help="Other packages on the same problems, side by side.")] = False,
    scale: Annotated[bool, typer.Option("--scale", help="From a thousand agents to a million.")] = False,
    most: Annotated[int | None, typer.Option(min=1000, help="Of --scale: agents at most.")] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of --scale: its picture.", show_default="scale.png")
    ] = None,
    docs: Annotated[bool, typer.Option("--docs", help="Of --scale: write docs/scale.md and its picture.")] = False,
    accuracy: Annotated[
        str | None, typer.Option(metavar="SETS", help="What models are worth: 'all', or some sets, such as adult,wine.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure the engine beside plain NumPy, the network, other packages, growth, or what models are worth.

    Runs the folder `benchmarks` of a checkout of the repository. --peers makes an environment for each other package in
    the cache; one that can't be installed here is reported as missing. --scale prints and draws cost per round and
    memory, with the slope of both; at a million agents it takes some 6 GB. --accuracy writes docs/accuracy.md, from
    what it measures and has measured before.

    Example: confide bench --json > bench.json
    """
    chosen = [name for name, asked in (
              ("node.py", network), ("peers.py", peers), ("scale.py", scale),
              ("accuracy.py", accuracy is not None)) if asked]  # fmt: skip
    if len(chosen) > 1:
        raise ConfideError("--network, --peers, --scale, --accuracy: give one of them at a time")
    if nodes is not None and not network:
        raise ConfideError(f"--nodes {nodes}: goes with --network")
    if rounds is not None and nodes is None:
        raise ConfideError(f"--rounds {rounds}: goes with --nodes")
    if most is not None and not scale:
        raise ConfideError(f"--most {most}: goes with --scale")
    if docs and not (scale and plot is None):
        raise ConfideError("--docs: goes with --scale, and has a picture of its own: leave out --plot")
    if plot is not None and not scale:
        raise ConfideError(f"--plot {plot}: goes with --scale")
    script = find("many.py" if nodes is not None else chosen[0] if chosen else "run.py")
    more = [*(["--json"] if json else []), *([] if most is None else ["--most", str(most)])]
    more += ["--docs"] if docs else []
    more += [] if plot is None else ["--plot", str(plot)]
    more += [] if accuracy is None else ["--only", accuracy]
    more += [] if nodes is None else ["--nodes", str(nodes), "--rounds", str(rounds or 100)]
    done = subprocess.run([sys.executable, str(script), *more], check=False)
    raise typer.Exit(done.returncode)


def find(name: str) -> Path:
    """A script in `benchmarks` of the working directory or of the checkout this package is installed from."""
    for root in (Path.cwd(), Path(__file__).resolve().parents[3]):
        script = root / "benchmarks" / name
        if script.is_file():
            return script
    raise FileNotFoundError(f"no benchmarks/{name} here: run `confide bench` in a checkout of the repository")
