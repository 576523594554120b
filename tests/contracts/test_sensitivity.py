"""Sensitivities by brute force: no row, no state and no setting moves an answer further than what is charged for it.

Rows are corners, zeros, flipped labels, extremes of the doubles and random ones; states are ordinary and hostile ones,
as a lying neighbour can make them. Every answer is compared with every other: any two of them are neighbours.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import confide
from confide.algorithms import Ask
from confide.problem.questions import Counts, Differences, Gradient, Moments, OuterProducts, PairDistances, Standardised

L, P, A = confide.losses, confide.penalties, confide.algorithms
FEATURES, SIZES = 3, (1, 4, 7)  # ragged; an agent with a single row shows a row's own bound
LOSSES = (
    L.Logistic(), L.Squared(), L.Huber(0.5), L.Absolute(), L.Quantile(0.2), L.Hinge(), L.SquaredHinge(),
    L.SmoothedHinge(0.5), L.Multinomial(3), L.NoisyLabels(L.Logistic(), 0.5), L.NoisyLabels(L.Multinomial(3), 2.0),
)  # fmt: skip
POINTS = (0.0, 1.0, -30.0, 2.0**52, -(2.0**52) - 1, 1e-310, 1e154, 5e307, -1.7e308, np.inf, -np.inf, np.nan)


def targets(loss):
    if loss.labels == "sign":
        return (1.0, -1.0)
    if loss.labels == "class":
        return tuple(float(c) for c in range(loss.outputs))
    return (0.0, 1.0, -1e300, 1.7e308, 5e-324)


def candidates(loss, clipped):
    """(x, y) to put in the place of the row: `clipped` rows are within norm 1 as a schema would have them."""
    unit = np.eye(FEATURES)
    rows = [*unit, *-unit, np.zeros(FEATURES), np.full(FEATURES, 3**-0.5), 1e-310 * unit[0], 1e-170 * unit[1]]
    if not clipped:
        rows += [1e300 * unit[0], 1.7e308 * np.ones(FEATURES), -1e155 * unit[2], np.array([1e-170, 0, 1e160])]
    rows += list(np.random.default_rng(3).normal(size=(3, FEATURES)))
    return [(x, y) for x in rows for y in targets(loss)]


def states(agents, width):
    """(S, agents, width): every entry the same, entries of mixed signs and sizes, and ordinary ones."""
    rng = np.random.default_rng(5)
    same = [np.full((agents, width), p) for p in POINTS]
    mixed = [rng.choice(POINTS[:9], size=(agents, width)) for _ in range(4)]
    return np.array([*same, *mixed, *rng.normal(size=(3, agents, width))])


def problem(loss, x, y, *, k, clipped, sparse=False, intercept=False, weighting="parties", penalty=None, share=None):
    """The same rows everywhere but for the first one of agent k, `share` being that row's."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(sum(SIZES), FEATURES)) / 2
    Y = rng.choice(targets(loss)[:2], size=len(X))
    first = sum(SIZES[:k])
    X[first], Y[first] = x, y
    columns = {} if share is None else {"share": np.where(np.arange(len(X)) == first, share, rng.uniform(size=len(X)))}
    shards = confide.Shards.from_groups(sp.csr_array(X) if sparse else X, Y, np.repeat(np.arange(3), SIZES), columns)
    return confide.Problem(shards.clip_rows(1.0) if clipped else shards, loss, penalty, weighting, intercept)


def spread(answers):
    """The largest distance between two of the answers (n, S, numbers), for each state: (S,)."""
    assert np.all(np.isfinite(answers))
    worst = np.zeros(answers.shape[1])
    for a in answers:
        worst = np.maximum(worst, np.linalg.norm(answers - a, axis=2).max(axis=0))
    return worst


def asked(question, tasks, k, *at):
    """What the engine hands to the noise for agent k, at every task: (tasks, S, numbers); and the claim."""
    spy, public = Spy(), tasks[0].public(None).at(k)
    for task in tasks:
        Ask(question, task.only(k), public, spy, np.full((1, 1), 1.0), 1)(*at)
    return np.array(spy.values)[:, :, 0], float(question.sensitivity(public)[0, 0])


class Spy:
    """Noise that keeps what it is given and releases something else, always the same."""

    def __init__(self, release=0.0):
        self.values, self.scales, self.release = [], [], release

    def gaussian(self, name, value, scale):
        self.values.append(np.array(value))
        self.scales.append(np.broadcast_to(scale, (*value.shape[:2], 1))[..., 0])
        return np.full(value.shape, self.release)

    def public_normal(self, name, width):
        return np.random.default_rng(9).normal(size=(1, 1, width))

    def gamma_norm(self, name, width):
        raise AssertionError("not a Gaussian method")


@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: repr(x).replace("confide.", "")[:40])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighting", ["parties", "rows"])
def test_no_gradient_moves_further_than_charged(loss, intercept, weighting, caplog):
    width = loss.outputs * (FEATURES + intercept)
    at = states(1, width)
    for clipped, sparse, k in itertools.product([False, True], [False, True], range(3)):
        longest = loss.slope_bound * math.sqrt(1 + intercept) if clipped else math.inf
        options = {"k": k, "clipped": clipped, "sparse": sparse, "intercept": intercept, "weighting": weighting}
        tasks = [problem(loss, x, y, **options) for x, y in candidates(loss, clipped)]
        for bound in (1e-3, 1.0, longest):
            if np.isfinite(bound):
                answers, claim = asked(Gradient(np.full((1, 1), bound)), tasks, k, at)
                assert np.all(spread(answers) <= claim)
    assert not caplog.records  # the last projection before the noise never acts


SHARES = (0.0, 5e-324, 0.3, 1.0)  # of a row that counts whole at most


@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: repr(x).replace("confide.", "")[:40])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_rows_share_is_a_part_of_it(loss, intercept, caplog):
    """Rows are replaced together with their share, and move an answer no further; a whole row moves it as far."""
    theta = states(1, loss.outputs * (FEATURES + intercept))
    flat, longest = np.zeros((len(theta), 1, FEATURES)), loss.slope_bound * math.sqrt(1 + intercept)
    for sparse, k in ((False, 0), (True, 1)):
        options = {"k": k, "clipped": True, "sparse": sparse, "intercept": intercept}
        tasks = [problem(loss, x, y, share=s, **options) for x, y in candidates(loss, True)[::3] for s in SHARES]
        assert tasks[0].public(None).row_norm == 1.0  # as without shares
        for bound in {0.1, min(longest, 1.0)}:
            clip = np.full((1, 1), bound)
            for question, at in (
                (Gradient(clip), (theta,)),
                (Differences(clip, 1, 1e-3), (theta[:, None], -theta[:, None])),
                (Standardised(clip, np.ones((1, 1))), (theta, flat, flat + 2.0)),
            ):
                answers, claim = asked(question, tasks, k, *at)
                assert np.all(spread(answers) <= claim)
    assert not caplog.records


def test_the_gradients_bound_is_attained_by_whole_rows():
    question, point = Gradient(np.full((1, 1), 0.1)), np.zeros((1, 1, FEATURES))
    tasks = [problem(L.Logistic(), x, y, k=1, clipped=True, share=s)
             for x, y in candidates(L.Logistic(), True) for s in SHARES]  # fmt: skip
    answers, claim = asked(question, tasks, 1, point)
    assert spread(answers) > 0.99 * claim
    halves = [problem(L.Hinge(), x, y, k=1, clipped=True, share=0.5) for x, y in candidates(L.Hinge(), True)]
    answers, claim = asked(Gradient(np.ones((1, 1))), halves, 1, point)
    assert spread(answers) == pytest.approx(claim / 2, rel=1e-9)


def test_the_gradients_bound_is_attained():
    """A bound that nothing comes near would pass every test above."""
    for loss in (L.Logistic(), L.Squared(), L.Hinge(), L.Quantile(0.5), L.Multinomial(3)):
        question = Gradient(np.full((1, 1), 0.1))
        point = np.full((1, 1, loss.outputs * FEATURES), 0.0)
        tasks = [problem(loss, x, y, k=1, clipped=False) for x, y in candidates(loss, clipped=False)]
        answers, claim = asked(question, tasks, 1, point)
        assert spread(answers) > 0.99 * claim


@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: repr(x).replace("confide.", "")[:40])
def test_no_difference_moves_further_than_charged(loss):
    width = loss.outputs * FEATURES
    rng = np.random.default_rng(2)
    plus = np.stack([states(1, width), states(1, width) + rng.normal(size=(19, 1, width))], axis=1)
    minus = np.stack([-states(1, width), states(1, width)], axis=1)  # (S, J, A, W)
    question = Differences(np.full((1, 1), 0.5), 2, 1e-3)
    for k in range(3):
        tasks = [problem(loss, x, y, k=k, clipped=False) for x, y in candidates(loss, clipped=False)]
        answers, claim = asked(question, tasks, k, plus, minus)
        assert np.all(spread(answers) <= claim)


def test_moments_and_counts_move_as_charged():
    norm = np.full((1, 1), 0.7)
    questions = (OuterProducts(norm), OuterProducts(norm, rows_alike=True), Counts(np.ones((1, 1)), (-1.0, 0.0, 0.5)))
    for question, k, weighting in itertools.product(questions, range(3), ["parties", "rows"]):
        tasks = [problem(L.Squared(), x, y, k=k, clipped=False, weighting=weighting)
                 for x, y in candidates(L.Squared(), clipped=False)]  # fmt: skip
        answers, claim = asked(question, tasks, k, 1)
        assert 0.99 * claim < spread(answers) <= claim


def plane():
    """Rows in the plane of two features, among them the two whose moments are farthest apart: xᵀx' = -1/8."""
    gap, both = math.acos(-1 / 8), math.pi / 2
    angles = [*np.linspace(0, 2 * math.pi, 24), (both + gap) / 2, (both - gap) / 2]
    return [(r * np.array([math.cos(a), math.sin(a), 0.0]), 0.0) for a in angles for r in (0.5, 0.7, 3.0)]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", [Moments, PairDistances])
def test_the_scale_of_features_moves_as_charged(kind, sparse):
    question = kind(np.full((1, 1), 0.7))
    same = np.random.default_rng(1).normal(size=(sum(SIZES), FEATURES)) / 2  # a row may equal the one it is paired with
    rows = [*plane(), *candidates(L.Squared(), clipped=False), *((x, 0.0) for x in same)]
    for k, weighting in itertools.product(range(3), ["parties", "rows"]):
        tasks = [problem(L.Squared(), x, y, k=k, clipped=False, sparse=sparse, weighting=weighting) for x, y in rows]
        answers, claim = asked(question, tasks, k, 1)
        assert spread(answers) <= claim
        alone = isinstance(question, PairDistances) and SIZES[k] == 1  # a row without another to be far from
        assert alone or spread(answers) > 0.99 * claim


def test_no_two_rows_have_moments_further_apart():
    """The claim's constant, 9/(4√2) in the unit ball, by a search that knows nothing of the proof."""

    def apart(z):
        x, y = (v / max(1.0, np.linalg.norm(v)) for v in np.split(z, 2))
        return -np.hypot(np.linalg.norm(x - y) / 2, np.linalg.norm(x * x - y * y))

    rng = np.random.default_rng(0)
    public = problem(L.Squared(), np.zeros(3), 0.0, k=0, clipped=True).public(None).at(0)
    claim = Moments(np.ones((1, 1))).exact_sensitivity(public).item()
    best = [max(-minimize(apart, 2 * rng.normal(size=2 * p), method="Nelder-Mead", options={"maxiter": 4000}).fun
                for _ in range(8)) for p in range(2, 6)]  # fmt: skip
    assert max(best) <= claim * (1 + 1e-12) and best[0] > claim * (1 - 1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: repr(x).replace("confide.", "")[:40])
@pytest.mark.parametrize("intercept", [False, True])
def test_no_standardised_gradient_moves_further_than_charged(loss, intercept, caplog):
    theta = states(1, loss.outputs * (FEATURES + intercept))
    rng = np.random.default_rng(6)
    centres = np.concatenate([np.zeros((4, 1, 3)), rng.choice(POINTS, size=(8, 1, 3)), rng.normal(size=(7, 1, 3)) / 3])
    stretches = np.concatenate([np.ones((2, 1, 3)), np.full((2, 1, 3), 256.0), rng.choice(POINTS, size=(8, 1, 3)),
                                10.0 ** rng.uniform(-3, 2, size=(7, 1, 3))])  # fmt: skip
    for sparse, k in itertools.product([False, True], range(3)):
        options = {"k": k, "clipped": True, "sparse": sparse, "intercept": intercept, "weighting": "rows"}
        tasks = [problem(loss, x, y, **options) for x, y in candidates(loss, clipped=True)]
        for bound in (1e-3, 0.5):
            question = Standardised(np.full((1, 1), bound), np.ones((1, 1)))
            answers, claim = asked(question, tasks, k, theta, centres, stretches)
            assert np.all(spread(answers) <= claim)
    assert not caplog.records


@pytest.mark.parametrize("intercept", [False, True])
def test_the_standardised_bound_is_attained(intercept):
    """By far rows on both sides of the centre, and by rows at distance 1 of it."""
    for stretch in (1.0, 50.0):
        question = Standardised(np.full((1, 1), 0.1), np.ones((1, 1)))
        tasks = [problem(L.Logistic(), x, y, k=1, clipped=True, intercept=intercept)
                 for x, y in candidates(L.Logistic(), clipped=True)]  # fmt: skip
        at = np.zeros((1, 1, FEATURES + intercept)), np.zeros((1, 1, 3)), np.full((1, 1, 3), stretch)
        answers, claim = asked(question, tasks, 1, *at)
        # far from the centre the ½ shrinks beside the row, as ω does: only without an intercept is nothing lost
        assert spread(answers) > (0.99 if stretch == 1.0 or not intercept else 0.88) * claim


# --- methods ----------------------------------------------------------------------------------------------------------

ASKING = {"rounds": 3, "noise": 1.0, "clip": 0.5}
METHODS = {
    "LinearizedADMM": A.LinearizedADMM(**ASKING), "CDPADMM": A.CDPADMM(**ASKING), "DDPADMM": A.DDPADMM(**ASKING),
    "DPADMM": A.DPADMM(**ASKING), "FDPADMM": A.FDPADMM(**ASKING, at_average=True), "DPSGD": A.DPSGD(**ASKING),
    "PrivatePDML": A.PrivatePDML(**ASKING), "PrivateZeroth": A.PrivateZeroth(**ASKING, directions=2, inner_steps=2),
    "SecondMoment": A.SecondMoment(noise=1.0, norm=0.5), "PVP": A.PVP(rounds=3, noise=1.0, tolerance=1e-7),
    "JointDescent": A.JointDescent(**ASKING), "JointMoment": A.JointMoment(noise=1.0, norm=0.5),
    "JointTally": A.JointTally(noise=1.0, edges=(-0.5, 0.5, 1.5)),
}  # fmt: skip
GRAPH = confide.Graph.path(3)


def test_every_method_of_gaussian_noise_is_among_them():
    kinds = {**A.REGISTRY, **A.PHASES, **A.SUMMED}
    gaussian = {name for name, kind in kinds.items() if issubclass(kind, A.GaussianRelease)}
    assert gaussian - {"PDML"} == set(METHODS)  # PDML claims nothing for rows


def settings(name):
    """Losses, penalties, intercepts, weightings and prox: all pairs of them are covered."""
    options = {
        "loss": [L.NoisyLabels(L.Logistic(), 0.5)] if name == "PrivatePDML" else
                [L.Logistic(), L.Huber(0.5)] if name == "PVP" else
                [L.Logistic(), L.Squared(), L.Quantile(0.2), L.Multinomial(3)],
        "penalty": [P.L2(10.0), P.Zero()] if name == "PVP" else [P.L2(10.0), P.Zero(), P.L1(0.1), P.MCP(0.1)],
        "intercept": [True, False], "weighting": ["parties", "rows"], "proximal": [True, False],
    }  # fmt: skip
    left = {(p, q) for p, q in itertools.combinations([(k, i) for k, v in options.items() for i in range(len(v))], 2)
            if p[0] != q[0]}  # fmt: skip
    everything = [tuple(enumerate_(options, i)) for i in itertools.product(*(range(len(v)) for v in options.values()))]
    while left:  # greedy cover of all pairs
        best = max(everything, key=lambda one: sum(pair in left for pair in itertools.combinations(one, 2)))
        left -= set(itertools.combinations(best, 2))
        yield {k: options[k][i] for k, i in best}


def enumerate_(options, indices):
    return zip(options, indices, strict=True)


HEARD = (0.3, 2.0**52, 5e307, -1.7e308)


@pytest.mark.parametrize("name", METHODS)
def test_no_method_lets_rows_past_its_noise(name, caplog):
    """What enters the noise moves within the claim; what leaves is the same for other rows once the noise is the same.

    The neighbours say what they like: each round is run from states that hostile messages lead to.
    """
    for chosen in settings(name):
        proximal = chosen.pop("proximal")
        method = METHODS[name]
        if hasattr(method, "proximal"):
            method = replace(method, proximal=proximal)
        loss = chosen["loss"]
        rows = candidates(loss, clipped=True)[:: 3 if name == "PVP" else 1]
        tasks = [problem(loss, x, y, k=1, clipped=True, **{k: v for k, v in chosen.items() if k != "loss"})
                 for x, y in rows]  # fmt: skip
        for heard in HEARD[:: 2 if name in ("PVP", "PrivateZeroth") else 1]:
            check(method, tasks, heard)
    assert not caplog.records


def check(method, tasks, heard):
    public = tasks[0].public(GRAPH).at(1)
    radius = method.message_bound(public)
    events = method.events(public)
    widths = method.schedule(public).widths
    shared = math.sqrt(method.honest(public)) if isinstance(method, A.SummedMethod) else 1.0  # of the noise in the sum
    state = method.init(public)
    blocks = [task.only(1) for task in tasks]
    for t in range(1, method.rounds + 1):
        seen, sent = [], set()
        for block in blocks:
            spy = Spy(release=0.01 * t)
            message = method.local(t, state, block, public, spy)
            seen.append(np.concatenate([v[0] for v in spy.values], axis=-1))
            assert all(np.all(shared * s >= np.asarray(events[t - 1][0].scale) * (1 - 1e-12)) for s in spy.scales)
            sent.add(message.tobytes())
        claim = float(np.ravel(events[t - 1][0].sensitivity)[0])
        assert np.all(spread(np.array(seen)) <= claim), (method, t, spread(np.array(seen)), claim)
        assert len(sent) == 1  # nothing but the noised answer told the rows apart
        told = np.full((1, 1, int(widths[t - 1])), heard)
        if abs(heard) > radius / math.sqrt(widths[t - 1]):  # refused by a receiver: the largest that is let through
            told = np.sign(told) * radius / math.sqrt(widths[t - 1])
        with np.errstate(all="ignore"):
            state = method.absorb(t, state, message, told, public)


@pytest.mark.parametrize("name", METHODS)
def test_the_methods_claims_are_nearly_attained(name):
    """Somewhere in the settings above; else the claim could be anything."""
    best = 0.0
    for chosen in settings(name):
        chosen.pop("proximal")
        loss = chosen["loss"]
        tasks = [problem(loss, x, y, k=1, clipped=True, **{k: v for k, v in chosen.items() if k != "loss"})
                 for x, y in candidates(loss, clipped=True)]  # fmt: skip
        public, method = tasks[0].public(GRAPH).at(1), METHODS[name]
        seen = []
        for task in tasks:
            spy = Spy()
            method.local(1, method.init(public), task.only(1), public, spy)
            seen.append(np.concatenate([v[0] for v in spy.values], axis=-1))
        claim = float(np.ravel(method.events(public)[0][0].sensitivity)[0])
        best = max(best, float(spread(np.array(seen))[0]) / claim)
    assert best > (0.5 if name in ("PVP", "PrivateZeroth") else 0.95)
