"""The papers' figures and tables again: what an experiment file is made of, and what runs it.

An experiment is one file of the repository's folder `experiments` (its README shows how to write one);
`confide reproduce` runs it. Nothing of confide's core imports this package.
"""

from confide.reproduce.experiment import Experiment, Trials, experiments, find
from confide.reproduce.findings import Finding, number, shape
from confide.reproduce.results import Results
from confide.reproduce.runner import Outcome, reproduce
from confide.reproduce.work import measure

__all__ = [
    "Experiment", "Finding", "Outcome", "Results", "Trials", "experiments", "find", "measure", "number", "reproduce",
    "shape",
]  # fmt: skip
