"""A member of a federation that learns by private sums, with a disk and without a network.

    1  open    ledger; the key of this run and the claims of its streams: made, or found again
    2  begin   rows; what the journal holds is taken up again, and what can be said at once is said
    3  hear    what was `wanted` of a neighbour: journal, then what follows from it
    4  end     the ledger gives back what was not spent; a run that is over erases its secrets

`Summer` drives a `PrivateSum` over the tree of the federation's graph. Order in a round: ledger, noise, claim of the
streams, masks, journal, send. So after a crash

* before the claim, nobody has seen anything: the round is paid for again and drawn again, as in every method;
* between claim and journal, the streams are used up: everybody goes on to another attempt of the round (`PrivateSum`);
* after the journal, the same bytes are sent again.

State is a function of the totals in the journal, or of one that stands for the first of them (`compaction`) and the
rest. Once an amendment changes members or links, those who stay begin another *stage* in a tree of their own and go on
from the last total that one of them has (`network.standing`); each total is learned under the terms of the stage in
which it was made (`stages`). A home that was rolled back to an older copy is refused: by the ledger, by its claims, or
by a neighbour that has a later frame.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from confide.algorithms.summed import SummedMethod
from confide.errors import ConfideError
from confide.network import frames, wire
from confide.network.frames import Differs, Phase, Place
from confide.network.identity import Identity
from confide.network.masking import ClaimFile, unmasked
from confide.network.pairing import FILE, OFFER, Copied, RunKey, erase
from confide.network.private_sum import HandedOn, PrivateSum
from confide.network.standing import Past, Stage
from confide.node import alarms, compaction
from confide.node.amended_cost import prices_of
from confide.node.federation import Federation
from confide.node.journal import Journal, run_name
from confide.node.masked_noise import MaskedNoise, SeededMaskedNoise
from confide.node.member import COMPACTED, bytes_of
from confide.node.purse import Purse
from confide.node.rows import read_block
from confide.node.stages import heads_of, terms_of
from confide.privacy import Label
from confide.privacy.chain import Damaged
from confide.privacy.discrete_gaussian import GRID
from confide.problem.block import Block
from confide.runs.party import encode

CLAIMS = "claims"  # of this run's streams, in its folder beside the key
LOG = logging.getLogger("confide.summer")


class Disagreement(Exception):
    """What a neighbour signed shows that not all members hold the same keys and totals, or that one broke the rules."""

    def __init__(self, party: str, round: int, why: str, proof: Sequence[bytes], alarm: bytes) -> None:
        """`proof` has the frame of `party`, perhaps another one, or two offers; `alarm` is what convinces others."""
        self.party, self.round, self.alarm, self._proof = party, round, alarm, proof
        super().__init__(why)

    def evidence(self) -> str:
        """The frames as they came, or the offers, as JSON."""
        return json.dumps({"what": str(self), "from": self.party, "round": self.round,
                           "frames": [frame.hex() for frame in self._proof]})  # fmt: skip


class Summer:
    """Party k: its rows are read by `begin`, after its neighbours in the tree have shown the same federation."""

    distance: float | None = None  # everybody has the same model
    ahead = 2 << 12  # numbers that a neighbour may ask for early: two rounds

    def __init__(self, federation: Federation, identity: Identity, journal: Journal,
                 purse: Purse | None = None, data: Path | None = None) -> None:  # fmt: skip
        method = federation.algorithm
        assert isinstance(method, SummedMethod)
        self.federation, self.identity, self.journal = federation, identity, journal
        self.purse, self._data, self._terms = purse, data, terms_of(federation, identity.card.name)
        self.stage, (self.k, self.tree) = len(self._terms) - 1, (self._terms[-1].k, self._terms[-1].tree)
        near = [l for l in (*self.tree.children[self.k], self.tree.parent[self.k]) if l >= 0]
        self.neighbours = {federation.parties[l]: federation.cards[federation.parties[l]] for l in near}
        self.rounds, self.notice = method.rounds, ""
        self.last = Place(Phase.AGREED_DOWN, self.rounds + 1, stage=self.stage).number  # or beyond: the run is over
        self._number = {name: l for l, name in enumerate(federation.parties)}
        self._widths = method.schedule(federation.public).widths
        self._mine, self.folder = identity.card.digest, journal.path.parent
        if self.stage:  # where the others go on is not known before all have said how far they are
            self.ahead = (self.rounds + 2) << 12
        self._at, self.party = 0, self._terms[0].party()  # the stage whose terms it is under
        self.made: list[int] = []  # the stage in which each total was made
        self.moved: list[float] = []  # how far the model came with each of them
        self.signal: list[float] = []  # the length of each, over that of its noise
        self.sum: PrivateSum | None = None
        self._claims: ClaimFile | None = None
        self._broken = False
        self._begun_again: dict[int, int] = {}  # number of a stage and round -> that of the own frame that says so
        self._replay()

    def _replay(self) -> None:
        """State is a function of the totals in the journal: no row is read, no noise drawn, no key needed."""
        for sender, number in self.journal.numbers():
            if sender == self._mine:
                self._note(number)
        above = [one.above for one in self._terms]
        self._past = Past(self.journal.numbers(), self.journal.frame, self._mine, above, self._widths.tolist())
        self._turns = self._past.turns(self.stage)
        self._resume()
        for one in (one for reached in self._past.reached for one in reached):
            if one.round <= self.t:
                self.made.append(one.stage)
            elif not one.total:
                raise Damaged(f"{self.journal.path}: round {one.round} has no numbers, and no state stands for them")
            else:
                self._learn(unmasked(np.frombuffer(one.total, "<u8")), one.stage)

    def _resume(self) -> None:
        """Take the state that stands for rounds whose numbers were left out."""
        name = self.identity.card.name
        t, state, more = compaction.unpacked(self.journal, self.federation, name, self.party.state)
        if not t:
            return
        self._at = int(more["stage"])
        if self._at > self.stage:
            raise Damaged(f"{self.journal.path}: compacted after an amendment whose papers are not here: restore them")
        self.moved, self.signal = ([float(v) for v in more[name]] for name in ("moved", "signal"))
        self.party = self._terms[self._at].party()
        self.party.t, self.party.state = t, state

    def _note(self, number: int) -> None:
        if frames.place_of(number)[0] == Phase.AGAIN:
            self._begun_again[number >> 12] = number

    # --- what a daemon and a report ask -----------------------------------------------------------------------------

    @property
    def t(self) -> int:
        """Rounds whose total is here."""
        return self.party.t

    @property
    def attempts(self) -> list[int]:
        """How often noise was drawn for each round in which this party spoke."""
        return self.journal.draws(self._mine)

    @property
    def sent(self) -> int:
        """Rounds in which this party spoke."""
        return len(self.attempts)

    @property
    def heads(self) -> list[bytes]:
        """What this party held to when it first spoke in each of them."""
        return heads_of(self.federation, self.journal, self._mine)

    @property
    def said(self) -> int:
        """The number of the latest own frame."""
        return self.last if self.done else self.journal.last(self._mine)

    @property
    def latest(self) -> int:
        """The number up to which neighbours may ask: the first of this stage at least, so that they wait for it."""
        return max(self.said, self.stage << 32)

    @property
    def done(self) -> bool:
        """Whether all have signed that they hold the same totals."""
        who = (self._mine, *(card.digest for card in self.neighbours.values()))
        return any(self.journal.get(one, self.last) is not None for one in who)

    def frame(self, number: int) -> bytes:
        """What a neighbour who asks for this number hears; that the round began again, if it did; or nothing, ever."""
        found = self.journal.get(self._mine, number)
        if found is None and (again := self._begun_again.get(number >> 12, 0)) > number:
            found = self.journal.frame(self._mine, again)
        if found is not None and not frames.is_whole(found):
            raise ConfideError(f"round {wire.round_in(number)}: {COMPACTED}")
        return found or b""

    def longest(self) -> int:
        """Bytes of an answer at most."""
        numbers = 8 * int(max(self._widths))
        return 2 * (4 + frames.frame_size(max(numbers + 16, OFFER * len(self.federation.parties))))  # as in an alarm

    @property
    def wanted(self) -> Mapping[str, int]:
        """What to ask of each neighbour now."""
        assert self.sum is not None
        return {self.federation.parties[l]: place.number for l, place in self.sum.wanted.items()}

    @property
    def silenced(self) -> str:
        """What it means that a neighbour is silent."""
        return (f"round {self.t + 1} can't be finished without everyone and stays charged; the model so far is that of "
                f"round {self.t}; run again to go on, or go on without a lost member by `confide federation amend`"
                )  # fmt: skip

    def believe(self, alarm: bytes) -> Exception:
        """What a neighbour's alarm proves, or one line."""
        proof = alarms.unpack(alarm)
        found = self._proven(proof)
        self._broken = True
        return Disagreement(found.party, found.round, str(found), proof, alarm)

    def _proven(self, proof: Sequence[bytes]) -> alarms.Found:
        speaker = self._terms[-1].speaker(self.identity)
        return alarms.proven(proof, speaker.run, self.stage, self.tree, speaker.cards)

    def spent(self) -> float | None:
        return None if self.purse is None else self.purse.spent()

    @property
    def left(self) -> float | None:
        """ε that other runs may spend, as of the last `spent`."""
        return None if self.purse is None else self.purse.left

    @property
    def few(self) -> float | None:
        """ε against the coalition that the promise speaks of, as of the last `spent`."""
        return None if self.purse is None else self.purse.few

    @property
    def estimate(self) -> list[float] | None:
        return [float(v) for v in self.party.estimate]

    # --- beginning --------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Settle the ledger with the journal and hold the rest of the schedule, or refuse; then the secrets."""
        grids = self._terms[-1].grids
        if self.federation.guarantee.label != Label.NONE and any(grid.power < GRID for grid in grids):
            raise ConfideError(
                f"noise of deviation {min(grid.scale for grid in grids):.3g}: the sum of so many parties and rows "
                "does not fit 64 bits on the grid that is charged for; noise would have to be louder"
            )
        if self.purse is not None:
            self.purse.prices = prices_of(self.federation, self.identity.card.name, self.heads)
            self.notice = self.purse.open(run_name(self.journal), self.attempts, self.folder)
        if self.done:
            return
        run, key, claims = self.federation.digest, self.folder / FILE, self.folder / CLAIMS
        fresh = self.journal.last(self._mine) == 0 and not claims.exists()  # nothing was said yet
        over = self.stage > 0 and self.t == self.rounds  # all that is left to do is to sign, and the key may be gone
        own = RunKey.create(run, key) if (fresh or over) and not key.exists() else RunKey.load(run, key)
        self._claims = ClaimFile.create(claims) if fresh else ClaimFile(claims)
        stage = None
        if self.stage:
            before = self._past.before(self.stage, self._claims.last)
            stage = Stage(self.stage, self.federation.stages[-1].head, before)
        speaker = self._terms[-1].speaker(self.identity)
        self.sum = PrivateSum(speaker, own, self._claims, self._widths.tolist(), stage)

    def admit(self, shown: int) -> None:
        """Charge the rounds up to one that a neighbour has with the own signature: they were released."""
        if self.purse is not None:
            most = min(wire.round_in(shown), self.rounds)
            self.purse.settle([*self.attempts, *[1] * (most - self.sent)])

    def begin(self) -> None:
        """Read the rows, take up the journal again, and say what can be said."""
        assert self.sum is not None
        if self.t < self.rounds:
            assert self._data is not None
            self._block = self._read(self._data)
            self.party.hold(self._block)
            if self.purse is not None and self.federation.evaluation is None:  # of cells no hash is kept
                said = self.purse.note_rows(bytes_of(self._block))
                self.notice = "; ".join(filter(None, (self.notice, said)))
        later = [one for one in self.journal.numbers() if not 0 < wire.round_in(one[1]) < self.t]
        self._commit(self.sum.replay((self.journal.frame(*one) for one in later), self.t))
        self._speak()

    def _read(self, data: Path) -> Block:
        work = self.journal.path.with_name("rows")
        return read_block(data, self.federation, self.k, work, training=self.sent > 0)

    # --- a round ----------------------------------------------------------------------------------------------------

    def check(self, name: str, number: int, frame: bytes) -> None:
        """Raises unless this is what is wanted of that neighbour; what it signed against the rules ends the run."""
        assert self.sum is not None
        try:
            self.sum.check(self._number[name], frame)
        except (Differs, HandedOn) as error:
            raise self._broke(name, number, error, frame) from None

    def hear(self, name: str, frame: bytes) -> None:
        """Keep and take a frame that was checked, and say what follows from it."""
        assert self.sum is not None
        begins_again = frames.source(frame)[1].phase == Phase.AGAIN
        try:
            made = self.sum.take(self._number[name], frame)
        except ConfideError as error:  # a key of low order, one that two show, one list here and another there
            raise self._broke(name, wire.source(frame)[1], error, frame) from None
        if begins_again:  # other noise, which is paid for
            LOG.warning("%s says that round %d begins again: every party pays for another attempt", name, self.t + 1)
            self.party.abandon()
            self._noise.again(self.t + 1)
        self.journal.keep([frame])
        self._commit(made)
        self._speak()
        self._compact()

    def _broke(self, name: str, number: int, error: ConfideError, frame: bytes) -> Disagreement:
        assert self.sum is not None
        self._broken, proof, alarm = True, [frame], b""
        if isinstance(error, Differs):
            proof.append(self.sum.word)
        if isinstance(error, Copied) and frames.source(frame)[1].phase.up:  # found here, and handed on by nobody
            proof = error.proof
        with suppress(ConfideError):  # what we can see and not prove is ours alone
            name = self._proven(proof).party
            alarm = alarms.pack(proof)
        return Disagreement(name, wire.round_in(number), str(error), proof, alarm)

    def _speak(self) -> None:
        """The own numbers of every round that waits for them: ledger, noise, claim and masks, journal."""
        assert self.sum is not None
        while t := self.sum.turn:
            self._enter(self.stage)
            self.party.hold(self._block)
            draws = 1 if self.purse is None else self.purse.pay(t)
            self.party.send()
            self._commit(self.sum.contribute(self._noise.steps(t)), draws)
        if self.done:
            self.journal.sync()

    def _commit(self, made: list[bytes], draws: int = 0) -> None:
        """Own frames, on disk before anyone may have them; the first of them holds own numbers, if `draws` says so."""
        assert self.sum is not None
        for at, frame in enumerate(made):
            self.journal.commit(frame, draws if at == 0 else 0)
            self._note(wire.source(frame)[1])
        while (total := self.sum.totals.get(self.t + 1)) is not None:
            joined = self.sum.joined
            self._learn(total, joined.stage if self.t + 1 == joined.round else self.stage)
        self.sum.forget(self.t)

    @property
    def _noise(self) -> MaskedNoise | SeededMaskedNoise:
        noise = self.party.noise
        assert isinstance(noise, MaskedNoise | SeededMaskedNoise)
        return noise

    def _enter(self, stage: int) -> None:
        """Go on under the terms of this stage, and of all before it."""
        while self._at < stage:
            self._at += 1
            terms, before = self._terms[self._at], self.party
            self.party = terms.party()
            self.party.t = before.t
            self.party.state = terms.method.goes_on(before.t, before.state, self.party.public)

    def _learn(self, total: np.ndarray, stage: int) -> None:
        """Absorb the total of the next round, made in this stage; the own message of it is of no more use."""
        before = self.party.estimate
        self._enter(stage)
        self.made.append(stage)
        grid, parties = self._terms[stage].grids[self.t], len(self._terms[stage].federation.parties)
        values = grid.values(total)
        self.signal.append(float(np.linalg.norm(values)) / (grid.scale * (parties * values.size) ** 0.5))
        self.party.restore(encode(np.zeros(total.size)))
        self.party.receive_sum(encode(values))
        self.moved.append(float(np.linalg.norm(self.party.estimate - before)))

    def _compact(self, *, end: bool = False) -> None:
        """Leave out what nobody can ask for any more; where members disagree, everything stays as it was said."""
        if self.t and not self._broken:
            compaction.compact_sums(
                self.journal, self.t, int(self._widths[self.t - 1]), self._turns, self.party.state, end=end,
                stage=np.int64(self._at), moved=np.array(self.moved), signal=np.array(self.signal),
            )  # fmt: skip

    # --- the end ----------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Give back what was not spent; a run that is over, well or not, needs its secrets no more."""
        if self.purse is not None:
            self.purse.end()
        self._compact(end=True)
        if self.done or self._broken:
            self.erase()

    def erase(self) -> None:
        erase(self.folder / FILE)
        self.close()

    def close(self) -> None:
        if self._claims is not None:
            self._claims.close()
