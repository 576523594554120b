"""Several parties' drafts as one schema, and where they differ.

What is taken is wide enough that a file which fits its own draft fits the merged schema: the range around all ranges,
all categories, all marks. A column that not everybody has, or that can't be read alike, is ignored until the parties
agree on it. The one who merges sees every draft, so a draft must hold nothing that was read off rows by then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from confide.errors import ConfideError
from confide.schema.columns import number, plain
from confide.schema.document import dumps
from confide.schema.header import probably_meant
from confide.schema.schema import MISSING, Column, Group, Schema, Target
from confide.schema.suggest import PRIVATE
from confide.schema.tally import CODE

ABSENT, NO_RULE = "(no such column)", "(no rule)"


class Difference(NamedTuple):
    """A field, named by its path, that the drafts give differently, and what was taken."""

    at: tuple[str, ...]
    given: dict[str, Any]  # by draft
    taken: Any

    def __str__(self) -> str:
        return "; ".join(f"{who}: {in_short(value)}" for who, value in self.given.items())


def in_short(value: Any) -> str:
    """A value as one reads it; a long list by its beginning."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


class _Merger:
    def __init__(self, drafts: Mapping[str, Schema]) -> None:
        self.drafts = drafts
        self.differences: list[Difference] = []

    def settle(self, at: tuple[str, ...], given: Mapping[str, Any], rule: Callable[[list[Any]], Any]) -> Any:
        """One value for all, by `rule` where they differ."""
        values = list(given.values())
        if all(v == values[0] for v in values):
            return values[0]
        taken = rule(values)
        self.differences.append(Difference(at, dict(given), taken))
        return taken

    def each(self, field: str) -> dict[str, Any]:
        return {who: getattr(draft, field) for who, draft in self.drafts.items()}

    def schema(self) -> Schema:
        label = self.label()
        group = self.group(label)
        taken = {label.name, *([group.name] if group else [])}
        names = dict.fromkeys(c.name for draft in self.drafts.values() for c in draft.columns)
        columns = tuple(self.column(name) for name in names if name not in taken)
        values = {plain(v) for v in label.values} | {plain(v) for c in columns for v in c.categories}
        marks = self.settle(("missing_marks",), self.each("missing_marks"), without(values))
        middle = None if label.low is None or label.high is None else label.low + (label.high - label.low) / 2
        fixed = self.settle(
            ("invalid_row", "label"), self.each("invalid_label"), first if middle is None else always(middle)
        )
        return Schema(
            columns, label, group,
            self.settle(("row_norm",), self.each("row_norm"), first),
            self.settle(("intercept",), self.each("intercept"), first),
            marks, fixed if middle is not None else same(fixed, label.values),
        )  # fmt: skip

    def label(self) -> Target:
        labels = self.each("label")
        name = next(iter(labels.values())).name
        if any(label.name != name for label in labels.values()):
            said = "; ".join(f"{who} has {label.name!r}" for who, label in labels.items())
            raise ConfideError(f"label: {said}: all drafts must name the same one")
        values = {who: label.values for who, label in labels.items()}
        known = [plain(v) for given in values.values() for v in given]
        amounts = [number(v) for v in known]
        if any(label.kind == "real" for label in labels.values()):
            if not all(map(math.isfinite, amounts)):
                kinds = "; ".join(f"{who} {label.kind}" for who, label in labels.items())
                raise ConfideError(f"label {name!r}: {kinds}: can't be both, as some classes are no numbers")
            self.settle(("label", "kind"), {who: label.kind for who, label in labels.items()}, lambda _: "real")
            low, high = self.range(("label",), labels, amounts)
            return Target(name, "real", low=low, high=high)
        every = self.settle(("label", "values"), values, union)
        kind = "binary" if len(every) == 2 else "classes"
        self.settle(("label", "kind"), {who: label.kind for who, label in labels.items()}, always(kind))
        return Target(name, kind, every)

    def group(self, label: Target) -> Group | None:
        groups = self.each("group")
        some = [group for group in groups.values() if group is not None]
        if not some:
            return None
        named = {who: group.name if group else ABSENT for who, group in groups.items()}
        name = self.settle(("group", "name"), named, always(some[0].name))
        if name == label.name or any(group.name != name for group in some):
            said = "; ".join(f"{who} has {group!r}" for who, group in named.items())
            raise ConfideError(f"group: {said}: all drafts must name the same column, and not the label")
        values = {who: group.values for who, group in groups.items() if group is not None}
        return Group(name, self.settle(("group", "values"), values, union))

    def column(self, name: str) -> Column:
        at = ("columns", name)
        given = {who: [c for c in draft.columns if c.name == name] for who, draft in self.drafts.items()}
        have = {who: found[0] for who, found in given.items() if found}
        if all(c.kind == "ignore" for c in have.values()):
            return Column(name, "ignore")  # need not be there
        said = {who: c[0].kind if c else self.absent(who, name, have) for who, c in given.items()}
        kind = self.settle((*at, "kind"), said, kinds(have, len(have) == len(given)))
        if kind == "ignore":
            return Column(name, kind)
        codes = [number(v) for c in have.values() for v in c.categories] if kind == "numeric" else []
        categories: tuple[str, ...] = ()
        low = high = None
        if kind == "numeric":
            low, high = self.range(at, {who: c for who, c in have.items() if c.kind == kind}, codes)
        else:
            categories = self.settle((*at, "categories"), {who: c.categories for who, c in have.items()}, union)
        rules = {who: NO_RULE if c.missing is None else c.missing for who, c in have.items()}
        rule = self.settle((*at, "missing"), rules, gaps(low, high))
        if kind == "category":
            rule = same(rule, categories) or rule  # as the merged list writes it
        marks = {who: c.missing_marks for who, c in have.items()}
        return Column(
            name, kind, low, high, categories, None if rule == NO_RULE else rule,
            self.settle((*at, "outside"), {who: c.outside for who, c in have.items()}, always("clip")),
            self.settle((*at, "missing_marks"), marks, without({plain(v) for v in categories})),
        )  # fmt: skip

    def absent(self, who: str, name: str, have: Iterable[str]) -> str:
        """What to say where a draft has no such column; perhaps it has the same by another name."""
        taken = {c.name for other in have for c in self.drafts[other].columns}
        alike = probably_meant(name, [c.name for c in self.drafts[who].columns if c.name not in taken])
        return ABSENT if alike is None else f"{ABSENT[:-1]}; {alike!r} is there)"

    def range(self, at: tuple[str, ...], have: Mapping[str, Any], more: list[float]) -> tuple[float, float]:
        """Around all ranges, and around codes that others took for categories or classes."""
        ends = {who: c for who, c in have.items() if c.low is not None}
        low = self.settle((*at, "low"), {who: c.low for who, c in ends.items()}, min)
        high = self.settle((*at, "high"), {who: c.high for who, c in ends.items()}, max)
        return min([low, *more]), max([high, *more])


# --- rules ------------------------------------------------------------------------------------------------------------


def first(values: list[Any]) -> Any:
    return values[0]


def always(value: Any) -> Callable[[list[Any]], Any]:
    return lambda _: value


def unique(values: Iterable[str]) -> list[str]:
    """Each value once, as it was first written."""
    seen: dict[str, str] = {}
    for value in values:
        seen.setdefault(plain(value), value)
    return list(seen.values())


def same(value: Any, values: Iterable[str]) -> str | None:
    """The one of `values` that is this value, however it is written."""
    return next((v for v in values if plain(v) == plain(str(value))), None)


def union(lists: list[tuple[str, ...]]) -> tuple[str, ...]:
    """All values, once each; in the order of their numbers if they are numbers, else as they come."""
    every = unique(v for values in lists for v in values)
    return tuple(sorted(every, key=number) if all(math.isfinite(number(v)) for v in every) else every)


def without(declared: set[str]) -> Callable[[list[Any]], tuple[str, ...]]:
    """All marks but those that somebody declares as a value."""
    return lambda lists: tuple(m for m in union(lists) if plain(m) not in declared)


def kinds(have: Mapping[str, Column], everybody: bool) -> Callable[[list[str]], str]:
    """Of a column that is numeric to some and a category to others; ignored unless all have it and read it alike."""

    def rule(given: list[str]) -> str:
        codes = [v for c in have.values() for v in c.categories]
        amounts = all(math.isfinite(number(v)) and not CODE.fullmatch(v) for v in codes)  # 007 is none
        alike = everybody and "ignore" not in given and amounts
        return "numeric" if alike else "ignore"

    return rule


def gaps(low: float | None, high: float | None) -> Callable[[list[Any]], Any]:
    """One rule for what is missing: that of those who have one; if these differ, a feature of its own or the middle."""

    def rule(given: list[Any]) -> Any:
        rules = {r for r in given if r != NO_RULE}
        if low is None or high is None:
            return rules.pop() if len(rules) == 1 else MISSING
        if MISSING in rules:
            return MISSING
        numbers = [r for r in rules if not isinstance(r, str)]
        return numbers[0] if len(numbers) == len(rules) == 1 else low + (high - low) / 2

    return rule


def named_files(paths: Sequence[Path]) -> dict[str, Path]:
    """Drafts by the names of their files, by whole paths if names are not enough."""
    if len(paths) < 2:
        raise ConfideError(f"{len(paths)} file: merging needs at least 2")
    short = {path.name: path for path in paths}
    names = short if len(short) == len(paths) else {str(path): path for path in paths}
    if len(names) < len(paths):
        twice = next(path for i, path in enumerate(paths) if path in paths[:i])
        raise ConfideError(f"{twice}: given twice; give the draft of each party once")
    return names


def merge(drafts: Mapping[str, Schema]) -> tuple[Schema, list[Difference]]:
    """One schema for at least two drafts, named by the keys, and every field in which they differ."""
    if len(drafts) < 2:
        raise ConfideError(f"{len(drafts)} draft: merging needs at least 2")
    work = _Merger(drafts)
    return work.schema(), work.differences


# --- as a file --------------------------------------------------------------------------------------------------------


def merged_file(merged: Schema, differences: Sequence[Difference], private: Sequence[str]) -> str:
    """The file of a merged schema; as long as some of the files were drafts, `private`, it is one itself."""
    text = f"Merged, and {PRIVATE}. Do not send it: still drafts are {', '.join(private)}. " if private else "Merged. "
    text += "Lines marked DIFFERS say what each file has: agree on one." if differences else "The files do not differ."
    head = fill(f"{text} Then each party checks its own rows.", 80, initial_indent="# ", subsequent_indent="# ",
                break_long_words=False, break_on_hyphens=False)  # fmt: skip
    return f"{head}\n\n{dumps(merged, {d.at: cut(f'DIFFERS: {d}', 72) for d in differences})}"


def cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"
