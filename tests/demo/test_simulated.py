"""The demo: every line at the same total, joint above alone, a picture that is one."""

import json
from pathlib import Path

import numpy as np
import pytest

from confide.cli.demo import protected
from confide.cli.picture import picture
from confide.demo import simulated as demo
from confide.estimators import auto
from confide.privacy import Label


@pytest.fixture(scope="module")
def heard() -> list[tuple[str, int, int]]:
    return []


@pytest.fixture(scope="module")
def result(heard: list[tuple[str, int, int]]) -> demo.Result:
    return demo.run(seeds=2, watch=lambda *round_: heard.append(round_))


pytestmark = pytest.mark.slow


def together(result: demo.Result) -> list[demo.MethodLine]:
    return [line for line in result.lines if line.group == "together"]


def test_every_method_has_its_line_within_the_budget(result: demo.Result) -> None:
    assert {line.name for line in together(result) if line.private} == {m.name for m in demo.METHODS}
    private = [line for line in result.lines if line.private]
    assert all(0.99 * demo.EPSILON < line.epsilon <= demo.EPSILON + 1e-9 for line in private)
    assert all(line.guarantee is Label.PROVEN for line in private)
    assert all(line.guarantee is Label.NONE for line in result.lines if not line.private)


def test_the_default_comes_first_as_it_is_and_says_who_may_collude(result: demo.Result) -> None:
    first, *others = together(result)[1:]
    usual = auto.choose()
    assert (first.name, first.rounds, first.network) == (usual.name, usual.rounds, "peers")
    assert first.trust is not None and first.trust[:2] == (2, 5) and first.trust.everyone > first.epsilon
    assert all(line.trust is None for line in others)
    assert result.shown.algorithm == first.name
    text = protected(result.lines)
    assert f"by {first.name}, where hospitals share their noise" in text and "if at most 2 of 5 collude" in text


def test_together_beats_alone_and_privacy_costs_little(result: demo.Result) -> None:
    average, worst, private_average, private_worst = result.lines[:4]
    free = next(line for line in together(result) if not line.private)
    assert worst.mean < average.mean < free.mean - 0.04
    assert private_worst.mean < private_average.mean
    for line in together(result):
        assert line.mean > average.mean + 0.01 and line.mean > result.majority + 0.1
        assert abs(line.mean - free.mean) < 0.05


def test_the_line_without_noise_is_the_optimum(result: demo.Result) -> None:
    problem = demo.learn(result.cohort.shards)
    X, y = result.cohort.test
    best = np.mean(problem.predict(X, problem.solve()) == y)
    assert next(line for line in together(result) if not line.private).mean == pytest.approx(best, abs=2e-3)


def test_alone_pools_exactly_the_hospitals_own_rows(result: demo.Result) -> None:
    shards = result.cohort.shards
    for k in range(shards.parties):
        own = shards.halves(k)
        assert own.row_norm == shards.row_norm and len(own) == shards.sizes[k]
        assert np.allclose(np.sort(own.X.sum(axis=1)), np.sort(shards.part(k)[0].sum(axis=1)))


def test_progress_counts_every_round(result: demo.Result, heard: list[tuple[str, int, int]]) -> None:
    for method in demo.METHODS:
        assert [t for name, t, _ in heard if name == method.name] == list(range(method.rounds + 1))
    last = [(t, rounds) for name, t, rounds in heard if name == "alone"][-1]
    assert last == (5 * demo.ALONE.rounds, 5 * demo.ALONE.rounds)


def test_as_json(result: demo.Result) -> None:
    text = json.dumps(result.to_json(), allow_nan=False)
    assert len(json.loads(text)["lines"]) == len(result.lines)


def test_the_picture_is_written_whole(result: demo.Result, tmp_path: Path) -> None:
    path = picture(result, tmp_path / "new" / "convergence.png")
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n") and path.stat().st_size > 20_000
    assert path.read_bytes().endswith(b"IEND\xaeB`\x82")
    assert [p.name for p in path.parent.iterdir()] == ["convergence.png"]


def test_seeds_must_be_at_least_one() -> None:
    with pytest.raises(ValueError, match="seeds=0"):
        demo.run(seeds=0)
