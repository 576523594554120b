"""The stages of a run of private sums at one party: whose numbers are added in each of them, in which tree, on which
grid, and which rounds were."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from confide.algorithms.summed import SummedMethod
from confide.network import frames, wire
from confide.network.frames import Phase
from confide.network.identity import Identity
from confide.network.masking import Grid
from confide.network.tree import SpanningTree, Speaker
from confide.node.federation import Federation
from confide.node.journal import Journal
from confide.node.masked_noise import MaskedNoise, SeededMaskedNoise, grids
from confide.runs.party import Party


class Terms:
    """What holds in one stage, for the member `name`."""

    def __init__(self, federation: Federation, name: str) -> None:
        assert isinstance(federation.algorithm, SummedMethod)
        self.federation, self.method = federation, federation.algorithm
        self.k, self.tree = federation.parties.index(name), SpanningTree.of(federation.graph)
        up = self.tree.parent[self.k]
        self.above = federation.cards[name if up < 0 else federation.parties[up]].digest  # who hands out totals

    @cached_property
    def grids(self) -> list[Grid]:
        return grids(self.method, self.federation.public)

    def party(self) -> Party:
        """Of these terms, without rows: its noise is its own in every stage."""
        seed, first = self.federation.test_noise_seed, self.federation.founding
        number = first.parties.index(self.federation.parties[self.k])
        noise = (
            MaskedNoise(grids=self.grids) if seed is None
            else SeededMaskedNoise(np.array([seed]), np.array([number]), grids=self.grids)
        )  # fmt: skip
        return Party(self.k, self.method, self.federation.public, None, noise)

    def speaker(self, identity: Identity) -> Speaker:
        f = self.federation
        return Speaker(self.tree, self.k, f.digest, identity, [f.cards[name] for name in f.parties])


def terms_of(federation: Federation, name: str) -> list[Terms]:
    """Of every stage."""
    return [Terms(one, name) for one in federation.stages]


def heads_of(federation: Federation, journal: Journal, mine: bytes) -> list[bytes]:
    """Under what a party said its numbers first, for each round in which it did."""
    first: dict[int, int] = {}  # round -> stage
    for number in _spoken(journal, mine):
        round = wire.round_in(number)
        first[round] = min(wire.stage_in(number), first.get(round, wire.stage_in(number)))
    return [federation.stages[first[round]].head for round in sorted(first)]


def _spoken(journal: Journal, mine: bytes) -> Iterable[int]:
    """Numbers of the own frames that hold numbers of the own rows."""
    own = (number for sender, number in journal.numbers() if sender == mine)
    return (n for n in own if frames.place_of(n)[0] >= Phase.SUM_UP and journal.attempt(mine, n) > 0)
