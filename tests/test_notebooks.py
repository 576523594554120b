"""The notebooks run from top to bottom, as one session each, and what is kept in them is of this program.

`python tests/test_notebooks.py` runs them and writes what their cells print into them.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"
NAMES = ("a_consortium_plans", "a_private_fit", "a_new_method")
needs_checkout = pytest.mark.skipif(not FOLDER.is_dir(), reason="notebooks are in the checkout only")


def load(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))


def executed(notebook):
    """What every code cell prints, in order; all cells share one session."""
    session, printed = {"__name__": "__main__"}, []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(source, f"cell {number}", "exec"), session)
        printed.append(said.getvalue())
    return printed


def kept(cell):
    return "".join(text for output in cell["outputs"] for text in output["text"])


@needs_checkout
def test_every_notebook_is_listed_and_is_one():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)
    for name in NAMES:
        notebook = load(name)
        assert notebook["nbformat"] == 4 and notebook["cells"][0]["cell_type"] == "markdown"
        assert {cell["cell_type"] for cell in notebook["cells"]} == {"markdown", "code"}
        for cell in notebook["cells"]:  # as nbformat's schema has it
            assert isinstance(cell["source"], list) and cell["metadata"] == {} and cell["id"]
            assert cell["cell_type"] == "markdown" or {"outputs", "execution_count"} <= cell.keys()


@needs_checkout
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_prints_what_it_shows(name, tmp_path, monkeypatch):
    """Seeded lines are the same; lines with secure noise, times or random names are marked by their cell."""
    monkeypatch.chdir(tmp_path)
    notebook = load(name)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell, now in zip(cells, executed(notebook), strict=True):
        varies = "# varies" in "".join(cell["source"])
        if varies:
            assert bool(now) == bool(kept(cell))
        else:
            assert now == kept(cell)


def write(name):
    """Run a notebook and keep what its cells print."""
    notebook, home = load(name), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        printed = executed(notebook)
        os.chdir(home)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, said) in enumerate(zip(cells, printed, strict=True), start=1):
        stream = {"name": "stdout", "output_type": "stream", "text": said.splitlines(keepends=True)}
        cell["outputs"], cell["execution_count"] = [stream] if said else [], number
    (FOLDER / f"{name}.ipynb").write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or NAMES:
        write(chosen)
