"""Where each party of a run stands when its members change, and where all of them go on.

A round that a lost member had a part in can't be finished, but its total may be there already: some have it, and some
were to get it from the one who is lost. They are never further apart than that, for nobody speaks in a round before it
has the total of the one before. So in a new *stage* of a run, once its members have shown each other their keys,
everybody says how far it is, up and down their tree as in any sum:

    stage 4 | round 4 | attempt 4 | drawn 4 | total                                       little-endian

the last total it has, in which stage, round and attempt that was made, and the last attempt of the round after whose
streams it used. Of several, the one with the latest round stands for all, with the largest `drawn`: everybody takes
that total, and begins the next round with attempt drawn + 1, of which nobody has used a stream.

Who takes a total that it had not checks that it had said its own numbers of that very round and attempt: without them
there would be no such total. Whether it is the true one shows with the next frame, whose hash of all that was heard it
changes. A member that lies here can spoil a sum, as it can anywhere, or end the run, and never see more.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from confide.errors import ConfideError
from confide.network import frames, wire
from confide.network.frames import NOTHING, Phase

TOTAL_LABEL = b"confide total\0"
_WORDS = struct.Struct("<IIII")


def heard_after(heard: bytes, round: int, attempt: int, total: bytes) -> bytes:
    """The hash of everything that all must have in common, once the total of this round is there."""
    return hashlib.sha256(TOTAL_LABEL + heard + struct.pack("<II", round, attempt) + total).digest()


@dataclass(frozen=True)
class Standing:
    """The last total that a party has, round 0 where it has none."""

    stage: int = 0  # in which it was made
    round: int = 0
    attempt: int = 0
    total: bytes = b""
    drawn: int = 0  # the last attempt of the round after whose streams were used
    heard: bytes = NOTHING  # of the keys and all totals up to this one: not sent
    spoke: Mapping[tuple[int, int], bytes] = field(default_factory=dict)  # not sent, either
    # (stage, attempt) in which the own numbers of the round after went up -> what was heard before

    def pack(self, room: int) -> bytes:
        """As others hear it; `room` bytes for the total."""
        return _WORDS.pack(self.stage, self.round, self.attempt, self.drawn) + self.total.ljust(room, b"\0")

    @classmethod
    def read(cls, data: bytes, widths: Sequence[int]) -> Standing:
        """What someone else said, of rounds of these widths."""
        stage, round, attempt, drawn = _WORDS.unpack_from(data)
        if round > len(widths):
            raise ConfideError(f"a total of round {round}: there are {len(widths)}")
        size = 8 * widths[round - 1] if round else 0
        return cls(stage, round, attempt, data[_WORDS.size : _WORDS.size + size], drawn)

    def joined(self, all_of_us: Standing) -> Standing:
        """Where this party goes on if that is where everybody does; one line if it can't be."""
        if all_of_us.round == self.round:
            return self
        before = self.spoke.get((all_of_us.stage, all_of_us.attempt))
        if all_of_us.round != self.round + 1 or before is None:
            raise ConfideError(
                f"a total of round {all_of_us.round} is said to be there, and we are at round {self.round}, without a "
                "part in it: a member made it up; begin another run"
            )
        heard = heard_after(before, all_of_us.round, all_of_us.attempt, all_of_us.total)
        return replace(all_of_us, heard=heard)


class Stage(NamedTuple):
    """A change of the members or links of a run: its number, from 1, what all of them signed, and where we stood."""

    number: int
    head: bytes
    standing: Standing

    def begun(self, keys: bytes) -> bytes:
        """What all have heard once they hold the same list of keys, whose hash is given."""
        return hashlib.sha256(TOTAL_LABEL + keys + self.head).digest()


@dataclass(frozen=True)
class Farthest:
    """What is passed on: of several standings the farthest, with `room` bytes for the total."""

    room: int

    def size(self, parties: int) -> int:
        return _WORDS.size + self.room

    def merge(self, parts: Mapping[tuple[int, ...], bytes]) -> bytes:
        words = {some: _WORDS.unpack_from(part) for some, part in parts.items()}
        last = max(round for _, round, _, _ in words.values())
        there = sorted(some for some, (_, round, _, _) in words.items() if round == last)
        stage, round, attempt, _ = words[there[0]]
        drawn = max(words[some][3] for some in there)
        return _WORDS.pack(stage, round, attempt, drawn) + parts[there[0]][_WORDS.size :]


class Past:
    """What a journal says of the totals that a party got: `reached[stage]`, in order.

    `above` has, for every stage, who hands them to the party `mine`: its parent, or itself at the root. A total that
    was left out since (`node.compaction`) is there without its numbers; never the last of a stage.
    """

    def __init__(self, journal: Iterable[tuple[bytes, int]], read: Callable[[bytes, int], bytes], mine: bytes,
                 above: Sequence[bytes], widths: Sequence[int]) -> None:  # fmt: skip
        self._read, self._mine, self._widths = read, mine, widths
        self._down: dict[tuple[int, int], int] = {}  # (stage, round) -> number
        self._up: dict[int, list[int]] = {}  # round -> numbers of own frames
        for sender, number in journal:
            phase, round, _ = frames.place_of(number)
            stage = wire.stage_in(number)
            if phase == Phase.SUM_DOWN and stage < len(above) and sender == above[stage]:
                self._down[stage, round] = number
            if phase == Phase.SUM_UP and sender == mine and round:
                self._up.setdefault(round, []).append(number)
        self.reached: list[list[Standing]] = []
        now = Standing()
        for stage, who in enumerate(above):
            self.reached.append(list(self._stage(stage, who, now)))
            now = self.reached[-1][-1] if self.reached[-1] else now

    def _stage(self, stage: int, who: bytes, now: Standing) -> Iterator[Standing]:
        if (stage, 0) in self._down:  # what others had, and this party had not
            found = Standing.read(frames.payload_of(self._read(who, self._down[stage, 0])), self._widths)
            if found.round > now.round:
                now = replace(now, spoke=self._spoke(now.round + 1)).joined(found)
                yield now
        while (number := self._down.get((stage, now.round + 1), 0)) > 0:
            frame, round, attempt = self._read(who, number), now.round + 1, frames.place_of(number)[2]
            now = Standing(stage, round, attempt)
            if frames.is_whole(frame):
                total = frames.payload_of(frame)
                heard = heard_after(frames.heard_of(frame), round, attempt, total)
                now = replace(now, total=total, heard=heard)
            yield now

    def _spoke(self, round: int) -> dict[tuple[int, int], bytes]:
        return {
            (wire.stage_in(number), frames.place_of(number)[2]): frames.heard_of(self._read(self._mine, number))
            for number in self._up.get(round, ())
        }  # fmt: skip

    def turns(self, stage: int) -> set[int]:
        """Rounds in which it stood, or spoke next, when this stage and those before it began."""
        last = [self.before(one, (0, 0)).round for one in range(1, stage + 1)]
        return {*last, *(round + 1 for round in last)}

    def before(self, stage: int, last: tuple[int, int]) -> Standing:
        """Where the party stood when this stage began; `last` is the (round, attempt) whose streams were used last."""
        now = next((reached[-1] for reached in reversed(self.reached[:stage]) if reached), Standing())
        drawn = last[1] if last[0] == now.round + 1 else 0
        return replace(now, drawn=drawn, spoke=self._spoke(now.round + 1))
