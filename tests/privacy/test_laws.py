"""Laws that hold for every event type: a new type fails here until its laws are written down."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from confide.privacy import (
    EVENT_TYPES,
    ZCDP,
    Free,
    Gaussian,
    ObjectivePerturbation,
    PureDP,
    RadialNoise,
    RandomizedResponse,
    Unbounded,
    delta,
    epsilon,
)

# type -> (an example, one event that costs the same as n of it, {parameter: +1 if more of it costs more})
LAWS = {
    Gaussian: (Gaussian(0.4, 2.0), lambda n: Gaussian(0.4 * n**0.5, 2.0), {"sensitivity": 1, "scale": -1}),
    "slack": (
        Gaussian(0.4, 2.0, slack=1e-10),
        lambda n: Gaussian(0.4 * n**0.5, 2.0, slack=n * 1e-10),
        {"sensitivity": 1, "scale": -1, "slack": 1},
    ),
    PureDP: (PureDP(0.3), lambda n: PureDP(0.3 * n), {"epsilon": 1}),
    ZCDP: (ZCDP(0.02), lambda n: ZCDP(0.02 * n), {"rho": 1}),
    RandomizedResponse: (
        RandomizedResponse(0.3, 3),
        lambda n: RandomizedResponse(0.3 * n, 3),
        {"epsilon": 1},
    ),
    ObjectivePerturbation: (
        ObjectivePerturbation(0.5, 0.2, 0.1),
        lambda n: ObjectivePerturbation(0.5, 0.2 * n, 1.1**n - 1),
        {"noise_rate": 1, "shift": 1, "curvature_ratio": 1},
    ),
    RadialNoise: (
        RadialNoise(0.5, 0.6, 5),
        lambda n: RadialNoise(0.5, 0.6 * n, 5),
        {"noise_rate": 1, "shift": 1},
    ),
    Free: (Free(), lambda n: Free(), {}),
    Unbounded: (Unbounded(), lambda n: Unbounded(), {}),
}
PURE = (PureDP, RandomizedResponse, ObjectivePerturbation, RadialNoise)
each_type = pytest.mark.parametrize("kind", LAWS)


def test_every_type_has_its_laws():
    assert set(EVENT_TYPES) == {kind for kind in LAWS if isinstance(kind, type)}


@each_type
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_n_compositions_cost_as_much_as_their_sum(kind, n):
    event, fold, _ = LAWS[kind]
    d = 0.0 if kind in PURE else 1e-6  # at δ > 0 optimal composition undercuts the sum
    assert epsilon([event] * n, d) == pytest.approx(epsilon([fold(n)], d), rel=1e-12)
    assert epsilon([event] * n, 1e-6) <= epsilon([fold(n)], 1e-6) * (1 + 1e-12)


@each_type
def test_order_and_grouping_do_not_matter(kind):
    event, fold, _ = LAWS[kind]
    d = 0.0 if kind in PURE else 1e-6
    assert epsilon([event] * 5, d) == pytest.approx(epsilon([fold(2), event, fold(2)], d), rel=1e-12)
    assert epsilon([fold(3), event], d) == pytest.approx(epsilon([event, fold(3)], d), rel=1e-12)


@each_type
@pytest.mark.parametrize("d", [1e-8, 0.01])
def test_more_events_cost_more(kind, d):
    event, _, _ = LAWS[kind]
    costs = [epsilon([event] * n, d) for n in range(5)]
    assert costs[0] == 0
    assert all(a <= b for a, b in pairwise(costs))
    if kind is not Free:
        assert costs[4] > costs[1] or costs[4] == math.inf


@each_type
def test_cost_is_monotone_in_every_parameter(kind):
    event, _, signs = LAWS[kind]
    for name, sign in signs.items():
        value = getattr(event, name)
        events = [replace(event, **{name: value * factor}) for factor in (0.5, 0.999, 1.0, 1.001, 2.0)]
        for costs in ([epsilon([e], 1e-6) for e in events], [delta([e], 0.05) for e in events]):
            assert np.all(sign * np.diff(costs) > 0), (name, costs)
        several = [epsilon([e] * 3, 1e-6) for e in (events[0], events[2], events[4])]
        assert np.all(sign * np.diff(several) > 0), (name, several)


@each_type
def test_a_smaller_delta_needs_a_larger_epsilon_and_the_two_agree(kind):
    event, _, _ = LAWS[kind]
    found = [epsilon([event] * 3, d) for d in (1e-9, 1e-6, 1e-3)]
    assert sorted(found, reverse=True) == found
    if 0 < found[1] < math.inf:
        assert delta([event] * 3, found[1]) == pytest.approx(1e-6, rel=1e-6)


@each_type
def test_free_changes_nothing(kind):
    event, _, _ = LAWS[kind]
    for events in ([event], [event] * 3):
        with_free = [Free(), *events, Free(unit="label", adversary="server")]
        assert epsilon(with_free, 1e-6) == epsilon(events, 1e-6)
        assert delta(with_free, 0.1) == delta(events, 0.1)


@each_type
def test_agents_side_by_side_equal_agents_one_by_one(kind):
    event, _, signs = LAWS[kind]
    for name in signs:
        values = getattr(event, name) * np.array([1.0, 2.0, 0.5, 1.0])
        together = [replace(event, **{name: values}), event]
        alone = [[replace(event, **{name: v}), event] for v in values]
        assert epsilon(together, 1e-6) == pytest.approx([epsilon(e, 1e-6) for e in alone], rel=1e-12)
        assert delta(together, 0.1) == pytest.approx([delta(e, 0.1) for e in alone], rel=1e-12)


def test_the_ends_of_the_scale():
    for ask in (lambda e: epsilon(e, 1e-6), lambda e: delta(e, 1.0)):
        assert ask([]) == ask([Free()]) == ask([Gaussian(0.0, 0.0)]) == ask([PureDP(0.0), ZCDP(0.0)]) == 0
    for lost in (Unbounded(), Gaussian(1.0, 0.0), Gaussian(math.inf, 1.0), PureDP(math.inf), ZCDP(math.inf)):
        for events in ([lost], [lost, Gaussian(1.0, 1.0)]):
            assert epsilon(events, 0.5) == math.inf
            assert delta(events, 100.0) == 1
    assert epsilon([Gaussian(1.0, 1.0)], 0.0) == epsilon([ZCDP(1.0)], 0.0) == math.inf


WIDE = st.floats(0, 1e300)
SMALL = st.floats(0, 0.999)


@settings(max_examples=150, deadline=None)
@given(
    event=st.one_of(
        st.builds(Gaussian, WIDE, WIDE),
        st.builds(Gaussian, WIDE, WIDE, slack=WIDE),
        st.builds(PureDP, WIDE),
        st.builds(ZCDP, WIDE),
        st.builds(RandomizedResponse, WIDE, st.integers(2, 9)),
        st.builds(ObjectivePerturbation, st.floats(1e-300, 1e150), st.floats(0, 1e150), WIDE),
        st.builds(RadialNoise, st.floats(1e-300, 1e150), st.floats(0, 1e150), st.integers(1, 10**6)),
    ),
    d=SMALL,
    e=WIDE,
)
def test_any_valid_event_has_a_cost(event, d, e):
    assert epsilon([event], d) >= 0
    assert 0 <= delta([event], e) <= 1


@settings(max_examples=25, deadline=None)
@given(m=st.floats(0, 40), e=st.floats(0, 800), n=st.integers(1, 3), d=SMALL)
@example(m=0.0, e=2.2e-311, n=1, d=5e-324)
@example(m=0.0, e=1e-308, n=1, d=1e-310)
@example(m=1.2256226184983876e-158, e=1.0, n=1, d=0.5)
@example(m=5e-324, e=1e-3, n=2, d=0.5)
def test_any_mixture_lies_between_its_parts_and_their_sum(m, e, n, d):
    gaussian, pure = [Gaussian(m, 1.0)], [PureDP(e)] * n
    parts = [epsilon(gaussian, d), epsilon(pure, d)]
    total = epsilon(gaussian + pure, d)
    assert max(parts) <= total * (1 + 1e-6) + 1e-9
    assert total <= parts[0] + n * e + 1e-9
