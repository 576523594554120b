"""Which experiments to run: those asked for, less those whose data is not there."""

from __future__ import annotations

from confide.errors import ConfideError
from confide.papers.reproduce.experiment import Experiment, experiments, find, names


def choose(paper: str | None = None, name: str | None = None) -> tuple[list[Experiment], dict[str, str]]:
    """All experiments, or those of a paper, or one; and those left out, with the reason: their data is not there.

    One that is asked for by name is not left out: that its data is missing is an error.
    """
    from confide.papers.datasets import absent  # which loads SciPy: the list of experiments does without

    if paper is not None and name is not None:
        pairs = [(paper, name)]
    elif paper is not None:
        experiments_of = [e for e in names() if e[0] == paper.replace("_", "-")]
        pairs = experiments_of or [(e.paper, e.name) for e in experiments(paper)]  # which says what is known
    else:
        pairs = names()
    chosen: list[Experiment] = []
    skipped: dict[str, str] = {}
    for pair in pairs:
        experiment = find(*pair)
        missing = [absent(data) for data in experiment.data]
        reason = next((r for r in missing if r is not None), None)
        if reason is None:
            chosen.append(experiment)
        elif name is not None:
            raise ConfideError(f"{experiment} needs data: {reason}")
        else:
            skipped[str(experiment)] = reason
    return chosen, skipped
