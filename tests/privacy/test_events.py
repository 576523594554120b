"""Events: what they hold, what they refuse, how they print."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.privacy import (
    EVENT_TYPES,
    ZCDP,
    Event,
    Free,
    Gaussian,
    ObjectivePerturbation,
    PureDP,
    RadialNoise,
    RandomizedResponse,
    Unbounded,
)
from confide.privacy.serialize import event_from_json, event_to_json

FIELDS = {
    Gaussian: {"sensitivity": 1.0, "scale": 2.0, "slack": 1e-9},
    PureDP: {"epsilon": 0.5},
    ZCDP: {"rho": 0.1},
    RandomizedResponse: {"epsilon": 0.5},
    ObjectivePerturbation: {"noise_rate": 1.0, "shift": 0.4, "curvature_ratio": 0.1},
    RadialNoise: {"noise_rate": 1.0, "shift": 0.4},
    Free: {},
    Unbounded: {},
}
EXTRA = {RandomizedResponse: {"classes": 3}, RadialNoise: {"width": 5}}
NUMERIC = [(kind, name) for kind, names in FIELDS.items() for name in names]


def make(kind, **changes):
    return kind(**(FIELDS[kind] | EXTRA.get(kind, {}) | changes))


def test_every_event_type_is_registered():
    subclasses = {kind for kind in Event.__subclasses__() if kind.__module__.startswith("confide.")}
    assert subclasses == set(EVENT_TYPES) == set(FIELDS)


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_kind_defaults_and_changes(kind):
    unit = "label" if kind is RandomizedResponse else "row"
    assert make(kind).kind == (unit, "replace", "network")
    assert make(kind, unit="row", adversary="server").kind == ("row", "replace", "server")


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_repr_evaluates_to_an_equal_event(kind):
    for event in (make(kind), make(kind, unit="label", adjacency="add-remove")):
        again = eval(repr(event))
        assert again == event and hash(again) == hash(event)
    assert make(kind) != make(kind, adversary="server")


@pytest.mark.parametrize(("kind", "name"), NUMERIC)
def test_one_value_per_agent(kind, name):
    values = np.array([0.25, 0.5, 1.0])
    event = make(kind, **{name: values})
    values[0] = 99.0  # the event keeps its own copy
    assert getattr(event, name).tolist() == [0.25, 0.5, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        getattr(event, name)[0] = 7.0
    assert event == make(kind, **{name: [0.25, 0.5, 1.0]}) != make(kind, **{name: 0.25})
    assert "[0.25, 0.5 , 1.  ]" in repr(event)


@pytest.mark.parametrize(("kind", "name"), NUMERIC)
@given(
    value=st.one_of(
        st.floats(max_value=-1e-300),
        st.just(math.nan),
        st.text(),
        st.none(),
        st.booleans(),
        st.complex_numbers(),
        st.just([]),
        st.just([[1.0]]),
        st.just([1.0, [2.0]]),
        st.just([1.0, math.nan]),
        st.just({"a": 1}),
    )
)
def test_bad_numbers_are_one_clear_line(kind, name, value):
    with pytest.raises(ValueError) as caught:
        make(kind, **{name: value})
    line = str(caught.value)
    assert line.startswith(f"{kind.__name__}: {name}=") and ": must be " in line


@pytest.mark.parametrize(
    "change",
    [
        {"unit": "person"},
        {"unit": None},
        {"adjacency": ""},
        {"adversary": ""},
        {"adversary": 3},
    ],
)
@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_bad_kind_is_one_clear_line(kind, change):
    with pytest.raises(ValueError, match=r"^\w+: (unit|adjacency|adversary)=.*: must be .*$"):
        make(kind, **change)


@pytest.mark.parametrize("classes", [1, 0, -3, 2.0, "2", True, None])
def test_bad_classes(classes):
    with pytest.raises(ValueError, match=r"classes=.*: must be an integer from 2"):
        RandomizedResponse(1.0, classes)


@pytest.mark.parametrize("width", [0, -3, 2.0, "2", True, None])
def test_bad_widths(width):
    with pytest.raises(ValueError, match=r"^RadialNoise: width=.*: must be an integer from 1"):
        RadialNoise(1.0, 0.1, width)


def test_agents_must_match_within_an_event():
    with pytest.raises(ValueError, match=r"parameters of \[2, 3\] agents: must describe equally many"):
        Gaussian([1.0, 2.0], [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("sensitivity", "scale", "mu"),
    [
        (1.0, 4.0, 0.25),
        (0.0, 0.0, 0.0),
        (1.0, 0.0, math.inf),
        (math.inf, 3.0, math.inf),
        (0.0, 1.0, 0.0),
    ],
)
def test_gaussian_mu_with_and_without_noise(sensitivity, scale, mu):
    assert Gaussian(sensitivity, scale).mu == mu
    assert Gaussian([sensitivity] * 2, scale).mu.tolist() == [mu, mu]


def test_slack_is_told_where_there_is_some():
    assert "slack" not in repr(Gaussian(1.0, 2.0)) and "slack" not in event_to_json(Gaussian(1.0, 2.0))
    for event in (Gaussian(1.0, 2.0), Gaussian(1.0, 2.0, slack=1e-30), Gaussian([1.0, 2.0], 2.0, slack=[0.0, 1e-30])):
        assert event_from_json(json.loads(json.dumps(event_to_json(event)))) == event
    assert Gaussian(1.0, 2.0, slack=1e-30) != Gaussian(1.0, 2.0)


def test_no_noise_is_a_scale_of_zero_not_infinite_noise():
    for scale in (math.inf, -0.5):
        with pytest.raises(ValueError, match=r"scale=.*: must be finite and at least 0"):
            Gaussian(1.0, scale)
    with pytest.raises(ValueError, match=r"noise_rate=.*: must be finite and above 0"):
        ObjectivePerturbation(0.0, 1.0, 1.0)


@pytest.mark.parametrize("rate", [0.1, 1.3, 20.0])
@pytest.mark.parametrize(("first", "second"), [((1, 1), (1, -1)), ((1, 1), (0, 1)), ((-1, 1), (0.5, 1))])
def test_objective_perturbation_bounds_the_density_ratio(rate, first, second):
    """In one dimension the released model's density is known, so the bound can be checked point by point."""
    weight, h = 0.4, 0.5  # J(f) = h·f²/2 + weight·log(1 + e^(−yxf)), |x| ≤ 1
    f = np.linspace(-30, 30, 4001)

    def log_density(x, y):
        margin = y * x * f
        noise = -(h * f - weight * y * x / (1 + np.exp(margin)))  # e = −∇J(f)
        return -rate * np.abs(noise) + np.log(h + weight * x**2 / (2 + 2 * np.cosh(margin)))

    event = ObjectivePerturbation(noise_rate=rate, shift=2 * weight, curvature_ratio=0.25 * weight / h)
    assert event.epsilon == pytest.approx(rate * 0.8 + math.log(1.2))
    assert np.max(np.abs(log_density(*first) - log_density(*second))) <= event.epsilon
