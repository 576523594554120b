"""CONTRIBUTING's skeleton and the steps after it, as they stand there: saved, checked, and a case among the others."""

import re
from pathlib import Path

import pytest
from contract_cases import GRAPHS, A, Case, optimum, problem
from test_convergence import distance

import confide

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="documents are in the checkout only")


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """The skeleton saved beside the other methods and named among them; what is to be done after it."""
    skeleton, *steps = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    (tmp_path / "averaged_descent.py").write_text(skeleton)
    monkeypatch.setattr(A, "__path__", [*A.__path__, str(tmp_path)])
    from confide.algorithms.averaged_descent import AveragedDescent

    monkeypatch.setattr(A, "AveragedDescent", AveragedDescent, raising=False)
    return steps


def test_the_call_runs_as_written(steps, capsys):
    exec(compile(steps[0], PAGE.name, "exec"), {})
    assert capsys.readouterr().out.startswith("proven")


def test_the_case_holds_on_every_graph(steps):
    ((name, case),) = eval(f"{{{steps[1]}}}", {"Case": Case, "A": A}).items()
    assert name == "AveragedDescent"
    for graph in GRAPHS.values():
        run = confide.simulate(problem(case.kind), graph, case.quiet, record=())
        assert distance(run.estimates, optimum(case.kind)) < case.distance
