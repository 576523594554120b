"""Reproduction data for tests that want it (CONFIDE_DATA, or a folder beside the checkout); marks by division.py."""

import os
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from division import FIRST, LONG, LONG_SECONDS, SAMPLED, SLOW, TOGETHER
from hypothesis import settings

from confide.cli.compile import compiled
from confide.planning.ahead import ALL

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn skips nine of its checks of estimators without it
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
if SHARED.is_dir():
    os.environ.setdefault("CONFIDE_DATA", str(SHARED))
HERE = Path(__file__).resolve().parent
ONE = {name for name in LONG if "::" in name}
# a busy machine fails no test, and CI tries the same cases each time; at a desk others are found
settings.register_profile("confide", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("confide")


def pytest_configure(config):
    """Hints follow from parameters, and most tests leave them alone."""
    if find_spec("sklearn"):
        config.addinivalue_line("filterwarnings", "ignore::confide.estimators.hints.Hint")


def pytest_sessionstart(session):
    """Compile ahead of time, once for all workers: the first command on a machine would say that it does."""
    if not hasattr(session.config, "workerinput"):
        compiled(ALL)


def pytest_collection_modifyitems(items):
    cases = Counter()
    for item in items:
        file = item.path.relative_to(HERE).as_posix()
        names = {file, f"{file}::{getattr(item, 'originalname', item.name)}"}
        slow = item.get_closest_marker("slow") is not None
        sampled = names & set(SAMPLED)
        cases.update(sampled)
        left_out = any(cases[name] % 4 != 1 for name in sampled)
        if left_out or (names & set(LONG) and (slow or names & ONE or not file.startswith("experiments/"))):
            item.add_marker(pytest.mark.long)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(LONG_SECONDS))
        if not slow and (names & set(SLOW) or item.get_closest_marker("long")):
            item.add_marker(pytest.mark.slow)
        if file in TOGETHER:
            item.add_marker(pytest.mark.xdist_group(file))
    items.sort(key=turn)


def turn(item):
    """When a test starts: the place in FIRST of its group, or else of its file; all others come last."""
    group = item.get_closest_marker("xdist_group")
    name = group.args[0] if group else item.path.relative_to(HERE).as_posix()
    return FIRST.index(name) if name in FIRST and item.get_closest_marker("long") else len(FIRST)
