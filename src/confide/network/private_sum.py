"""A private sum at one party, from the first key to the last total: no input, no output, no clock.

    1  keys     everybody's offer goes up and down the tree: the key list
    2  agreed   everybody's signature of its hash: nobody masks anything before all have signed the same one
    3  sum      for t = 1, …, T: masked numbers go up, the total comes down
    4  agreed   everybody's signature of the hash of the key list and all totals

`heard` runs through it: the hash of the key list, then, with every total, the hash of what it was before, the round,
the attempt and the total. It is in every frame, so that a parent and a child who differ find out with the next one; and
line 4 finds a party in between that told its children different things. Neither is needed for privacy: a party that is
lied to answers at points that the liar chose, as it may at any time, with the noise that it always adds.

    while not party.done:
        party.wanted             # {neighbour: place}: fetch these frames, and `hear` them
        party.turn               # the round that waits for the own numbers: `contribute` them
        party.frames             # what others may fetch, each in the journal before it is shown
        party.totals             # {round: whole numbers}, the same at every party

**Another attempt.** A party whose masked message was lost between claim and journal can't say it again. It says *again*
instead, in the next attempt, in answer to whatever it is asked of the lost one; who hears that begins the round again,
and says so, too. Everybody hears of it: until a total is there each party waits for a neighbour that is nearer to the
one who lost its message, and no total can be there without that message. What was said in the lost attempt stays said,
and paid for.

A driver writes every frame that `hear` and `contribute` return to its journal before anyone may fetch it; a party that
starts again is made anew with the same key, and `replay`s its journal: what it said stands, byte for byte.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.network.frames import Key, Phase, Place, frame_size, pack, source, unpack
from confide.network.identity import SIGNATURE
from confide.network.masking import Claims, Masks, members_hash, unmasked
from confide.network.pairing import OFFER, KeyList, RunKey
from confide.network.tree import Adding, Gathering, Pass, Speaker

Whole = NDArray[np.int64]
TOTAL_LABEL = b"confide total\0"


class PrivateSum:
    """Party `speaker.k` in a run of sums, `widths[t-1]` numbers in round t."""

    def __init__(self, speaker: Speaker, key: RunKey, claims: Claims, widths: Sequence[int]) -> None:
        if key.federation != speaker.run:
            raise ConfideError("the key of this run is of another federation")
        self.speaker, self.key, self.widths = speaker, key, [int(w) for w in widths]
        self.totals: dict[int, Whole] = {}
        self.frames: dict[Key, bytes] = {}  # own ones
        self.done = False
        self._claims, self._masks, self._list = claims, None, None  # type: tuple[Claims, Masks | None, KeyList | None]
        self._pass = Pass(speaker, Place(Phase.KEYS_UP), Gathering(OFFER))

    # --- what a driver asks -----------------------------------------------------------------------------------------

    @property
    def wanted(self) -> Mapping[int, Place]:
        """The frames that are needed now, by neighbour."""
        return {} if self.done else self._pass.wanted

    @property
    def turn(self) -> int:
        """The round that waits for the own numbers; 0 while others are waited for."""
        place = self._pass.place
        return place.round if not self.done and self._pass.turn and place.phase == Phase.SUM_UP else 0

    @property
    def attempt(self) -> int:
        """Of the round that is under way; 0 outside of sums."""
        return self._pass.place.attempt

    def start(self) -> list[bytes]:
        """What can be said at once: the own offer, at a party that no other's offer passes through."""
        return self._go_on()

    def hear(self, neighbour: int, frame: bytes) -> list[bytes]:
        """A frame that is wanted; the own frames that follow."""
        self.check(neighbour, frame)
        return self.take(neighbour, frame)

    def check(self, neighbour: int, frame: bytes) -> None:
        """One line unless it is what is wanted of this neighbour, or its word that the round begins again."""
        place, s = self._pass.wanted_of(neighbour), self.speaker
        if len(frame) == frame_size(0) and (said := source(frame)[1]).phase == Phase.AGAIN:
            if place.phase < Phase.SUM_UP or said.attempt <= place.attempt:
                raise ConfideError(f"{s.cards[neighbour].name} begins {said} again: wanted is {place}")
            unpack(frame, s.cards[neighbour], s.run, Place(Phase.AGAIN, place.round, said.attempt, place.heard), 0)
        else:
            self._pass.check(neighbour, frame)

    def take(self, neighbour: int, frame: bytes) -> list[bytes]:
        """A frame that was checked; the own frames that follow."""
        self._pass.wanted_of(neighbour)
        if (said := source(frame)[1]).phase == Phase.AGAIN:
            return [self.again(said.attempt)]
        made = self._pass.take(neighbour, frame)
        return self._go_on([] if made is None else [made])

    def contribute(self, values: Whole) -> list[bytes]:
        """The own whole numbers of the round whose turn it is, noise included: masked, once; the own frames."""
        t = self.turn
        if not t:
            raise ConfideError("no round waits for the own numbers: others must be heard first")
        if values.shape != (self.widths[t - 1],):
            raise ConfideError(f"numbers of shape {values.shape}: round {t} has {self.widths[t - 1]}")
        assert self._masks is not None
        masked = self._masks.apply(t, self.attempt, values, [card.digest for card in self.speaker.cards])
        return self._go_on([self._pass.speak(masked.astype("<u8").tobytes())])

    def again(self, attempt: int) -> bytes:
        """Begin the round again as this attempt; the own frame that says so."""
        self.retry(attempt)
        place = self._pass.place
        frame = pack(self.speaker.identity, self.speaker.run, replace(place, phase=Phase.AGAIN), b"")
        self.frames[Phase.AGAIN, place.round, attempt] = frame
        return frame

    def retry(self, attempt: int) -> None:
        """Abandon the round under way, which stays paid for, and begin it again with everybody as another attempt."""
        place = self._pass.place
        if place.phase != Phase.SUM_UP or self.done or attempt <= place.attempt:
            raise ConfideError(f"attempt {attempt}: a round under way, here {place}, goes on with a later attempt")
        self._pass = Pass(self.speaker, Place(Phase.SUM_UP, place.round, attempt, place.heard), self._pass.content)

    def go_on_without(self, speaker: Speaker, attempt: int, widths: Sequence[int]) -> None:
        """Begin the round under way again among fewer members, as all of them must have agreed to do.

        `speaker` is this party in a tree of those who stay, `widths` are those of all rounds. Masks are then of that
        member set alone, everything heard from now on says which one it is, and who left signs nothing any more. What
        the noise must be for so many, and what it costs, is for the caller to know.
        """
        left, before = ({card.digest for card in one.cards} for one in (speaker, self.speaker))
        if (
            not left < before
            or len(left) < 2
            or (speaker.run, speaker.identity) != (self.speaker.run, self.speaker.identity)
        ):
            raise ConfideError(f"{len(left)} of {len(before)} members: must be fewer of the same run, and at least 2")
        self.retry(attempt)
        self.speaker, self.widths = speaker, [int(w) for w in widths]
        heard = hashlib.sha256(TOTAL_LABEL + self._pass.place.heard + members_hash(left)).digest()
        place = replace(self._pass.place, heard=heard)
        self._pass = Pass(speaker, place, Adding(self.widths[place.round - 1]))

    def replay(self, journal: Iterable[bytes]) -> list[bytes]:
        """Go as far as the frames of a journal do, own and received; own frames that follow and are not in it."""
        mine = self.speaker.identity.card.digest
        number = {card.digest: k for k, card in enumerate(self.speaker.cards)}
        own: dict[Key, bytes] = {}
        received: dict[tuple[int, Key], bytes] = {}
        for frame in journal:
            who, place = source(frame)
            if who == mine:
                own[place.key] = frame
            elif who in number:
                received[number[who], place.key] = frame
        latest: dict[int, int] = {}  # attempt of each round
        for phase, t, attempt in own:
            if phase >= Phase.AGAIN:
                latest[t] = max(attempt, latest.get(t, 0))
        made: list[bytes] = []  # nothing is said anew before all that was said stands
        while not self.done:
            place = self._pass.place
            if place.phase == Phase.SUM_UP and (last := latest.get(place.round, 0)) > place.attempt:
                self.retry(last)
            elif (stored := own.get(self._pass.due.key)) is not None:
                self.frames[self._pass.due.key] = stored
                self._pass.restore(stored)
                self._finish()
            elif known := [(l, received[l, p.key]) for l, p in self.wanted.items() if (l, p.key) in received]:
                made += [new for l, frame in known if (new := self._pass.hear(l, frame)) is not None]
                self._finish()
            else:
                break
        self.frames |= {key: frame for key, frame in own.items() if key[0] == Phase.AGAIN}
        return self._go_on(made) + self._regained()

    def _regained(self) -> list[bytes]:
        """Another attempt, if the stream of this one was made and its message is lost."""
        place, last = self._pass.place, self._claims.last
        here = (place.round, place.attempt)
        if place.phase == Phase.AGREED_UP and place.round:  # after the last round
            return []
        if last < here or (last == here and (self._pass.spoken or place.phase < Phase.SUM_UP)):
            return []
        if last[0] > place.round:
            raise ConfideError(
                f"round {last[0]} was masked and the journal ends at round {place.round}: an old copy would mask other "
                "numbers by the same streams; restore the newest, or begin another run"
            )
        return [self.again(last[1] + 1)]

    # --- one pass after the other -----------------------------------------------------------------------------------

    def _go_on(self, made: list[bytes] | None = None) -> list[bytes]:
        """Finish what is finished, and say what needs no numbers."""
        made = list(made or ())
        self._finish()
        while not self.done and self._pass.turn and self._pass.place.phase != Phase.SUM_UP:
            made.append(self._pass.speak(self._own()))
            self._finish()
        for frame in made:
            self.frames[source(frame)[1].key] = frame
        return made

    def _own(self) -> bytes:
        """What needs no rows: the offer, or the signature of what was heard."""
        if self._pass.place.phase == Phase.KEYS_UP:
            return self.key.signed(self.speaker.identity)
        assert self._list is not None
        return self._list.sign(self.speaker.identity, self._pass.place.heard)

    def _finish(self) -> None:
        """Take what came down, and begin the next pass."""
        if (came := self._pass.result) is None or self.done:
            return
        place, speaker = self._pass.place, self.speaker
        who = [card.digest for card in speaker.cards]
        cards = dict(zip(who, speaker.cards, strict=True))
        match place.phase:
            case Phase.KEYS_UP:
                offers = dict(zip(who, Gathering(OFFER).items(came), strict=True))
                self._list = KeyList.read(speaker.run, cards, offers)
                secrets = self._list.secrets(self.key, who[speaker.k])
                self._masks = Masks(who[speaker.k], secrets, self._claims)
                self._pass = self._agreement(0, self._list.digest)
            case Phase.AGREED_UP:
                assert self._list is not None
                signatures = dict(zip(who, Gathering(SIGNATURE).items(came), strict=True))
                self._list.check_agreed(cards, signatures, place.heard)
                self.done = place.round > 0
                if not self.done:
                    self._pass = self._sum(1, place.heard)
            case _:
                self.totals[place.round] = unmasked(np.frombuffer(came, "<u8"))
                words = struct.pack("<II", place.round, place.attempt)
                heard = hashlib.sha256(TOTAL_LABEL + place.heard + words + came).digest()
                self._pass = self._sum(place.round + 1, heard)

    def _sum(self, t: int, heard: bytes) -> Pass:
        if t > len(self.widths):
            return self._agreement(t, heard)
        return Pass(self.speaker, Place(Phase.SUM_UP, t, 1, heard), Adding(self.widths[t - 1]))

    def _agreement(self, round: int, heard: bytes) -> Pass:
        return Pass(self.speaker, Place(Phase.AGREED_UP, round, 0, heard), Gathering(SIGNATURE))
