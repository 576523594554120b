"""Compaction: what a journal may forget, and what it keeps for ever.

A round is *old* for a member that has completed round t once

* it is more than twice the network's width ago: witnesses (`witness`) have no more use for its statements, and a member
  that starts again finds in later frames all that it needs to go on as a witness; and
* no neighbour can ask for it: a neighbour's frame of round r was made from our frames up to r - 1, which were on its
  disk before that frame left. (One that an amendment linked to us has first to fetch all that was sent before.)

Frames of old rounds, own and heard, are shortened (`wire.Form`); their headers, commitments and signatures stay, and
with them all that a dispute (`confide node compare`) and the ledger (rounds, attempts, terms) need. The last frames,
by which a neighbour learns that its journal is an old copy, are never old.

* **Numbers stay, statements go**, where an amendment may need the numbers: when links change the state is computed
  again from all messages, a new neighbour fetches them from the first round on, and a method that averages over its
  last rounds begins to do so elsewhere when rounds are added.
* **Numbers go, too**, for all other methods. The state after round t, a function of messages and as public as they are,
  stands for them in the journal. A hub has no state, and forgets them always.

A member that restores an old copy and asks for what was left out is refused in one line. The file is written anew,
beside the old one, when a quarter of it can go, so that what is written twice stays in proportion to what was written
once; at the end of a run a sixteenth is enough; never for less than `LEAST` bytes. Frames that hold the last word of a
member that left stay whole: who contributed to which rounds is read from them.

**Private sums.** All rounds before the last whose total is here are old. That total holds the numbers of everyone, and
nobody says its own before the total of the round before is on its disk; so no member will ask for an earlier round
again, in this stage or, after a loss, in another, where all go on from the last total or the one before (`standing`).
Numbers go: the own masked ones, those of others, and totals. The state, with the stage whose terms it is under, stands
for them. What stays whole

* are keys, signatures, and what was said of how far everyone is: a member that starts again needs them;
* the rounds around each change of the members: where it stood then follows from them; and
* the last total and all after it. Each frame signs the hash of all totals before it. So who ever told two members
  different totals signed that with its last frames, too; and of what it said in each round the seals are there.

Rounds and attempts, by which the ledger is settled, are in the seals; which streams were used is in the claims, a file
that is not touched. A run that ended in a disagreement is not compacted any more.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection
from typing import Any

import numpy as np

from confide.errors import ConfideError
from confide.network import frames, wire
from confide.network.frames import Phase
from confide.node.amendment import refusal
from confide.node.contributions import last_word
from confide.node.federation import Federation
from confide.node.journal import Journal
from confide.privacy.chain import Damaged

LEAST = 1 << 20  # bytes that are worth the trouble
SHARE, LAST_SHARE = 1 / 4, 1 / 16  # of the file that must go, while the run goes on and at its end
FIELD = 400  # bytes that an array of a state takes beside its numbers, or fewer


def form(federation: Federation, name: str) -> wire.Form:
    """What a member keeps of old frames."""
    if name == federation.hub or federation.summed:
        return wire.Form.SEAL
    amendable = not refusal(federation) or hasattr(federation.algorithm, "average_from")
    return wire.Form.NUMBERS if amendable else wire.Form.SEAL


def compact(journal: Journal, federation: Federation, name: str, t: int, reach: int, state: Any = None, *,
            end: bool = False) -> bool:  # fmt: skip
    """Shorten what is old for member `name` after round t, if it is much, or if it is the `end`; whether it was done.

    `reach` is the network's width, `state` the method's after round t.
    """
    old = t - 2 * reach - 1
    if old <= journal.horizon:
        return False
    kept, mine = form(federation, name), federation.cards[name].digest
    frame = journal.frame(mine, journal.last(mine))
    stands = state if kept == wire.Form.SEAL else None
    if not _worth_it(journal, 1 - len(wire.shortened(frame, kept)) / len(frame), stands, old, t, end):
        return False
    old = min(old, asked_for(journal, federation, name))
    if old <= journal.horizon:
        return False
    gone = [one for one in federation.founding.parties if one not in federation.cards]
    words = {last_word(federation, one, journal)[1] for one in gone}

    def shorten(sender: bytes, round: int, frame: bytes) -> bytes:
        return frame if round > old or (sender, round) in words else wire.shortened(frame, kept)

    return journal.rewrite(shorten, b"" if stands is None else packed(t, stands))


def compact_sums(journal: Journal, t: int, width: int, turns: Collection[int], state: Any, *, end: bool = False,
                 **more: Any) -> bool:  # fmt: skip
    """The same of private sums, `width` numbers in round t, the last whose total is here; whether it was done.

    `turns` are rounds that stay whole, `state` the method's after round t; `more` arrays stand beside it.
    """
    old = t - 1
    size = frames.frame_size(8 * width)
    if old <= journal.horizon or not _worth_it(journal, 1 - wire.SEAL_SIZE / size, state, old, t, end):
        return False

    def shorten(sender: bytes, number: int, frame: bytes) -> bytes:
        phase, round, _ = frames.place_of(number)
        numbers = phase >= Phase.AGAIN and 1 <= round <= old and round not in turns
        return wire.seal(frame) if numbers else frame

    return journal.rewrite(shorten, packed(t, state, **more))


def _worth_it(journal: Journal, share: float, state: Any, old: int, t: int, end: bool) -> bool:
    """Whether this share of every frame of rounds up to `old` is much, beside the state that comes for it, if any."""
    gain = share * (journal.size - journal.shortened) * (old - journal.horizon) / (t + 1 - journal.horizon)  # roughly
    if state is not None:
        gain -= max(0, sum(np.asarray(value).nbytes + FIELD for value in state) - len(journal.state))
    return gain >= LEAST and gain >= (LAST_SHARE if end else SHARE) * journal.size


def asked_for(journal: Journal, federation: Federation, name: str) -> int:
    """The last own round that no neighbour will ask for as a whole frame."""

    def linked(near: str, frame: bytes) -> bool:
        """Whether its sender held to a link between both."""
        now = federation.under(wire.run_of(frame))
        return name in now.cards and near in now.neighbours(name)

    mine, out = federation.cards[name].digest, journal.last(federation.cards[name].digest)
    for near, card in federation.neighbours(name).items():
        last = journal.last(card.digest)
        frame = journal.get(card.digest, last)
        settled = last - 1 if frame is not None and linked(near, frame) else 0
        if federation.before is not None:  # what was sent before there was a link is taken without statements
            while settled < out and not linked(near, journal.frame(mine, settled + 1)):
                settled += 1
        out = min(out, settled)
    return out


def packed(t: int, state: Any, **more: Any) -> bytes:
    """The state after round t, a NamedTuple of arrays, and `more` arrays."""
    file = io.BytesIO()
    fields = {f"state.{name}": value for name, value in state._asdict().items()}
    np.savez(file, allow_pickle=False, t=np.int64(t), **fields, **more)
    return file.getvalue()


def unpacked(journal: Journal, federation: Federation, name: str, like: Any) -> tuple[int, Any, dict[str, Any]]:
    """(t, state, more) that stand for the rounds whose numbers were left out; round 0 and `like` where none were."""
    if not journal.state:
        return 0, like, {}
    if form(federation, name) != wire.Form.SEAL:  # a version that knew less of amendments wrote it
        raise ConfideError(f"{journal.path}: compacted without numbers, which {federation.algorithm.name} needs now")
    try:
        with np.load(io.BytesIO(journal.state), allow_pickle=False) as file:
            state = type(like)(**{name: file[f"state.{name}"] for name in like._fields})
            return int(file["t"]), state, {name: file[name] for name in file.files if "." not in name}
    except (KeyError, ValueError, OSError, zipfile.BadZipFile):
        raise Damaged(f"{journal.path}: holds a state of another method; restore it, or begin another run") from None
