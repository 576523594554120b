"""What the drivers, the accountant and the proofs rely on, one function per contract.

A contract is a function of a `Trial`; its docstring says what must hold, and what it raises says what to change. The
tests of this project run the same functions over its own methods.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import privacy
from confide.algorithms import Algorithm
from confide.errors import ConfideError
from confide.network.graph import Graph
from confide.privacy import Free, Label
from confide.privacy.noise import SimulatedNoise
from confide.privacy.serialize import plain
from confide.problem import losses, penalties
from confide.problem.problem import Problem
from confide.problem.shards import Shards
from confide.runs.driver import Driver, describe, simulate
from confide.runs.party import Party

Array = NDArray[np.float64]
SIZES = (12, 40, 25, 60, 33)  # ragged on purpose
FEATURES = 4
BUDGET, DELTA = 4.0, 1e-5


class BrokenContract(ConfideError, AssertionError):
    """A method does not keep a contract; every line says which, and what to change."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A method with its noise on, and the problem and network to try it on."""

    algorithm: Algorithm
    problem: Problem
    other: Problem  # other rows of the same shape and bounds
    graph: Graph | None
    quiet: Algorithm | None = None  # without noise, for so many rounds that it reaches the optimum
    distance: float = 1e-2  # relative, from the optimum

    def driver(self, seeds: tuple[int, ...] = (0,), other: bool = False) -> Driver:
        return Driver(self.other if other else self.problem, self.graph, self.algorithm, seeds)

    @cached_property
    def networked(self) -> bool:
        return self.algorithm.topology != "central"


def require(holds: Any, what: str, change: str) -> None:
    if not holds:
        raise BrokenContract(f"{what}: {change}")


# --- the contracts ----------------------------------------------------------------------------------------------------


def parameters_are_public_values(trial: Trial) -> None:
    """A method is a frozen dataclass whose parameters can be written to a file and read back."""
    kind = type(trial.algorithm)
    frozen = is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    require(frozen, "its parameters may change during a run", "make it @dataclass(frozen=True, eq=False)")
    try:
        json.dumps(describe(trial.algorithm), default=plain)
    except (TypeError, ValueError) as error:
        require(False, f"its parameters have no form in a file ({error})", "use numbers, texts and lists of them")


def events_are_known_before_a_row_is_read(trial: Trial) -> None:
    """Every round has an event; exactly those that touch rows cost something; the label has a reason."""
    driver = trial.driver()
    events, plan = trial.algorithm.events(driver.public), driver.schedule
    rounds = trial.algorithm.rounds
    lengths = {len(events), len(plan.touches), len(plan.widths), len(plan.noised)}
    require(lengths == {rounds}, f"schedule and events have {sorted(lengths)} rounds of {rounds}", "give one per round")
    for t, (touch, cost) in enumerate(zip(plan.touches, events, strict=True), start=1):
        require(cost, f"round {t} has no event", "every round has one, Free() where nothing is computed from rows")
        free = all(isinstance(event, Free) for event in cost)
        require(
            free is not bool(touch),
            f"round {t} touches rows: {bool(touch)}, costs nothing: {free}",
            "let `schedule` and `events` agree",
        )
    require(trial.algorithm.guarantee(driver.public).reason, "its label has no reason", "say why in `stated`")


def proven_costs_are_finite(trial: Trial) -> None:
    """What is labelled proven has a finite total."""
    public = trial.driver().public
    if trial.algorithm.guarantee(public).label == Label.PROVEN:
        spent = privacy.totals([event for now in trial.algorithm.events(public) for event in now], DELTA)
        require(
            all(np.all(np.isfinite(total)) for total in spent.values()),
            "it is proven at an infinite cost",
            "bound what rows contribute: set clip, or clip the rows",
        )


def state_is_public(trial: Trial) -> None:
    """Other rows with the same messages give the same state: nothing computed from rows survives but the message."""
    a, b = trial.driver(), trial.driver(other=True)
    for _ in range(trial.algorithm.rounds):
        message = a.step()
        b.step(force=message)
    same = all(np.array_equal(mine, theirs) for mine, theirs in zip(a.state, b.state, strict=True))
    require(
        same and np.array_equal(a.estimates, b.estimates),
        "its state depends on rows beyond what was sent",
        "let `absorb` and `init` use messages and public values only, and keep nothing on `self`",
    )


def messages_depend_on_rows(trial: Trial) -> None:
    """A method that ignores its data would keep every other contract."""
    a, b = trial.driver(), trial.driver(other=True)
    sent = [(a.step(), b.step()) for _ in range(trial.algorithm.rounds)]
    require(
        any(not np.allclose(x, y) for x, y in sent),
        "its messages do not depend on the rows",
        "ask for an answer in `message`, or use the block in `local`; a number that is NaN is sent as 0",
    )


def rounds_without_rows_get_none(trial: Trial) -> None:
    """Where `schedule` says that a round touches no rows, none are handed out."""
    driver = trial.driver()
    rows = driver.block
    for touch in driver.schedule.touches:
        driver.block = rows if touch else None  # type: ignore[assignment]
        driver.step()
        driver.block = rows


def seeds_together_are_seeds_alone(trial: Trial) -> None:
    """All seeds run together, and each gives what it gives alone, to the last bit."""
    seeds = [3, 1, 4]
    many = simulate(trial.problem, trial.graph, trial.algorithm, seeds=seeds, record=())
    for i, seed in enumerate(seeds):
        one = simulate(trial.problem, trial.graph, trial.algorithm, seeds=[seed], record=())
        require(
            np.array_equal(many.estimates[i], one.estimates[0]),
            f"seed {seed} alone differs from seed {seed} among others",
            "arrays are (seeds, agents, …): reduce over the last axes only, and draw noise from what is handed in",
        )


def agents_together_are_agents_alone(trial: Trial) -> None:
    """One object per agent, exchanging messages, does what the simulator does for all of them."""
    if not trial.networked:
        return
    public = trial.problem.public(trial.graph)
    agents = range(public.count)
    parties = [
        Party(k, trial.algorithm, public, trial.problem.only(k), SimulatedNoise(np.array([5]), np.array([k])))
        for k in agents
    ]
    together = trial.driver(seeds=(5,))
    for _ in range(trial.algorithm.rounds):
        together.step()
        sent = {k: party.send() for k, party in enumerate(parties)}
        for party in parties:
            party.receive({k: sent[k] for k in party.weights})
    alone = np.array([party.estimate for party in parties])
    require(
        np.allclose(alone, together.estimates[0], rtol=1e-10, atol=1e-10),
        "an agent by itself differs from the same among all",
        "an agent may know its own state and `received` only; take per-agent parameters by public.each",
    )


def relabelling_agents_permutes_the_result(trial: Trial) -> None:
    """Agents have no numbers: the same agents in another order give the same models."""
    if not trial.networked or trial.graph is None:
        return
    p, order = trial.problem, [2, 0, 4, 1, 3]
    moved = Problem(p.shards.relabel(order), p.loss, p.penalty)
    there = Driver(moved, trial.graph.relabel(np.argsort(order)), trial.algorithm, (0,))
    there.noise = SimulatedNoise(there.seeds, np.array(order))  # noise belongs to the agent, not to its number
    here = trial.driver()
    for _ in range(trial.algorithm.rounds):
        here.step()
        there.step()
    require(
        np.allclose(there.estimates, here.estimates[:, order], rtol=1e-9, atol=1e-9),
        "the result depends on the numbers of the agents",
        "treat all agents alike",
    )


def resuming_gives_the_same_bytes(trial: Trial) -> None:
    """A run that is cut off after any round and resumed from its file ends with the same bytes."""

    def run(**more: Any) -> bytes:
        return simulate(
            trial.problem, trial.graph, trial.algorithm, seeds=(0, 1), record=(), **more
        ).estimates.tobytes()

    whole = run()
    with tempfile.TemporaryDirectory() as folder:
        for cut in range(1, trial.algorithm.rounds):
            file = Path(folder) / f"{cut}.npz"
            run(checkpoint=file, stop=lambda t, _, cut=cut: t == cut)
            require(
                run(checkpoint=file) == whole,
                f"resumed after round {cut} it ends elsewhere",
                "keep everything in the state, a NamedTuple of arrays, and nothing on `self`",
            )


def calibrated_noise_costs_the_budget(trial: Trial) -> None:
    """`calibrated` spends (ε, δ), and never more."""
    calibrate = getattr(trial.algorithm, "calibrated", None)
    if calibrate is None or trial.algorithm.guarantee(trial.driver().public).label == Label.NONE:
        return
    public = trial.driver().public
    method = calibrate(public, BUDGET, DELTA)
    spent = float(np.max(privacy.epsilon([event for now in method.events(public) for event in now], DELTA)))
    require(
        0.995 * BUDGET < spent <= BUDGET * (1 + 1e-9),
        f"calibrated to ε={BUDGET:g} it spends {spent:.6g}",
        "let the noise scale with `noise` alone, or override `calibrated`",
    )


def without_noise_it_reaches_the_optimum(trial: Trial) -> None:
    """`quiet`, the method without noise, comes to the centralised optimum; only checked where `quiet` is given."""
    if trial.quiet is None:
        return
    driver = Driver(trial.problem, trial.graph, trial.quiet, (0,))
    for _ in range(trial.quiet.rounds):
        driver.step()
    best = trial.problem.solve()
    gap = float(np.max(np.linalg.norm(driver.estimates[0] - best, axis=1)) / max(float(np.linalg.norm(best)), 1e-300))
    require(
        gap <= trial.distance,
        f"without noise it ends {gap:.2g} from the optimum, relative",
        f"give it more rounds or another step; {trial.distance:g} is allowed",
    )


CONTRACTS: tuple[Callable[[Trial], None], ...] = (
    parameters_are_public_values,
    events_are_known_before_a_row_is_read,
    proven_costs_are_finite,
    state_is_public,
    messages_depend_on_rows,
    rounds_without_rows_get_none,
    seeds_together_are_seeds_alone,
    agents_together_are_agents_alone,
    relabelling_agents_permutes_the_result,
    resuming_gives_the_same_bytes,
    calibrated_noise_costs_the_budget,
    without_noise_it_reaches_the_optimum,
)


# --- for a method from anywhere ---------------------------------------------------------------------------------------


def check_algorithm(
    algorithm: Algorithm, *, quiet: Algorithm | None = None, distance: float = 1e-2, loss: Any = None,
    penalty: Any = None,
) -> str:  # fmt: skip
    """Run every contract on `algorithm`; returns what its label is, or raises a BrokenContract with a line for each.

    algorithm   with few rounds (from 2) and its noise on; two or more rounds take seconds, not minutes
    quiet       the same method without noise, with so many rounds that it reaches the optimum
    distance    how far from the optimum `quiet` may end, relative to its length
    loss        of the problems that it is tried on, by default Logistic; penalty by default L2(0.5)
    """
    if not isinstance(algorithm, Algorithm):
        raise ConfideError(f"{algorithm!r}: must be an instance of a method, such as CDPADMM(rounds=6)")
    graph = None if algorithm.topology == "central" else Graph.random(5, 6, seed=3)
    trial = Trial(algorithm, sample(loss, penalty), sample(loss, penalty, flip=True), graph, quiet, distance)
    broken = [line for line in (_outcome(contract, trial) for contract in CONTRACTS) if line]
    if broken:
        raise BrokenContract(
            f"{algorithm.name} breaks {len(broken)} of {len(CONTRACTS)} contracts\n" + "\n".join(broken)
        )
    return str(algorithm.guarantee(trial.driver().public))


def _outcome(contract: Callable[[Trial], None], trial: Trial) -> str:
    name = contract.__name__.replace("_", " ")
    try:
        contract(trial)
    except BrokenContract as error:
        return f"- {name}: {error}"
    except Exception as error:  # the method's own failure, to be shown beside the others
        said = " ".join(str(error).split()) or "no message"
        return f"- {name}: it raised {type(error).__name__} ({said})"
    return ""


def sample(loss: Any = None, penalty: Any = None, flip: bool = False) -> Problem:
    """A small problem over five parties of unlike size; `flip` gives other rows of the same shape and bounds."""
    loss = loss or losses.Logistic()
    rng = np.random.default_rng(7)
    n = sum(SIZES)
    X = rng.normal(size=(n, FEATURES))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    margin = X @ np.array([1.5, -2.0, 1.0, 0.5]) + 0.3
    y: Array = margin + 0.3 * rng.normal(size=n)
    if loss.labels == "sign":
        y = np.where(margin + rng.logistic(size=n) > 0, 1.0, -1.0)
    elif loss.labels == "class":
        y = np.floor(loss.outputs * rng.random(n))
    if flip:
        X = -X[:, ::-1].copy()
        y = -y if loss.labels == "sign" else (y + 1) % loss.outputs if loss.labels == "class" else y + 1
    shards = Shards.from_groups(X, y, np.repeat(np.arange(len(SIZES)), SIZES)).clip_rows(1.0)
    return Problem(shards, loss, penalty or penalties.L2(0.5))
