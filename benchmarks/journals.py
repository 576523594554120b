"""What a round takes in a node's journal, as it is written and once it is compacted.

    python benchmarks/journals.py            a table
    python benchmarks/journals.py --json     the same as JSON

The own frames of a node and those of its neighbours are written as a run writes them, with the statements
of all other parties; then the journal is compacted as at the end of the run. "after" is a round that is old by then.
Private sums (JointDescent) are of the root of the tree, who has four children, with the keys of the run and all
signatures.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import many
import numpy as np

from confide.network import frames, wire
from confide.network.frames import Phase, Place
from confide.network.identity import SIGNATURE, Identity
from confide.network.pairing import OFFER
from confide.network.tree import SpanningTree
from confide.node import compaction
from confide.node import federation as federations
from confide.node.federation import Federation
from confide.node.journal import Journal
from confide.node.witness import Witness

CASES = (  # parties, numbers in a message, method
    (6, 11, "CDPADMM"), (6, 11, "DPSGD"), (300, 11, "CDPADMM"), (300, 11, "DPSGD"), (6, 8001, "CDPADMM"),
    (6, 8001, "DPSGD"), (6, 11, "JointDescent"), (6, 101, "JointDescent"), (6, 8001, "JointDescent"),
)  # fmt: skip


def measure(folder: Path, parties: int, numbers: int, method: str, rounds: int) -> dict[str, float | str]:
    """Of a party with four neighbours: the first, or the root."""
    own = {"first": "gradient", "noise": 1.0} if method == "JointDescent" else {"clip": 0.5, "noise": 0.1}
    many.FEATURES, many.METHOD = numbers - 1, {"name": method, **own}
    file, _ = many.found(folder, parties, rounds)
    federation = federations.load(file)
    state = federation.algorithm.init(federation.public.at(0))
    with Journal(folder / "run", federation.digest) as journal:
        if federation.summed:
            sums(journal, federation, folder, numbers, rounds)
        else:
            peers(journal, federation, folder, numbers, rounds)
        before, began = journal.size, time.perf_counter()
        if federation.summed:
            zero = np.zeros(rounds)
            compaction.compact_sums(journal, rounds, numbers, set(), state, end=True, moved=zero, signal=zero)
        else:
            me = federation.parties[0]
            compaction.compact(journal, federation, me, rounds, Witness(federation, me).reach, state, end=True)
        took = time.perf_counter() - began
        sizes: dict[int, int] = {}  # by round
        for _, _, frame in journal.frames():
            t = wire.place(frame)[0]
            sizes[t] = sizes.get(t, 0) + 16 + len(frame)
        old = [sizes[t] for t in range(1, journal.horizon + 1)]
        return {
            "parties": parties, "numbers": numbers, "method": method, "rounds": rounds, "before": sizes[rounds],
            "after": sum(old) / len(old) if old else sizes[rounds], "whole_rounds": rounds - journal.horizon,
            "mb_before": before / 1e6, "mb_after": journal.size / 1e6, "seconds": took,
        }  # fmt: skip


def peers(journal: Journal, federation: Federation, folder: Path, numbers: int, rounds: int) -> None:
    """Rounds of a peer method at the first party."""
    me = federation.parties[0]
    witness, run = Witness(federation, me), federation.digest
    people = [Identity.load(folder / name) for name in (me, *federation.neighbours(me))]
    for t in range(1, rounds + 1):
        for who in people:
            told = bytes(wire.STATEMENT * len(witness.told(who.card.name, t)))
            frame = wire.pack(who, run, t, bytes(8 * numbers), told)
            journal.commit(frame) if who.card.name == me else journal.keep([frame])


def sums(journal: Journal, federation: Federation, folder: Path, numbers: int, rounds: int) -> None:
    """Keys, rounds and signatures of a private sum at the root: children's frames up, and its own down."""
    tree, run = SpanningTree.of(federation.graph), federation.digest
    people = {k: Identity.load(folder / name) for k, name in enumerate(federation.parties)
              if k == tree.root or k in tree.children[tree.root]}  # fmt: skip

    def exchange(up: Phase, round: int, item: int, each: bool) -> None:
        for child in tree.children[tree.root]:
            size = item * len(tree.below[child]) if each else item
            journal.keep([frames.pack(people[child], run, Place(up, round, int(not each)), bytes(size))])
        size = item * len(tree.parent) if each else item
        journal.commit(frames.pack(people[tree.root], run, Place(up.down, round, int(not each)), bytes(size)))

    exchange(Phase.KEYS_UP, 0, OFFER, each=True)
    exchange(Phase.AGREED_UP, 0, SIGNATURE, each=True)
    for t in range(1, rounds + 1):
        exchange(Phase.SUM_UP, t, 8 * numbers, each=False)
    exchange(Phase.AGREED_UP, rounds + 1, SIGNATURE, each=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    results = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as place:
            results.append(measure(Path(place), *case, args.rounds))
    if args.json:
        print(json.dumps(results, indent=2))
        return
    print("parties numbers method       bytes a round: before   after    whole rounds   journal MB: before  after  s")
    for r in results:
        print(f"{r['parties']:7} {r['numbers']:7} {r['method']:12} {r['before']:22,.0f} {r['after']:7,.0f} "
              f"{r['whole_rounds']:15} {r['mb_before']:20.3g} {r['mb_after']:6.3g} {r['seconds']:5.2g}")  # fmt: skip


if __name__ == "__main__":
    main()
