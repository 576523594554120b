"""`confide bench`: run the benchmarks of a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer


def bench(
    network: Annotated[bool, typer.Option("--network", help="Five real nodes, beside a bare gRPC ping.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure the engine, beside plain NumPy, or the network.

    Runs the folder `benchmarks` of a checkout of the repository.

    Example: confide bench --json > bench.json
    """
    script = find("node.py" if network else "run.py")
    done = subprocess.run([sys.executable, str(script), *(["--json"] if json else [])], check=False)
    raise typer.Exit(done.returncode)


def find(name: str) -> Path:
    """A script in `benchmarks` of the working directory or of the checkout this package is installed from."""
    for root in (Path.cwd(), Path(__file__).resolve().parents[3]):
        script = root / "benchmarks" / name
        if script.is_file():
            return script
    raise FileNotFoundError(f"no benchmarks/{name} here: run `confide bench` in a checkout of the repository")
