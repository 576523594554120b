"""What commands about nodes and federations have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from confide.errors import MissingExtra

Home = Annotated[Path, typer.Option("--home", metavar="DIR", envvar="CONFIDE_HOME", help="The node's own folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
HERE = Path(".confide")


def needed() -> None:
    """One line where the packages for nodes are missing."""
    from importlib.util import find_spec

    if not find_spec("cryptography"):
        raise MissingExtra("nodes, and their secure noise, need cryptography: pip install 'confide[node,secure]'")
