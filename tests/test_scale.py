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


def test_the_page_says_what_was_measured_and_whether_it_is_enough():
    """Of numbers made by hand."""
    script = runpy.run_path(str(SCRIPT))
    one = {"agents": 100_000, "setup_seconds": 2.5, "round_seconds": 0.4, "peak_bytes": 5.4e8, "memory_ratio": 1.5}
    slopes = {"round_seconds": 0.97, "peak_bytes": 1.01}
    text = " ".join(script["page"]([one], slopes, "x.png").split())
    assert "| 100,000 | 2.50 s | 400.0 ms | 4.00 µs | 540 MB | 1.50 |" in text and "![Seconds" in text
    assert "0.97 for a round, 1.01 for memory" in text and "this run went to 100,000 only" in text
    for ratio, said in ((1.5, "memory; met."), (1.51, "memory; NOT met.")):
        most = {**one, "agents": 1_000_000, "memory_ratio": ratio}
        assert " ".join(script["page"]([one, most], slopes, "x.png").split()).endswith(said)


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
