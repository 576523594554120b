"""Bad input is one line that names the value and what is allowed, whoever is given it."""

from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from confide import Graph, Problem, Shards, losses, penalties, simulate
from confide.algorithms import REGISTRY

NOT_NUMBERS = [np.nan, np.inf, -np.inf]
quick = settings(max_examples=40, deadline=None, derandomize=True)
below_zero = st.floats(max_value=0, exclude_max=True, allow_nan=False)
not_finite = st.sampled_from(NOT_NUMBERS)


def refuses(*names, call, kind=(ValueError, TypeError)):
    """One line, naming every one of `names`, in place of a result."""
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    assert text and "\n" not in text and len(text) < 200, text
    for name in names:
        assert str(name) in text, f"{name!r} is not in: {text}"


def table(n=12, p=3):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, p)), np.where(np.arange(n) % 2, 1.0, -1.0), np.arange(n) % 3


def problem(loss=None, penalty=None, parties=3):
    X, y, _ = table()
    return Problem(Shards.split(X, y, parties), loss or losses.Logistic(), penalty or penalties.L2(0.1))


# --- rows -----------------------------------------------------------------------------------------------------------


@quick
@given(st.integers(0, 11), st.integers(0, 2), not_finite, st.sampled_from([np.asarray, np.float32, list]))
def test_features_must_be_finite(i, j, bad, form):
    X, y, groups = table()
    X[i, j] = bad
    refuses(f"X[{i}, {j}] is {bad}", "finite", call=lambda: Shards.from_groups(form(X), y, groups))
    refuses(f"X[{i}, {j}] is {bad}", "finite", call=lambda: Shards.split(form(X), y, 3))


@quick
@given(st.integers(0, 11), st.integers(0, 2), not_finite, st.sampled_from([sp.csr_array, sp.csc_array, sp.coo_array]))
def test_stored_entries_of_a_sparse_matrix_must_be_finite(i, j, bad, form):
    X, y, groups = table()
    X[:, 0] = 0.0  # not stored
    X[::2] = 0.0  # rows without any entry
    X[i, j] = bad
    refuses(f"X[{i}, {j}] is {bad}", "finite", call=lambda: Shards.from_groups(form(X), y, groups))


@quick
@given(st.sampled_from(["y", "weight", "epsilon"]), st.integers(0, 11), not_finite)
def test_targets_and_columns_must_be_finite(name, i, bad):
    X, y, groups = table()
    columns = {"weight": np.ones(12), "epsilon": np.ones(12)}
    v = {"y": y, **columns}[name]
    v[i] = bad
    refuses(f"{name}[{i}] is {bad}", "finite", call=lambda: Shards.from_groups(X, y, groups, columns))


@quick
@given(st.integers(0, 30).filter(lambda n: n != 12), st.sampled_from(["y", "groups", "weight"]))
def test_lengths_must_agree(n, name):
    X, y, groups = table()
    given = {"y": y, "groups": groups, "weight": np.ones(12), name: np.ones(n)}
    refuses(name, n, 12, call=lambda: Shards.from_groups(X, given["y"], given["groups"], {"weight": given["weight"]}))


@pytest.mark.parametrize("X", [
    np.ones(12), np.ones((12, 2, 2)), 3.0, [], "rows", sp.coo_array(np.ones(12)), np.empty((12, 0)),
    np.empty((0, 3)),
], ids=["1-d", "3-d", "number", "empty", "string", "sparse 1-d", "no columns", "no rows"])  # fmt: skip
def test_x_must_be_a_table(X):
    _, y, groups = table()
    refuses("X", call=lambda: Shards.from_groups(X, y, groups))


@pytest.mark.parametrize("row", [["a", "b"], [{}, 1.0], [1j, 2.0]], ids=["text", "object", "complex"])
def test_features_must_be_numbers(row):
    _, y, groups = table()
    refuses("X", "numbers", call=lambda: Shards.from_groups([row] * 12, y, groups))


@pytest.mark.parametrize(
    "y", [["a"] * 12, [None] * 12, [1j] * 12, np.ones((12, 1))], ids=["text", "none", "complex", "2-d"]
)
def test_targets_must_be_numbers(y):
    X, _, groups = table()
    refuses("y", call=lambda: Shards.from_groups(X, y, groups))


@quick
@given(st.one_of(
    st.integers(-5, 1), st.integers(13, 10**6), st.floats(2.1, 2.9),
    st.sampled_from([*NOT_NUMBERS, "3", None, True, [3]]),
))  # fmt: skip
def test_parties_must_be_a_whole_number_up_to_the_rows(parties):
    X, y, _ = table()
    refuses("parties", parties, call=lambda: Shards.split(X, y, parties))


@pytest.mark.parametrize("skew", [
    ("labels", 1.0), ("label", 0), ("label", -1.0), ("size", np.nan), ("size", np.inf), ("size", "much"),
    "label", ("label",), 3, ("label", None),
], ids=str)  # fmt: skip
def test_skew_must_be_a_kind_and_a_concentration(skew):
    X, y, _ = table()
    refuses("skew", skew, call=lambda: Shards.split(X, y, 3, skew=skew))


def test_every_party_needs_a_row():
    X, y, _ = table()
    refuses("party b has no rows", call=lambda: Shards(X, y, np.array([0, 5, 5, 12]), ("a", "b", "c")))
    refuses("no parts", call=lambda: Shards.from_parts([]))
    refuses("party 1", call=lambda: Shards.from_parts([(X, y), (X[:0], y[:0])]))


@pytest.mark.parametrize("offsets", [[1, 12], [0, 11], [0, 8, 4, 12], [0, 13]], ids=str)
def test_offsets_must_cover_the_rows(offsets):
    X, y, _ = table()
    names = tuple("abc"[: len(offsets) - 1])
    refuses(offsets, call=lambda: Shards(X, y, np.array(offsets), names))


def test_names_are_one_a_party():
    X, y, _ = table()
    refuses("2 names for 1", call=lambda: Shards(X, y, np.array([0, 12]), ("a", "b")))


def test_parts_must_have_the_same_features():
    X, y, _ = table()
    refuses("3", "2", call=lambda: Shards.from_parts([(X, y), (X[:, :2], y)]))


@quick
@given(st.one_of(st.floats(max_value=0), not_finite, st.sampled_from(["1", None])))
def test_row_norm_must_be_above_0(norm):
    X, y, groups = table()
    refuses(norm, call=lambda: Shards.from_groups(X, y, groups).clip_rows(norm))


# --- problems -------------------------------------------------------------------------------------------------------


@quick
@given(st.floats(-1e6, 1e6).filter(lambda v: v not in (-1, 1)), st.integers(0, 11))
@example(0.0, 0)
def test_sign_losses_take_two_labels(label, i):
    X, y, groups = table()
    y[i] = label
    shards = Shards.from_groups(X, y, groups)
    for loss in (losses.Logistic(), losses.Hinge(), losses.SquaredHinge(), losses.SmoothedHinge()):
        refuses("a label", type(loss).__name__, "-1 and 1", call=lambda loss=loss: Problem(shards, loss))


@quick
@given(st.one_of(st.integers(-100, -1), st.integers(4, 100), st.floats(0.1, 0.9)))
def test_class_losses_take_the_classes(label):
    X, y, groups = table()
    shards = Shards.from_groups(X, np.where(y > 0, label, 0), groups)
    for loss in (losses.Multinomial(4), losses.NoisyLabels(losses.Multinomial(4), 1.0)):
        refuses("a label", "0 to 3", call=lambda loss=loss: Problem(shards, loss))


def test_one_party_is_not_a_network():
    X, y, _ = table()
    alone = Problem(Shards.from_groups(X, y, ["all"] * 12), losses.Logistic())
    refuses("1 party", "at least 2", call=lambda: simulate(alone, None, REGISTRY["ADMM"](rounds=1)))


@quick
@given(st.integers(2, 12).filter(lambda n: n != 3))
def test_the_graph_must_have_an_agent_a_party(n):
    p = problem()
    refuses(n, 3, call=lambda: p.public(Graph.complete(n)))
    refuses(n, 3, call=lambda: simulate(p, Graph.complete(n), REGISTRY["ADMM"](rounds=1)))


@pytest.mark.parametrize(("field", "value"), [
    ("weighting", "party"), ("weighting", None), ("loss", "logistic"), ("loss", losses.Logistic), ("loss", None),
    ("penalty", "l2"), ("penalty", penalties.L2), ("penalty", 0.1),
])  # fmt: skip
def test_a_problem_takes_our_losses_penalties_and_weightings(field, value):
    X, y, groups = table()
    given = {"loss": losses.Logistic(), "penalty": None, "weighting": "rows", field: value}
    refuses(field, repr(value), call=lambda: Problem(Shards.from_groups(X, y, groups), **given))


def test_a_problem_needs_shards():
    X, y, _ = table()
    refuses("shards", call=lambda: Problem((X, y), losses.Logistic()))


@quick
@given(st.floats(-10, 0, exclude_max=True), st.floats(0.1, 5))
def test_weights_and_epsilons_of_rows_have_lower_bounds(weight, smallest):
    X, y, groups = table()
    low = np.full(12, smallest)
    low[5] = smallest * 0.9
    for columns, loss, value in (
        ({"weight": np.full(12, weight)}, losses.Squared(), weight),
        ({"epsilon": low}, losses.NoisyLabels(losses.Logistic(), epsilon_min=smallest), low[5]),
    ):
        shards = Shards.from_groups(X, y, groups, columns)
        refuses(f"{value:g}", call=lambda shards=shards, loss=loss: Problem(shards, loss))
    bare = Shards.from_groups(X, y, groups)
    refuses("column 'epsilon'", call=lambda: Problem(bare, losses.NoisyLabels(losses.Logistic(), epsilon_min=1.0)))


@quick
@given(st.one_of(st.floats(-1e9, 0, exclude_max=True), st.floats(1, 1e9, exclude_min=True)), st.integers(0, 11))
def test_shares_of_rows_are_within_0_and_1(share, place):
    X, y, groups = table()
    shares = np.full(12, 0.5)
    shares[place] = share
    refuses(
        "share", "0 and 1", call=lambda: Problem(Shards.from_groups(X, y, groups, {"share": shares}), losses.Squared())
    )
    box = losses.BlackBox(function=lambda beta, x, y: 0.0, coefficients=1, by_row=True)
    whole = Shards.from_groups(X, y, groups, {"share": np.ones(12)})
    refuses("BlackBox", call=lambda: Problem(whole, box))


# --- parameters -----------------------------------------------------------------------------------------------------

WRONG = st.one_of(below_zero, not_finite, st.sampled_from(["1", None, [1.0]]))


@quick
@given(st.one_of(WRONG, st.just(0)))
def test_parameters_of_losses(value):
    refuses("Huber", value, call=lambda: losses.Huber(value))
    refuses("SmoothedHinge", value, call=lambda: losses.SmoothedHinge(value))
    refuses("Quantile", value, call=lambda: losses.Quantile(value))
    refuses("Multinomial", value, call=lambda: losses.Multinomial(value))
    if value is not None:
        refuses("NoisyLabels", value, call=lambda: losses.NoisyLabels(losses.Logistic(), value))
        refuses("NoisyLabels", value, call=lambda: losses.NoisyLabels(losses.Logistic(), epsilon_min=value))


@quick
@given(st.floats(1, 1e6))
def test_quantile_levels_lie_below_1(level):
    refuses("Quantile", level, call=lambda: losses.Quantile(level))


@quick
@given(st.one_of(st.integers(-9, 1), st.floats(2.1, 2.9)))
def test_classes_are_whole_numbers_from_2(classes):
    refuses("Multinomial", classes, call=lambda: losses.Multinomial(classes))


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Hinge(), losses.SquaredHinge(), losses.Absolute()], ids=repr)
def test_labels_are_corrected_for_logistic_losses_only(loss):
    refuses(type(loss).__name__, "Logistic and Multinomial", call=lambda: losses.NoisyLabels(loss, 1.0))


def test_one_epsilon_or_one_a_row():
    refuses("epsilon", call=lambda: losses.NoisyLabels(losses.Logistic()))
    refuses("epsilon", call=lambda: losses.NoisyLabels(losses.Logistic(), 1.0, 1.0))


@pytest.mark.parametrize("step", [0, -1.0, np.nan])
def test_a_prox_needs_a_step(step):
    refuses("step", step, call=lambda: losses.Logistic().prox(0.0, 1.0, step))


@quick
@given(WRONG)
def test_strengths_of_penalties(value):
    for kind in (penalties.L1, penalties.L2, penalties.ElasticNet, penalties.MCP, penalties.SCAD):
        refuses(kind.__name__, value, call=lambda kind=kind: kind(value))
    refuses("ElasticNet", value, call=lambda: penalties.ElasticNet(1.0, value))
    refuses("MCP", value, call=lambda: penalties.MCP(1.0, value))
    refuses("SCAD", value, call=lambda: penalties.SCAD(1.0, value))


@quick
@given(st.floats(1, 1e6, exclude_min=True), st.floats(0, 1), st.floats(0, 2))
def test_shapes_of_penalties(ratio, flat, low):
    refuses("ElasticNet", ratio, call=lambda: penalties.ElasticNet(1.0, ratio))
    refuses("MCP", flat, call=lambda: penalties.MCP(1.0, flat))
    refuses("SCAD", low, call=lambda: penalties.SCAD(1.0, low))


def numeric(kind):
    """Parameters of an algorithm whose default is a number, but for flags."""
    return [f.name for f in fields(kind) if type(f.default) in (int, float) and f.name != "rounds"]


CASES = [(kind, name) for kind in REGISTRY.values() for name in numeric(kind)]


def suited(kind):
    """A problem that the method takes with its default parameters."""
    for loss in (losses.Logistic(), losses.NoisyLabels(losses.Logistic(), 2.0)):
        p = problem(loss)
        public = p.public(Graph.complete(3))
        public = public.as_one() if kind.topology == "central" else public
        try:
            kind(rounds=2).check(public)
        except ValueError:
            continue
        return p
    raise AssertionError(f"{kind.__name__} takes none of the problems of this test")


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind.__name__}-{name}" for kind, name in CASES])
@pytest.mark.parametrize("value", [-1, -0.5, np.nan, -np.inf, 0], ids=str)
def test_parameters_of_algorithms(kind, name, value):
    """Refused before a round is run, whether by the constructor or by the check against the problem."""
    if value == 0 and name not in ("coupling", "step", "tolerance", "clip", "growth"):
        return  # 0 switches noise, decay or damping off
    p = suited(kind)
    graph = None if kind.topology == "central" else Graph.complete(3)
    refuses(kind.__name__, name, value, call=lambda: simulate(p, graph, kind(**{"rounds": 2, name: value})))


@pytest.mark.parametrize("kind", REGISTRY.values(), ids=REGISTRY)
@pytest.mark.parametrize("rounds", [0, -3, 1.5, "9", True], ids=str)
def test_rounds_of_algorithms(kind, rounds):
    p = suited(kind)
    graph = None if kind.topology == "central" else Graph.complete(3)
    refuses(kind.__name__, "rounds", rounds, call=lambda: simulate(p, graph, kind(rounds=rounds)))


@pytest.mark.parametrize("seeds", [[], [-1], [0.5], [True], ["0"]], ids=str)
def test_seeds_are_whole_numbers(seeds):
    refuses("seeds", call=lambda: simulate(problem(), Graph.complete(3), REGISTRY["ADMM"](rounds=1), seeds))


@pytest.mark.parametrize("value", [[1.0, 2.0], [[1.0]], [1.0] * 4], ids=str)
def test_a_parameter_an_agent_needs_one_for_each(value):
    public = problem().public(Graph.complete(3))
    refuses(np.shape(value), "(3,)", call=lambda: public.each(value))
