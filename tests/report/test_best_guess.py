"""`confide account` and the report say the same about the best guess of one run: Φ(μ/2), by scipy from (ε, δ)."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from typer.testing import CliRunner

import confide
from confide.cli import app
from confide.privacy import Gaussian
from confide.privacy.ledger import Ledger
from confide.report.spending import spending

DELTA = 1e-5


def run(*args: object) -> str:
    out = CliRunner().invoke(app, [str(a) for a in args])
    assert out.exit_code == 0, out.stderr
    return out.stdout


def best_guess(epsilon: float) -> float:
    """The μ whose Gaussian trade-off has δ(ε) = DELTA (Dong, Roth and Su, Corollary 2.13), then Φ(μ/2)."""

    def excess(mu: float) -> float:
        return norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2) - DELTA

    return float(norm.cdf(brentq(excess, 1e-3, 50) / 2))


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_account_and_report_of_one_fit_agree(tmp_path: Path, epsilon: float) -> None:
    schema, data = tmp_path / "s.toml", tmp_path / "d.csv"
    schema.write_text('[label]\nname = "y"\nkind = "binary"\nvalues = ["no", "yes"]\n'
                      '[columns.x]\nkind = "numeric"\nlow = 0\nhigh = 1\n')  # fmt: skip
    x = np.random.default_rng(0).uniform(size=300)
    data.write_text("x,y\n" + "".join(f"{v:.3f},{'yes' if v > 0.5 else 'no'}\n" for v in x))
    book, saved, page = tmp_path / "l.sqlite", tmp_path / "run.npz", tmp_path / "page.html"
    run("fit", data, "--schema", schema, "--parties", 3, "--epsilon", epsilon, "--rounds", 5, "--ledger", book,
        "--population", "people", "--budget", 5, "--run", saved, "--out", tmp_path / "m.json")  # fmt: skip
    (page_of,) = json.loads(run("account", "--ledger", book, "--json"))["populations"]
    told = page_of["budgets"][0]["distinguish"]["probability"]
    (spend,) = spending(confide.load_run(saved).privacy, DELTA)
    assert told == pytest.approx(spend.success, abs=5e-4) == best_guess(epsilon)
    run("report", saved, "--output", page)
    assert (
        f"<strong>{100 * spend.success:.1f} %" in page.read_text()
        and f"{100 * told:.1f}" == f"{100 * spend.success:.1f}"
    )


def test_a_budget_in_zcdp_says_that_it_knows_less(tmp_path: Path) -> None:
    for calculus in ("gaussian", "zcdp"):
        file = tmp_path / f"{calculus}.sqlite"
        with Ledger(file) as book:
            book.open_population("people", 3.0, DELTA, calculus=calculus)
            book.charge("people", "one", 1, [Gaussian(0.5, 1.0)])
        said = " ".join(run("account", "--ledger", file).split())
        assert ("counts in zCDP, which knows less" in said) is (calculus == "zcdp")
        told = json.loads(run("account", "--ledger", file, "--json"))["populations"][0]["budgets"][0]["distinguish"]
        exact = norm.cdf(0.25)
        assert told["probability"] == pytest.approx(exact) if calculus == "gaussian" else told["probability"] > exact
