"""What a saved run carries, and that other files are refused with one line."""

import io
import json
import uuid

import numpy as np
import pytest

import confide
from confide.algorithms import ADMM, CDPADMM
from confide.runs.run import FORMAT, write_arrays

RING = confide.Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 3)], names=["a", "b", "c", "d"])


def run(**options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    shards = confide.Shards.split(X, np.sign(X[:, 0]), 4)
    problem = confide.Problem(shards, confide.losses.Logistic(), confide.penalties.L2(0.01), intercept=True)
    method = CDPADMM(rounds=6, clip=1.0, noise=2.0)
    return confide.simulate(problem, RING, method, seeds=(1, 2), **options), X


def test_everything_a_report_needs_survives(tmp_path):
    first, X = run()
    first = first.with_names(features=["age", "stay"], classes=["no", "yes"])
    first = first.with_evaluation(X, np.where(X[:, 0] > 0, "yes", "no"), source="made up")
    first = first.with_function([0.0, 1.0], [[1.0, 0.0], [0.0, 1.0]])
    again = confide.load_run(first.save(tmp_path / "run.npz"))
    assert again.setting == first.setting and again.setting.agents == ("a", "b", "c", "d")
    assert again.setting.edges == tuple(map(tuple, RING.edges.tolist())) and again.setting.sizes == (20,) * 4
    assert (again.id, again.public, again.delta, again.versions) == (first.id, ("consensus",), 1e-5, first.versions)
    assert again.privacy.path == first.privacy.path and len(again.privacy.path) == 6
    assert again.evaluation.matrix.tolist() == first.evaluation.matrix.tolist() and again.evaluation.rows == 80
    assert all(np.array_equal(a, b) for a, b in zip(again.function, first.function, strict=True))
    assert {"confide", "numpy", "numba", "python"} <= again.versions.keys()


def test_the_id_is_random_and_no_hash():
    a, b = run()[0], run()[0]
    assert a.id != b.id and np.array_equal(a.estimates, b.estimates)
    assert uuid.UUID(a.id).version == 4


def test_the_published_bound_had_the_run_ended_earlier():
    first, _ = run()
    for t, epsilon in first.privacy.path:
        method = CDPADMM(rounds=t, clip=1.0, noise=2.0)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 2))
        problem = confide.Problem(
            confide.Shards.split(X, np.sign(X[:, 0]), 4), confide.losses.Logistic(), intercept=True
        )
        (claim,) = method.claims(problem.public(RING), 1e-5)
        assert epsilon == np.max(claim.epsilon)


def test_the_models_own_answers_are_those_of_the_problem():
    first, X = run()
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 2))
    problem = confide.Problem(
        confide.Shards.split(rows, np.sign(rows[:, 0]), 4), confide.losses.Logistic(), intercept=True
    )
    assert np.array_equal(first.setting.predict(X, first.model)[1], problem.predict(X, first.model[1]))
    many = confide.Problem(
        confide.Shards.split(rows, np.arange(80) % 3, 4), confide.losses.Multinomial(3), intercept=True
    )
    out = confide.simulate(many, RING, ADMM(rounds=3), record=())
    assert np.array_equal(out.setting.predict(X, out.model)[0], many.predict(X, out.model[0]))


def test_a_central_method_has_one_agent_and_no_links():
    X = np.random.default_rng(0).normal(size=(40, 2))
    problem = confide.Problem(confide.Shards.split(X, X[:, 0], 2), confide.losses.Absolute())
    out = confide.simulate(problem, None, confide.algorithms.ORZO(rounds=2), record=())
    assert out.setting.topology == "central" and out.setting.edges == () and out.setting.sizes == (40,)


@pytest.mark.parametrize("number", [1, FORMAT + 1, None])
def test_another_format_is_refused_with_one_line(tmp_path, number):
    file = write_arrays(tmp_path / "run.npz", {"format": number}, {})
    with pytest.raises(ValueError, match=f"a run of format {number}, this version reads format {FORMAT}") as error:
        confide.load_run(file)
    assert "\n" not in str(error.value)


def test_a_damaged_header_is_one_line(tmp_path):
    file = run()[0].save(tmp_path / "run.npz")
    with np.load(file) as stored:
        arrays = {name: stored[name] for name in stored.files}
    header = json.loads(arrays.pop("header").tobytes())
    for field in ("events", "setting", "guarantee"):
        broken = {**header, field: {"nonsense": 1}}
        buffer = io.BytesIO()
        np.savez(buffer, header=np.frombuffer(json.dumps(broken).encode(), np.uint8), **arrays)
        (tmp_path / "broken.npz").write_bytes(buffer.getvalue())
        with pytest.raises(ValueError, match="not a run, or damaged") as error:
            confide.load_run(tmp_path / "broken.npz")
        assert "\n" not in str(error.value)


def test_mistakes_are_one_line():
    first, X = run()
    for call, said in (
        (lambda: first.with_names(features=["a"]), "must be 2 names"),
        (lambda: first.with_evaluation(X, X[:, 0], source=" "), "say in words"),
        (lambda: first.with_evaluation(X[:, :1], X[:, 0], source="x"), "as many features"),
        (lambda: first.with_evaluation(X, X[:5, 0], source="x"), "must be as many"),
        (lambda: first.with_evaluation(X, np.full(80, 3), source="x"), "must be one of the classes -1, 1"),
    ):
        with pytest.raises(ValueError, match=said):
            call()
