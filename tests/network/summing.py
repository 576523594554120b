"""A network in memory: parties of private sums, and a driver that carries their frames along the links of a graph."""

import numpy as np

from confide.network.frames import Phase
from confide.network.identity import Identity
from confide.network.masking import ClaimFile
from confide.network.pairing import RunKey
from confide.network.private_sum import PrivateSum
from confide.network.tree import SpanningTree, Speaker

RUN = bytes(range(32))
_PEOPLE: list[Identity] = []


def people(count, home):
    """So many identities, made once."""
    while len(_PEOPLE) < count:
        name = f"party-{len(_PEOPLE)}"
        _PEOPLE.append(Identity.create(home / name, name, "127.0.0.1:7001"))
    return _PEOPLE[:count]


class Village:
    """All parties of a graph. `lie(k, place, frame, to)` may change what party k shows to another."""

    def __init__(self, graph, home, widths, party=PrivateSum):
        self.graph, self.home, self.widths, self.kind = graph, home, list(widths), party
        self.tree, self.people = SpanningTree.of(graph), people(graph.size, home)
        self.cards = [one.card for one in self.people]
        self.journals = [[] for _ in self.people]  # frames in order, own and received
        self.keys = [RunKey.create(RUN) for _ in self.people]
        self.claims = [ClaimFile.create(home / f"claims {k}") for k in range(graph.size)]
        self.parties = [self.born(k) for k in range(graph.size)]
        self.seen = []  # every frame on every link
        self.lie = lambda k, place, frame, to: frame
        for k, one in enumerate(self.parties):
            self.journals[k] += one.start()

    def born(self, k):
        speaker = Speaker(self.tree, k, RUN, self.people[k], self.cards)
        return self.kind(speaker, self.keys[k], self.claims[k], self.widths)

    def again(self, k):
        """Party k crashes, and starts again from its key, its claims and its journal."""
        self.claims[k].close()
        self.claims[k] = ClaimFile(self.home / f"claims {k}")
        self.parties[k] = self.born(k)
        self.journals[k] += self.parties[k].replay(list(self.journals[k]))

    def listen(self, k):
        """Party k hears what it wants and others have; whether there was anything."""
        one, moved = self.parties[k], False
        for other in list(one.wanted):
            if (place := one.wanted.get(other)) is None:
                continue  # what was heard before began the round again
            assert self.graph.has_edge(k, other)
            if (frame := self.shown(other, place)) is not None:
                frame = self.lie(other, place, frame, k)
                self.seen.append((other, place, frame))
                self.journals[k] += [frame, *one.hear(other, frame)]
                moved = True
        return moved

    def shown(self, k, place):
        """What party k answers: the frame of that place, or that its round began again."""
        said = self.parties[k].frames
        again = [frame for (phase, t, a), frame in said.items()
                 if phase == Phase.AGAIN and t == place.round and a > place.attempt > 0]  # fmt: skip
        return said.get(place.key) or (again[-1] if again else None)

    def speak(self, k, values):
        """Party k says its numbers, if it is its turn."""
        if t := self.parties[k].turn:
            self.journals[k] += self.parties[k].contribute(values(t, k))
        return bool(t)

    def run(self, values, until=lambda: False):
        """Carry frames until all are done, or `until` says so; values(t, k) are party k's numbers of round t."""
        while not all(one.done for one in self.parties):
            moved = False
            for k in range(self.graph.size):
                moved |= self.listen(k)
                if until():
                    return
                moved |= self.speak(k, values)
            assert moved, "nobody can go on"


def numbers(widths, seed=0):
    """values(t, k): the same at each call."""
    return lambda t, k: np.random.default_rng((seed, t, k)).integers(-(2**50), 2**50, widths[t - 1])
