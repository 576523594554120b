"""A federation of one round that measures a public model on held-out rows: cells, noise, cost, what is said of it."""

import csv
import math
import tomllib

import numpy as np
import pytest
from circle import Circle
from scipy.stats import norm
from sklearn.metrics import accuracy_score, confusion_matrix, mean_absolute_error, mean_pinball_loss, roc_auc_score
from village import FEATURES, NAMES

import confide
from confide.estimators import evaluating
from confide.network.identity import Identity
from confide.node import federation as federations
from confide.node.amendment import refusal
from confide.node.evaluated import Evaluated
from confide.node.founding import new_evaluation, new_federation
from confide.node.rows import read_block
from confide.privacy import Label
from confide.problem.losses import Logistic, Multinomial, Quantile, Squared
from confide.problem.problem import row_scale
from confide.report.evaluation import read, result
from confide.runs.model import Model, Spent
from confide.schema.schema import Column, Schema, Target

HELD = (300, 120, 180, 240, 160)
BETA = np.array([3.0, -4.0, 2.0, 1.0])
DESCENT = {"name": "JointDescent", "rounds": 6, "noise": 0.5, "first": "moments"}
NOTHING = Spent(None, None, Label.NONE, "for a test", "by hand", 0)
CAP = {"epsilon": 1.0, "delta": 1e-5}


def model_of(coefficients, intercept, classes, loss=Logistic(), schema=None, norm=1.0):  # noqa: B008
    coefficients = np.atleast_2d(coefficients)
    names = schema.features if schema else tuple(f"x{j + 1}" for j in range(coefficients.shape[1]))
    return Model(loss, names, coefficients, np.atleast_1d(intercept), classes, norm, schema, NOTHING, {})


def held_out(seed=1, sizes=HELD):
    """Rows in their unit ball, and labels that BETA explains in part."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sum(sizes), FEATURES))
    X /= np.maximum(np.linalg.norm(X, axis=1), 1.0)[:, None]
    return X, rng


def evaluating_circle(folder, model, X, y, seed=None, loss="Logistic", budget=(10.0, 1e-5), **given):
    """Five members on disk who evaluate `model`; their held-out rows are X and y, in the parties' order."""
    made = Circle(folder, DESCENT, patience=0.0)
    made.rewrite(model={"loss": {"name": loss}})
    cap = {"epsilon": budget[0], "delta": budget[1]}
    _, text = new_evaluation(made.federation, model, dict(zip(NAMES, HELD, strict=True)), cap, evaluating.SCORES,
                             **given)  # fmt: skip
    made.document = tomllib.loads(text) | ({} if seed is None else {"test_noise_seed": seed})
    made.rewrite()
    cuts = np.cumsum(HELD)[:-1]
    for name, Xk, yk in zip(NAMES, np.split(X, cuts), np.split(y, cuts), strict=True):
        np.savez(made.folder / f"{name}.npz", X=Xk, y=yk)
    return made


# --- five members -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [None, 5], ids=["secure", "seeded"])
def test_five_members_count_two_classes_and_all_read_the_same(tmp_path, seed):
    """What is released is the truth plus noise of the size that was claimed: χ² of 24 cells, beyond 5 deviations
    once in a million runs; scikit-learn's scores of the pooled rows are in the intervals."""
    X, rng = held_out()
    y = np.where(X @ BETA + 0.3 + rng.logistic(size=len(X)) > 0, 1.0, -1.0)
    model = model_of(BETA, 0.3, ("-1", "1"))
    made = evaluating_circle(tmp_path, model, X, y, seed, budget=(8.0, 1e-5)).begin()
    assert made.carry()
    z = X @ BETA + 0.3
    cells = np.searchsorted(evaluating.SCORES, z) + 12 * (y > 0)
    truth = np.bincount(cells, minlength=24) / len(y)
    noise = float(made.federation.algorithm.sum_scale(1, made.federation.public)[0, 0])
    estimates = [np.array(made.members[name].estimate) for name in NAMES]
    assert all(one.tobytes() == estimates[0].tobytes() for one in estimates)
    off = np.sum(((estimates[0] - truth) / noise) ** 2)
    assert 3 < off < 24 + 5 * math.sqrt(48) + 12  # a sum of 24 squares has a heavier tail above than a normal's
    paid = made.members["ash"].purse.ledger
    made.close()
    seen = [result(made.folder / name, made.run_folder(name)) for name in NAMES]
    assert len({str(found) for _, found in seen}) == 1
    _, found = seen[0]
    answer = np.where(z > 0, 1.0, -1.0)
    assert found.rows == 1000 and found.confusion.sum() == pytest.approx(1000, abs=6 * 1000 * noise * math.sqrt(24))
    wide = 6 * noise * math.sqrt(24) * 1000
    assert np.max(np.abs(found.confusion - confusion_matrix(y, answer))) < wide
    for name, exact in (("accuracy", accuracy_score(y, answer)), ("AUC", roc_auc_score(y, z))):
        value, low, high = found[name]
        assert low < exact < high and 0 < high - low < 0.25 and low < value < high
    assert (paid is None) == (seed is not None) and math.isinf(found.epsilon) == (seed is not None)
    if seed is None:
        assert found.epsilon == pytest.approx(8.0, rel=1e-3) and found.epsilon <= 8.0


def test_five_members_measure_a_regression(tmp_path):
    X, rng = held_out()
    y = np.clip(X @ BETA / 5 + 0.2 * rng.normal(size=len(X)), -1.3, 1.3)  # beyond [-1, 1] counts as its end
    model = model_of(BETA / 5, 0.0, None, Squared())
    made = evaluating_circle(tmp_path, model, X, y, loss="Squared").begin()
    assert made.carry()
    made.close()
    _, found = result(made.folder / "elm", made.run_folder("elm"))
    exact = mean_absolute_error(np.clip(y, -1, 1), np.clip(X @ BETA / 5, -1, 1))
    value, low, high = found["mean absolute error"]
    assert low < exact < high and high - low < 0.2 and abs(value - exact) < 0.05 and found.confusion is None


def test_each_member_pays_once_and_its_ledger_says_against_whom(tmp_path):
    X, rng = held_out()
    y = np.sign(rng.normal(size=len(X)))
    made = evaluating_circle(tmp_path, model_of(BETA, 0.0, ("-1", "1")), X, y, budget=(1.0, 1e-5)).begin()
    assert made.carry()
    for name in NAMES:
        one = made.members[name]
        everyone, few = one.purse.ledger.balances("people")
        assert few.kind[2] == "outsiders and any 2 of 5 parties together"
        (price,) = made.federation.prices(NAMES.index(name))[0]
        assert few.spent == pytest.approx(float(price.mu) ** 2, rel=1e-9)
        assert everyone.spent == pytest.approx(3 * few.spent, rel=1e-6)
        assert [(e.round, e.attempt) for e in one.purse.ledger.entries("people")] == [(1, 1)]
    made.close()


def test_nothing_of_a_row_is_kept_but_what_was_released(tmp_path):
    """No hash of cells in the ledger, and no file in a run's folder that depends on them but frames."""
    X, rng = held_out()
    y = np.sign(rng.normal(size=len(X)))
    made = evaluating_circle(tmp_path, model_of(BETA, 0.0, ("-1", "1")), X, y, budget=(1.0, 1e-5)).begin()
    assert made.carry()
    with made.members["ash"].purse.ledger._store.reading() as db:
        assert db.execute("SELECT count(*) FROM fingerprints").fetchone() == (0,)
    for name in NAMES:
        made.members[name].end()
    files = {path.name for path in made.run_folder("ash").rglob("*") if path.is_file()}
    made.close()
    assert files <= {"journal", "lock", "claims", "federation.toml", "ledger-head"}, files


def test_a_lost_member_is_left_out_and_the_rows_of_the_others_are_counted(tmp_path):
    X, rng = held_out()
    y = np.where(X @ BETA + rng.logistic(size=len(X)) > 0, 1.0, -1.0)
    model = model_of(BETA, 0.0, ("-1", "1"))
    made = evaluating_circle(tmp_path, model, X, y, budget=(10.0, 1e-5), restarts=1)
    assert refusal(made.federation) == ""
    made.begin(*NAMES[:4])
    made.carry(until=lambda: len(made.heard) > 3)
    made.lose("elm")
    assert made.carry()
    made.close()
    federation, found = result(made.folder / "ash", made.run_folder("ash"))
    assert found.rows == sum(HELD[:4]) and federation.parties == NAMES[:4]
    first = slice(0, sum(HELD[:4]))
    _, low, high = found["accuracy"]
    assert low < accuracy_score(y[first], np.where(X[first] @ BETA > 0, 1.0, -1.0)) < high


# --- cost -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    folder = tmp_path_factory.mktemp("members")
    cards = [Identity.create(folder / name, name, f"127.0.0.1:{7001 + k}").card for k, name in enumerate(NAMES)]
    return list(zip(cards, (400, 100, 200, 300, 150), strict=True))


PLAIN = {"loss": {"name": "Logistic"}, "penalty": {"name": "L2", "strength": 0.01}, "weighting": "rows", "features": 4,
         "row_norm": 1.0, "intercept": True}  # fmt: skip


@pytest.fixture(scope="module")
def learned(members):
    return new_federation(members, PLAIN, {"name": "JointDescent", "rounds": 31}, dict(CAP))[0]


def evaluated(learned, model, budget=CAP, rows=None, **given):
    rows = dict(zip(NAMES, HELD, strict=True)) if rows is None else rows
    return new_evaluation(learned, model, rows, dict(budget), evaluating.SCORES, **given)


def delta_of(epsilon, mu):
    """Balle and Wang 2018: δ of a Gaussian release."""
    return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("collusion", [None, 1, 3])
def test_it_costs_what_one_gaussian_release_of_counts_does(learned, collusion):
    """Δ = √2/n against c who collude, noise σ√h: the noise is the least that (ε, δ) allows, in closed form."""
    found, text = evaluated(learned, model_of(BETA, 0.0, ("-1", "1")), collusion=collusion)
    assert federations.from_document(tomllib.loads(text)).digest == found.digest
    c = 2 if collusion is None else collusion
    assert found.algorithm.colluders(found.public) == c and found.restarts == 0
    n, sigma = sum(HELD), found.algorithm.noise
    mu = math.sqrt(2) / n / (sigma * math.sqrt(5 - c))
    assert delta_of(1.0, mu) == pytest.approx(1e-5, rel=1e-3) and delta_of(1.0, mu) <= 1e-5
    for k in range(5):
        (now,) = found.prices(k)
        (event,) = now
        assert float(event.mu) == pytest.approx(mu, rel=1e-5) and float(event.mu) >= mu
        assert float(event.alone) == sigma
        assert confide.privacy.epsilon(now, 1e-5) == pytest.approx(1.0, rel=1e-4)
    assert found.guarantee.label == Label.PROVEN and "computational" in found.guarantee.reason


def test_a_mean_loss_costs_its_range(learned):
    """Δ = 2c/n, c = max(τ, 1 - τ)."""
    real = new_federation_of(learned, "Quantile")
    found, _ = evaluated(real, model_of(BETA, 0.0, None, Quantile(0.9)))
    assert found.algorithm.clip == 0.9
    (event,) = found.prices(0)[0]
    assert float(event.sensitivity) == pytest.approx(2 * 0.9 / sum(HELD), rel=1e-5)


def new_federation_of(learned, loss):
    document = {**learned.document, "model": {**learned.document["model"], "loss": {"name": loss}}}
    return federations.from_document(document)


def test_where_nobody_was_trusted_nobody_is(members):
    peers, _ = new_federation(members, PLAIN, {"name": "CDPADMM", "rounds": 20, "clip": 0.5}, dict(CAP))
    found, _ = evaluated(peers, model_of(BETA, 0.0, ("-1", "1")))
    assert found.algorithm.colluders(found.public) == 4 and "computational" not in found.guarantee.reason


# --- cells ------------------------------------------------------------------------------------------------------------


def shards_of(X, y):
    return confide.Shards.from_parts([(X, y)])


def test_cells_are_those_of_the_estimators():
    """Of two classes, of three and of numbers, whatever the margins."""
    X, rng = held_out(sizes=(500,))
    one = np.zeros(500, int)
    z = X @ BETA
    y = np.sign(rng.normal(size=500))
    table = {"coefficients": [BETA.tolist()], "intercept": [0.0], "classes": ["-1", "1"],
             "scores": [*evaluating.SCORES]}  # fmt: skip
    two = Evaluated.from_document(table, Logistic(), 4, ("-1", "1"))
    theirs = evaluating.of_scores(z, y > 0, one)
    assert np.array_equal(two.cells(shards_of(X, y)).y, theirs.problem.shards.y)
    assert tuple(two.parameters["edges"]) == theirs.method.edges and two.loss == theirs.problem.loss
    assert two.row_norm == theirs.problem.shards.row_norm
    W, k = rng.normal(size=(3, 4)), rng.integers(3, size=500)
    table = {"coefficients": W.tolist(), "intercept": [0.1, 0.0, -0.1], "classes": ["0", "1", "2"]}
    three = Evaluated.from_document(table, Multinomial(3), 4, ("0", "1", "2"))
    theirs = evaluating.of_answers(np.argmax(X @ W.T + [0.1, 0.0, -0.1], axis=1), k, 3, one)
    assert np.array_equal(three.cells(shards_of(X, k)).y, theirs.problem.shards.y)
    assert tuple(three.parameters["edges"]) == theirs.method.edges
    target = np.clip(z + 0.3 * rng.normal(size=500), -2, 2)
    number = Evaluated.from_document({"coefficients": [BETA.tolist()], "intercept": [0.0]}, Quantile(0.8), 4, None)
    theirs = evaluating.of_residuals(np.clip(target, -1, 1) - np.clip(z, -1, 1), 1.0, 0.8, one)
    mine = number.cells(shards_of(X, target))
    assert np.array_equal(mine.X, theirs.problem.shards.X) and mine.row_norm == theirs.problem.shards.row_norm
    assert number.parameters["clip"] == theirs.method.clip and number.loss == theirs.problem.loss


def test_two_outputs_of_two_classes_are_scored_by_their_difference():
    X, rng = held_out(sizes=(300,))
    W, y = rng.normal(size=(2, 4)), rng.integers(2, size=300).astype(float)
    table = {"coefficients": W.tolist(), "intercept": [0.1, 0.0], "classes": ["0", "1"],
             "scores": [*evaluating.SCORES]}  # fmt: skip
    found = Evaluated.from_document(table, Multinomial(2), 4, ("0", "1")).cells(shards_of(X, y)).y
    z = X @ W.T + [0.1, 0.0]
    assert np.array_equal(found % 12 >= 6, np.argmax(z, axis=1) == 1) and np.array_equal(found >= 12, y == 1)


@pytest.mark.parametrize("loss, k, outputs", [(Logistic(), ("-1", "1"), 1), (Multinomial(3), ("0", "1", "2"), 3),
                                              (Multinomial(2), ("0", "1"), 2), (Squared(), None, 1)])  # fmt: skip
def test_extreme_coefficients_give_every_row_a_cell(loss, k, outputs):
    """Overflow, and infinities that cancel: no row may show itself by an error or a warning."""
    W = np.where(np.arange(4) % 2, -1.7e308, 1.7e308) * np.ones((outputs, 1))
    table = {"coefficients": W.tolist(), "intercept": [1.7e308] * outputs}
    if k is not None:
        table |= {"classes": [*k]} | ({"scores": [*evaluating.SCORES]} if len(k) == 2 else {})
    one = Evaluated.from_document(table, loss, 4, k)
    X = np.array([[1.0, 1, 1, 1], [1, -1, 1, -1], [-1, 1, -1, 1], [0, 0, 0, 0], [5e-324, 0, 1, 0]])
    found = one.cells(shards_of(X, np.zeros(5) if loss.labels != "sign" else np.ones(5)))
    assert np.isfinite(found.X).all() and np.all(np.abs(found.X) <= 2)
    assert np.all((found.y >= 0) & (found.y < one.count) & (found.y == np.floor(found.y)))


SCHEMA = Schema((Column("age", "numeric", 0, 100), Column("ward", "category", categories=("eyes", "heart"))),
                Target("stay", "real", low=0, high=30))  # fmt: skip


def with_schema(members, schema, loss):
    model = {"loss": loss, "penalty": {"name": "L2", "strength": 0.01}, "weighting": "parties"}
    return new_federation(members, model, {"name": "JointDescent", "rounds": 31}, dict(CAP), schema=schema)[0]


def pooled(found, files, folder):
    """The exact tally over all parties, from their files as nodes read them; noise would come on top of it."""
    total = 0.0
    for k, path in enumerate(files):
        block = read_block(path, found, k, folder / f"rows{k}", training=False)
        assert block.scale == row_scale(found.public.sizes, "rows")[k : k + 1]
        question, state = found.algorithm.question(1, found.public.at(k)), found.algorithm.init(found.public.at(k))
        total = total + question.answer(block, *found.algorithm.points(1, state, found.public.at(k)))[0, 0]
    return total


@pytest.mark.parametrize("level", [None, 0.8])
def test_numbers_of_a_schema_are_measured_in_their_own_unit(members, tmp_path, level):
    loss = {"name": "Squared"} if level is None else {"name": "Quantile", "level": level}
    learned = with_schema(members, SCHEMA, loss)
    kind = Squared() if level is None else Quantile(level)
    model = model_of([[0.4, 0.2, -0.1]], [0.05], None, kind, SCHEMA)
    found, _ = evaluated(learned, model)
    rng = np.random.default_rng(0)
    files, truth, predicted = [], [], []
    for name, rows in zip(NAMES, HELD, strict=True):
        age, heart = rng.uniform(0, 100, rows).round(2), rng.integers(2, size=rows)
        stay = np.clip(15 + 0.1 * (age - 50) + 3 * rng.normal(size=rows), 0, 30).round(3)
        files.append(tmp_path / f"{name}.csv")
        with files[-1].open("w", newline="") as file:
            csv.writer(file).writerows([("age", "ward", "stay"), *zip(age, np.array(["eyes", "heart"])[heart], stay,
                                                                       strict=True)])  # fmt: skip
        X = np.column_stack([age / 50 - 1, 1 - heart, heart])
        X /= np.maximum(np.linalg.norm(X, axis=1), 1.0)[:, None]
        truth += stay.tolist()
        predicted += (15 + 15 * np.clip(X @ [0.4, 0.2, -0.1] + 0.05, -1, 1)).tolist()
    assert found.weighting == "rows"
    _, told = read(found, pooled(found, files, tmp_path), 1.0)
    exact = mean_absolute_error(truth, predicted) if level is None else mean_pinball_loss(truth, predicted, alpha=0.8)
    (score,) = told.found.values()
    assert score.value == pytest.approx(exact, rel=1e-9) and score.low < exact < score.high


def test_three_classes_of_a_schema_have_a_confusion(members, tmp_path):
    schema = Schema((Column("age", "numeric", 0, 100),), Target("ward", "classes", ("eyes", "heart", "skin")))
    learned = with_schema(members, schema, {"name": "Multinomial", "classes": 3})
    found, _ = evaluated(learned, model_of([[-1.0], [0.0], [1.0]], [0.0, 0.2, 0.0], ("eyes", "heart", "skin"),
                                           Multinomial(3), schema))  # fmt: skip
    rng = np.random.default_rng(0)
    files, truth, answers = [], [], []
    for name, rows in zip(NAMES, HELD, strict=True):
        age, ward = rng.uniform(0, 100, rows).round(2), rng.integers(3, size=rows)
        files.append(tmp_path / f"{name}.csv")
        with files[-1].open("w", newline="") as file:
            csv.writer(file).writerows([("age", "ward"), *zip(age, np.array(schema.label.values)[ward], strict=True)])
        x = age / 50 - 1
        truth, answers = [*truth, *ward], [*answers, *np.argmax(np.column_stack([-x, 0 * x + 0.2, x]), axis=1)]
    _, told = read(found, pooled(found, files, tmp_path), 1.0)
    assert told.confusion == pytest.approx(confusion_matrix(truth, answers), abs=1e-6)
    assert told["accuracy"].value == pytest.approx(accuracy_score(truth, answers)) and [*told.found] == ["accuracy"]
