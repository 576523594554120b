"""`benchmarks/scale.py` draws what it measures: cost per round and memory by the number of agents."""

import json
import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "scale.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="benchmarks are in the checkout only")


def test_a_thousand_agents_are_measured_and_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["scale.py", "--most", "1000", "--json", "--plot", str(tmp_path / "scale.png")])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    found = json.loads(capsys.readouterr().out)
    assert [one["agents"] for one in found["sizes"]] == [1000] and found["picture"] == str(tmp_path / "scale.png")
    assert (tmp_path / "scale.png").read_bytes().startswith(b"\x89PNG")


def test_the_picture_has_both_slopes(tmp_path, monkeypatch):
    """Of numbers made by hand: proportional, and as the square."""
    script = runpy.run_path(str(SCRIPT))
    found = [{"agents": n, "round_seconds": n / 1e6, "peak_bytes": n**2, "data_bytes": n} for n in (1e3, 1e4, 1e5)]
    slopes = {"round_seconds": 1.0, "peak_bytes": 2.0}
    labels = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda figure, *_, **__: labels.extend(
        text.get_text() for ax in figure.axes for text in ax.get_legend().get_texts()
    ))  # fmt: skip
    script["draw"](found, slopes, tmp_path / "scale.png")
    assert labels == ["slope 1.00", "slope 2.00", "the rows alone"]
    assert script["slope"]([1e3, 1e4, 1e5], [n**2 for n in (1e3, 1e4, 1e5)]) == pytest.approx(2.0)
