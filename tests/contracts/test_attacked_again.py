"""A second round of attacks: what is called proven, or charged, although it should not be. Each as it was found."""

import math
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm

import confide
from confide.algorithms.base import Consensus, at_home, row_length
from confide.algorithms.gaussian import GaussianRelease
from confide.privacy import Gaussian, discrete_gaussian
from confide.privacy.secure import SecureNoise, charge
from confide.problem.questions import Gradient, Question
from confide.runs.party import Party

A, L = confide.algorithms, confide.losses
PAIR = confide.Graph.path(2)


def task(X, y, loss=None, row_norm=None, **how):
    """Two parties with half of the rows each."""
    shards = confide.Shards.from_groups(X, y, np.repeat([0, 1], len(y) // 2))
    shards = shards if row_norm is None else shards.clip_rows(row_norm)
    return confide.Problem(shards, loss if loss is not None else L.Logistic(), **how)


def usual(row_norm=1.0, loss=None, features=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, features))
    return task(X, np.where(rng.random(40) < 0.5, 1.0, -1.0), loss, row_norm)


def label(method, problem):
    return method.guarantee(problem.public(PAIR)).label


def one_message(method, problem):
    """What party 0 sends first, with secure noise."""
    return np.frombuffer(Party(0, method, problem.public(PAIR), problem.only(0), SecureNoise()).send())


def refused(method, problem, draw=one_message):
    """Whether the method is not called proven, or its first message is refused before it exists."""
    if label(method, problem) != "proven":
        return True
    try:
        draw(method, problem)
    except (ValueError, TypeError, RuntimeError):
        return True
    return False


# --- methods of one's own ---------------------------------------------------------------------------------------------


def test_a_question_is_charged_at_the_bound_it_is_answered_with():
    @dataclass(frozen=True, eq=False)
    class Wide(A.DPSGD):
        def question(self, t, public):
            return Gradient(public.each(100.0))  # `clip` stays 1

    X, y = np.zeros((40, 3)), np.ones(40)
    X[0, 0] = 1e6
    one, other = task(X, y), task(X, np.where(np.arange(40) == 0, -1.0, 1.0))
    method, public, zero = Wide(rounds=1, clip=1.0, noise=1.0), one.public(PAIR), np.zeros((1, 2, 3))
    moved = [method.question(1, public).answer(p.block, zero)[0, 0] for p in (one, other)]
    assert label(method, one) != "proven" or np.linalg.norm(moved[0] - moved[1]) <= method.sensitivity(1, public)[0, 0]


def test_a_question_that_is_not_on_the_list_proves_nothing():
    class FirstRow(Question):
        def numbers(self, public):
            return public.width

        def exact_sensitivity(self, public):
            return np.zeros_like(self.bound)

        def exact_largest(self, public):
            return np.full_like(self.bound, 1e9)

        def answer(self, block, *at):
            return np.array(block.shards.X[:1])[None]

    @dataclass(frozen=True, eq=False)
    class Own(A.DPSGD):
        def question(self, t, public):
            return FirstRow(self.enforced_bound(public))

    assert label(Own(rounds=1, clip=1.0, noise=1e-9), usual()) != "proven"


def test_more_differences_than_are_charged_are_refused():
    @dataclass(frozen=True, eq=False)
    class More(A.PrivateZeroth):
        def message(self, t, state, ask, public):
            turn = np.zeros((1, 400, 1, public.width))
            turn[..., 0] = self.smoothing
            d = ask(state.primal[:, None] + turn, state.primal[:, None] - turn)
            return np.repeat(d.mean(axis=2, keepdims=True), public.width, axis=2)

    assert refused(More(rounds=1, directions=1, clip=1.0, noise=1.0), usual())


def test_two_points_under_one_noise_are_refused():
    @dataclass(frozen=True, eq=False)
    class Stack(A.DPSGD):
        def message(self, t, state, ask, public):
            both = ask(np.concatenate([state.primal, state.primal + 1.0]))  # as if there were two seeds
            return both[:1] - both[1:]

    def draw(method, problem):
        return confide.simulate(problem, PAIR, method, record=())

    assert refused(Stack(rounds=1, clip=1.0, noise=1e6), usual(), draw)


def test_a_point_with_an_intercept_that_the_problem_has_not_is_refused():
    @dataclass(frozen=True, eq=False)
    class Longer(A.DPSGD):
        def message(self, t, state, ask, public):
            return ask(np.concatenate([state.primal, np.zeros((1, 1, 1))], axis=2))[..., 1:]

    assert refused(Longer(rounds=1, clip=1.0, noise=1.0), task(np.zeros((40, 3)), np.full(40, 1e6), L.Squared()))


def test_nobody_asks_more_often_than_is_charged():
    @dataclass(frozen=True, eq=False)
    class Often(A.DPSGD):
        def asks(self, t):
            return 1.5

        def message(self, t, state, ask, public):
            return np.mean([ask(state.primal) for _ in range(50)], axis=0)

    assert refused(Often(rounds=1, clip=1.0, noise=1.0), usual())


def test_noise_of_another_shape_is_refused():
    @dataclass(frozen=True, eq=False)
    class Uneven(A.DPSGD):
        def noise_scale(self, t, public):
            return np.concatenate([public.each(self.noise), np.full((len(public.agents), public.width - 1), 1e-9)], 1)

    def draw(method, problem):
        return confide.simulate(problem, PAIR, method, record=())

    assert refused(Uneven(rounds=1, clip=1.0, noise=1.0), usual(), draw)


@pytest.mark.parametrize("kind", [A.PVP, A.DVP, A.MADMM, A.RADMM, A.MRADMM])
def test_a_local_of_ones_own_is_not_proven_where_a_method_minimises(kind):
    @dataclass(frozen=True, eq=False)
    class Silent(kind):
        def local(self, t, state, block, public, noise):
            return self.minimise(Consensus(*state[:3]), block, public, self.eta(t, public))

    noise = {"noise": 1.0} if kind is A.PVP else {"noise_rate": 1.0, "release_noise": 0.1}
    assert label(kind(rounds=1, **noise), usual()) == "proven"
    assert label(Silent(rounds=1, **noise), usual()) != "proven"


@pytest.mark.parametrize("name", ["sensitivity", "convexity", "residual", "minimise"])
def test_nor_is_a_sensitivity_of_ones_own(name):
    overridden = {"sensitivity": lambda self, t, public: np.full((len(public.agents), 1), 1e-12)}
    overridden["convexity"] = lambda self, t, public: np.full((len(public.agents), 1), 1e6)
    overridden["residual"] = lambda self, t, public: np.zeros((len(public.agents), 1))
    overridden["minimise"] = lambda self, *given: 1e6 * A.PVP.minimise(self, *given)
    own = type("Own", (A.PVP,), {name: overridden[name]})
    assert label(own(rounds=1, noise=1.0), usual()) != "proven"


@pytest.mark.parametrize("called", ["Own", "PVP"])
def test_nor_is_one_that_names_our_module_as_its_own(called):
    """As a class does that one of our functions made, or that was copied with its names."""

    def sensitivity(self, t, public):
        return np.full((len(public.agents), 1), 1e-12)

    own = type("Own", (A.PVP,), {"sensitivity": sensitivity, "__module__": A.PVP.__module__, "__qualname__": called})
    assert not at_home(own) and label(own(rounds=1, noise=1.0), usual()) != "proven"
    gentle = type("Logistic", (L.Logistic,), {"slope_bound": 1e-3, "__module__": L.Logistic.__module__})
    assert not at_home(gentle) and label(A.PVP(rounds=1, noise=1.0), usual(loss=gentle())) != "proven"
    assert at_home(A.PVP) and at_home(L.Logistic) and at_home(type(usual().penalty))


def test_a_release_with_a_local_and_a_sensitivity_of_its_own_is_not_proven():
    @dataclass(frozen=True, eq=False)
    class Bare(GaussianRelease):
        def sensitivity(self, t, public):
            return np.full((len(public.agents), 1), 1e-9)

        def local(self, t, state, block, public, noise):
            return block.gradient(state.primal)

    assert label(Bare(rounds=1, noise=1.0), usual()) != "proven"


def test_a_price_of_ones_own_is_not_proven():
    @dataclass(frozen=True, eq=False)
    class Cheap(A.CDPADMM):
        def charged(self, public):
            return [[confide.privacy.Free()]] * self.rounds

    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, size=(100, 2)), np.arange(100) % 2
    model = confide.PrivateLogisticRegression(algorithm=Cheap(rounds=3, clip=1.0), classes=[0, 1], parties=2)
    with pytest.raises(ValueError, match="allow_unproven"):
        model.fit(X, y)


def test_a_central_method_is_charged_for_the_weight_its_rows_have():
    @dataclass(frozen=True, eq=False)
    class Central(A.DPADMM):
        topology = "central"

    X, y = np.zeros((40, 3)), np.ones(40)
    X[0, 0] = 1e6
    method = Central(rounds=1, clip=1.0, noise=1e-9, step=1.0, coupling=1.0)
    moved = []
    for first in (1.0, -1.0):
        y[0] = first
        run = confide.simulate(task(X, y), None, method, record=())
        moved.append(run.estimates[0, 0] * method.stiffness(1))
    charged = float(run.privacy.events[0][0].sensitivity[0])
    assert run.privacy.guarantee.label != "proven" or np.linalg.norm(moved[0] - moved[1]) <= charged + 1e-6


def test_a_loss_of_ones_own_bounds_nothing_where_nothing_is_clipped():
    @dataclass(frozen=True)
    class Gentle(L.Logistic):
        slope_bound = 1e-3

    assert label(A.PVP(rounds=1, noise=1.0), usual(loss=Gentle())) != "proven"


# --- argmins ----------------------------------------------------------------------------------------------------------


def test_a_gradient_too_short_to_square_does_not_end_the_descent():
    rows, b = 1000, 1e-161
    edge = math.sqrt(0.5) * 2.0**-537  # a shorter gradient has a square of 0

    def flipped(count):
        y = np.where(np.arange(2 * rows) % rows < count, 1.0, -1.0)
        return task(np.full((2 * rows, 1), b), y, row_norm=b)

    near = int((2 * edge / b + 1) * rows / 2)
    public = flipped(near).public(PAIR)
    method = A.PVP(rounds=1, coupling=1.0, tolerance=1e-172, noise=1e-164)
    state = method.init(public)
    found = [
        method.minimise(state, flipped(near + more).block, public, public.each(1.0))[0, 0, 0] for more in range(-2, 4)
    ]
    moved = float(np.max(np.abs(np.diff(found))))
    assert method.guarantee(public).label != "proven" or moved <= method.sensitivity(1, public)[0, 0]


def test_a_gradient_too_long_to_square_does_not_end_the_run():
    method, problem = A.PVP(rounds=3, coupling=1e200, tolerance=1e190, noise=1.0), usual()
    if label(method, problem) == "proven":
        confide.simulate(problem, PAIR, method, record=())  # SolverError: residual inf


@pytest.mark.parametrize("kind", [A.RADMM, A.DVP, A.MADMM])
def test_an_argmin_of_infinite_cost_is_not_proven(kind):
    method, problem = kind(rounds=1, noise_rate=1.0, release_noise=1e-200), usual()
    events = [e for now in method.events(problem.public(PAIR)) for e in now]
    assert np.all(np.isinf(confide.privacy.epsilon(events, 1e-5)))
    assert label(method, problem) != "proven"


# --- rows -------------------------------------------------------------------------------------------------------------


def test_duplicate_entries_are_added_whatever_the_matrix_says_of_itself():
    columns = np.concatenate([np.zeros(100, int), [0, 1, 2]])
    X = sp.csr_array((np.ones(103), columns, np.array([0, 100, 101, 102, 103])), shape=(4, 3))
    X.has_canonical_format = True  # as it may have been before its indices were changed
    shards = confide.Shards.from_groups(X, [-1.0, 1.0, 1.0, 1.0], [0, 0, 1, 1])
    assert np.linalg.norm(shards.clip_rows(1.0).X.toarray(), axis=1).max() <= 1.0
    answer = confide.Problem(shards, L.Logistic()).block.gradient(np.zeros((1, 2, 3)), 1.0)
    assert np.linalg.norm(answer[0, 0]) <= 1.0 + 1e-9


def test_an_index_beyond_the_columns_is_refused():
    X = sp.csr_array((np.ones(4), np.array([0, 1, 2, 0]), np.arange(5)), shape=(4, 3))
    X.indices[2] = 50_000
    with pytest.raises(ValueError):
        confide.Shards.from_groups(X, np.ones(4), [0, 0, 1, 1])


@pytest.mark.parametrize("how", ["replaced", "constructed"])
def test_a_row_norm_that_nobody_enforced_proves_nothing(how):
    short = usual().shards
    if how == "replaced":
        long = lambda: replace(short, X=1e3 * np.asarray(short.X))  # noqa: E731
    else:
        long = lambda: confide.Shards(1e3 * short.X, short.y, short.offsets, short.names, row_norm=1.0)  # noqa: E731
    try:
        shards = long()
    except (ValueError, TypeError):
        return
    problem = confide.Problem(shards, L.Logistic())
    assert label(A.PVP(rounds=1, noise=1.0), problem) != "proven" or shards.norms(False).max() <= 1.0


@pytest.mark.parametrize("row_norm", [np.uint8(16), np.int8(100), np.float16(1e-4), np.float32(1e-25), 1e-170, 1e200])
def test_a_row_is_as_long_as_its_bound_whatever_kind_of_number_that_is(row_norm):
    """uint8(16) squared is 0: PVP charged 2e-8 for what moves by 1.2e-3."""
    problem = task(np.full((100, 1), 1e3), np.where(np.arange(100) % 2, 1.0, -1.0), row_norm=row_norm)
    assert row_length(problem.public(PAIR)) == pytest.approx(float(row_norm), rel=1e-15, abs=0)


def test_half_precision_leaves_a_curvature_as_it_is():
    """1.0 as float16 times b² = 1e-8 is 0: RADMM left out ln(1 + 25)."""
    ratios = []
    for width in (1.0, np.float16(1.0)):
        public = task(np.ones((4, 1)), np.array([1.0, -1.0, 1.0, -1.0]), L.SmoothedHinge(width), 1e-4).public(PAIR)
        (event,) = A.RADMM(rounds=1, coupling=1e-10, noise_rate=1.0).events(public)[0]
        ratios.append(event.curvature_ratio[0])
    assert ratios[0] == pytest.approx(25.0) and ratios[1] == ratios[0]


@pytest.mark.parametrize("row_norm", [1.0, 1e-10])
def test_a_fit_takes_every_finite_row_in_silence(row_norm):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, size=(100, 2)), np.arange(100) % 2
    X[3] = [1e308, -1e308]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        confide.PrivateLogisticRegression(classes=[0, 1], rounds=2, row_norm=row_norm).fit(X, y)


def test_small_integers_do_not_overflow_what_is_charged():
    public = usual().public(PAIR)
    zeroth = A.PrivateZeroth(rounds=1, inner_steps=np.uint8(16), directions=np.uint8(16), clip=1.0, noise=1.0)
    assert zeroth.schedule(public).noised[0] == 256
    assert len(A.RADMM(rounds=np.int8(127), noise_rate=1.0, ball=1.0).events(public)) == 127
    assert A.DPSGD(rounds=np.int8(127), clip=1.0, noise=1.0).message_bound(public) > 0


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_noise_that_is_cut_off_has_no_zcdp():
    """A number lies below 23 deviations. Beyond lies nothing on D and, shifted by μ, a lot on D': no ε holds."""
    assert int(discrete_gaussian._LAST) == 22
    for mu in (20.0, 25.0, 40.0):
        (event,) = charge([[Gaussian(mu, 1.0)]], 1)[0]
        epsilon = float(confide.privacy.epsilon([event], 1e-5))
        assert not np.isfinite(epsilon) or confide.privacy.delta([event], epsilon + 1.0) >= norm.sf(23 - mu)


def test_a_fit_at_a_large_epsilon_is_not_proven_by_noise_that_is_cut_off():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, size=(100, 2)), np.arange(100) % 2
    try:
        spent = confide.PrivateLogisticRegression(epsilon=300, delta=1e-5, classes=[0, 1], rounds=1).fit(X, y).privacy_
    except ValueError:
        return
    assert spent.guarantee.label != "proven" or norm.sf(23 - spent.charged.mu) <= spent.delta


@pytest.mark.parametrize("clip", [1e-200, 2.5e-161, 3.3e-161])
def test_the_least_noise_is_enough_for_tiny_gradients_too(clip):
    public = usual().public(PAIR)
    method = A.DPSGD(rounds=1, clip=clip).calibrated(public, 1.0, 1e-5)
    mu = float(np.max(method.sensitivity(1, public) / method.noise_scale(1, public)))
    assert mu <= confide.privacy.mu_for(1.0, 1e-5) * (1 + 1e-9)
