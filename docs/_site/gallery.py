"""A page for every script of docs/gallery: its docstring, its source, and what it printed and drew when it was run."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from docstrings import wrapped

FOLDER = Path(__file__).parent.parent / "gallery"
TIMEOUT = 900.0
WORKERS = 2  # scripts at a time


def scripts() -> list[Path]:
    """In the order of the list in README.md, which names every script."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    found = sorted(FOLDER.glob("*.py"), key=lambda path: text.find(f"({path.name})"))
    missing = [path.name for path in found if f"({path.name})" not in text]
    if missing:
        raise ValueError(f"docs/gallery/README.md does not list {', '.join(missing)}")
    return found


def parts(script: Path) -> tuple[str, str, str]:
    """Title, text and source without the docstring."""
    source = script.read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, _, text = (ast.get_docstring(tree) or script.stem).partition("\n\n")
    body = source.split("\n", tree.body[0].end_lineno or 0)[-1]
    return title.rstrip("."), text, body.strip("\n") + "\n"


def run(script: Path) -> tuple[str, dict[str, bytes]]:
    """Output and pictures of a script, run in an empty folder by this interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-W", "error", str(script)], cwd=folder, capture_output=True, timeout=TIMEOUT,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"}, encoding="utf-8", check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{script.name} failed:\n{done.stderr}")
        return wrapped(done.stdout), {path.name: path.read_bytes() for path in sorted(Path(folder).glob("*.png"))}


def pages() -> dict[str, str | bytes]:
    """Path in the site -> Markdown or picture."""
    out: dict[str, str | bytes] = {}
    with ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(run, scripts()))
    for script, (said, pictures) in zip(scripts(), results, strict=True):
        title, text, source = parts(script)
        shown = "".join(f"![{title}]({name})\n\n" for name in pictures)
        out[f"gallery/{script.stem}.md"] = (
            f"# {title}\n\n{text}\n\n{shown}```text\n{said}```\n\n## Source\n\n"
            f"`docs/gallery/{script.name}`; runs as it stands.\n\n```python\n{source}```\n"
        )
        out |= {f"gallery/{name}": picture for name, picture in pictures.items()}
    return out


def navigation() -> list[Any]:
    return ["gallery/README.md", *({parts(s)[0].partition(":")[0]: f"gallery/{s.stem}.md"} for s in scripts())]
