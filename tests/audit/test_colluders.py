"""Colluders attack a private sum: no line of the table is contradicted, and each is nearly attained."""

import math

import numpy as np
import pytest

import confide
from confide.algorithms import CDPADMM, JointDescent
from confide.audit import run, worst_case
from confide.audit.transcript import observe

PARTIES, MU, DELTA = 5, 1.2, 1e-5
CANARY = worst_case(confide.losses.Logistic(), JointDescent(), rows=3, graph=confide.Graph.ring(PARTIES))
PUBLIC = CANARY.public(JointDescent())
METHOD = JointDescent(rounds=2, first="gradient", collusion=2).calibrated(PUBLIC, mu=MU)


def claim(colluders):
    """The degraded value of the theorem, written out: c = 2 of 5."""
    return MU * math.sqrt(3 / (PARTIES - colluders))


@pytest.mark.parametrize("colluders", range(PARTIES))
def test_no_coalition_contradicts_the_table_and_each_nearly_attains_it(colluders):
    mu = claim(colluders)
    result = run(
        METHOD, CANARY.colluding(colluders), epsilon=50.0, delta=DELTA, mu=mu, repetitions=2500, seed=colluders
    )
    assert not result.refuted
    # a perfect attack proves .94 of μ ± .04 (1.645 and 1 standard errors of 5,000 guesses at μ = 1)
    assert 0.8 * mu < result.mu_low <= mu
    if colluders < PARTIES - 1:
        assert f"outsiders and {colluders} of 5 parties see the others' sum" in result.adversary


def test_the_claim_for_few_does_not_hold_against_more():
    """What one colluder more sees is more than what c may: the table has to degrade."""
    for colluders, against in ((3, 2), (4, 2), (2, 0)):
        result = run(
            METHOD, CANARY.colluding(colluders), epsilon=50.0, delta=DELTA, mu=claim(against), repetitions=1200
        )
        assert result.refuted, (colluders, against)


def test_by_default_as_many_collude_as_the_method_names():
    seeds = np.arange(3)
    by_default, by_name = (observe(METHOD, c, 0, seeds) for c in (CANARY, CANARY.colluding(2)))
    assert np.array_equal(by_default.messages, by_name.messages)
    alone = observe(METHOD, CANARY.colluding(4), 0, seeds)
    assert not np.allclose(alone.messages, by_name.messages)
    assert len(CANARY.hidden(METHOD)) == 2 and CANARY.colluding(4).hidden(METHOD) == []


def test_colluders_know_everything_but_the_noise_of_the_others():
    """Less what they predict, what is left of the sum is h parties' noise: of the deviation that is charged."""
    seeds = np.arange(1500)
    for colluders in range(PARTIES):
        seen = observe(METHOD, CANARY.colluding(colluders), 0, seeds)
        noise = seen.residual + 0.5 * seen.shift
        (event,) = METHOD.against(colluders, PUBLIC)[0]
        assert np.std(noise[:, seen.rounds == 0]) == pytest.approx(float(event.scale[0]), rel=0.06)


@pytest.mark.parametrize("colluders", [-1, 5, 1.5, True])
def test_colluders_are_some_of_the_others(colluders):
    with pytest.raises(ValueError, match=f"colluders={colluders}: must be a whole number from 0 to 4"):
        CANARY.colluding(colluders)


def test_messages_without_masks_are_seen_by_all():
    canary = worst_case(confide.losses.Logistic(), CDPADMM(clip=1.0), graph=confide.Graph.ring(5)).colluding(1)
    with pytest.raises(ValueError, match="CDPADMM sends its messages bare"):
        canary.hidden(CDPADMM(clip=1.0))
