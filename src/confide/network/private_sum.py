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
        party.forget(t)          # frames and totals of rounds before t: the driver has them

**Another attempt.** A party whose masked message was lost between claim and journal can't say it again. It says *again*
instead, in the next attempt, in answer to whatever it is asked of the lost one; who hears that begins the round again,
and says so, too. Everybody hears of it: until a total is there each party waits for a neighbour that is nearer to the
one who lost its message, and no total can be there without that message. What was said in the lost attempt stays said,
and paid for.

**Other members.** Members may be lost, and links may change. Those who stay sign that they go on; the round under way
is abandoned and stays paid for, and a new *stage* begins in a tree of their own: lines 1 and 2 again, then everybody
says how far it is (`standing`), and line 3 from there. Masks are of the new member set, and of an attempt that nobody
has used; who left has no part in them. What the noise must be for so many, and what it costs, is for the caller to
know.

A driver writes every frame that `hear` and `contribute` return to its journal before anyone may fetch it; a party that
starts again is made anew with the same key, and `replay`s its journal: what it said stands, byte for byte. Rounds that
a journal holds without their numbers are passed over: what was heard before the next one is in every frame of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.network import wire
from confide.network.frames import Key, Phase, Place, frame_size, is_whole, pack, payload_of, source, unpack
from confide.network.identity import LIST_LABEL, SIGNATURE, Card
from confide.network.masking import Claims, Masks, unmasked
from confide.network.pairing import OFFER, KeyList, RunKey, check_copies
from confide.network.standing import Farthest, Stage, Standing, heard_after
from confide.network.tree import Adding, Gathering, Pass, SpanningTree, Speaker

Whole = NDArray[np.int64]


class HandedOn(ConfideError):
    """A frame with its sender's valid signature that holds keys or signatures that are none."""


def handed_on(frame: bytes, run: bytes, tree: SpanningTree, k: int, cards: Sequence[Card]) -> str:
    """What is wrong with the keys or signatures in a frame of party k; nothing, if they are as they should be."""
    place = source(frame)[1]
    if place.phase > Phase.AGREED_DOWN:
        return ""  # numbers, which would be long to take apart
    about = [cards[l] for l in (tree.below[k] if place.phase.up else range(len(cards)))]
    keys = place.phase <= Phase.KEYS_DOWN
    items = Gathering(OFFER if keys else SIGNATURE).items(payload_of(frame))
    if len(items) != len(about):
        return ""
    said = ""
    if not keys:
        bad = [card.name for card, one in zip(about, items, strict=True)
               if not card.verify(one, place.heard, LIST_LABEL)]  # fmt: skip
        said = f"no signature of {', '.join(bad)} under our keys and totals" if bad else ""
    else:
        who = [card.digest for card in about]
        try:
            KeyList.read(run, dict(zip(who, about, strict=True)), dict(zip(who, items, strict=True)))
        except ConfideError as error:
            said = str(error)
    return f"{cards[k].name} handed on what can't be: {said}" if said else ""


class PrivateSum:
    """Party `speaker.k` in a run of sums, `widths[t-1]` numbers in round t; in its first stage unless another is given.

    `speaker` is the party in the tree of the stage's members.
    """

    def __init__(self, speaker: Speaker, key: RunKey, claims: Claims, widths: Sequence[int],
                 stage: Stage | None = None) -> None:  # fmt: skip
        if key.federation != speaker.run:
            raise ConfideError("the key of this run is of another federation")
        self.speaker, self.key, self.widths = speaker, key, [int(w) for w in widths]
        self.totals: dict[int, Whole] = {}
        self.frames: dict[Key, bytes] = {}  # own ones
        self.done = False
        self.stage, self._number = stage, 0 if stage is None else stage.number
        self.joined = Standing() if stage is None else stage.standing  # where all go on, once that is known
        self._first = 1  # attempt of the first round of the stage
        self._claims, self._masks, self._list = claims, None, None  # type: tuple[Claims, Masks | None, KeyList | None]
        self._pass = Pass(speaker, Place(Phase.KEYS_UP, stage=self._number), Gathering(OFFER))

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

    @property
    def word(self) -> bytes:
        """The own signature under what was heard before the round under way, should someone have heard something else.

        The frame that says so anyway, if it is there; else one without numbers, which is for that alone.
        """
        place = replace(self._pass.place, phase=Phase.AGREED_UP, attempt=0)
        return self.frames.get(place.key) or pack(self.speaker.identity, self.speaker.run, place, b"")

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
            if place.phase < Phase.SUM_UP or said.attempt <= place.attempt or not place.round:
                raise ConfideError(f"{s.cards[neighbour].name} begins {said} again: wanted is {place}")
            unpack(frame, s.cards[neighbour], s.run, replace(place, phase=Phase.AGAIN, attempt=said.attempt), 0)
        else:
            self._pass.check(neighbour, frame)
            if place.phase.up and (why := handed_on(frame, s.run, s.tree, neighbour, s.cards)):
                raise HandedOn(why)  # before it is handed on as ours

    def take(self, neighbour: int, frame: bytes) -> list[bytes]:
        """A frame that was checked; the own frames that follow."""
        self._pass.wanted_of(neighbour)
        if (said := source(frame)[1]).phase == Phase.AGAIN:
            return [self.again(said.attempt)]
        if said.phase == Phase.KEYS_UP:
            self._check_copies(neighbour, frame)
        made = self._pass.take(neighbour, frame)
        return self._go_on([] if made is None else [made])

    def _check_copies(self, neighbour: int, frame: bytes) -> None:
        """Who hands on one key of two members is accused of it: it is found before it is handed on as ours.

        As the frame is taken, not as it comes: those of several children may come together.
        """
        s = self.speaker
        parts = {(s.k,): self.key.signed(s.identity), **self._pass.parts, s.tree.below[neighbour]: payload_of(frame)}
        check_copies((s.cards[k], offer) for some, part in parts.items()
                     for k, offer in zip(some, Gathering(OFFER).items(part), strict=True))  # fmt: skip

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
        if place.phase != Phase.SUM_UP or not place.round or self.done or attempt <= place.attempt:
            raise ConfideError(f"attempt {attempt}: a round under way, here {place}, goes on with a later attempt")
        self._pass = Pass(self.speaker, replace(place, attempt=attempt), self._pass.content)

    def forget(self, before: int) -> None:
        """Drop totals and own frames of the rounds before this one, which a driver keeps in its journal.

        Not those of keys and signatures, round 0: `word` must never be another frame of a place than the one that was
        said.
        """
        self.totals = {t: total for t, total in self.totals.items() if t >= before}
        self.frames = {key: frame for key, frame in self.frames.items() if not 0 < key[1] < before}

    def replay(self, journal: Iterable[bytes], known: int = 0) -> list[bytes]:
        """Go as far as the frames of a journal do, own and received; own frames that follow and are not in it.

        The journal may leave out rounds before `known`, one whose total it has. Totals of rounds that were left out are
        not in `totals`.
        """
        mine = self.speaker.identity.card.digest
        number = {card.digest: k for k, card in enumerate(self.speaker.cards)}
        own: dict[Key, bytes] = {}
        received: dict[tuple[int, Key], bytes] = {}
        heard: dict[int, bytes] = {}  # before each round that is here, by the own word
        gone = max(known - 1, 0)  # the last round whose numbers are not
        for frame in journal:
            if not is_whole(frame):
                round, sort, _ = wire.place(frame)
                gone = max(gone, round if sort >> wire.PHASE_BITS == self._number else 0)
                continue
            who, place = source(frame)
            if place.stage != self._number:
                continue
            if who == mine:
                own[place.key], heard[place.round] = frame, place.heard
            elif who in number:
                received[number[who], place.key] = frame
        latest: dict[int, int] = {}  # attempt of each round
        for phase, t, attempt in own:
            if phase >= Phase.AGAIN:
                latest[t] = max(attempt, latest.get(t, 0))
        made: list[bytes] = []  # nothing is said anew before all that was said stands
        while not self.done:
            place = self._pass.place
            if place.phase == Phase.SUM_UP and 1 <= place.round <= gone:
                if gone + 1 not in heard:
                    raise ConfideError(f"the journal has no numbers of round {gone}, and no frame of the one after")
                self._pass = self._sum(gone + 1, heard[gone + 1])
            elif place.phase == Phase.SUM_UP and (last := latest.get(place.round, 0)) > place.attempt:
                self.retry(last)
            elif (stored := own.get(self._pass.due.key)) is not None:
                self.frames[self._pass.due.key] = stored
                self._pass.restore(stored)
                self._finish()
            elif there := [(l, received[l, p.key]) for l, p in self.wanted.items() if (l, p.key) in received]:
                made += [new for l, frame in there if (new := self._pass.hear(l, frame)) is not None]
                self._finish()
            else:
                break
        self.frames |= {key: frame for key, frame in own.items() if key[0] == Phase.AGAIN}
        return self._go_on(made) + self._regained()

    def _regained(self) -> list[bytes]:
        """Another attempt, if the stream of this one was made and its message is lost."""
        place, last, round = self._pass.place, self._claims.last, self._pass.place.round
        here = (round, place.attempt)
        if place.phase == Phase.AGREED_UP and round:  # after the last round
            return []
        if self.stage is not None and not round:  # what was lost before the members changed is abandoned
            round = self.stage.standing.round + 1
            here = (round, last[1])
        if last < here or (last == here and (self._pass.spoken or not place.attempt)):
            return []
        if last[0] > round:
            raise ConfideError(
                f"round {last[0]} was masked and the journal ends at round {round}: an old copy would mask other "
                "numbers by the same streams; restore the newest, or begin another run"
            )
        return [self.again(last[1] + 1)]

    # --- one pass after the other -----------------------------------------------------------------------------------

    def _go_on(self, made: list[bytes] | None = None) -> list[bytes]:
        """Finish what is finished, and say what needs no numbers."""
        made = list(made or ())
        self._finish()
        while not self.done and self._pass.turn and not self.turn:
            made.append(self._pass.speak(self._own()))
            self._finish()
        for frame in made:
            self.frames[source(frame)[1].key] = frame
        return made

    def _own(self) -> bytes:
        """What needs no rows: the offer, how far we are, or the signature of what was heard."""
        if self._pass.place.phase == Phase.KEYS_UP:
            return self.key.signed(self.speaker.identity)
        if self._pass.place.phase == Phase.SUM_UP:
            return self.joined.pack(self._room)
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
                digest = self._list.digest
                self._pass = self._agreement(0, digest if self.stage is None else self.stage.begun(digest))
            case Phase.AGREED_UP:
                assert self._list is not None
                signatures = dict(zip(who, Gathering(SIGNATURE).items(came), strict=True))
                self._list.check_agreed(cards, signatures, place.heard)
                self.done = place.round > 0
                if not self.done and self.stage is None:
                    self._pass = self._sum(1, place.heard)
                elif not self.done:
                    self._pass = Pass(speaker, replace(place, phase=Phase.SUM_UP), Farthest(self._room))
            case _ if place.round == 0:
                self._join(Standing.read(came, self.widths), place.heard)
            case _:
                self.totals[place.round] = unmasked(np.frombuffer(came, "<u8"))
                self._pass = self._sum(place.round + 1, heard_after(place.heard, place.round, place.attempt, came))

    @property
    def _room(self) -> int:
        return 8 * max(self.widths)

    def _join(self, all_of_us: Standing, heard: bytes) -> None:
        """Go on where everybody does, in an attempt that nobody has used."""
        before, self.joined = self.joined.round, self.joined.joined(all_of_us)
        if self.joined.round > before:
            self.totals[self.joined.round] = unmasked(np.frombuffer(self.joined.total, "<u8"))
        self._first = all_of_us.drawn + 1
        self._pass = self._sum(self.joined.round + 1, heard_after(heard, 0, 0, self.joined.heard))

    def _sum(self, t: int, heard: bytes) -> Pass:
        if t > len(self.widths):
            return self._agreement(t, heard)
        attempt = self._first if t == self.joined.round + 1 else 1
        return Pass(self.speaker, Place(Phase.SUM_UP, t, attempt, heard, self._number), Adding(self.widths[t - 1]))

    def _agreement(self, round: int, heard: bytes) -> Pass:
        return Pass(self.speaker, Place(Phase.AGREED_UP, round, 0, heard, self._number), Gathering(SIGNATURE))
