"""What the drivers rely on, for every method in the registry."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from contract_cases import CASES, GRAPHS, NETWORKED, network, problem

import confide
from confide.algorithms import REGISTRY
from confide.algorithms.base import GaussianMethod
from confide.node.party import Party
from confide.privacy.noise import SimulatedNoise
from confide.simulation import Driver

SOURCE = Path(confide.__file__).parent
ALL = list(REGISTRY)


def driver(name, kind=None, seeds=(0,), graph="random", flip=False):
    case = CASES[name]
    return Driver(problem(kind or case.kind, flip=flip), network(name, graph), case.noisy, seeds)


@pytest.mark.parametrize("name", NETWORKED)
@pytest.mark.parametrize("graph", GRAPHS)
def test_vectorised_equals_agent_by_agent(name, graph):
    """One object an agent, exchanging bytes, does what the simulator does for all of them."""
    case, g = CASES[name], GRAPHS[graph]
    p = problem(case.kind)
    public = p.public(g)
    parties = [Party(k, case.noisy, public, p.only(k), SimulatedNoise(np.array([5]), np.array([k]))) for k in range(5)]
    together = driver(name, seeds=(5,), graph=graph)
    for _ in range(case.noisy.rounds):
        together.step()
        sent = {k: party.send() for k, party in enumerate(parties)}
        for party in parties:
            party.receive({k: sent[k] for k in party.weights})
    alone = np.array([party.estimate for party in parties])
    assert np.allclose(alone, together.estimates[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ALL)
def test_a_seeds_axis_equals_a_loop_over_seeds(name):
    case = CASES[name]
    seeds = [3, 1, 4, 15, 9]
    run = confide.simulate(problem(case.kind), network(name), case.noisy, seeds=seeds, record=())
    for i, seed in enumerate(seeds):
        one = confide.simulate(problem(case.kind), network(name), case.noisy, seeds=[seed], record=())
        assert np.array_equal(run.estimates[i], one.estimates[0])


@pytest.mark.parametrize("name", NETWORKED)
def test_relabelling_agents_permutes_the_result(name):
    case, order = CASES[name], [2, 0, 4, 1, 3]
    p, graph = problem(case.kind), GRAPHS["random"]
    place = np.argsort(order)  # agent order[k] becomes agent k
    moved = confide.Problem(p.shards.relabel(order), p.loss, p.penalty)
    there = Driver(moved, graph.relabel(place), case.noisy, (0,))
    there.noise = SimulatedNoise(there.seeds, np.array(order))  # noise belongs to the agent, not to its number
    here = driver(name)
    for _ in range(case.noisy.rounds):
        here.step()
        there.step()
    assert np.allclose(there.estimates, here.estimates[:, order], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_other_rows_with_the_same_messages_give_the_same_state(name):
    """State is public: nothing computed from rows survives a round except the message."""
    a, b = driver(name), driver(name, flip=True)
    for _ in range(CASES[name].noisy.rounds):
        message = a.step()
        b.step(force=message)
    for mine, other in zip(a.state, b.state, strict=True):
        assert np.array_equal(mine, other)
    assert np.array_equal(a.estimates, b.estimates)


@pytest.mark.parametrize("name", ALL)
def test_messages_do_depend_on_the_rows(name):
    """The test above would pass for a method that ignores its data."""
    a, b = driver(name), driver(name, flip=True)
    assert not np.allclose(a.step(), b.step())


@pytest.mark.parametrize("name", ALL)
def test_resuming_at_any_round_gives_the_same_bytes(name, tmp_path):
    case = CASES[name]
    args = problem(case.kind), network(name), case.noisy
    whole = confide.simulate(*args, seeds=(0, 1))
    for cut in range(1, case.noisy.rounds):
        file = tmp_path / f"{cut}.npz"
        confide.simulate(*args, seeds=(0, 1), checkpoint=file, stop=lambda t, _, cut=cut: t == cut)
        rest = confide.simulate(*args, seeds=(0, 1), checkpoint=file)
        assert rest.estimates.tobytes() == whole.estimates.tobytes()
        assert all(rest.history[m].tobytes() == whole.history[m].tobytes() for m in whole.history)


@pytest.mark.parametrize("name", ALL)
def test_rounds_that_touch_no_data_get_none(name):
    d = driver(name)
    for touch in d.schedule.touches:
        if not touch:
            d.block = None  # a method that reached for rows now would fail
        d.step()
        d.block = driver(name).block


@pytest.mark.parametrize("name", ALL)
def test_events_are_known_before_a_row_is_read(name):
    d = driver(name)
    events = d.algorithm.events(d.public)
    assert len(events) == d.algorithm.rounds
    for touch, cost in zip(d.schedule.touches, events, strict=True):
        assert cost, "a round without an event"
        free = all(isinstance(e, confide.privacy.Free) for e in cost)
        assert free is not bool(touch), "exactly the rounds that touch data cost something"
    assert d.algorithm.guarantee(d.public).reason


@pytest.mark.parametrize("name", [n for n in ALL if hasattr(REGISTRY[n], "calibrated") and n not in ("PDML",)])
def test_calibrated_noise_costs_the_budget_and_never_more(name):
    d = driver(name)
    budget, delta = 4.0, 1e-5
    start = replace(CASES[name].noisy, **({"clip": 1.0} if name not in ("PVP",) and clips(name) else {}))
    for share in (0.0, delta) if not isinstance(start, GaussianMethod) else (delta,):
        method = start.calibrated(d.public, budget, share)
        events = [e for cost in method.events(d.public) for e in cost]
        if share == 0.0:  # pure ε only: the noise for the solver's residual is Gaussian and has no pure ε
            events = [e for e in events if not isinstance(e, confide.privacy.Gaussian)]
        spent = np.asarray(confide.privacy.epsilon(events, share))
        assert np.all(spent <= budget)
        # exact for Gaussian and pure totals; a search to a per mille for objective perturbation at δ > 0
        slack = 1e-6 if share == 0.0 or isinstance(start, GaussianMethod) else 5e-3
        assert np.all(spent > budget * (1 - slack))


def clips(name):
    return isinstance(CASES[name].noisy, GaussianMethod)


def test_a_subset_of_seeds_reproduces_its_part_under_lossy_links():
    case = CASES["CDPADMM"]
    args = problem(case.kind), GRAPHS["ring"], case.noisy
    many = confide.simulate(*args, seeds=range(6), drop=0.4, record=())
    few = confide.simulate(*args, seeds=[4], drop=0.4, record=())
    assert np.array_equal(many.estimates[4], few.estimates[0])
    assert not np.allclose(many.estimates, confide.simulate(*args, seeds=range(6), record=()).estimates)


# --- layers ---------------------------------------------------------------------------------------------------------

FORBIDDEN = {
    "problem": ("algorithms", "network", "node", "simulation", "cli", "privacy"),
    "privacy": ("algorithms", "network", "node", "simulation", "cli", "problem"),
    "algorithms": ("network", "node", "simulation", "cli"),
    "network": ("algorithms", "node", "simulation", "cli", "problem"),
}


@pytest.mark.parametrize("layer", FORBIDDEN)
def test_imports_respect_the_layers(layer):
    for file in (SOURCE / layer).rglob("*.py"):
        tree = ast.parse(file.read_text())
        guarded = {
            id(node) for test in ast.walk(tree) if isinstance(test, ast.If) and "TYPE_CHECKING" in ast.dump(test.test)
            for node in ast.walk(test)
        }  # fmt: skip
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and id(node) not in guarded:
                parts = node.module.split(".")
                names = {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
                assert parts[0] != "confide" or not names & set(FORBIDDEN[layer]), f"{file.name}: {node.module}"
