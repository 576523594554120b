"""Criteria on invented data: each says yes to values as the text has them, and no once one of them is bent."""

from confide.papers.reproduce import Results, find
from confide.papers.reproduce.findings import DIFFERS


def judged(paper, name, pairs, start, trials=2):
    """Whether the finding whose sentence begins with `start` holds, and the finding."""
    found = [f for f in find(paper, name).module.findings(Results(pairs, trials)) if f.what.startswith(start)]
    assert len(found) == 1, [f.what for f in found]
    return found[0].verdict != DIFFERS, found[0]
