"""Members of private sums in one process, and a count of the streams that mask them."""

import pytest
from circle import Circle
from losing import DESCENT
from summing_streams import counted

from confide.node.journal import Journal


@pytest.fixture
def circle(tmp_path):
    """Makes circles whose members may be lost, and closes them."""
    made = []

    def make(algorithm=DESCENT, folder="home", *, weighting="parties", restarts=2, **options):
        one = Circle(tmp_path / folder, algorithm, **{"budget": (60.0, 1e-5), "patience": 0.0, **options})
        one.rewrite(model={"weighting": weighting}, budget={"restarts": restarts})
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


@pytest.fixture
def used(monkeypatch):
    """No stream masks two messages, whatever happens."""
    yield from counted(monkeypatch)


@pytest.fixture
def rewritten(monkeypatch):
    """(whose, bytes before, bytes after) of every journal that is written anew."""
    done, real = [], Journal.rewrite

    def rewrite(journal, *args):
        before, out = journal.size, real(journal, *args)
        done.append((journal.path.parent.parent.parent.name, before, journal.size))
        return out

    monkeypatch.setattr(Journal, "rewrite", rewrite)
    return done
