"""Agreement: what every member has signed, of one run, as one member holds it: its *papers*.

A member signs the hash of the federation file, and of every amendment, each under a label of its own; whoever has the
cards can check it. Signatures are kept in the home, in agreements/RUN.json, and go from neighbour to neighbour with the
greeting and for as long as the run lasts, so that they reach those who are no neighbours. A node trains once every
member has signed: the file, or an amendment of it that is in force.

* An amendment is in force once all members that it leaves have signed it with the keys that it leaves to them.
* A member signs one amendment of a state and no other: of two that change the same, at most one gets in force as long
  as one member of both is honest. Two that do all the same are kept, and end the run.
* Papers only grow: whatever order they come in, those who hold the same hold to the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from confide.errors import ConfideError
from confide.files import write_whole
from confide.network.identity import AGREEMENT_LABEL, AMENDMENT_LABEL, Card, Identity
from confide.node import federation as federations
from confide.node.amendment import LONGEST_AMENDMENT, Amendment, amended, check_limits
from confide.node.codes import Untrusted
from confide.node.federation import Federation
from confide.node.packing import LONGEST_PAPERS, Signatures, length, locked, pack, parsed, which_file

FOLDER = "agreements"
REMEMBERED = 100  # amendments of which it is known what they leave: a member may invent many
UNVOUCHED = 3  # amendments that wait with a new key of a member and no signature but that key's: anyone can make them
MOST_UNVOUCHED = 16  # of them, of all members
MOST_WRONG = 20  # papers of one neighbour that are looked at in vain: each may take a signature to refuse
WAITING = 1 << 20  # bytes that are left for amendments that wait: those in force must never fill papers
OWN = 2 * LONGEST_AMENDMENT  # of them, for what is signed in the own home


@dataclass(eq=False)
class Draft:
    """An amendment and who has signed it."""

    change: Amendment
    leaves: Federation  # what it leaves
    signatures: Signatures = field(default_factory=dict)

    def signers(self) -> dict[str, Card]:
        """Who must sign, by which card."""
        return self.leaves.cards

    @property
    def unsigned(self) -> list[str]:
        return [name for name in self.signers() if name not in self.signatures]

    @property
    def cards(self) -> dict[str, Card]:
        """By which signatures are checked: a member that leaves may say that it agrees."""
        assert self.leaves.before is not None
        return _signing_cards(self.leaves.before, self.change)


class Papers:
    """Signatures of the file and its amendments, in force or not yet. `path` is None where nothing is kept."""

    def __init__(self, founding: Federation, path: Path | None = None) -> None:
        self.founding, self.path = founding, path
        self.signatures: Signatures = {}
        self.chain: list[Draft] = []  # in force, in order
        self.pending: dict[bytes, Draft] = {}  # of the head
        self.divided: list[Draft] = []  # two amendments of one state, each signed by all whom it leaves
        self.current = founding
        self._found: dict[tuple[bytes, bytes], Federation | ConfideError] = {}  # what amendments leave, or why not
        self._wasted: set[tuple[bytes, bytes | str]] = set()  # state, who signed what may not be: key, or name if new
        self._packed: bytes | None = None  # of what is here: neighbours ask for it many times a second
        self._read: tuple[int, int, int] | None = None  # which file was read or written last
        self._kept = self.pack()  # what was saved last

    @classmethod
    def of(cls, home: Path, founding: Federation) -> Papers:
        """Those in a node's home."""
        out = cls(founding, home / FOLDER / f"{founding.digest.hex()[:16]}.json")
        out.refresh()
        if out._parted.exists():
            raise Untrusted(out._parted.read_text(encoding="utf-8").partition("\n")[0])
        return out

    @property
    def _parted(self) -> Path:
        """Where it is kept that the members have parted ways, a line and both amendments: a run does not go on."""
        assert self.path is not None
        return self.path.with_suffix(".divided")

    # --- who has signed -----------------------------------------------------------------------------------------------

    def signed(self, name: str) -> bool:
        """Whether this member agreed to the run: by the file, or by an amendment in force."""
        return name in self.signatures or any(name in draft.signatures for draft in self.chain)

    def unsigned(self) -> list[str]:
        """Members whose signature is missing."""
        return [name for name in self.current.cards if not self.signed(name)]

    def sign(self, identity: Identity) -> None:
        """The file, by a member of it."""
        name = identity.card.name
        self._check_card(self.founding, identity)
        self.take_signatures({name: identity.sign(self.founding.digest, AGREEMENT_LABEL)})
        self.save()

    def sign_amendment(self, identity: Identity, change: Amendment, own: Container[bytes] = ()) -> Draft:
        """Refuses a second one of the same state, by any key in `own`; one in force needs no more signatures."""
        name = identity.card.name
        draft = self.draft(change)
        if any(draft is one for one in self.chain):
            return draft
        if (card := draft.cards.get(name)) is None or card.digest != identity.card.digest:
            raise ConfideError(f"amendment {change.number}: the key of {name} that is here has no part in it")
        other = self._signed_otherwise(name, change, own)
        if other is not None:
            raise ConfideError(
                f"{name} has signed {other.change.hash.hex()[:16]}, which changes the same: who signs two of them "
                "would let the others part ways"
            )
        self._check_room(draft)
        draft.signatures[name], self._packed = identity.sign(change.hash, AMENDMENT_LABEL), None
        self.pending[change.hash] = draft
        self._advance()
        self.save()
        return draft

    def draft(self, change: Amendment) -> Draft:
        """The amendment with the signatures that are here; one line if it does not follow."""
        if (known := self._known(change)) is not None:
            return known
        check_limits(self.current, change)
        return Draft(change, self._amended(self.current, change))

    def _amended(self, state: Federation, change: Amendment, signers: Signatures | None = None) -> Federation:
        """Once for each of them: to find what it costs takes long.

        So of `signers`, where not all have signed, one that may not be is looked at: an honest member signs none.
        """
        key = state.head, change.hash
        if key not in self._found:
            fresh = change.rekeyed(state)
            whose = {(state.head, name if name in fresh else state.cards[name].digest) for name in signers or ()}
            if whose and whose <= self._wasted:
                raise ConfideError(f"amendment {change.number}: who signed it signed what may not be: not looked at")
            try:
                self._found[key] = amended(state, change)
            except ConfideError as error:
                self._found[key] = error
                self._wasted |= whose
            for old in list(self._found)[:-REMEMBERED]:
                del self._found[old]
        found = self._found[key]
        if isinstance(found, ConfideError):
            raise type(found)(*found.args)
        return found

    def foresee(self, *papers: bytes, own: bytes = b"") -> None:
        """Find what amendments in there would leave, and change nothing else: the part of `take` that takes long.

        A node does it in a thread, so that it answers its neighbours meanwhile. `own` are those of the home.
        """
        ahead, most = self._copy(), len(self.chain) + REMEMBERED
        for data in filter(None, (*papers, own)):
            with suppress(ConfideError):  # `take` says what is wrong
                ahead._merge(data, own=data is own, most=most)

    def _copy(self) -> Papers:
        """The same, for nobody's eyes; what either finds out the other knows."""
        out = Papers(self.founding)
        out.chain = [replace(draft) for draft in self.chain]
        out.pending = {key: replace(draft) for key, draft in self.pending.items()}
        out.current, out.signatures = self.current, self.signatures
        out._found, out._wasted = self._found, self._wasted
        return out

    @staticmethod
    def _check_card(federation: Federation, identity: Identity) -> None:
        card = federation.cards.get(identity.card.name)
        if card is None or card.digest != identity.card.digest:
            raise ConfideError(f"{identity.card.name} with the key that is here is no member of {federation.name!r}")

    # --- what others hold ---------------------------------------------------------------------------------------------

    def pack(self) -> bytes:
        """All of it, the same bytes for everyone who holds the same."""
        if self._packed is None:
            drafts = [*self.chain, *(self.pending[key] for key in sorted(self.pending))]
            self._packed = pack(self.signatures, [(draft.change, draft.signatures) for draft in drafts])
        return self._packed

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(self.pack()).digest()

    def take(self, data: bytes, *, own: bool = False) -> bool:
        """Take over what another one holds, or the `own` home; whether anything was new.

        Raises if something is wrong, which is not taken; all that is right beside it is, and is kept.
        """
        before, wrong = self.pack(), None
        try:
            self._merge(data, own=own)
        except ConfideError as error:
            wrong = error
        if self.pack() != self._kept:
            self.save()
        if self.divided:
            first, second = ({(name, d.cards[name].digest) for name in d.signatures} for d in self.divided)
            hashes = " and ".join(draft.change.hash.hex()[:16] for draft in self.divided)
            both = ", ".join(sorted(name for name, _ in first & second))
            said = f"amendments {hashes} change the same, and {both} signed both: the members have parted ways"
            if self.path is not None:
                proof = pack({}, [(draft.change, draft.signatures) for draft in self.divided])
                write_whole(self._parted, said.encode() + b"\n" + proof + b"\n", 0o600)
            raise Untrusted(said)
        if wrong is not None:
            raise wrong
        return self.pack() != before

    def _merge(self, data: bytes, *, own: bool, most: int | None = None) -> None:
        """Each paper by itself, until `most` amendments are in force; then it raises what is wrong with the first."""
        signatures, drafts = parsed(data)
        wrong: list[ConfideError] = []
        try:
            new = _other(signatures, self.signatures)
            _verify(new, self.founding.cards, self.founding.digest, AGREEMENT_LABEL, "the file")
            self.take_signatures(new)
        except ConfideError as error:
            wrong.append(error)
        for change, given in drafts:
            try:
                self._consider(change, given, own=own)
            except ConfideError as error:
                wrong.append(error)
            if len(wrong) == MOST_WRONG or len(self.chain) == most:
                break
        if wrong:
            raise wrong[0]

    def take_signatures(self, signatures: Signatures) -> None:
        self.signatures, self._packed = _least(self.signatures, signatures), None

    def _consider(self, change: Amendment, given: Signatures, *, own: bool) -> None:
        """An amendment and its signatures: of the head it may become the next; of an earlier state it is too late.

        What others may fill papers with, or keep us busy by, is limited; not what is in the `own` home, nor what all
        have signed.
        """
        known = self._known(change)
        if known is None and not given:
            return  # nobody's
        state = next((one for one in self.current.history if one.head == change.changes), None)
        if state is None:
            raise ConfideError(f"amendment {change.number} of {change.changes.hex()[:16]}, which is not known here")
        had = {} if known is None else known.signatures
        new = _other(given, had)
        complete = not set(state.cards) - set(change.without) - set(had) - set(new)
        if not complete:  # who signed another one first does not count here, too
            late = state.head != self.current.head
            new = {name: one for name, one in new.items() if not (late or self._signed_otherwise(name, change))}
            if not new or (known is None and not own and self._crowded(change, new)):
                return  # what changes nothing is not verified: a member can make as many as it likes
        _verify(new, _signing_cards(state, change), change.hash, AMENDMENT_LABEL, f"amendment {change.number}")
        if not complete and not own:
            self._check_limits(known, change, new)
        signers = None if complete or own else new
        try:
            known = known or Draft(change, self._amended(state, change, signers))  # takes long, so it comes last
        except ConfideError:
            if own and not complete:
                return  # it waited here before it could not be: no reason for a node not to start
            raise
        self._packed = None
        if any(known is draft for draft in self.chain):
            known.signatures = _least(known.signatures, new)
        elif state.head == self.current.head:
            known.signatures = _least(known.signatures, new)
            self.pending[change.hash] = known
            self._advance()
        else:
            known.signatures = new
            self.divided = [known, next(draft for draft in self.chain if draft.change.changes == change.changes)]

    def _known(self, change: Amendment) -> Draft | None:
        return next((d for d in (*self.chain, *self.pending.values()) if d.change.hash == change.hash), None)

    def _signed_otherwise(self, name: str, change: Amendment, own: Container[bytes] = ()) -> Draft | None:
        """Another one of the same state that this name signed, with the same key or one of its `own`."""
        card = _signing_cards(self.current, change).get(name)
        others = (draft for key, draft in self.pending.items() if key != change.hash and name in draft.signatures)
        used = ((d, d.cards[name].digest) for d in others)
        return next((d for d, key in used if card is not None and (key == card.digest or key in own)), None)

    def _crowded(self, change: Amendment, signatures: Signatures) -> bool:
        """Whether none but its new key has signed it, and enough of the kind wait: it needs the word of a member."""
        fresh = change.rekeyed(self.current)
        waiting = ((set(d.signatures), d.change.rekeyed(self.current)) for d in self.pending.values())
        alone = [names for names, new in waiting if names <= new]
        same = [names for names in alone if names <= fresh]
        return fresh.issuperset(signatures) and (len(same) >= UNVOUCHED or len(alone) >= MOST_UNVOUCHED)

    def _check_limits(self, known: Draft | None, change: Amendment, new: Signatures) -> None:
        if known is None:
            check_limits(self.current, change)
        if len(self.pack()) + length(new, change if known is None else None) > LONGEST_PAPERS - OWN:
            raise ConfideError(f"amendment {change.number}: no room for it beside {len(self.pending)} that wait")

    def _check_room(self, draft: Draft) -> None:
        """One line if papers would be too long to pass on once all have signed it, and others wait beside the next."""
        parts = [(self.founding.cards, None), *((one.cards, one.change) for one in (*self.chain, draft))]
        size = sum(length(names, change) for names, change in parts)
        if size > LONGEST_PAPERS - WAITING:
            raise ConfideError(
                f"amendment {draft.change.number}: papers of {size} bytes, once all have signed it: must be at most "
                f"{LONGEST_PAPERS - WAITING}; begin another run"
            )

    def _advance(self) -> None:
        """An amendment that all have signed is in force."""
        for draft in [*self.pending.values()]:
            if not draft.unsigned:
                self.chain.append(draft)
                self.current, self.pending = draft.leaves, {}

    # --- on disk ------------------------------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Take what another process of this home wrote; whether anything was new."""
        data, which = self._written()
        if not data:
            return False
        try:
            changed = self.take(data, own=True)
        except ConfideError as error:
            raise type(error)(f"{self.path}: {error}") from None
        self._read = self._read if changed else which
        return changed

    @property
    def unread(self) -> bytes:
        """What another process of this home wrote since; nothing, if none did."""
        return self._written()[0]

    def _written(self) -> tuple[bytes, tuple[int, int, int] | None]:
        """That, and which file it is."""
        if self.path is None:
            return b"", None
        try:
            with self.path.open("rb") as file:
                which = which_file(file.fileno())
                return b"" if which == self._read else file.read(), which
        except FileNotFoundError:
            return b"", None

    def save(self) -> None:
        """What is here and what is in the file, together."""
        if self.path is None:
            self._kept = self.pack()
            return
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self.path.with_suffix(".lock")):
            there = self.path.read_bytes() if self.path.exists() else b""
            if there:
                self._merge(there, own=True)
            if self.pack() != there:
                write_whole(self.path, self.pack(), 0o600)
            self._read, self._kept = which_file(self.path), self.pack()


def _signing_cards(state: Federation, change: Amendment) -> dict[str, Card]:
    """By which signatures of an amendment are checked: those that it brings, of members that are there."""
    return {**state.cards, **{card.name: card for card in change.cards if card.name in state.cards}}


def _verify(signatures: Signatures, cards: dict[str, Card], what: bytes, label: bytes, named: str) -> None:
    for name, one in signatures.items():
        if name not in cards or not cards[name].verify(one, what, label):
            raise ConfideError(f"a signature under {named} that {name!r} did not make")


def _other(given: Signatures, known: Signatures) -> Signatures:
    """Those that are not here, or are not the same bytes."""
    return {name: one for name, one in given.items() if known.get(name) != one}


def _least(known: Signatures, new: Signatures) -> Signatures:
    """Who signs twice has two signatures: all keep the same one."""
    return {**known, **{name: min(one, known.get(name, one)) for name, one in new.items()}}


def in_force(home: Path, file: Path) -> Federation:
    """The federation in a file, as the papers in a node's home amend it."""
    return Papers.of(home, federations.load(file)).current
