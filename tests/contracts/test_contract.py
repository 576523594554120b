"""What the drivers rely on, for every method in the registry."""

from dataclasses import replace

import numpy as np
import pytest
from contract_cases import CASES, GRAPHS, NETWORKED, network, problem

import confide
from confide.algorithms import REGISTRY, GaussianMethod, GaussianRelease
from confide.privacy.noise import SimulatedNoise
from confide.runs.driver import Driver
from confide.runs.party import Party
from confide.testing.contracts import CONTRACTS, Trial, calibrated_noise_costs_the_budget

ALL = list(REGISTRY)


def driver(name, kind=None, seeds=(0,), graph="random", flip=False):
    case = CASES[name]
    return Driver(problem(kind or case.kind, flip=flip), network(name, graph), case.noisy, seeds)


MIXED = ("RADMM", "MADMM", "MRADMM")  # pure noise of another scale in every round: many loss distributions to compose


def keeps(contract, name):
    case = CASES[name]
    contract(Trial(case.noisy, problem(case.kind), problem(case.kind, flip=True), network(name, "random")))


@pytest.mark.parametrize(
    ("contract", "name"),
    [(c, name) for c in CONTRACTS for name in ALL if c is not calibrated_noise_costs_the_budget or name not in MIXED],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_every_method_keeps_the_contract(contract, name):
    """The contracts that `confide.testing` holds methods from elsewhere to."""
    keeps(contract, name)


@pytest.mark.parametrize("name", MIXED)
def test_calibrated_noise_of_many_scales_costs_the_budget(name):
    keeps(calibrated_noise_costs_the_budget, name)


@pytest.mark.parametrize("name", NETWORKED)
@pytest.mark.parametrize("graph", GRAPHS)
def test_vectorised_equals_agent_by_agent(name, graph):
    """One object per agent, exchanging bytes, does what the simulator does for all of them."""
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


@pytest.mark.parametrize("name", [n for n in ALL if hasattr(REGISTRY[n], "calibrated") and n not in ("PDML",)])
def test_calibrated_noise_costs_the_budget_exactly_where_there_is_no_search(name):
    """To a part in a million: Gaussian noise, and pure ε of any. The contract has objective perturbation at δ > 0."""
    d = driver(name)
    budget = 4.0
    start = replace(CASES[name].noisy, **({"clip": 1.0} if name not in ("PVP",) and clips(name) else {}))
    delta = 1e-5 if isinstance(start, GaussianRelease) else 0.0
    events = [e for cost in start.calibrated(d.public, budget, delta).events(d.public) for e in cost]
    if delta == 0.0:  # pure ε only: the noise for the solver's residual is Gaussian and has no pure ε
        events = [e for e in events if not isinstance(e, confide.privacy.Gaussian)]
    spent = np.asarray(confide.privacy.epsilon(events, delta))
    assert np.all(spent <= budget) and np.all(spent > budget * (1 - 1e-6))


def clips(name):
    return isinstance(CASES[name].noisy, GaussianMethod)


def test_a_subset_of_seeds_reproduces_its_part_under_lossy_links():
    case = CASES["CDPADMM"]
    args = problem(case.kind), GRAPHS["ring"], case.noisy
    many = confide.simulate(*args, seeds=range(6), drop=0.4, record=())
    few = confide.simulate(*args, seeds=[4], drop=0.4, record=())
    assert np.array_equal(many.estimates[4], few.estimates[0])
    assert not np.allclose(many.estimates, confide.simulate(*args, seeds=range(6), record=()).estimates)
