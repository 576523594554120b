"""Sums up and down a tree: every party hands its parent the sum of what lies below, and its children the total.

The tree is public: a breadth-first tree of the graph from its centre, so that no spanning tree is less deep. Where
there is a choice, the lower number wins. A party speaks twice in a pass, up to its parent and down to its children.

A `Pass` is one party's part in one of them, without input or output:

    turn = Pass(speaker, place, Adding(width))
    turn.wanted                  # {neighbour: place} of the frames that it needs now; empty where it must speak itself
    turn.hear(neighbour, frame)  # checked: one line if it is not what is wanted, and nothing changes
    turn.speak(own)              # the own part, once all children were heard: a frame to be journaled, then shown
    turn.frames                  # by phase, what the parent (up) and the children (down) may fetch
    turn.result                  # what came down, at last

A party speaks only after its children, so that its own part leaves in the frame that carries theirs: a crash before
that frame is in the journal loses nothing that anyone has seen. `restore` takes such a frame back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from confide.errors import ConfideError
from confide.network import frames
from confide.network.frames import Phase, Place
from confide.network.graph import Graph
from confide.network.identity import Card, Identity
from confide.network.masking import total


@dataclass(frozen=True)
class SpanningTree:
    """`parent[k]` of every party but the root, whose is -1."""

    parent: tuple[int, ...]

    @classmethod
    def of(cls, graph: Graph) -> SpanningTree:
        """From the centre of the graph: of those whose farthest party is nearest, the one of the lowest number."""
        near = [sorted(int(l) for l in graph.neighbours(k)) for k in range(graph.size)]
        root = min(range(graph.size), key=lambda k: (max(_distances(near, k)), k))
        level = _distances(near, root)
        return cls(tuple(next((l for l in near[k] if level[l] < level[k]), -1) for k in range(graph.size)))

    @property
    def root(self) -> int:
        return self.parent.index(-1)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(l for l, up in enumerate(self.parent) if up == k) for k in range(len(self.parent)))

    @cached_property
    def below(self) -> tuple[tuple[int, ...], ...]:
        """For every party, those whose parts pass through it, itself included, in order."""
        found: list[set[int]] = [set() for _ in self.parent]
        for k in range(len(self.parent)):
            at = k
            while at >= 0:
                found[at].add(k)
                at = self.parent[at]
        return tuple(tuple(sorted(some)) for some in found)

    @property
    def depth(self) -> int:
        """Links between the root and the party farthest from it."""
        through = [sum(k in some for some in self.below) for k in range(len(self.parent))]
        return max(through) - 1


def _distances(near: Sequence[Sequence[int]], start: int) -> list[int]:
    """How many links away each party is."""
    away, queue = {start: 0}, deque([start])
    while queue:
        k = queue.popleft()
        for l in near[k]:
            if l not in away:
                away[l] = away[k] + 1
                queue.append(l)
    return [away[k] for k in range(len(near))]


# --- What is passed -----------------------------------------------------------------------------------------------


class Content(Protocol):
    """How parts of several parties become one."""

    def size(self, parties: int) -> int:
        """Bytes of what stands for so many parties."""

    def merge(self, parts: Mapping[tuple[int, ...], bytes]) -> bytes:
        """Parts of different parties as one."""


@dataclass(frozen=True)
class Adding:
    """Sums mod 2^64 of `width` numbers: as long for all as for one."""

    width: int

    def size(self, parties: int) -> int:
        return 8 * self.width

    def merge(self, parts: Mapping[tuple[int, ...], bytes]) -> bytes:
        return total(np.frombuffer(part, "<u8") for part in parts.values()).astype("<u8").tobytes()


@dataclass(frozen=True)
class Gathering:
    """Everybody's `item` bytes, in the parties' order."""

    item: int

    def size(self, parties: int) -> int:
        return self.item * parties

    def merge(self, parts: Mapping[tuple[int, ...], bytes]) -> bytes:
        by_party = {
            k: part[n * self.item : (n + 1) * self.item] for some, part in parts.items() for n, k in enumerate(some)
        }
        return b"".join(by_party[k] for k in sorted(by_party))

    def items(self, whole: bytes) -> list[bytes]:
        """One for each party."""
        return [whole[at : at + self.item] for at in range(0, len(whole), self.item)]


# --- One party's part ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Speaker:
    """Party k of a tree, who signs as `identity`; `cards` are everybody's, by number."""

    tree: SpanningTree
    k: int
    run: bytes
    identity: Identity
    cards: Sequence[Card]

    def __post_init__(self) -> None:
        if len(self.cards) != len(self.tree.parent):
            raise ConfideError(f"{len(self.cards)} cards: must be those of {len(self.tree.parent)} parties")
        if self.cards[self.k].digest != self.identity.card.digest:
            raise ConfideError(f"{self.identity.card.name} is not party {self.k}, {self.cards[self.k].name}")

    @property
    def children(self) -> tuple[int, ...]:
        return self.tree.children[self.k]

    @property
    def parent(self) -> int:
        return self.tree.parent[self.k]

    @property
    def everyone(self) -> int:
        return len(self.cards)


class Pass:
    """One party's part in one pass; `place` is that of the frames on their way up."""

    def __init__(self, speaker: Speaker, place: Place, content: Content) -> None:
        if not place.phase.up:
            raise ConfideError(f"{place}: a pass begins with what goes up")
        self.speaker, self.place, self.content = speaker, place, content
        self.frames: dict[Phase, bytes] = {}
        self.result: bytes | None = None
        self._heard: dict[int, bytes] = {}
        self.spoken = False

    @property
    def turn(self) -> bool:
        """Whether all children were heard, and the own part is due."""
        return not self.spoken and len(self._heard) == len(self.speaker.children)

    @property
    def wanted(self) -> dict[int, Place]:
        """Whose frame is needed now, and where it belongs."""
        if not self.spoken:
            return {l: self.place for l in self.speaker.children if l not in self._heard}
        return {} if self.result is not None else {self.speaker.parent: self._down}

    @property
    def parts(self) -> dict[tuple[int, ...], bytes]:
        """What was heard of the children, by whose parts it is."""
        return {self.speaker.tree.below[l]: part for l, part in self._heard.items()}

    def hear(self, neighbour: int, frame: bytes) -> bytes | None:
        """A frame that is wanted; the own frame that follows from it at once, if one does."""
        self.check(neighbour, frame)
        return self.take(neighbour, frame)

    def check(self, neighbour: int, frame: bytes) -> None:
        """One line unless this is what is wanted of that neighbour."""
        place, s = self.wanted_of(neighbour), self.speaker
        parties = len(s.tree.below[neighbour]) if place.phase.up else s.everyone
        frames.unpack(frame, s.cards[neighbour], s.run, place, self.content.size(parties))

    def wanted_of(self, neighbour: int) -> Place:
        if (place := self.wanted.get(neighbour)) is None:
            raise ConfideError(f"a frame of party {neighbour}: wanted are those of {sorted(self.wanted) or 'nobody'}")
        return place

    def take(self, neighbour: int, frame: bytes) -> bytes | None:
        """A frame that was checked; the own frame that follows, if one does."""
        place, payload = self.wanted_of(neighbour), frames.payload_of(frame)
        if place.phase.up:
            self._heard[neighbour] = payload
            return None
        self.result = payload
        return self._show(self._down, payload) if self.speaker.children else None

    def speak(self, own: bytes) -> bytes:
        """The own part, added to what was heard: the frame up, or the root's down."""
        if not self.turn:
            raise ConfideError(f"{self.place}: spoken already, or before {sorted(self.wanted)} were heard")
        if len(own) != self.content.size(1):
            raise ConfideError(f"a part of {len(own)} bytes: must be {self.content.size(1)}")
        s = self.speaker
        whole = self.content.merge({(s.k,): own} | self.parts)
        self.spoken = True
        if s.parent >= 0:
            return self._show(self.place, whole)
        self.result = whole
        return self._show(self._down, whole)

    @property
    def due(self) -> Place:
        """Where the next own frame belongs."""
        return self.place if not self.spoken and self.speaker.parent >= 0 else self._down

    def restore(self, frame: bytes) -> None:
        """The next own frame, from the journal, stands: it is shown again as it is, and nothing is said anew."""
        s, place = self.speaker, self.due
        parties = len(s.tree.below[s.k]) if place.phase.up else s.everyone
        payload = frames.unpack(frame, s.cards[s.k], s.run, place, self.content.size(parties))
        self.spoken = True
        if not place.phase.up:
            self.result = payload
        self.frames[place.phase] = frame

    @property
    def _down(self) -> Place:
        return replace(self.place, phase=self.place.phase.down)

    def _show(self, place: Place, payload: bytes) -> bytes:
        s = self.speaker
        self.frames[place.phase] = frames.pack(s.identity, s.run, place, payload)
        return self.frames[place.phase]
