"""The page as text: its numbers against closed forms and counts of our own making, and what it must never say."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from report_cases import HOSTILE, RING, charts, classifier, quantile, rows
from scipy.stats import norm, sem
from typer.testing import CliRunner

import confide
from confide import report
from confide.cli import app
from confide.privacy import Gaussian, Guarantee, ObjectivePerturbation, PureDP, Unbounded
from confide.report import spending, words
from confide.report.markup import shown
from confide.runs.run import Privacy


def delta_of(mu, epsilon):
    """δ(ε) of a μ-Gaussian-DP release (Balle and Wang 2018, Theorem 8)."""
    return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def of_events(events, agents=4, **more):
    """A finished run that released these events."""
    spent = Privacy(events, Guarantee("proven", "for a test"), agents, **more)
    return replace(classifier(seeds=(0,)), privacy=spent, rounds=len(events))


def test_epsilon_by_round_is_the_closed_form():
    page = report.page(of_events([[Gaussian(0.5, 4.0)]] * 12))
    line = charts(page)["spent"]["series"][0]
    assert line["name"] == "exact" and line["x"] == list(range(13)) and line["y"][0] == 0
    for t, epsilon in zip(line["x"][1:], line["y"][1:], strict=True):
        assert delta_of(0.125 * np.sqrt(t), epsilon) == pytest.approx(1e-5, rel=1e-5)
    assert charts(page)["cost"]["series"][0]["y"] == pytest.approx([0.125] * 12)


def test_each_party_has_its_own_total_and_the_words_are_of_the_most_exposed():
    run = of_events([[Gaussian(1.0, np.array([1.0, 2.0, 4.0, 8.0]))]])
    (spend,) = spending.spending(run.privacy, 1e-5)
    assert [delta_of(m, e) for m, e in zip((1, 0.5, 0.25, 0.125), spend.total, strict=True)] == pytest.approx(
        [1e-5] * 4
    )
    assert spend.success == pytest.approx(norm.cdf(0.5))  # Φ(μ/2)
    assert spend.found(0.05) == pytest.approx(norm.cdf(norm.ppf(0.05) + 1))
    alarms, found = charts(report.page(run))["tradeoff"]["series"][0]["x"], spend.curve()[1]
    assert found[1:-1] == pytest.approx(norm.cdf(norm.ppf(alarms[1:-1]) + 1), rel=1e-6)
    said = " ".join(words.sentences(spend))
    assert f"{100 * norm.cdf(0.5):.1f} of 100" in said and f"{100 * norm.cdf(norm.ppf(0.001) + 1):.1f} of 100" in said


def test_pure_epsilon_is_told_as_odds():
    (spend,) = spending.spending(of_events([[PureDP(1.1)]]).privacy, 1e-5)
    assert spend.success == pytest.approx(np.exp(1.1) / (1 + np.exp(1.1)))
    assert spend.found(0.05) == pytest.approx(0.05 * np.exp(1.1))
    (twice,) = spending.spending(of_events([[PureDP(0.5)], [PureDP(0.6)]]).privacy, 1e-5)
    assert twice.costs == {"ε": [0.5, 0.6]} and not twice.closed
    # Of two randomised responses the truer one decides: the best guess from both is right as often as from it alone.
    assert twice.success == pytest.approx(np.exp(0.6) / (1 + np.exp(0.6)), rel=1e-4)
    alarms, found = twice.curve()
    assert np.max(found - alarms) == pytest.approx(2 * twice.success - 1, abs=1e-3)  # the curve says the same


def test_a_curve_from_pairs_of_epsilon_and_delta_never_promises_more_than_the_true_one():
    pytest.importorskip("dp_accounting")
    events = [Gaussian(0.3, 1.0), PureDP(0.4)]
    alone = norm.cdf(norm.ppf(spending.LEVELS[1:-1]) + 0.3)  # the Gaussian release by itself is weaker
    beta = spending.trade_off(events)(spending.LEVELS[1:-1])
    assert np.all(1 - beta >= alone - 1e-9) and np.all(1 - beta <= alone * np.exp(0.4) + 1e-6)  # group of both


def test_merging_changes_no_total():
    events = [Gaussian(0.1, np.array([1.0, 2.0])), Gaussian(0.2, 1.0), confide.privacy.ZCDP(0.01)]
    assert confide.privacy.epsilon(spending.merged(events), 1e-6) == pytest.approx(
        confide.privacy.epsilon(events, 1e-6)
    )
    lost = spending.merged([Gaussian(1.0, np.array([0.0, 1.0]))])
    assert confide.privacy.epsilon(lost, 1e-6)[0] == np.inf and np.isfinite(confide.privacy.epsilon(lost, 1e-6)[1])


def test_a_run_without_noise_says_that_nothing_is_hidden():
    page = report.page(classifier(confide.algorithms.ADMM(rounds=5)))
    assert "may be revealed entirely" in page and "100.0 %" in page and "∞" in page
    assert not {"spent", "tradeoff"} & charts(page).keys()
    assert "Nothing bounds" in words.sentences(spending.spending(of_events([[Unbounded()]]).privacy, 1e-5)[0])[0]


def test_the_published_bound_stands_beside_the_exact_total_round_by_round():
    run = classifier()
    exact, claim = charts(report.page(run))["spent"]["series"]
    assert claim["dash"] and claim["name"] == "CDP-ADMM, corollary"
    assert claim["y"][-1] == pytest.approx(float(np.max(run.privacy.claims[0].epsilon))) and claim["x"][-1] == 20
    assert all(c >= e for c, e in zip(claim["y"], exact["y"][1:], strict=True))  # looser, as the paper's bound is
    mu = np.sqrt(sum(float(np.max(e.mu)) ** 2 for one in run.privacy.events[:7] for e in one))
    assert delta_of(mu, exact["y"][7]) == pytest.approx(1e-5, rel=1e-5)
    assert "does not hold" in report.page(quantile()) and "does not hold" not in report.page(run)


def test_a_simulation_shows_everything_and_says_what_is_not_for_release():
    page = report.page(classifier(record=("error", "consensus", "risk")))
    assert {"metric-error", "metric-consensus", "metric-risk"} <= charts(page).keys()
    assert "seeded noise protects nobody" in page and "not for release" in page
    assert page.count("From private rows") == 2  # consensus is of models, which are public


def test_a_metric_has_its_last_value_with_error_bars():
    X, y = rows(seed=5, count=90)
    run = classifier(seeds=range(4), test=(X, np.sign(y)), record=("test", "test_standard_error"))
    said = charts(report.page(run))["metric-test"]
    ends = run.history["test"][-1]
    bars = f"{shown(ends.mean())}; ± {shown(sem(ends), 2)}, the standard error over the seeds; ± "
    chance = shown(float(np.mean(run.history["test_standard_error"][-1])), 2)
    page = report.page(run)
    assert f"After the last round {bars}{chance}, the standard error for the chance of which rows" in page
    assert said["series"][0]["y"][-1] == pytest.approx(ends.mean())
    lone = report.page(classifier(seeds=(0,), test=(X, np.sign(y)), record=("test",)))
    assert "After the last round 0." in lone and "the standard error" not in lone


def test_a_run_with_secure_noise_shows_public_metrics_only():
    run = classifier(record=("error", "consensus", "risk"))
    real = replace(run, privacy=replace(run.privacy, simulated=False))
    page = report.page(real)
    assert "metric-consensus" in charts(page) and not {"metric-error", "metric-risk"} & charts(page).keys()
    for value in (run.history["error"], run.history["risk"]):
        assert f"{value.mean(axis=1)[-1]:.8g}" not in page and f"{value.mean(axis=1)[-1]:.8g}" in report.page(run)
    assert "error, risk: computed from private rows" in page and "protects nobody" not in page


def test_a_function_of_ones_own_is_private_whatever_its_name():
    run = classifier(record={"test": lambda shot: np.zeros(2), "consensus": None})
    assert run.public == ("consensus",)


def test_the_confusion_matrix_is_a_count():
    X, y = rows(seed=5, count=200)
    labels = np.where(y > 0, "ill", "well")
    run = classifier(seeds=(0,)).with_names(classes=("well", "ill")).with_evaluation(X, labels, source="made up")
    said = np.where(X @ run.model[0] >= 0, "ill", "well")
    count = [[int(np.sum((labels == a) & (said == b))) for b in ("well", "ill")] for a in ("well", "ill")]
    assert run.evaluation.matrix.tolist() == count and run.evaluation.value == np.mean(labels == said)
    page = report.page(run)
    cells = re.findall(r'class="heat h\d[^"]*"><span>([\d,]+)</span>', page)
    assert [int(c) for c in cells] == [c for line in count for c in line] and "made up" in page


def test_without_a_public_test_set_the_panel_says_why():
    page = report.page(classifier())
    assert "No test set was declared public" in page and "confusion" not in charts(page)


def test_calibration_counts_what_lies_below():
    X, y = rows(seed=5, count=300)
    run = quantile(0.3).with_evaluation(X, y, source="made up")
    predicted = np.array([X @ b[:3] + b[3] for b in run.model])
    assert run.evaluation.value == pytest.approx(np.mean(y <= predicted))
    chart = charts(report.page(run))["calibration"]["series"]
    assert len(chart[0]["x"]) == 10 and chart[1]["y"] == [0.3, 0.3]
    assert np.mean(chart[0]["y"]) == pytest.approx(run.evaluation.value)  # ten groups of 30


def test_the_coefficient_function_has_a_band_over_parties_and_seeds():
    grid = np.linspace(0, 1, 21)
    basis = np.cos(np.pi * np.arange(3) * grid[:, None])
    run = quantile().with_function(grid, basis)
    line = charts(report.page(run))["function"]["series"][0]
    curves = run.estimates[..., :3].reshape(-1, 3) @ basis.T
    assert line["y"] == pytest.approx(curves.mean(axis=0)) and line["x"] == pytest.approx(grid)
    assert line["low"] == pytest.approx(curves.min(axis=0)) and line["high"] == pytest.approx(curves.max(axis=0))
    with pytest.raises(ValueError, match="must be"):
        run.with_function(grid[:5], basis)


def test_objective_perturbation_is_shown():
    pytest.importorskip("dp_accounting")
    page = report.page(of_events([[ObjectivePerturbation(1.0, 0.1, 0.01)]] * 3))
    assert charts(page)["cost"]["series"][0]["y"] == pytest.approx([0.1 + np.log1p(0.01)] * 3)
    assert charts(page)["spent"]["series"][0]["name"] == "smallest bound known"


class Tags(HTMLParser):
    """Every tag, attribute and address of a page."""

    def __init__(self, page):
        super().__init__()
        self.seen, self.attributes = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs


def hostile():
    graph = confide.Graph.from_edges(RING.edges, names=[HOSTILE, "b", "c", "\x00</script>"])
    X, y = rows()
    problem = confide.Problem(confide.Shards.split(X, np.sign(y), 4), confide.losses.Logistic())
    run = confide.simulate(problem, graph, confide.algorithms.CDPADMM(rounds=3, clip=0.5, noise=1.0))
    run = run.with_names(features=[HOSTILE, "b", "</style>"], classes=[HOSTILE, "</table>"])
    run = run.with_evaluation(X, np.where(y > 0, "</table>", HOSTILE), source=HOSTILE)
    spent = replace(run.privacy, guarantee=Guarantee("proven", HOSTILE))
    return replace(
        run,
        privacy=spent,
        algorithm=HOSTILE,
        id=HOSTILE,
        parameters={HOSTILE: HOSTILE},
        versions={"x": HOSTILE},
        not_covered=(HOSTILE,),
    )


def test_hostile_names_stay_text():
    tags = Tags(report.page(hostile()))
    assert tags.seen.count("img") == 0 and "broken" not in " ".join(k for k, _ in tags.attributes)
    assert tags.seen.count("script") == 1 + report.page(hostile()).count('<script type="application/json">')
    assert not [k for k, _ in tags.attributes if k.startswith("on") or k in ("style", "src")]


def test_the_page_is_small_whole_and_forbids_every_request():
    page = report.page(classifier(seeds=range(3), record=("error", "consensus", "risk")))
    tags = Tags(page).attributes
    assert len(page.encode()) < 300_000 and not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    (policy,) = [value for name, value in tags if name == "content" and "src" in value]
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy and "http" not in policy
    assert [value for name, value in tags if name in ("href", "src")] == ["data:,"]


def test_a_long_run_of_many_parties_stays_small():
    X, y = rows(count=2000)
    problem = confide.Problem(confide.Shards.split(X, y, 200), confide.losses.Squared())
    method = confide.algorithms.CDPADMM(rounds=1500, clip=1.0, noise=5.0, noise_decay=1.0, coupling=5.0, step=0.05)
    run = confide.simulate(problem, confide.Graph.random(200, 400, seed=1), method, record=("consensus",))
    page = report.page(run)
    assert len(page.encode()) < 300_000 and charts(page)["metric-consensus"]["series"][0]["x"][-1] == 1500
    (total,) = run.privacy.totals(1e-5).values()
    assert charts(page)["spent"]["series"][0]["y"][-1] == pytest.approx(total.max(), rel=1e-6)


def test_a_fit_with_secure_noise_is_a_run_with_a_report():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(600, 3))
    y = np.digitize(X[:, 0], [-0.2, 0.2])
    for kind in (confide.PrivateLogisticRegression, confide.PrivateLinearSVC):
        model = kind(epsilon=2.0, classes=[0, 1, 2], rounds=5).fit(X, y)
        run = model.run_
        (spend,) = spending.spending(run.privacy, model.delta)
        assert spend.epsilon == pytest.approx(model.privacy_.spent) and float(spend.exact.max()) == pytest.approx(
            model.privacy_.exact
        )
        own = run.with_evaluation(X, y, source="made up").evaluation.matrix
        assert own.tolist() == run.with_evaluation(X, y, predict=model.predict, source="x").evaluation.matrix.tolist()
        page = report.page(run)
        assert not run.privacy.simulated and "protects nobody" not in page and "selection not covered" in page
        assert {"metric-consensus", "metric-moved"} <= charts(page).keys()
        assert model.run_.id == run.id and run.id in page


# --- the command ------------------------------------------------------------------------------------------------------


def confide_report(*args):
    return CliRunner().invoke(app, ["report", *map(str, args)])


def test_the_command_writes_a_page_and_says_where(tmp_path):
    file, page = classifier().save(tmp_path / "run.npz"), tmp_path / "new" / "page.html"
    out = confide_report(file, "-o", page)
    assert out.exit_code == 0 and str(page) in out.stdout and page.read_text().startswith("<!doctype html>")
    out = confide_report(file, "-o", page, "--json", "--title", "Heart <3")
    document = json.loads(out.stdout)
    assert document["guarantee"] == "none" and document["epsilon"] == pytest.approx(1.0, rel=1e-6)
    assert "<h1>Heart &lt;3</h1>" in page.read_text()


def test_a_public_test_set_by_name_or_by_order(tmp_path):
    file = classifier(seeds=(0,)).save(tmp_path / "run.npz")
    named = classifier(seeds=(0,)).with_names(features=["a", "b", "c"]).save(tmp_path / "named.npz")
    X, y = rows(seed=5, count=50)
    lines = [f"{c},{int(np.sign(t))},{a},{b}" for (a, b, c), t in zip(X, y, strict=True)]
    (tmp_path / "test.csv").write_text("c,y,a,b\n" + "\n".join(lines))
    by_name = json.loads(
        confide_report(named, "--test", tmp_path / "test.csv", "--label", "y", "-o", tmp_path / "a", "--json").stdout
    )
    plain = [f"{a},{b},{c},{int(np.sign(t))}" for (a, b, c), t in zip(X, y, strict=True)]
    (tmp_path / "plain.csv").write_text("p,q,r,y\n" + "\n".join(plain))
    by_order = json.loads(confide_report(file, "--test", tmp_path / "plain.csv", "-o", tmp_path / "b", "--json").stdout)
    model = confide.load_run(file).model[0]
    assert by_name["quality"] == by_order["quality"] == np.mean(np.where(X @ model >= 0, 1, -1) == np.sign(y))
    assert "plain.csv" in (tmp_path / "b").read_text()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a,b\n1,2\n", "the model reads"),
        ("", "an empty file, without even a header"),
        ("y\n1\n", "the model reads"),
        ("a,b,c,y\n1,2,3\n", "line 2: 3 fields, the header has 4"),
        ("a,b,c,y\n1,2,three,1\n", "three"),
        ("a,b,c,y\n1,2,3,7\n", "test label '7'"),
        ("a,b,c,y\n1,2,nan,1\n", "not a finite"),
    ],
)
def test_a_bad_test_set_is_one_line(tmp_path, text, named):
    file = classifier(seeds=(0,)).save(tmp_path / "run.npz")
    (tmp_path / "test.csv").write_text(text)
    out = confide_report(file, "--test", tmp_path / "test.csv", "-o", tmp_path / "page.html")
    assert out.exit_code == 2 and out.stderr.count("\n") == 1 and named in out.stderr
    assert not (tmp_path / "page.html").exists()


def test_mistakes_are_one_line(tmp_path):
    (tmp_path / "text.npz").write_text("nothing")
    for args, named in (
        ([tmp_path / "none.npz"], "No such file"),
        ([tmp_path / "text.npz"], "not a run that confide wrote"),
        ([tmp_path], "no run of a node"),
    ):
        out = confide_report(*args, "-o", tmp_path / "page.html")
        assert out.exit_code == 2 and out.stderr.count("\n") == 1 and named in out.stderr
    file = classifier().save(tmp_path / "run.npz")
    assert "is a folder" in confide_report(file, "-o", tmp_path).stderr
    assert "--test" in confide_report(file, "-o", tmp_path / "page.html", "--label", "y").stderr
