"""The papers' figures and tables again: what an experiment file is made of, and what runs it.

An experiment is one file of the repository's folder `experiments` (its README shows how to write one);
`confide reproduce` runs it. Nothing of confide's core imports this package.
"""

from confide.papers.reproduce.choosing import choose
from confide.papers.reproduce.experiment import Experiment, Trials, experiments, find
from confide.papers.reproduce.findings import Finding, number, own, shape
from confide.papers.reproduce.results import Results
from confide.papers.reproduce.runner import Outcome, reproduce
from confide.papers.reproduce.work import measure

__all__ = [
    "Experiment", "Finding", "Outcome", "Results", "Trials", "choose", "experiments", "find", "measure", "number",
    "own", "reproduce", "shape",
]  # fmt: skip
