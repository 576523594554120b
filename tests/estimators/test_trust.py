"""Whom one must trust, as a fit says it first, and how much noise that leaves in a sum."""

import numpy as np
import pytest
from estimator_cases import labelled
from scipy.optimize import brentq
from scipy.stats import norm

import confide


def gdp_epsilon(mu, delta=1e-5):
    """ε at which a μ-Gaussian release has δ: Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2) = δ (Dong, Roth, Su 2022)."""
    profile = lambda e: norm.cdf(-e / mu + mu / 2) - np.exp(e) * norm.cdf(-e / mu - mu / 2) - delta  # noqa: E731
    return brentq(profile, 1e-9, 50)


@pytest.mark.parametrize(("parties", "collusion", "colluders"), [(3, None, 1), (5, None, 2), (5, 1, 1), (9, 6, 6)])
def test_the_first_line_says_whom_one_must_trust(parties, collusion, colluders):
    X, y = labelled(90)
    model = confide.PrivateLogisticRegression(collusion=collusion, classes=["ill", "well"])
    model.fit(X, y, groups=np.arange(90) % parties)
    mu = brentq(lambda m: gdp_epsilon(m) - 1.0, 0.01, 5)
    everyone = gdp_epsilon(mu * np.sqrt(parties - colluders))
    first, rest = str(model.privacy_).split("\n")
    assert first == (
        f"ε = 1 if at most {colluders} of {parties} collude, ε = {everyone:.4g} against all others together"
    )
    assert model.privacy_.trust.everyone == pytest.approx(everyone, rel=1e-5)
    assert rest.startswith("ε=1 at δ=1e-05 for each row") and model.privacy_.guarantee.label == "proven"
    assert "computational" in rest and "one process played all parties and masked nothing" in rest
    assert "two" not in first and f"at most {colluders} of {parties} parties collude" in model.choice_


def test_nobody_need_be_trusted_where_noise_is_independent():
    X, y = labelled(90)
    for parties, collusion in ((2, None), (5, 4)):
        model = confide.PrivateLogisticRegression(collusion=collusion).fit(X, y, groups=np.arange(90) % parties)
        said = str(model.privacy_)
        assert model.privacy_.trust is None and "\n" not in said and "computational" not in said
        assert "no other party is trusted" in model.choice_ and f"{np.sqrt(parties):.3g} times" in model.choice_


def test_without_groups_one_party_holds_all_rows():
    X, y = labelled(90)
    model = confide.PrivateLogisticRegression().fit(X, y)
    assert model.graph_ is None and model.party_names_ == ("all rows in one place",) and model.privacy_.trust is None
    assert "one process holds all rows" in str(model.privacy_) and "computational" not in str(model.privacy_)
    assert "a curator's noise" in model.choice_
    run = model.run_
    assert run.bytes_sent == 0 and run.setting.topology == "central" and run.setting.edges == ()
    split = confide.PrivateLogisticRegression(parties=4).fit(X, y)
    assert split.graph_.size == 4 and split.privacy_.trust.parties == 4
    # two vectors per party and round; the spread first, one number
    assert split.run_.bytes_sent == 8 * 2 * 4 * (1 + 60 * 4)


@pytest.mark.parametrize("groups", [None, np.arange(4000) % 5], ids=["alone", "five"])
def test_the_noise_of_the_sum_is_a_curators(groups):
    """Rows are all 0, so that a round's sum holds noise alone; its intercept's deviation is known by hand.

    One gradient, and then no more: Δ = 2·½·√1.25/n, five parties of which two may collude have √(5/3) times Δ/μ.
    """
    X, y = np.zeros((4000, 2)), np.tile(["a", "b"], 2000)
    mu = brentq(lambda m: gdp_epsilon(m) - 1.0, 0.01, 5)
    method = confide.algorithms.JointDescent(rounds=1)
    models = [
        confide.PrivateLogisticRegression(algorithm=method, random_state=s).fit(X, y, groups=groups) for s in range(300)
    ]
    step = 0.2 * 1.9 * (1.8 / 0.2) / (0.25 * 1.25)  # the first one, safe for any rows
    moved = [m.intercept_[0] for m in models]  # half of θ, which moved by the step times the noise
    sigma = np.sqrt(1.25) / 4000 / mu * (1 if groups is None else np.sqrt(5 / 3))
    assert np.std(moved) == pytest.approx(0.5 * step * sigma, rel=4 / np.sqrt(600))
