"""What a round takes in a node's journal, as it is written and once it is compacted.

    python benchmarks/journals.py            a table
    python benchmarks/journals.py --json     the same as JSON

The own frames of a node and those of its neighbours are written as a run writes them, with the statements
of all other parties; then the journal is compacted as at the end of the run. "after" is a round that is old by then.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import many

from confide.network import wire
from confide.network.identity import Identity
from confide.node import compaction
from confide.node import federation as federations
from confide.node.journal import Journal
from confide.node.witness import Witness

CASES = (  # parties, numbers in a message, method
    (6, 11, "CDPADMM"), (6, 11, "DPSGD"), (300, 11, "CDPADMM"), (300, 11, "DPSGD"), (6, 8001, "CDPADMM"),
    (6, 8001, "DPSGD"),
)  # fmt: skip


def measure(folder: Path, parties: int, numbers: int, method: str, rounds: int) -> dict[str, float | str]:
    """Of the first party, whose neighbours are four."""
    many.FEATURES, many.METHOD = numbers - 1, {"name": method, "clip": 0.5, "noise": 0.1}
    file, names = many.found(folder, parties, rounds)
    federation, me = federations.load(file), names[0]
    people = [Identity.load(folder / name) for name in (me, *federation.neighbours(me))]
    witness = Witness(federation, me)
    state = federation.algorithm.init(federation.public.at(0))
    with Journal(folder / "run", federation.digest) as journal:
        for t in range(1, rounds + 1):
            for who in people:
                told = bytes(wire.STATEMENT * len(witness.told(who.card.name, t)))
                frame = wire.pack(who, federation.digest, t, bytes(8 * numbers), told)
                journal.commit(frame) if who.card.name == me else journal.keep([frame])
        before, began = journal.size, time.perf_counter()
        compaction.compact(journal, federation, me, rounds, witness.reach, state, end=True)
        took, frames = time.perf_counter() - began, list(journal.frames())
        old = [16 + len(frame) for _, t, frame in frames if t <= journal.horizon]
        whole = [16 + len(frame) for _, t, frame in frames if t == rounds]
        return {
            "parties": parties, "numbers": numbers, "method": method, "rounds": rounds, "before": sum(whole),
            "after": sum(old) / journal.horizon if journal.horizon else sum(whole),
            "whole_rounds": rounds - journal.horizon, "mb_before": before / 1e6, "mb_after": journal.size / 1e6,
            "seconds": took,
        }  # fmt: skip


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
        print(f"{r['parties']:7} {r['numbers']:7} {r['method']:8} {r['before']:26,.0f} {r['after']:7,.0f} "
              f"{r['whole_rounds']:15} {r['mb_before']:20.3g} {r['mb_after']:6.3g} {r['seconds']:5.2g}")  # fmt: skip


if __name__ == "__main__":
    main()
