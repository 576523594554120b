"""simulate(): metrics, stopping, files, and one line for what cannot be run."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy.stats import sem

import confide
from confide.algorithms import ADMM, CDPADMM, DPADMM, DVP, ORZO, PDML, LinearizedADMM

L, P = confide.losses, confide.penalties
rng = np.random.default_rng(3)
X = rng.normal(size=(120, 3))
y = X @ [1.0, -1.0, 0.5] + 0.2 * rng.normal(size=120)
s = np.where(y > 0, 1.0, -1.0)
GROUPS = np.repeat(np.arange(4), [10, 50, 20, 40])
RING = confide.Graph.ring(4)


def problem(loss=None, penalty=None, **options):
    loss = loss or L.Squared()
    target = s if loss.labels == "sign" else y
    return confide.Problem(confide.Shards.from_groups(X, target, GROUPS), loss, penalty or P.L2(0.1), **options)


def test_metrics_are_what_they_say():
    p = problem()
    run = confide.simulate(
        p, RING, LinearizedADMM(rounds=7), every=3, test=(X, y),
        record=("error", "consensus", "risk", "objective", "augmented", "test"),
    )  # fmt: skip
    assert run.history["round"].tolist() == [3, 6, 7]
    beta, best = run.estimates[0], p.solve()
    last = {name: values[-1, 0] for name, values in run.history.items() if name != "round"}
    assert last["error"] == pytest.approx(np.sum((beta - best) ** 2) / np.sum(best**2))
    assert last["consensus"] == pytest.approx(np.max(np.linalg.norm(beta - beta.mean(axis=0), axis=1)))
    mean_loss = [0.5 * np.mean((y[k == GROUPS] - X[k == GROUPS] @ beta[k]) ** 2) for k in range(4)]
    assert last["risk"] == pytest.approx(np.mean(mean_loss))
    middle = beta.mean(axis=0)
    whole = sum(0.5 * np.mean((y[k == GROUPS] - X[k == GROUPS] @ middle) ** 2) for k in range(4))
    assert last["objective"] == pytest.approx(whole + 0.05 * middle @ middle)
    assert last["test"] == pytest.approx(0.5 * np.mean((y - X @ middle) ** 2))


def test_error_bars_stand_beside_a_metric():
    """Over seeds and, of a test set, over its rows; scipy.stats.sem is s/√n."""
    noisy = CDPADMM(rounds=5, clip=1.0, noise=0.5)
    run = confide.simulate(
        problem(L.Logistic()), RING, noisy, seeds=range(6), every=5, test=(X[:50], s[:50]),
        record=("error", "test", "test_standard_error"),
    )  # fmt: skip
    for name in ("error", "test"):
        mean, error = run.last(name)
        assert mean == pytest.approx(np.mean(run.history[name][-1]))
        assert error == pytest.approx(sem(run.history[name][-1])) and error > 0
        assert str(run.last(name)) == f"{mean:.4g} ± {error:.1g}" and f"{name} {mean:.4g} ± {error:.1g}; " in repr(run)
    right = np.where(X[:50] @ run.model.T > 0, 1.0, -1.0) == s[:50, None]
    np.testing.assert_allclose(run.history["test_standard_error"][-1], sem(right.astype(float), axis=0))
    assert run.public == ("test", "test_standard_error")
    real = replace(run, privacy=replace(run.privacy, simulated=False))
    assert "test 0." in repr(real) and "error 0" not in repr(real).replace("test_standard_error", "")  # of private rows

    lone = confide.simulate(problem(), RING, noisy, record=("consensus",))
    assert lone.last("consensus").error is None and "±" not in f"{lone.last('consensus')}{lone!r}"
    with pytest.raises(ValueError, match="'test': must be one of those recorded, consensus"):
        lone.last("test")
    with pytest.raises(ValueError, match="'test_standard_error': 1 test row, must be at least 2"):
        confide.simulate(problem(), RING, noisy, test=(X[:1], y[:1]), record=("test_standard_error",))


def test_the_augmented_objective_is_the_risk_once_all_agree():
    for method in (ADMM(rounds=300, coupling=0.3), DPADMM(rounds=2000, step_decay=0.0)):
        run = confide.simulate(problem(), RING, method, record=("augmented", "objective"))
        assert run.history["augmented"][-1] == pytest.approx(run.history["objective"][-1], rel=1e-8)


def test_a_metric_of_ones_own():
    run = confide.simulate(
        problem(), RING, ADMM(rounds=3), seeds=(0, 1), record={"size": lambda shot: np.abs(shot.estimates).max((1, 2))}
    )
    assert run.history["size"].shape == (3, 2)


def test_early_stopping_uses_public_values_and_charges_the_whole_schedule():
    method = replace(CDPADMM(rounds=500, clip=1.0), noise=1e-9)
    run = confide.simulate(problem(), RING, method, stop=1e-3)
    assert run.rounds < 500 and run.history["round"][-1] == run.rounds
    assert len(run.privacy.events) == 500
    seen = []
    confide.simulate(problem(), RING, method, stop=lambda t, estimates: seen.append(estimates.shape) or t == 4)
    assert seen == [(1, 4, 3)] * 4


def test_a_run_survives_its_file(tmp_path):
    method = CDPADMM(rounds=5, clip=1.0, coupling=(0.5, 1, 1, 2)).calibrated(problem().public(RING), 1.0, 1e-5)
    run = confide.simulate(problem(), RING, method, seeds=(2, 5))
    again = confide.load_run(run.save(tmp_path / "run.npz"))
    assert again.estimates.tobytes() == run.estimates.tobytes()
    assert np.array_equal(again.history["error"], run.history["error"])
    assert again.privacy.epsilon(1e-5) == run.privacy.epsilon(1e-5) == pytest.approx(1.0, rel=1e-9)
    assert str(again.privacy) == str(run.privacy) and "protects nobody" in str(run.privacy)
    assert again.parameters["coupling"] == [0.5, 1, 1, 2]
    assert run.bytes_sent == 8 * 5 * 3 * 8  # 8 bytes, 5 rounds, 3 numbers, 8 directed links


def test_a_file_that_is_not_a_run_is_one_line_and_nothing_is_unpickled(tmp_path):
    evil = tmp_path / "evil.npz"
    np.savez(evil, header=np.array([{"a": 1}], dtype=object))
    for file in (evil, tmp_path / "text.npz"):
        file.touch()
        with pytest.raises(ValueError, match="not a run that confide wrote") as error:
            confide.load_run(file)
        assert "\n" not in str(error.value)


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    file = tmp_path / "state.npz"
    confide.simulate(problem(), RING, ADMM(rounds=3), checkpoint=file)
    with pytest.raises(ValueError, match="another run"):
        confide.simulate(problem(), RING, ADMM(rounds=3, coupling=2.0), checkpoint=file)


def test_heterogeneous_agents_have_totals_of_their_own():
    p, noise = problem(), np.array([0.5, 1.0, 2.0, 4.0])
    method = CDPADMM(rounds=4, clip=1.0, noise=noise)
    run = confide.simulate(p, RING, method)
    spent = run.privacy.totals(1e-5)["row"]
    for k in range(4):  # each agent alone, by the closed form
        scale = 2 * 1.0 / [10, 50, 20, 40][k]  # of the gradient, which the noise is on
        mu = np.sqrt(sum((scale / (noise[k] * 0.97 ** ((t - 1) / 2))) ** 2 for t in range(1, 5)))
        expected = confide.privacy.epsilon([confide.privacy.Gaussian(mu, 1.0)], 1e-5)
        assert spent[k] == pytest.approx(expected, rel=1e-9)


def test_weights_and_sizes_of_the_parties():
    """weighting='rows' is the pooled mean: splitting the rows differently changes nothing."""
    even = confide.Problem(confide.Shards.split(X, y, 4), L.Squared(), P.L2(0.1), weighting="rows")
    assert np.allclose(problem(weighting="rows").solve(), even.solve(), rtol=1e-9)
    assert not np.allclose(problem().solve(), even.solve(), rtol=1e-3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: confide.simulate(problem(), confide.Graph.ring(5), ADMM()), "graph of 5 agents for 4 parties"),
        (lambda: confide.simulate(problem(), None, ADMM()), "needs a graph"),
        (lambda: confide.simulate(problem(), RING, DPADMM(), drop=0.1), "not a peer-to-peer"),
        (lambda: confide.simulate(problem(), RING, ADMM(rounds=0)), "rounds=0"),
        (lambda: confide.simulate(problem(), RING, ADMM(coupling=-1.0)), "coupling=-1.0"),
        (lambda: confide.simulate(problem(), RING, ADMM(coupling=(1.0, 2.0))), r"shape \(2,\)"),
        (lambda: confide.simulate(problem(), RING, ADMM(), seeds=[-1]), "seeds=.-1."),
        (lambda: confide.simulate(problem(), RING, ADMM(), seeds=3), r"seeds=3: .*range"),
        (lambda: confide.simulate(problem(), RING, ADMM(), seeds=[]), r"seeds=\[\]"),
        (lambda: confide.simulate(problem().shards, RING, ADMM()), "problem=confide.Shards: must be a"),
        (lambda: confide.simulate(problem(), nx.cycle_graph(4), ADMM()), "graph=networkx.Graph: must be a"),
        (lambda: confide.simulate(problem(), RING, ADMM), "algorithm=<class .*: must be one of confide.algorithms"),
        (lambda: confide.simulate(problem(), RING, "ADMM"), "algorithm='ADMM': must be one of confide.algorithms"),
        (lambda: confide.simulate(problem(), "ring", ADMM()), "graph='ring': must be a confide.Graph"),
        (lambda: confide.simulate(problem(), [], ADMM()), r"graph=\[\]: must be a confide.Graph"),
        (lambda: confide.simulate(problem(), [RING, 3], ADMM()), "graph=.*: must be a confide.Graph"),
        (lambda: confide.simulate(problem(), RING, ADMM(), every=1.5), "every=1.5: must be a whole number"),
        (lambda: confide.simulate(problem(), RING, ADMM(), checkpoint_every=0), "checkpoint_every=0: must be a whole"),
        (lambda: confide.simulate(problem(), RING, ADMM(), record="error"), r"record='error': .*\['error'\]"),
        (lambda: confide.simulate(problem(), RING, ADMM(), record=("speed",)), "unknown metric 'speed'"),
        (lambda: confide.simulate(problem(), RING, ADMM(), record={"speed": 3}), "metric 'speed' is 3: must be"),
        (lambda: confide.simulate(problem(), RING, ADMM(), test=X), r"test=ndarray: must be a pair \(X, y\)"),
        (lambda: confide.simulate(problem(), RING, ADMM(), test=(X[:, :2], y)), "test set: 2 features: must be 3"),
        (lambda: confide.simulate(problem(), RING, ADMM(), test=(X, y[:5])), "test set: y has 5 entries and X 120"),
        (lambda: confide.simulate(problem(), RING, ADMM(), test=(X * np.nan, y)), r"test set: X\[0, 0\] is nan"),
        (lambda: confide.simulate(problem(L.Hinge()), RING, ADMM(), test=(X, 3 * s)), "test set: a label .*: Hinge"),
        (lambda: confide.simulate(problem(), RING, ADMM(), stop=-1.0), "stop=-1.0: must be a finite number above 0"),
        (lambda: confide.simulate(problem(), RING, ADMM(), stop="soon"), "stop='soon': must be a finite number"),
        (lambda: confide.simulate(problem(), RING, ADMM(rounds=1), record=("test",)), "needs a public test set"),
        (lambda: confide.simulate(problem(penalty=P.L1(0.1)), RING, DVP()), "Squared with L1"),
        (lambda: confide.simulate(problem(L.SquaredHinge()), RING, PDML()), "with SquaredHinge: needs"),
        (lambda: confide.simulate(problem(), RING, CDPADMM(noise=-1.0)), "noise=-1.0"),
        (lambda: CDPADMM(rounds=5).calibrated(problem().public(RING), 1.0, 1e-5), "set clip"),
        (lambda: CDPADMM(rounds=5, clip=1).calibrated(problem().public(RING), 0.0, 1e-5), "epsilon"),
        (lambda: DVP(rounds=5).calibrated(problem(L.Logistic()).public(RING), 1.0), "Shards.clip_rows"),
    ],
)
def test_bad_input_is_one_line(call, text):
    with pytest.raises((ValueError, TypeError), match=text) as error:
        call()
    assert "\n" not in str(error.value)


def test_divergence_is_one_line_and_names_the_round():
    with pytest.raises(FloatingPointError, match=r"round \d+: agent \d+ diverged"), np.errstate(all="ignore"):
        confide.simulate(problem(), RING, LinearizedADMM(rounds=3000, step=1e6, coupling=1e-9), record=())


def test_seeds_axis_is_exact_for_every_solver_and_width():
    """One seed alone takes another path through the kernels than many together; the bits are the same."""
    wide = np.random.default_rng(0).normal(size=(120, 20))
    for features, loss in ((X, L.Squared()), (X, L.Logistic()), (wide, L.Logistic()), (X, L.Quantile(0.4))):
        target = s if loss.labels == "sign" else y
        p = confide.Problem(confide.Shards.from_groups(features, target, GROUPS), loss, P.L2(0.1))
        for method in (ADMM(rounds=3), replace(CDPADMM(rounds=3, clip=1.0), noise=0.1)):
            many = confide.simulate(p, RING, method, seeds=range(40), record=()).estimates
            one = confide.simulate(p, RING, method, seeds=[37], record=()).estimates
            assert np.array_equal(many[37], one[0])


def test_central_methods_see_one_agent():
    run = confide.simulate(problem(), None, ORZO(rounds=5))
    assert run.estimates.shape == (1, 1, 3) and run.bytes_sent == 0


def test_sparse_rows_give_the_same_run():
    import scipy.sparse as sp

    dense, sparse = problem(L.Logistic()), None
    sparse = confide.Problem(confide.Shards.from_groups(sp.csr_array(X), s, GROUPS), L.Logistic(), P.L2(0.1))
    for method in (ADMM(rounds=5), replace(CDPADMM(rounds=5, clip=0.5), noise=0.1)):
        a = confide.simulate(dense, RING, method, seeds=range(6), record=()).estimates
        b = confide.simulate(sparse, RING, method, seeds=range(6), record=()).estimates
        assert np.allclose(a, b, rtol=1e-9, atol=1e-12)


def test_an_optimum_that_is_not_there_is_no_error_of_size_zero():
    separable = confide.Problem(confide.Shards.from_groups(X, np.sign(X[:, 0]), GROUPS), L.Logistic())
    method = ADMM(rounds=2)
    with pytest.raises(ArithmeticError, match=r"metric 'error': no optimum: .*; or record other metrics"):
        confide.simulate(separable, RING, method)
    assert len(confide.simulate(separable, RING, method, record=("consensus", "risk")).history["risk"]) == 2


def test_a_run_is_saved_to_a_file_in_a_folder_that_exists(tmp_path):
    run = confide.simulate(problem(), RING, ADMM(rounds=1))
    with pytest.raises(FileNotFoundError, match=r"none/run\.npz: .*none is not a folder$"):
        run.save(tmp_path / "none" / "run.npz")
    with pytest.raises(IsADirectoryError, match="is a folder, the name of a file is needed"):
        run.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_diverging_run_is_one_line_without_warnings():
    """Warnings are errors in this suite: overflows on the way must not speak before the message does."""
    with pytest.raises(FloatingPointError, match=r"round \d+: agent \d diverged: lower the step") as error:
        confide.simulate(problem(), RING, LinearizedADMM(rounds=2000, coupling=1e-3, step=1e8))
    assert "\n" not in str(error.value)


def test_bytes_are_counted_once_for_runs_fits_and_nodes():
    """A path of three: 4 directed links; agent 1 has two neighbours. A hub gets each message and sends the sum back."""
    p = confide.Problem(confide.Shards.split(np.eye(3), np.ones(3), 3), confide.losses.Squared())
    public = p.public(confide.Graph.path(3))
    peers, hub = confide.algorithms.ADMM(rounds=5), confide.algorithms.DPADMM(rounds=5, clip=1.0)
    assert peers.bytes_sent(public) == 8 * 3 * 5 * 4
    assert peers.bytes_sent(public, 2) == 8 * 3 * 2 * 4
    assert peers.bytes_sent(public.at(1)) == 8 * 3 * 5 * 2
    assert hub.bytes_sent(public) == 8 * 3 * 5 * 2 * 3
    assert confide.algorithms.ORZO(rounds=5).bytes_sent(public.as_one()) == 0
