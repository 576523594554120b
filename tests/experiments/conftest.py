"""Experiments as tests run them: the quick version, through the framework, once per session."""

from collections.abc import Callable
from functools import cache

import pytest

from confide.papers.datasets import absent
from confide.papers.reproduce import Outcome, find, reproduce


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Outcome]:
    """quick(paper, name) -> Outcome, with .findings, .results and .table."""

    @cache
    def run(paper: str, name: str) -> Outcome:
        experiment = find(paper, name)
        for data in experiment.data:
            if (reason := absent(data)) is not None:
                pytest.skip(reason)
        (outcome,) = reproduce([experiment], tmp_path_factory.mktemp("reproductions"), quick=True, jobs=1)
        assert not outcome.error, outcome.error
        return outcome

    return run
