"""Labels print as they are documented."""

import pytest

from confide.privacy import (
    EVENT_TYPES,
    ZCDP,
    Free,
    Gaussian,
    Guarantee,
    Label,
    ObjectivePerturbation,
    PureDP,
    RadialNoise,
    RandomizedResponse,
    Unbounded,
)

INF = float("inf")
# of every type one whose cost is finite and one, if it can be, whose cost is not
COSTS = {
    Gaussian: (Gaussian([1.0, 2.0], 1.0, slack=1e-30), Gaussian([1.0, 2.0], [1.0, 0.0])),
    PureDP: (PureDP(3.0), PureDP([1.0, INF])),
    ZCDP: (ZCDP(0.1), ZCDP(INF)),
    RandomizedResponse: (RandomizedResponse(1.0, 2), RandomizedResponse(INF, 2)),
    ObjectivePerturbation: (ObjectivePerturbation(1.0, 0.1, 0.1), ObjectivePerturbation(1.0, INF, 0.1)),
    RadialNoise: (RadialNoise(1.0, 0.1, 3), RadialNoise(1.0, INF, 3)),
    Free: (Free(), None),
    Unbounded: (None, Unbounded()),
}


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_nothing_is_proven_of_an_infinite_cost(kind):
    finite, infinite = COSTS[kind]
    for label in Label:
        said = Guarantee(label, "rows are clipped")
        if finite is not None:
            assert said.backed_by([Free(), finite]) == said
        if infinite is not None:
            left = said.backed_by(iter([Free(), *([finite] if finite else []), infinite]))
            assert left.label == (Label.NONE if label in ("proven", "assumed") else label)
            assert kind.__name__ in left.reason or left == said


def test_a_slack_of_one_backs_nothing():
    assert Guarantee("proven", "x").backed_by([Gaussian(1.0, 1.0, slack=1.0)]).label == "none"


def test_labels_are_the_four_documented_ones():
    assert [str(label) for label in Label] == ["proven", "assumed", "refuted", "none"]


def test_guarantee_prints_label_and_reason():
    assert str(Guarantee(Label.PROVEN, "rows are clipped")) == "proven: rows are clipped"
    assert Guarantee("refuted", "an audit contradicts it").label is Label.REFUTED


@pytest.mark.parametrize("bad", [("certain", "x"), ("proven", ""), ("proven", "two\nlines"), (None, "x")])
def test_bad_guarantees_are_one_clear_line(bad):
    with pytest.raises(ValueError, match=r"needs a reason of one line|must be one of") as caught:
        Guarantee(*bad)
    assert "\n" not in str(caught.value)
