"""A class from elsewhere is proven only for what the engine forces: bounds of questions, names that are looked up."""

from dataclasses import dataclass

import numpy as np
import pytest

import confide
from confide.algorithms import DPSGD, JointDescent, SummedMethod
from confide.algorithms.second_moment import Mean
from confide.errors import ConfideError
from confide.estimators import PrivateLinearSVC, PrivateLogisticRegression
from confide.privacy.noise import SimulatedNoise
from confide.problem.questions import Gradient, Standardised
from confide.runs.party import Party

GRAPH = confide.Graph.ring(4)
ROWS = confide.Shards.split(np.random.default_rng(3).uniform(-0.5, 0.5, (40, 3)), np.tile([1.0, -1.0], 20), 4)
PUBLIC = confide.Problem(ROWS.clip_rows(1.0), confide.losses.Logistic()).public(GRAPH)


def asking(question, base=DPSGD):
    """The method with a question of its own, which it is free to name."""
    return type("Asks", (base,), {"question": lambda self, t, public: question(public)})


def test_a_bound_that_is_assumed_below_a_questions_own_is_not_proven():
    longer = asking(lambda public: Gradient(public.each(5.0)))
    assert longer(rounds=2, noise=1.0, clip=1.0).guarantee(PUBLIC).label == "proven"  # charged for 5
    assumed = longer(rounds=2, noise=1.0, clip=1.0, assumed_bound=2.0).guarantee(PUBLIC)
    assert assumed.label == "assumed" and assumed.reason == "row gradients are assumed, not forced, to be within 2.0"
    above = longer(rounds=2, noise=1.0, clip=1.0, assumed_bound=6.0)
    assert above.guarantee(PUBLIC).label == "proven"
    (event,) = above.events(PUBLIC)[0]
    assert event.sensitivity == pytest.approx(2 * 5.0 / 10)  # 2·c/M_k, M_k = 10


def test_nor_on_a_sum_whose_check_lets_it_pass():
    unchecked = type("Unchecked", (JointDescent,), {"check": lambda self, public: None})
    assert unchecked(rounds=3, noise=1.0).guarantee(PUBLIC).label == "proven"
    assert unchecked(rounds=3, noise=1.0, assumed_bound=1e-6).guarantee(PUBLIC).label == "assumed"


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ([1e-9, 1.0, 1.0, 1.0], r"bound of shape \(4,\): must be \(4, 1\), one per agent"),
        ([[1e-9, 1.0, 1.0, 1.0]], r"bound of shape \(1, 4\): must be"),
        ([[1e-9]], r"bound of shape \(1, 1\): must be"),
        (1e-9, r"bound of shape \(\): must be"),
        ([[1.0], [1.0], [0.0], [1.0]], "bound=0: must be above 0"),
        ([[1.0], [1.0], [np.nan], [1.0]], "bound=nan: must be above 0"),
    ],
)
def test_every_agent_has_a_bound_of_its_own(bound, said):
    """One of another shape would be charged by the first agent's, or spread over all."""
    method = asking(lambda public: Gradient(np.asarray(bound)))(rounds=2, noise=1.0, clip=1.0)
    with pytest.raises(ConfideError, match=f"^Gradient {said}"):
        method.guarantee(PUBLIC)
    block = confide.Problem(ROWS, confide.losses.Logistic()).block
    with pytest.raises(ConfideError, match=f"^Gradient {said}"):
        method.local(1, method.init(PUBLIC), block, PUBLIC, None)


def test_a_norm_of_standardised_rows_too():
    with pytest.raises(ConfideError, match=r"^Standardised norm of shape \(1, 1\): must be \(4, 1\)"):
        Standardised(np.ones((4, 1)), np.ones((1, 1))).sensitivity(PUBLIC)


def test_a_class_with_slots_is_as_good_as_any():
    @dataclass(frozen=True, eq=False, slots=True)
    class Slotted(DPSGD):
        mine: float = 1.0
        noise: float = 2.0

    assert Slotted(rounds=2, clip=1.0).guarantee(PUBLIC).label == "proven"


class Hides(type(DPSGD)):
    """Says that its classes are those of the package, with nothing of their own."""

    @property
    def __mro__(cls):
        return DPSGD.__mro__


class Empties(type(DPSGD)):
    @property
    def __dict__(cls):
        return {}


@pytest.mark.parametrize("kind", [Hides, Empties])
def test_a_metaclass_of_ones_own_proves_nothing(kind):
    cheap = kind("Cheap", (DPSGD,), {"sensitivity": lambda self, t, public: public.each(1e-12)})
    said = cheap(rounds=2, noise=1.0, clip=1.0).guarantee(PUBLIC)
    assert said.label == "assumed" and "a metaclass of its own, which nobody has proven" in said.reason


def test_nor_an_object_that_shows_other_names_than_it_has():
    cheap = type("Cheap", (DPSGD,), {"__dict__": property(lambda self: {})})(rounds=2, noise=1.0, clip=1.0)
    assert "a __dict__ of its own" in cheap.guarantee(PUBLIC).reason


# --- a bound that changes once it was paid for ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AdaptiveClip(SummedMethod):
    """Finds its clip in what earlier sums told it; priced at the first one, it would ask at a hundred times that."""

    rounds: int = 4
    after: int = 1  # so many sums it is another
    learned = {}  # noqa: RUF012 -- what an author does who forgets that a state is handed on

    def question(self, t, public):
        return Gradient(public.each(self.learned.get("clip", 0.01)))

    def init(self, public):
        return Mean(np.zeros((1, len(public.agents), public.width)))

    def points(self, t, state, public):
        return (state.mean,)

    def learn(self, t, state, total, public):
        if t >= self.after:
            self.learned["clip"] = 1.0
        return Mean(state.mean - total)

    def estimate(self, state, public):
        return state.mean


@pytest.fixture
def adaptive():
    AdaptiveClip.learned.clear()
    return AdaptiveClip(clip=1.0)


PRICED = "AdaptiveClip asks otherwise than when it was priced"


def test_a_round_asks_what_it_was_priced_for(adaptive):
    X, y, whose = np.tile(ROWS.X, (10, 1)), np.tile([0, 1], 200), np.arange(400) % 4
    with pytest.raises(ConfideError, match=f"^round 2: {PRICED}"):
        PrivateLogisticRegression(algorithm=adaptive, classes=[0, 1], row_norm=1.0).fit(X, y, groups=whose)


def test_and_so_does_the_next_part_of_a_fit():
    """A bound that one class against the rest leaves behind is not what the next one was priced at."""
    AdaptiveClip.learned.clear()
    X, y, whose = np.tile(ROWS.X, (10, 1)), np.arange(400) % 3, np.arange(400) % 4
    late = PrivateLinearSVC(algorithm=AdaptiveClip(clip=1.0, after=4), classes=[0, 1, 2], row_norm=1.0)
    with pytest.raises(ConfideError, match=f"^round 1: {PRICED}"):
        late.fit(X, y, groups=whose)


def test_and_on_a_node(adaptive):
    problem = confide.Problem(ROWS.clip_rows(1.0), confide.losses.Logistic())
    method = adaptive.calibrated(PUBLIC, mu=1.0)
    party = Party(0, method, PUBLIC, problem.only(0), SimulatedNoise(np.array([0]), np.array([0])))
    party.receive_sum(party.send())
    with pytest.raises(ConfideError, match=f"^round 2: {PRICED}"):
        party.send()


def test_a_bound_by_round_is_a_schedule():
    fading = type("Fading", (DPSGD,), {"question": lambda self, t, public: Gradient(public.each(1.0 / t))})
    run = confide.simulate(
        confide.Problem(ROWS.clip_rows(1.0), confide.losses.Logistic()), GRAPH, fading(rounds=3, noise=1.0, clip=1.0)
    )
    assert run.privacy.guarantee.label == "proven"
