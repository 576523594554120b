"""Methods on private sums: what the parties answer is added up behind masks, so that they share the noise.

In round t every party sends its answer with noise of deviation σ_t, masked; everybody learns the sum over all parties,
and nobody more. A party that keeps its own noise secret protects everyone's rows in the sum: of K parties c may pool
all they know, and h = K - c is enough.

    1  public: K, c, shares s_1 + … + s_T = 1 of μ², Δ_t: how far one row moves the sum of round t
    2  for t = 1, 2, …
    3    every party k: send a_k(rows; what the sums so far say) + N(0, σ_t² I), σ_t = Δ_t/(μ √(s_t h))
    4    everybody: learn the sum, and what follows from it

Theorem. Against outsiders and any j ≤ K - 1 of the parties who pool all they know, T rounds are, computationally,
μ_j-Gaussian private for every row of the other parties, μ_j² = Σ_t Δ_t²/(σ_t² (K - j)): μ at j = c, less for fewer,
and μ√h against all others together.
Proof. Masks are pseudorandom and cancel only in the sum of all messages, so what the j see is, up to the masks'
security, their own part and the honest parties' sum, which carries noise of deviation σ_t√(K - j). A row moves it by at
most Δ_t, since it belongs to one party: one Gaussian release of μ_t = Δ_t/(σ_t√(K - j)). What is asked in a round
follows from earlier sums alone, so rounds compose, adaptively, to μ² = Σ μ_t².
Private state would be fatal here: a primal or dual that a party keeps for itself, hidden by the mask, makes the next
answer depend on rows twice, and Δ_t no longer bounds what a row does. So a subclass can't keep any: it says what is
asked (`question`), at which public points (`points`), and what everyone learns from the sum (`learn`). Nor may it show
messages to neighbours (`topology`), who would see them under one party's noise.

`collusion` is c; by default max(1, ⌊(K-1)/2⌋), an honest majority, and never trust in a single other party. At
c = K - 1 noise is independent, masks are not needed, and nothing is computational: what two parties get. One party
alone is a curator: c = 0, its noise is in every sum, and the theorem speaks of outsiders who see all sums.
Assumed of the network: masks that cancel (in a simulation the sum is simply taken), and that nobody sees less than all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from confide.algorithms.base import OPEN, ROOM, Algorithm, Array, Schedule, cost
from confide.algorithms.gaussian import Ask, GaussianMethod
from confide.errors import ConfideError, WrongType
from confide.privacy import Event, Gaussian, Guarantee, Label
from confide.privacy.secure import charge
from confide.problem.checks import whole
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class SummedMethod(GaussianMethod):
    """A method whose state is a function of public sums alone; `noise` is on a party's own answer in round 1.

    collusion    c, from 0 to one less than there are parties: how many may pool what they know; None: an honest
                 majority
    """

    topology = "all"
    open = (  # neither private state, nor messages that anyone sees
        OPEN - {"message", "absorb", "asks", "noise_scale", "topology", "weights"}
    ) | {"points", "learn", "shares", "goes_on"}

    collusion: int | None = None  # c: how many parties may pool what they know; None: an honest majority

    # --- what a subclass writes -------------------------------------------------------------------------------------

    def points(self, t: int, state: Any, public: Public) -> tuple[Any, ...]:
        """The public points at which round t asks its question."""
        raise WrongType(f"{self.name} does not say where it asks: a method needs `points`")

    def learn(self, t: int, state: Any, total: Array, public: Public) -> Any:
        """The next state, from the sum (S, A, numbers) that everyone has."""
        raise WrongType(f"{self.name} does not say what it learns: a method needs `learn`")

    def goes_on(self, t: int, state: Any, public: Public) -> Any:
        """The state with which fewer parties go on after t rounds of more; `public` is theirs."""
        return state if t else self.init(public)

    def shares(self, public: Public) -> Array:
        """What each round spends of μ²: (rounds,), 1 together."""
        return np.full(self.rounds, 1.0 / self.rounds)

    # --- the contract -----------------------------------------------------------------------------------------------

    def check(self, public: Public) -> None:
        super().check(public)
        self.shared_noise()
        if self.assumed_bound is not None:
            raise ConfideError(f"{self.name} assumed_bound={self.assumed_bound}: its questions enforce theirs")
        if self.collusion is not None:
            if public.count == 1:
                raise ConfideError(f"{self.name} collusion={self.collusion}: one party has no others, leave it None")
            self.colluders(public)

    def colluders(self, public: Public) -> int:
        """c."""
        if self.collusion is None:
            return default_collusion(public.count)
        _counted(self.name, "collusion", self.collusion, 1, public)
        return int(self.collusion)

    def honest(self, public: Public) -> int:
        """h = K - c: parties whose noise nobody else knows."""
        return public.count - self.colluders(public)

    def schedule(self, public: Public) -> Schedule:
        plain = super().schedule(public)
        return plain._replace(widths=plain.noised)

    def message(self, t: int, state: Any, ask: Ask, public: Public) -> Array:
        return ask(*self.points(t, state, public))  # line 3

    def absorb(self, t: int, state: Any, message: Array, received: Array, public: Public) -> Any:
        return self.learn(t, state, received, public)  # line 4: not from the own message

    def noise_scale(self, t: int, public: Public) -> Array:
        first, now = (float(np.max(self.sensitivity(r, public.whole))) for r in (1, t))
        share = self.shares(public)
        return public.each(self.shared_noise()) * (now / first * math.sqrt(share[0] / share[t - 1]))

    def shared_noise(self) -> float:
        """The deviation on a party's own answer in round 1. The theorem counts h equal parts: one number, here too."""
        if np.ndim(self.noise) != 0:
            raise ConfideError(f"{self.name} noise={self.noise}: parties share their noise, give one number")
        return self.noise

    def sum_scale(self, t: int, public: Public) -> Array:
        """Standard deviation of the noise in the sum of round t, σ_t√K: (A, 1)."""
        return math.sqrt(public.count) * self.noise_scale(t, public)

    def events(self, public: Public) -> list[list[Event]]:
        return self.against(self.colluders(public), public)

    def against(self, colluders: int, public: Public) -> list[list[Event]]:
        """The cost of every round against so many parties together, and outsiders: μ_j of the theorem."""
        _counted(self.name, "colluders", colluders, 0, public)
        if not (self.private(public) and self.bounded(public)):
            return Algorithm.events(self, public)
        honest = public.count - colluders
        together = f"outsiders and any {colluders} of {public.count} parties together"
        out: list[list[Event]] = []
        for t in range(1, self.rounds + 1):
            moved, own = self.sensitivity(t, public)[:, 0], self.noise_scale(t, public)[:, 0]
            shared = Gaussian(moved, math.sqrt(honest) * own, adversary=together, alone=own)
            out.append([shared if honest > 1 else Gaussian(moved, own)])
        return out

    def charged_against(self, colluders: int, public: Public) -> list[list[Event]]:
        """The same as secure noise makes it."""
        return charge(self.against(colluders, public), self.schedule(public).noised)

    def cost_against(self, colluders: int, public: Public, delta: float) -> tuple[float, float | None]:
        """The largest ε over agents of all rounds against so many, and μ."""
        return cost(self.against(colluders, public), delta)

    def stated(self, public: Public) -> Guarantee:
        plain = super().stated(public)
        if plain.label != Label.PROVEN or self.honest(public) == 1:
            return plain
        return Guarantee(
            Label.PROVEN,
            f"{plain.reason}, shared behind masks: computational, if at most {self.colluders(public)} of "
            f"{public.count} parties collude",
        )

    def calibrated(
        self, public: Public, epsilon: float | None = None, delta: float | None = None, *, mu: float | None = None
    ) -> Self:
        method = super().calibrated(public, epsilon, delta, mu=mu)
        return replace(method, noise=float(np.max(method.noise)))  # one for all: that of the party it costs most

    def longest_step(self, t: int, public: Public) -> Array:
        return self.longest_answer(t, public)

    def message_bound(self, public: Public) -> float:
        """As in every method, but a message is one answer: nothing adds up over the rounds."""
        if self.ball is not None:
            return float(self.ball)
        if not self.private(public):
            return math.inf
        return ROOM * max(float(np.max(self.longest_answer(t, public.whole))) for t in range(1, self.rounds + 1))


def default_collusion(parties: int) -> int:
    """c where nobody says: an honest majority, and never trust in a single other party; one alone has no others."""
    return min(max(1, (parties - 1) // 2), parties - 1)


def mass(public: Public) -> float:
    """What all rows count together: 1 where rows are weighted by their number, K where parties are."""
    return float(public.whole.scale[:, 0] @ public.sizes)


def _counted(name: str, what: str, given: Any, least: int, public: Public) -> None:
    if not (whole(given) and least <= given <= public.count - 1):
        raise ConfideError(
            f"{name} {what}={given}: must be a whole number from {least} to {public.count - 1}, the other parties"
        )
