"""A class from elsewhere is proven only for what the engine forces: bounds of questions, names that are looked up."""

from dataclasses import dataclass

import numpy as np
import pytest

import confide
from confide.algorithms import DPSGD, JointDescent
from confide.errors import ConfideError
from confide.problem.questions import Gradient, Standardised

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
