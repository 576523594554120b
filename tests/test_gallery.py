"""The gallery: every script runs as it stands, and what it prints agrees with something we did not write."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression, Ridge

FOLDER = Path(__file__).parent.parent / "docs" / "gallery"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the gallery is in the checkout only")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs a script in an empty folder: its names, what it printed, and the folder."""
    monkeypatch.chdir(tmp_path)

    def execute(name):
        names = runpy.run_path(str(FOLDER / f"{name}.py"))
        return names, capsys.readouterr().out, tmp_path

    return execute


def gaussian_epsilon(mu, delta):
    """ε of μ-Gaussian-DP at δ, by the closed form of Dong, Roth and Su (2022)."""
    return brentq(lambda e: norm.cdf(mu / 2 - e / mu) - np.exp(e) * norm.cdf(-mu / 2 - e / mu) - delta, 0, 100)


def is_picture(path, below=150_000):
    content = path.read_bytes()
    return content.startswith(b"\x89PNG") and 5_000 < len(content) < below


def test_every_script_is_tested_and_listed():
    names = {path.stem for path in FOLDER.glob("*.py")}
    listed = set(re.findall(r"\((\w+)\.py\)", (FOLDER / "README.md").read_text()))
    tested = {name[5:] for name in globals() if name.startswith("test_")}
    assert len(names) >= 8 and names == listed and names <= tested


def test_black_box_simulator(run):
    """Nelder and Mead's optimum of the same simulator, on all rows, is the oracle."""
    names, said, _ = run("black_box_simulator")
    start, dzoa, plain, private = names["rows"]
    X, y, START = names["X"], names["y"], names["START"]

    def mean(p):
        return np.mean(names["error"](p - START, X, y))

    best = minimize(mean, names["TRUE"], method="Nelder-Mead", options={"maxfev": 60}).fun
    for _, *found, value, _ in (dzoa, plain, private):
        assert value == pytest.approx(mean(np.array(found))) and best <= value < best + 0.05 * (start[3] - best)
    assert [row[-1] for row in (dzoa, plain, private)] == ["refuted", "none", "assumed"] and "1.600" in said


def test_equal_budget(run):
    names, said, _ = run("equal_budget")
    X, y = names["hospitals"].test
    majority = max(np.mean(y > 0), np.mean(y < 0))
    shards = names["hospitals"].shards
    best = LogisticRegression(C=1e6).fit(shards.X, shards.y).score(X, y)
    for name, (run, accuracy) in names["results"].items():
        assert majority + 0.1 < accuracy < best + 0.01
        if name in ("CDPADMM", "DDPADMM", "DPSGD", "PVP"):  # Gaussian events: their total by the closed form
            each = [e for one in run.privacy.events for e in one]
            mu = np.sqrt(sum((np.asarray(e.sensitivity) / np.asarray(e.scale)) ** 2 for e in each))
            assert gaussian_epsilon(float(np.max(mu)), 1e-5) == pytest.approx(1.0, abs=1e-3)
    assert said.count("proven") == 5


def test_accuracy_against_epsilon(run):
    names, said, folder = run("accuracy_against_epsilon")
    X, y = names["hospitals"].test
    shards = names["hospitals"].shards
    free = 100 * LogisticRegression(C=1e6).fit(shards.X, shards.y).score(X, y)
    assert names["together"] == pytest.approx(free, abs=1.0)  # a light penalty apart
    mean = names["accuracy"].mean(axis=1)
    assert mean[0] < mean[2] < mean[-1] <= free + 0.5 and "without privacy" in said
    assert is_picture(folder / "accuracy_against_epsilon.png")


def test_ring_or_complete(run):
    names, said, folder = run("ring_or_complete")
    gap = 2 / 3 * (1 - np.cos(2 * np.pi / 10))  # of Metropolis weights 1/3 on a ring of ten: circulant eigenvalues
    assert names["graphs"]["ring"].spectral_gap == pytest.approx(gap)
    rounds = names["rounds"]
    assert rounds["complete"] < rounds["ring"] < rounds["path"] and "complete" in said
    parts = [names["problem"].shards.part(k) for k in range(10)]
    ridge = sum(X.T @ X / len(y) for X, y in parts) + 0.1 * np.eye(5)
    exact = np.linalg.solve(ridge, sum(X.T @ y / len(y) for X, y in parts))
    np.testing.assert_allclose(names["run"].model[0], exact, rtol=1e-6)
    assert is_picture(folder / "ring_or_complete.png")


def test_lossy_links(run):
    names, said, _ = run("lossy_links")
    # equal parties: Σ_k mean ½r² + ½·0.1·‖β‖² is Ridge with alpha = 0.1 · 600/6
    exact = Ridge(alpha=0.1 * 100, fit_intercept=False).fit(names["X"], names["y"]).coef_
    for drop in (0.0, 0.2, 0.5):
        np.testing.assert_allclose(names["final"][drop], exact, rtol=1e-6)
        assert names["spent"][drop] == pytest.approx(2.0, abs=1e-6)
    assert names["rounds"][0.5] > names["rounds"][0.0] and "50%" in said


def test_skewed_splits(run):
    names, said, _ = run("skewed_splits")
    error = names["error"]
    assert error["skewed", "CDPADMM"][0] < 1e-6 < error["skewed", "DPSGD"][0]
    assert error["skewed", "DPSGD"][0] > 3 * error["even", "DPSGD"][0]
    assert said.count("CDPADMM") == 2


def test_users_own_epsilon(run):
    names, said, _ = run("users_own_epsilon")
    for epsilon in (0.5, 1.0, 3.0):
        who = names["epsilon"] == epsilon
        true = np.mean(names["reported"][who] == names["y"][who])
        p = np.exp(epsilon) / (1 + np.exp(epsilon))
        assert abs(true - p) < 4 * np.sqrt(p * (1 - p) / who.sum())
    assert names["cosine"] > 0.95 and "row: ε=2" in said


def test_quantiles_of_curves(run):
    names, said, folder = run("quantiles_of_curves")
    upper = 1.2815515655446004 * 0.15  # of normal noise with deviation 0.15: what is added to ∫ β x to be exact
    exact = names["scores"] @ [0.2, -0.4, 0.2] + upper
    assert np.mean(names["y"] <= exact) == pytest.approx(0.9, abs=0.01)
    assert names["results"][5.0][0] == pytest.approx(0.9, abs=0.02) and names["results"][5.0][1] < 0.15
    whole = np.linalg.norm(names["scores"], axis=1) < 1.4  # longer curves are shortened, by design
    assert whole.mean() > 0.8
    assert names["model"].predict(names["curves"])[whole] == pytest.approx(exact[whole], abs=0.06)
    assert "seeded noise protects nobody" in said
    assert is_picture(folder / "quantiles_of_curves.png")


def test_audit_of_a_broken_variant(run):
    names, said, folder = run("audit_of_a_broken_variant")
    honest, broken = names["results"]["CDPADMM"], names["results"]["HalfTheNoise"]
    assert not honest.refuted and broken.refuted
    mu = brentq(lambda m: gaussian_epsilon(m, 1e-5) - 1.0, 0.01, 3)
    truth = gaussian_epsilon(2 * mu, 1e-5)  # half the noise is twice μ
    assert 1.0 < broken.epsilon_low < truth and "refuted" in said
    assert is_picture(folder / "audit_of_a_broken_variant.png")


def test_ledger_across_runs(run):
    names, said, _ = run("ledger_across_runs")
    half, more = (brentq(lambda m, e=e: gaussian_epsilon(m, 1e-5) - e, 0.01, 3) for e in (0.5, 0.6))
    assert names["ledger"].spent("mercy-2026") == pytest.approx(gaussian_epsilon(np.hypot(half, more), 1e-5), abs=1e-3)
    assert gaussian_epsilon(np.sqrt(half**2 + 2 * more**2), 1e-5) > 1.0  # so the third had to be refused
    assert names["refused"] == "length of stay" and "nothing was charged" in said


def test_private_grid_search(run):
    names, said, _ = run("private_grid_search")
    assert len(names["ledger"].entries("ward-7")) == 5
    assert 1.0 < names["ledger"].spent("ward-7") < 5.0 and "chosen" in said
    ridge = Ridge(alpha=1e-6).fit(names["X"], names["y"])
    assert names["search"].best_estimator_.score(names["X"], names["y"]) > 0.8 * ridge.score(names["X"], names["y"])


def test_three_classes(run):
    names, said, _ = run("three_classes")
    assert names["scores"][8.0] == pytest.approx(names["free"], abs=0.03)
    assert names["scores"][0.5] > 0.6 and said.count("total ε") == 3  # a third of the rows guess right by chance


def test_reading_epsilon(run):
    names, said, _ = run("reading_epsilon")
    for epsilon, mu, two, hundred, found in names["rows"]:
        assert gaussian_epsilon(mu, 1e-5) == pytest.approx(epsilon, rel=1e-6)
        assert two == pytest.approx(norm.cdf(mu / 2))
        assert hundred == pytest.approx(norm.cdf(norm.ppf(0.01) + mu))
        assert found == pytest.approx(norm.cdf(norm.ppf(0.05) + mu))
    table = (FOLDER.parent / "privacy.md").read_text()
    for epsilon, _, two, hundred, _ in names["rows"]:  # the privacy model quotes these
        assert f"| {epsilon:g} | {100 * two:.1f} % | {100 * hundred:.1f} % |" in table
    assert "false alarms" in said
