"""One agent by itself, as a node runs it."""

import numpy as np
import pytest

import confide
from confide.privacy.secure import SecureNoise
from confide.runs.party import Party


@pytest.fixture
def party():
    rng = np.random.default_rng(0)
    shards = confide.Shards.split(rng.normal(size=(60, 3)), np.sign(rng.normal(size=60)), 3).clip_rows(1.0)
    problem = confide.Problem(shards, confide.losses.Logistic())
    public = problem.public(confide.Graph.ring(3))
    method = confide.algorithms.DPSGD(rounds=3, clip=1.0).calibrated(public, 1.0, 1e-5)
    return lambda rows: Party(0, method, public, problem.only(0) if rows else None, SecureNoise())


def test_noise_is_drawn_before_the_inputs_of_its_round_are_here(party):
    """Of the first round, of one that is made again, and of the one after a message that stands; not without rows."""
    one = party(rows=True)
    for made_again in (False, True, False):
        assert len(one.noise.ahead) == 3
        sent = one.send()
        if made_again:
            one.abandon()
            assert len(one.noise.ahead) == 3
            one.noise.drawn.clear()  # it is paid for as another release
            sent = one.send()
        one.receive({1: sent, 2: sent})
    assert len(one.noise.ahead) == 0  # nothing is left to be said
    restored, other = party(rows=True), party(rows=False)
    restored.restore(sent)
    other.restore(sent)
    assert (len(restored.noise.ahead), len(other.noise.ahead)) == (3, 0)
