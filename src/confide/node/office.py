"""What a person does with papers: found, shown, signed; amendments composed, and patience kept."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from confide.errors import ConfideError
from confide.network.identity import Card
from confide.node import amendment as amendments
from confide.node import federation as federations
from confide.node.agreement import Draft, Papers
from confide.node.amended_cost import most, rounded_up
from confide.node.amendment import Amendment, amended, check_limits
from confide.node.federation import Federation
from confide.node.keys import Keys, Passphrase, ask


def papers_and_keys(file: Path, home: Path, passphrase: Passphrase = ask) -> tuple[Papers, Keys]:
    """Of the node in `home`, for the federation in `file`."""
    founding, keys = federations.load_runnable(file), Keys(home, passphrase)
    founding.neighbours(keys.name)  # one line if it is no member
    return Papers.of(home, founding), keys


def sign(papers: Papers, keys: Keys, file: Path) -> None:
    """The file itself."""
    papers.sign(keys.of(papers.founding, file))


def sign_amendment(papers: Papers, keys: Keys, draft: Draft) -> None:
    """With the key that the amendment leaves to this node, or, if it leaves, the one it has."""
    card = draft.cards.get(keys.name)
    if card is None or card.digest not in keys:
        raise ConfideError(f"amendment {draft.change.number}: its card of {keys.name} is of a key that is not here")
    papers.sign_amendment(replace(keys[card.digest], card=card), draft.change, keys)


def find(papers: Papers, name: str) -> Amendment:
    """An amendment that waits, by the beginning of its hash, or one in a file."""
    found = [draft.change for key, draft in papers.pending.items() if len(name) >= 4 and key.hex().startswith(name)]
    if len(found) == 1:
        return found[0]
    if Path(name).is_file():
        return amendments.load(Path(name))
    waiting = ", ".join(key.hex()[:16] for key in papers.pending) or "none"
    raise ConfideError(f"--amendment {name}: must be a file, or the hash of one that waits ({waiting})")


def compose(federation: Federation, without: Sequence[str], edges: Sequence[tuple[str, str]],
            addresses: Mapping[str, str], cards: Sequence[Card], rounds: int | None,
            epsilon: float | None) -> Amendment:  # fmt: skip
    """The next amendment; where it costs more than the cap and nobody says which, the cap becomes what it costs."""
    new = {card.name: card for card in cards}
    for name, address in addresses.items():
        if name not in federation.cards:
            raise ConfideError(f"--address {name}: must be a member, {', '.join(federation.cards)}")
        new[name] = replace(new.get(name, federation.cards[name]), address=address)
    change = Amendment(
        federation.digest, federation.head, len(federation.history), tuple(without), tuple(edges), rounds, epsilon,
        tuple(new.values()),
    )  # fmt: skip
    check_limits(federation, change)
    if epsilon is None and federation.epsilon is not None:
        free = amended(federation, replace(change, epsilon=1e9))
        if (cost := most(free)) > federation.epsilon * (1 + 1e-9):
            change = replace(change, epsilon=rounded_up(cost))
    return change


def check_patience(home: Path, draft: Draft, now: float | None = None) -> None:
    """Refuses to leave a member out before the run has stood still for long enough, unless that member signed it."""
    before = draft.leaves.before
    assert before is not None
    for name in draft.change.without:
        if name in draft.signatures or name == Keys(home).name:
            continue
        still = (time.time() if now is None else now) - _moved(home, before)
        if still < before.patience:
            raise ConfideError(
                f"--without {name}: the run moved {still:.0f} s ago, the federation's patience is "
                f"{before.patience:g} s, unless {name} signs that it leaves"
            )


def _moved(home: Path, federation: Federation) -> float:
    """When something of the run was written last: a round, or before the first one the papers."""
    run = federation.digest.hex()[:16]
    for path in (home / "runs" / run / "journal", home / "agreements" / f"{run}.json"):
        if path.exists():
            return path.stat().st_mtime
    return time.time()
