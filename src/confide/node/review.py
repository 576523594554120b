"""What a member agrees to, on one page in plain words, 80 columns: of a federation file, and of an amendment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from textwrap import wrap
from typing import Any

from confide import privacy
from confide.algorithms import SummedMethod
from confide.errors import ConfideError
from confide.node.agreement import Draft, Papers
from confide.node.amended_cost import most
from confide.node.amendment import refusal
from confide.node.caps import attempts_held, caps, promise
from confide.node.federation import Federation
from confide.privacy import Event, Label, totals
from confide.privacy.budget import ROW, of_agent
from confide.schema.columns import text
from confide.schema.schema import Schema

COLUMNS, INDENT = 80, 2
SHOWN = 12  # columns, members or categories named one by one
NOT_PROTECTED = (
    "that you take part, with whom, with how many rows, and when you send; whether someone is in the data at all; "
    "several rows of one person together (g rows cost g times as much). A member that sends inventions can spoil the "
    "model, though not anyone's privacy."
)

HELD_OUT = (
    "How good a model is, on rows set aside before training: give your node rows that the model was not learned from, "
    "nor chosen by. No software can check that: it is each party's word, and the scores are worth no more than it. "
    "What these rows pay adds up with all else that was released of the same people."
)


def page(papers: Papers, reader: str | None = None) -> list[str]:
    """The federation as it is now, its signatures, and amendments that wait for some; `reader` is who reads it."""
    f = papers.current
    if f.outdated:
        raise ConfideError(f"{f.name}: a federation of format {f.format}: it can be looked at, not signed")
    out = _wrapped(f"{f.name}: what you agree to")
    out += [*_wrapped(promise(f)), f"hash {f.digest.hex()}"]
    if papers.chain:
        out += _wrapped(f"as amended {len(papers.chain)} times, last by {f.head.hex()[:16]}")
    for title, lines in _sections(papers, reader):
        out += ["", title, *chain.from_iterable(_wrapped(line, INDENT) for line in lines)]
    for draft in papers.pending.values():
        out += ["", *amendment_page(draft)]
    return out


def _sections(papers: Papers, reader: str | None) -> Iterator[tuple[str, list[str]]]:
    f = papers.current
    yield "Who takes part", [*_members(papers)]
    yield f"What is {'learned, and from' if f.evaluation is None else 'measured, and on'} which columns", [*_columns(f)]
    yield "What leaves your house", [*_released(f, reader)]
    if f.package is not None:
        yield "Whose code meets your rows", [*_code(f)]
    yield "What it costs", [*_cost(f)]
    yield "Who may work together against you", [_colluders(f)]
    yield "Guarantee", [f"{f.guarantee.label}: {f.guarantee.reason}"]
    lost = f"If nothing has moved for {_span(f.patience)}, the others may go on without it, once all of them sign."
    yield "If a member is lost", [f"The run waits for it. {why}" if (why := refusal(f)) else lost]
    yield "Not protected", [NOT_PROTECTED]


def _members(papers: Papers) -> Iterator[str]:
    f = papers.current
    wide = max(map(len, f.cards))
    for name in list(f.cards)[:SHOWN]:
        rows = "the hub, no rows" if name == f.hub else f"{f.sizes[name]:,} rows"
        signed = "signed" if papers.signed(name) else "not signed yet"
        yield f"{name:<{wide}}  {rows}, {f.cards[name].address}, {signed}"
    if (rest := len(f.cards) - SHOWN) > 0:
        yield f"and {rest} more, {sum(f.sizes.values()):,} rows in all; {len(papers.unsigned())} have not signed yet"
    gone = [name for name in papers.founding.cards if name not in f.cards]
    if gone:
        yield f"no longer there: {', '.join(gone)}"


def _columns(f: Federation) -> Iterator[str]:
    model = f"{type(f.loss.base).__name__.lower()} loss, {type(f.penalty).__name__} penalty"
    if f.evaluation is not None:
        yield HELD_OUT
        model = "the model in the file, which is public"
    if f.schema is None:
        yield f"A label from {f.features} plain numbers, by {model}. The file does not say what the numbers are."
        yield f"Rows longer than {f.row_norm:g} are clipped to that." if f.row_norm is not None else ""
        return
    yield f"{_label(f.schema)}, by {model}."
    read = list(f.schema.read)
    for column in read[:SHOWN]:
        if column.kind == "numeric":
            yield f"{text(column.name)}: a number from {column.low:g} to {column.high:g}"
        else:
            yield f"{text(column.name)}: {_some(column.choices)}"
    if len(read) > SHOWN:
        yield f"and {len(read) - SHOWN} columns more"
    if ignored := tuple(column.name for column in f.schema.columns if column.kind == "ignore"):
        yield f"Not read: {_some(ignored)}."
    yield "A column of your file that is not declared here stops the node before any row is read."


def _label(schema: Schema) -> str:
    label = schema.label
    said = f"a number from {label.low:g} to {label.high:g}" if label.kind == "real" else _some(label.values)
    return f"The label {text(label.name)} ({said})"


def _some(values: tuple[str, ...]) -> str:
    more = f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    return ", ".join(map(text, values[:SHOWN])) + more


def _released(f: Federation, reader: str | None) -> Iterator[str]:
    widths = f.algorithm.schedule(f.public).widths
    size = f"{widths.max()} numbers" if (widths == widths[0]).all() else f"up to {widths.max()} numbers"
    to = "your neighbours on the network, who may pass it on"
    if reader is not None and reader in f.cards and f.hub is None:
        to = f"{_some(tuple(f.neighbours(reader)))}, who may pass it on"
    if f.summed:
        to = "your neighbours on the network, behind masks: everyone learns the sum of all parties' and nothing else"
    if f.hub is not None:
        to = f"the hub {f.hub}, which hands out the sum of all"
    noise = (
        "computed from your rows with noise added before it leaves"
        if f.guarantee.label != Label.NONE
        else ("computed from your rows, without noise that would protect them")
    )
    rounds = "one round" if f.algorithm.rounds == 1 else f"each of {f.algorithm.rounds} rounds"
    yield f"In {rounds} of {f.algorithm.name} one message of {size}, {noise}, to {to}."
    what = "model is" if f.evaluation is None else "scores are"
    yield f"No row, no label and no file of yours. The {what} computed from messages alone."


def _code(f: Federation) -> Iterator[str]:
    assert f.package is not None
    yield (
        f"{f.algorithm.name} is a method of the package {f.package} ({f.package.entry}), not of confide. It runs on "
        "your machine, in the process that reads your rows: what the guarantee below says holds for what it asks of "
        "confide, and nobody but its authors knows what else it does."
    )
    yield (
        "All members run the same files; a node with another version, or other files under it, refuses. Packages that "
        "it needs itself are not compared."
    )
    yield f"source {f.package.source}"
    yield f"Your node runs it only once you consent, by `--consent {f.algorithm.name}` or at the terminal."


def _cost(f: Federation) -> Iterator[str]:
    if f.epsilon is None or f.delta is None or f.guarantee.label == Label.NONE:
        yield "No noise protects your rows: there is nothing that could be counted."
        return
    yield (
        f"At most ε={f.epsilon:g} at δ={f.delta:g} for each of your rows, in all rounds together{_beyond(f)}; a node "
        f"stops before it would spend more. The rounds as planned, with {f.restarts} that a crash may make you pay for "
        f"twice, cost ε={most(f):.4g}."
    )
    if isinstance(f.algorithm, SummedMethod) and len(f.stages) > 1:
        yield f"With what was released before members left, and a round that was abandoned: {promise(f)}."
    elif isinstance(f.algorithm, SummedMethod):
        c, every = f.algorithm.colluders(f.public), len(f.parties)
        for j in sorted({0, c, every - 1}):
            yield f"Without a crash, against {j} of the other {every - 1} parties together: ε={_against(f, j):.4g}."
    worst = max(_guess(f, k) for k in range(len(f.parties)))
    yield (
        "Who sees everything that is released and knows all but one of your rows, and of that one two possible "
        f"values, guesses right in at most {_of_hundred(worst)} of 100 cases{_few(f)}; a coin is right in 50."
    )


def _beyond(f: Federation) -> str:
    """Whom the cap is against, where parties share their noise, and what a node may spend against everyone."""
    budgets = [caps(f, k, f.restarts) for k in range(len(f.parties))]
    if all(len(one) == 1 for one in budgets):
        return ""
    return f",{_few(f)}, and at most ε={max(one[ROW][0] for one in budgets):.4g} against all others together"


def _few(f: Federation) -> str:
    if not isinstance(f.algorithm, SummedMethod) or f.algorithm.honest(f.public) == 1:
        return ""
    first = f.founding
    assert isinstance(first.algorithm, SummedMethod)
    return f" if at most {first.algorithm.colluders(first.public)} of {len(first.parties)} parties pool all they know"


def _against(f: Federation, colluders: int) -> float:
    assert isinstance(f.algorithm, SummedMethod) and f.delta is not None
    worst = 0.0
    for k in range(len(f.parties)):
        rounds = f.algorithm.charged_against(colluders, f.public.at(k))
        events: list[Event] = [event for now in rounds for event in of_agent(now, 0)]
        worst = max(worst, *(float(e) for e in totals(events, f.delta).values()))
    return worst


def _guess(f: Federation, k: int) -> float:
    rounds = f.prices(k)
    events = list(chain.from_iterable([*rounds, *attempts_held(rounds, f.restarts)]))
    kinds = {event.kind for event in events if hasattr(event, "kind")}
    if len(kinds) > 1:
        events = [event for event in events if event.kind == min(kinds)]
    return float(privacy.distinguish(events)) if events else 0.5


def _of_hundred(chance: float) -> str:
    return f"{math.ceil(1000 * min(chance, 1.0) - 1e-9) / 10:g}"


def _colluders(f: Federation) -> str:
    if isinstance(f.algorithm, SummedMethod):
        c, every = f.algorithm.colluders(f.public), len(f.parties)
        return (
            f"The cap holds if at most {c} of {every} parties pool all they know; against more of them it costs more, "
            "as said above."
        )
    if f.guarantee.label == Label.NONE:
        return "Nothing protects your rows from whoever sees your messages."
    if f.guarantee.label != Label.PROVEN:
        return "Anyone, as far as the guarantee below holds: what you send is counted as if the whole world saw it."
    return (
        "Anyone, all other members together too: what you send is counted as if the whole world saw it, and the cap "
        "holds all the same. You need to trust nobody but your own machine."
    )


# --- amendments -----------------------------------------------------------------------------------------------------


def amendment_page(draft: Draft) -> list[str]:
    """What an amendment changes, and who has signed it."""
    change, before, after = draft.change, draft.leaves.before, draft.leaves
    assert before is not None
    out = [f"Amendment {change.number}: what would change", f"hash {change.hash.hex()}"]
    lines = [*_changes(draft)]
    old, new = before.epsilon, after.epsilon
    if old is not None and new is not None and after.guarantee.label != Label.NONE:
        raised = f"The cap rises from ε={old:g} to ε={new:g}." if new > old else f"The cap is now ε={new:g}."
        cost = f"The whole run costs at most ε={most(after):.4g} at δ={after.delta:g}."
        lines.append(f"{raised if new != old else f'The cap stays at ε={old:g}.'} {cost}")
    lines.append(f"Signed by {', '.join(draft.signatures) or 'nobody'}; in force once signed by "
                 f"{', '.join(draft.unsigned) or 'nobody more'}.")  # fmt: skip
    return [*out, *chain.from_iterable(_wrapped(line, INDENT) for line in lines)]


def _changes(draft: Draft) -> Iterator[str]:
    change, before, after = draft.change, draft.leaves.before, draft.leaves
    assert before is not None
    for name in change.without:
        agrees = "who agrees" if name in draft.signatures else "who was not asked, or has not answered"
        if after.summed:
            yield f"{name} leaves ({agrees}), for good: it does not come back in this run."
            continue
        yield (
            f"{name} leaves ({agrees}). Its links go as if they had never been; the model becomes that of "
            f"{_some(after.parties)}. What you sent stays: no round is repeated, and none is paid for again."
        )
    if isinstance(after.algorithm, SummedMethod) and change.without:
        c, rows = after.algorithm.colluders(after.public), sum(after.sizes.values())
        yield (
            "Rounds whose sum is there stay as they are. The one under way is abandoned and stays charged; it and all "
            f"after it are summed by {_some(after.parties)}, with {rows:,} rows. As before at most {c} may collude, so "
            f"that {after.algorithm.honest(after.public)} share the noise that {len(before.parties) - c} shared: each "
            "adds more of it, and a round costs what it did."
        )
        yield f"With what was released before: {promise(after)}." if promise(after) else ""
    for a, b in change.edges:
        more = "" if after.summed else ": each hands the other what it sent so far"
        yield f"A link between {a} and {b} is added{more}."
    for card in change.cards:
        old = before.cards[card.name]
        if card.digest != old.digest:
            yield (
                f"{card.name} has another key, and the one it had is refused from then on. Compare the fingerprint "
                f"over another channel: {card.fingerprint}"
            )
        if card.address != old.address:
            yield f"{card.name} is reached at {card.address}, no longer at {old.address}."
    if change.rounds is not None:
        yield f"{change.rounds} rounds in all, {change.rounds - before.algorithm.rounds} more than now."


def to_json(papers: Papers) -> dict[str, Any]:
    """The same for programs."""
    f = papers.current
    return {
        "federation": f.name, "hash": f.digest.hex(), "head": f.head.hex(), "amendments": len(papers.chain),
        "members": {
            name: {"rows": f.sizes.get(name), "address": card.address, "fingerprint": card.fingerprint,
                   "signed": papers.signed(name)} for name, card in f.cards.items()
        },
        "method": f.algorithm.name, "rounds": f.algorithm.rounds, "epsilon": f.epsilon, "delta": f.delta,
        "package": None if f.package is None else f.package._asdict(),
        "guarantee": str(f.guarantee), "patience": f.patience, "unsigned": papers.unsigned(),
        "pending": [{"hash": draft.change.hash.hex(), **draft.change.document(), "signed": [*draft.signatures],
                     "unsigned": draft.unsigned} for draft in papers.pending.values()],
    }  # fmt: skip


def _wrapped(line: str, indent: int = 0) -> list[str]:
    return wrap(line, COLUMNS, initial_indent=" " * indent, subsequent_indent=" " * (indent and indent + 2))


def _span(seconds: float) -> str:
    for size, name in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= size:
            return f"{seconds / size:g} {name}{'' if seconds == size else 's'}"
    return f"{seconds:g} seconds"
