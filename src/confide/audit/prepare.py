"""What an audit by name attacks: a method calibrated to a total (ε, δ), its canaries and what it then claims.

The claim comes from the method, which asks the accountants; the audit itself never does.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

from confide.algorithms import DZOA, SUMMED, Algorithm, GaussianMethod, JointTally, SummedMethod
from confide.algorithms.catalogue import method_class
from confide.audit.adversary import ADVERSARIES
from confide.audit.canary import Canary, family, worst_case
from confide.audit.engine import Case, trials
from confide.errors import ConfideError
from confide.network.graph import Graph
from confide.problem import losses
from confide.problem.losses import Loss
from confide.problem.penalties import L2

LOSSES = (
    "absolute", "hinge", "huber", "logistic", "multinomial", "noisy-labels", "quantile", "smoothed-hinge", "squared",
    "squared-hinge",
)  # fmt: skip
CLIP = 0.1  # small, so that the canary's gradient is clipped whatever the loss
ROWS, PARTIES = 5, 5
STRONG, MILD = 100.0, 1.0  # penalties: one that shortens a proximal step much, and one that a gradient step bears
CELLS = (-0.5, 0.5)  # of targets: between one and its mirror image
RELEASE_NOISE = 1e-3  # covers the solver's residual; costs next to nothing


class Job(NamedTuple):
    """A method with its noise set, the canary, and the claim in plain numbers; a whole family may stand behind it."""

    method: Algorithm
    canary: Canary
    epsilon: float
    mu: float | None
    family: tuple[Canary, ...] = ()
    setting: str = ""


def cases(jobs: list[Job], canary: str | None, adversary: str | None) -> list[Case]:
    """What is to be tried: everything, or the pair of rows and the lie that were asked for."""
    if not jobs[0].family:
        if canary or adversary:
            raise ConfideError("this claim is attacked with one canary of its own: leave out --canary and --adversary")
        return [Case(job.method, [job.canary], job.epsilon, job.mu) for job in jobs]
    if adversary is not None and adversary not in ADVERSARIES:
        raise ConfideError(f"unknown adversary {adversary!r}: known are {', '.join(ADVERSARIES)}")
    known = list(dict.fromkeys(c.name for job in jobs for c in job.family))
    if canary is not None and canary not in known:
        raise ConfideError(f"unknown canary {canary!r}: known are {', '.join(known)}")
    found = []
    for job in jobs:
        chosen = [c for c in job.family if canary in (None, c.name)]
        told = None if adversary is None else [ADVERSARIES[adversary]]
        if chosen:
            found.append(Case(job.method, trials(job.method, chosen, told), job.epsilon, job.mu, job.setting))
    return found


def prepare(algorithm: str, loss: str | None, epsilon: float, delta: float, rounds: int, published: bool) -> Job:
    """The method calibrated to (epsilon, delta), its canaries and what it claims, in its plain setting."""
    return prepare_all(algorithm, loss, epsilon, delta, rounds, published, settings=1)[0]


def prepare_all(
    algorithm: str, loss: str | None, epsilon: float, delta: float, rounds: int, published: bool, rows: int = ROWS,
    settings: int = 2,
) -> list[Job]:  # fmt: skip
    """The same in so many settings: plain, then with an intercept and a penalty, whose prox is taken."""
    kind = method_class(algorithm, also=SUMMED)
    if algorithm == "DZOA":
        return [d_zoa(named(loss or "absolute"), epsilon, delta, rounds)]
    if not hasattr(kind, "calibrated"):
        raise ConfideError(f"{algorithm} claims no privacy: there is nothing to audit")
    if published:
        return [as_published(kind, loss, epsilon, delta, rounds)]
    names = {f.name for f in fields(kind)}
    plain: dict[str, Any] = {"rounds": rounds}
    if "clip" in names and algorithm not in ("PVP", "PDML"):  # these two minimise the loss as it is
        plain["clip"] = CLIP
    if "release_noise" in names:
        plain["release_noise"] = RELEASE_NOISE
    if "directions" in names:
        plain["directions"] = 1  # or the mean over directions would hide what was released
    tried: list[tuple[str, dict[str, Any], Any, bool]] = [("plain", plain, ridge(algorithm), False)]
    if "proximal" in names:
        text = f"intercept and L2({STRONG:g}), proximal"
        tried.append((text, plain | {"proximal": True}, L2(STRONG), True))
    elif algorithm != "PDML":  # its corrected loss may have no minimum in an intercept
        tried.append((f"intercept and L2({MILD:g})", plain, L2(MILD), True))
    jobs = []
    for setting, parameters, penalty, intercept in tried[:settings]:
        method: Any = kind(**parameters)
        canaries = family(named(loss or usual(kind)), method, rows=rows, penalty=penalty, intercept=intercept)
        method = method.calibrated(canaries[0].public(method), epsilon, delta)
        total, mu = method.total_cost(canaries[0].public(method), delta)
        jobs.append(Job(method, canaries[0], total, mu, tuple(canaries), setting))
    return jobs


def is_summed(algorithm: str) -> bool:
    """Whether the method of this name learns from private sums."""
    return issubclass(method_class(algorithm, also=SUMMED), SummedMethod)


def coalitions(
    algorithm: str, loss: str | None, epsilon: float, delta: float, rounds: int, *, rows: int = ROWS,
    parties: int = PARTIES, collusion: int | None = None, colluders: str | None = None,
) -> dict[int, list[Job]]:  # fmt: skip
    """A method on private sums, calibrated to (epsilon, delta) against c colluders: a job per coalition and setting.

    What is claimed against j colluders is what the same noise costs where c is j.
    """
    kind: Any = method_class(algorithm, also=SUMMED)
    if not issubclass(kind, SummedMethod):
        raise ConfideError(f"{algorithm} sends its messages bare: leave out --colluders, --collusion and --parties")
    if parties < 2:
        raise ConfideError(f"--parties {parties}: must be at least 2")
    graph = Graph.complete(parties)
    jobs: dict[int, list[Job]] = {}
    for setting, method, canaries in summed(kind, loss, rounds, rows, graph, collusion):
        public = canaries[0].public(method)
        method.check(public)
        method = method.calibrated(public, epsilon, delta)
        for j in numbered(colluders, method.colluders(public), parties):
            total, mu = method.cost_against(j, public, delta)
            mine = tuple(canary.colluding(j) for canary in canaries)
            jobs.setdefault(j, []).append(Job(method, mine[0], total, mu, mine, setting))
    return jobs


def summed(
    kind: type[Any], loss: str | None, rounds: int, rows: int, graph: Graph, collusion: int | None
) -> list[tuple[str, Any, list[Canary]]]:
    """A method on private sums in its settings, with the rows to attack each."""
    tally = issubclass(kind, JointTally)
    once = kind.__dataclass_fields__["rounds"].default == 1
    given: dict[str, Any] = {"edges": CELLS} if tally else {} if once else {"rounds": rounds}
    method: Any = kind(collusion=collusion, **given)
    usual = "squared" if tally else "logistic"
    tried: list[tuple[str, Any, bool]] = [("plain", None, False)]
    if not once:
        tried.append((f"intercept and L2({MILD:g})", L2(MILD), True))
    return [(text, method, family(named(loss or usual), method, rows=rows, penalty=penalty, intercept=intercept,
                                  graph=graph)) for text, penalty, intercept in tried]  # fmt: skip


def numbered(colluders: str | None, made_for: int, parties: int) -> list[int]:
    """The numbers of colluders that were asked for: one, several by commas, "all", or those the noise is made for."""
    if colluders is None:
        return [made_for]
    if colluders == "all":
        return list(range(parties))
    words = colluders.split(",")
    if not all(word.strip().isdecimal() and int(word) < parties for word in words):
        raise ConfideError(
            f"--colluders {colluders}: must be whole numbers from 0 to {parties - 1}, such as 2 or 0,2, or all"
        )
    return sorted({int(word) for word in words})


def d_zoa(loss: Loss, epsilon: float, delta: float, rounds: int) -> Job:
    """As its paper sets it for a total (epsilon, delta), and the total it then claims."""
    method = DZOA(rounds=rounds)
    canary = worst_case(loss, method, rows=20, target=1.0)  # N_k of the paper
    method, claimed = method.as_published(canary.view(method), epsilon, delta)
    return Job(method, canary, claimed, None)


def as_published(kind: type[Any], loss: str | None, epsilon: float, delta: float, rounds: int) -> Job:
    """Rows of any length under an assumed bound c1 = 1; for PDML the noise of its Table I, against the ε given."""
    if kind.__name__ == "PDML":
        method = kind(rounds=rounds, objective_noise=1.0, noise=1.0)  # η_i within R = 1, V = 1, decay 0.8
        canary = worst_case(
            named("noisy-labels"), method, contrast="blank", rows=70, length=2.0, penalty=L2(1.0),
            graph=Graph.random(10, 13, seed=0), heard=(20.0, -20.0),
        )  # fmt: skip  # German: 700 training rows, 10 servers, 13 links, a = 1
        return Job(method, canary, epsilon, None)
    if not issubclass(kind, GaussianMethod) or kind.__name__ in ("PrivateZeroth", "PrivatePDML"):
        raise ConfideError(f"{kind.__name__} has no published form that differs: leave out --published")
    method = kind(rounds=rounds, assumed_bound=1.0)
    canary = worst_case(named(loss or "squared"), method, target=10.0)  # gradients reach 10 to 80 times c1
    method = method.calibrated(canary.public(method), epsilon, delta)
    return Job(method, canary, *method.total_cost(canary.public(method), delta))


def named(loss: str) -> Loss:
    """A loss by its name on the command line."""
    made = {
        "absolute": losses.Absolute, "hinge": losses.Hinge, "huber": losses.Huber, "logistic": losses.Logistic,
        "multinomial": losses.Multinomial, "quantile": losses.Quantile, "smoothed-hinge": losses.SmoothedHinge,
        "noisy-labels": lambda: losses.NoisyLabels(losses.Logistic(), 1.0), "squared": losses.Squared,
        "squared-hinge": losses.SquaredHinge,
    }  # fmt: skip
    if loss not in made:
        raise ConfideError(f"unknown loss {loss!r}: known are {', '.join(LOSSES)}")
    return made[loss]()


def usual(kind: type[Algorithm]) -> str:
    """A loss that suits the method."""
    if kind.__name__ in ("PDML", "PrivatePDML"):
        return "noisy-labels"
    return {"smooth loss": "logistic"}.get(kind.needs, "huber" if kind.__name__ == "PVP" else "squared")


def ridge(algorithm: str) -> Any:
    """PDML's corrected loss has no minimum without one."""
    return L2(1.0) if algorithm == "PDML" else None
