"""A folder with small experiments of its own, as CONFIDE_EXPERIMENTS."""

from pathlib import Path

import pytest

SETTING = "PAUSE = 0.0\nSCALE = 2.0\n"
TOY = '''"""A toy: means of normal draws.

Second paragraph | with a bar.
"""
import os, time
import numpy as np
from matplotlib.figure import Figure
from confide.papers.reproduce import Trials, number, shape
from ._setting import PAUSE, SCALE

title = "Means of normal draws"
trials = Trials(published=50, full=6, quick=2)
data = ()
KINDS = ("a", "b")


def tasks(trials):
    return [{"kind": k, "seed": s} for s in range(trials) for k in KINDS]


def measure(kind, seed):
    time.sleep(PAUSE)
    if "TOY_LOG" in os.environ:
        with open(os.environ["TOY_LOG"], "a") as log:
            log.write(f"{kind}{seed}\\n")
    draws = np.random.default_rng(seed).normal(scale=SCALE, size=(1, 4))
    return {"draws": draws if kind == "a" else draws**2, "said": f"array:{kind}", "more": {"n": [1, None, 2.5]}}


def table(results):
    return [{"kind": k, "mean": results.stack("draws", kind=k).mean()} for k in KINDS]


def findings(results):
    return [number("draws of a trial", 4, results.stack("draws", kind="a").shape[1], 0.01),
            shape("squares are positive", "yes", "yes", (results.stack("draws", kind="b") >= 0).all())]


def draw(results):
    figure = Figure(figsize=(4, 3))
    figure.subplots().plot(results.stack("draws", kind="a").T)
    return figure
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """experiments/one_paper/fig1.py, and the working directory beside it."""
    place = tmp_path / "experiments"
    (place / "one_paper").mkdir(parents=True)
    (place / "one_paper" / "_setting.py").write_text(SETTING)
    (place / "one_paper" / "fig1.py").write_text(TOY)
    monkeypatch.setenv("CONFIDE_EXPERIMENTS", str(place))
    monkeypatch.chdir(tmp_path)
    return place
