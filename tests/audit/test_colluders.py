"""Colluders attack a private sum: no line of the table is contradicted, and each is nearly attained."""

import json
import math

import numpy as np
import pytest
from scipy.stats import norm
from typer.testing import CliRunner

import confide
from confide.algorithms import CDPADMM, JointDescent
from confide.audit import Case, attack_coalitions, run, worst_case
from confide.audit.transcript import observe
from confide.cli import app

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


def command(tmp_path, *words):
    return CliRunner().invoke(
        app, ["audit", *words, "--output", str(tmp_path / "audit"), "--confidence", "0.999"], env={"COLUMNS": "80"}
    )


def delta_of(mu, epsilon):
    """δ(ε) of a μ-Gaussian-DP release (Balle and Wang 2018, Theorem 8)."""
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("JointDescent", ("--rounds", "2", "--canary", "opposite", "--adversary", "silent")),
        ("JointMoment", ("--canary", "coordinates", "--adversary", "silent")),
        ("JointTally", ("--canary", "flipped", "--adversary", "silent")),
    ],
)
def test_the_command_attacks_every_line_of_the_table(name, more, tmp_path):
    """Three parties, c = 1: μ_j = μ√(2/(3 - j)), and ε of each is that of the Gaussian, at the δ given."""
    out = command(tmp_path, name, "--colluders", "all", "--parties", "3", "--collusion", "1", "--epsilon", "6",
                  "--repetitions", "1500", *more, "--json")  # fmt: skip
    assert out.exit_code == 0, out.output
    found = json.loads(out.stdout)
    assert (found["parties"], found["collusion"], found["refuted"]) == (3, 1, False)
    lines = found["coalitions"]
    assert [line["colluders"] for line in lines] == [0, 1, 2]
    assert lines[1]["epsilon"] == pytest.approx(6, rel=1e-6)  # what the noise was made for
    for j, line in enumerate(lines):
        assert line["mu"] == pytest.approx(lines[1]["mu"] * math.sqrt(2 / (3 - j)))
        assert delta_of(line["mu"], line["epsilon"]) == pytest.approx(1e-5, rel=1e-4)
        assert 0.7 < line["share"] <= 1 and line["share"] == pytest.approx(line["mu_low"] / line["mu"])
        assert line["confidence"] == pytest.approx(1 - 0.001 / 3)  # one level for all lines together
        assert line["mu_low"] < line["mu_perfect"] * 1.15 and line["mu_perfect"] < line["mu"]
    assert any("0, 1, 2 of 3 parties: they pool" in said for said in found["could_see"])
    assert any(said.startswith("masks: ") for said in found["could_not_see"])
    assert json.loads((tmp_path / "audit" / f"{name}.json").read_text())["coalitions"] == lines
    assert (tmp_path / "audit" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_one_coalition_is_an_audit_like_any_other(tmp_path):
    out = command(tmp_path, "JointTally", "--repetitions", "200", "--canary", "flipped", "--adversary", "silent")
    said = " ".join(out.stdout.split())
    assert out.exit_code == 0 and "outsiders and 2 of 5 parties see the others' sum" in said  # an honest majority
    assert "- outsiders and 2 of 5 parties: they pool rows" in said and "- masks: the sum is simply taken" in said
    some = command(tmp_path, "JointTally", "--colluders", "0,3", "--repetitions", "200", "--adversary", "silent")
    said = " ".join(some.stdout.split())
    assert some.exit_code == 0 and "none of 2 claims at confidence 99.9 % over all lines" in said
    assert "coalitions of 1, 2, 4 colluders" in said and max(map(len, some.stdout.splitlines()[:-1])) <= 80


def test_a_table_that_does_not_degrade_is_refuted_line_by_line():
    cases = {j: [Case(METHOD, [CANARY.colluding(j)], 50.0, claim(2))] for j in (1, 4)}
    found = attack_coalitions(cases, delta=DELTA, repetitions=1200)
    assert found.refuted and found.verdict.startswith("refuted: the claim against 4 colluders, at confidence 95 %")
    assert [one.refuted for one in found.results.values()] == [False, True] and str(found).count("  refuted") == 1
    with pytest.raises(ValueError, match="3 colluders: a canary has outsiders and 4 of 5 parties"):
        attack_coalitions({3: cases[4]}, delta=DELTA)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("CDPADMM", "--colluders", "1"), "CDPADMM sends its messages bare: leave out --colluders"),
        (("JointDescent", "--colluders", "5"), "--colluders 5: must be whole numbers from 0 to 4"),
        (("JointDescent", "--colluders", "some"), "--colluders some: must be whole numbers from 0 to 4"),
        (("JointDescent", "--parties", "1"), "--parties 1: must be at least 2"),
        (("JointDescent", "--collusion", "5"), "JointDescent collusion=5: must be a whole number from 1 to 4"),
        (("JointDescent", "--published"), "JointDescent has no published form"),
        (("Nothing",), "method 'Nothing': must be one of ADMM"),
    ],
)
def test_a_coalition_that_cannot_be_is_one_line(words, said, tmp_path):
    out = command(tmp_path, *words)
    assert out.exit_code == 2 and said in " ".join(out.stderr.split()) and not (tmp_path / "audit").exists()
