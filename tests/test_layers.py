"""Every room of the house has its layer and imports only downwards; the table is in docs/_site/rooms.py."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "docs" / "_site" / "rooms.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="documents are in the checkout only")


@pytest.fixture(scope="module")
def plan():
    spec = importlib.util.spec_from_file_location("rooms", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def house(root, files):
    """A small house: privacy, audit, runs and errors, each in its place, and these files."""
    plain = ("privacy/__init__.py", "audit/__init__.py", "runs/__init__.py", "network/__init__.py", "errors.py")
    for name, text in {"__init__.py": "", **dict.fromkeys(plain, ""), **files}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return root


def test_imports_respect_the_layers(plan):
    assert plan.wrong() == []


def test_the_table_names_what_there_is(plan):
    named = [room for layer in plan.LAYERS for room in layer]
    assert len(named) == len(set(named)) and set(named) == plan.rooms() - {plan.DOOR}


def test_the_picture_is_current(plan):
    assert plan.PICTURE.read_text(encoding="utf-8") == plan.picture(), "draw it: python docs/_site/rooms.py"


@pytest.mark.parametrize("files, said", [
    ({"runs/x.py": "from confide.audit import run"}, "runs/x.py:1: runs imports confide.audit.run, which is above it"),
    ({"runs/x.py": "def f():\n    import confide.audit"}, "runs/x.py:2: runs imports confide.audit, which is above it"),
    ({"runs/x.py": "from confide import audit"}, "runs/x.py:1: runs imports confide.audit, which is above it"),
    ({"network/x.py": "from confide.algorithms import base", "algorithms/__init__.py": ""},
     "network/x.py:1: network imports confide.algorithms.base, which is beside it"),
    ({"runs/x.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from confide.audit import run"},
     "runs/x.py:3: runs imports confide.audit.run, which is above it"),
    ({"runs/x.py": "from . import y"}, "runs/x.py:1: confide.relative import of y is in no layer"),
    ({"runs/x.py": "import confide"}, "runs/x.py:1: confide is in no layer"),
    ({"audit/x.py": "from confide.privacy import epsilon"},
     "audit/x.py:1: audit imports confide.privacy.epsilon: open to it is only confide.privacy.noise.*"),
    ({"cellar/__init__.py": ""}, "cellar: in no layer"),
    ({"errors.py": "from confide.__main__ import main"}, "errors.py:1: confide.__main__.main is in no layer"),
    ({f"{name}.py": "" for name in ("threads", "_version", "files", "runs")},
     "6 modules at the top level, __init__, _version, errors, files, runs, threads: at most 5"),
])  # fmt: skip
def test_what_breaks_the_plan_is_said(plan, tmp_path, files, said):
    assert plan.wrong(house(tmp_path, files)) == [said]


def test_a_house_in_order(plan, tmp_path):
    fine = {"audit/x.py": "from confide.privacy.noise import SimulatedNoise\nfrom confide.errors import ConfideError",
            "runs/x.py": "from confide.privacy import epsilon",
            "__main__.py": "from confide.audit import run"}  # fmt: skip
    assert plan.wrong(house(tmp_path, fine)) == []
