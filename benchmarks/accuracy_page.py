"""docs/accuracy.md and its plot, from the results in docs/accuracy.json."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path

from accuracy_kept import Result

DOCS = Path(__file__).resolve().parents[1] / "docs"
NUMBERS, PAGE, PICTURE = DOCS / "accuracy.json", DOCS / "accuracy.md", DOCS / "pictures" / "accuracy-sets.png"
HEAD = """# How accurate it is

One command makes this page: `confide bench --accuracy all`, or `--accuracy adult,wine` for a part; it goes on where it
was stopped. δ = 1e-5; ± is a standard error over so many splits, each with rows, parties and noise of its own; none of
them had a part in choosing constants. *c=1*: at most one other party colludes; *honest majority*: fewer than half.
*alone*: one party holds all rows. The *curator* is trusted with all rows and runs noisy gradient descent whose rounds,
steps and averaging were chosen on the very test sets that are shown. *diffprivlib* has its regularisation chosen there,
too, and promises pure ε. *none*: scikit-learn without privacy. Noise is seeded.
"""
ADULT_NOTE = (
    "Test error in %, 40,000 training rows. A limit that was set beforehand is in brackets; **bold** is beyond it."
)
ABOVE_NOTE = """Test error above the tuned curator's, in points, five parties, c=1; below 0 the curator is behind. In
brackets the limit that was set beforehand; **bold** is beyond it."""

TABLES_NOTE = """Features are scaled by public ranges, round numbers that were not read off the rows (`scale=`);
accuracy in %, and R² for diabetes. *range bought*: the target's range is not known either."""


def load() -> list[Result]:
    return [Result(**one) for one in json.loads(NUMBERS.read_text())] if NUMBERS.exists() else []


def note(found: list[Result]) -> None:
    """Results of a part take the place of earlier ones of it."""
    new = {(one.part, one.set) for one in found}
    every = [one for one in load() if (one.part, one.set) not in new] + found
    every.sort(key=lambda one: (one.part, one.set, one.unit, one.what.startswith("curator"), one.epsilon))
    lines = ",\n".join(json.dumps(plain(one), ensure_ascii=False) for one in every)
    NUMBERS.write_text(f"[\n{lines}\n]\n")


def plain(one: Result) -> dict[str, object]:
    """Without a number that JSON has not: ε of a model without privacy is 0 there."""
    table = {k: round(v, 4) if isinstance(v, float) and math.isfinite(v) else v for k, v in asdict(one).items()}
    return table | {"epsilon": one.epsilon if math.isfinite(one.epsilon) else 0.0}


def line(one: Result) -> str:
    """For the terminal."""
    verdict = "" if one.limit is None else f"  at most {one.limit:g}: {'met' if one.met else 'MISSED'}"
    epsilon = f"ε={one.epsilon:<4g}" if 0 < one.epsilon < math.inf else " " * 6
    return f"{one.set:16} {epsilon} {one.what:46} {shown(one):>15} {one.unit}{verdict}"


def shown(one: Result, signed: bool = False) -> str:
    if one.unit == "R²" and one.value < -1:
        return "below -1"
    digits = 3 if one.unit in ("R²", "integrated squared error") else 2 if one.unit != "accuracy, %" else 1
    return f"{one.value:{'+' if signed else ''}.{digits}f} ± {one.error:.{digits}f}"


def cell(one: Result | None, signed: bool = False) -> str:
    if one is None:
        return ""
    text = shown(one, signed)
    if one.limit is None:
        return text
    return f"{text} ({one.limit:g})" if one.met else f"**{text}** ({one.limit:g})"


def table(rows: list[tuple[str, list[Result]]], signed: bool = False) -> str:
    """A row for each name, a column for each ε."""
    epsilons = sorted({one.epsilon for _, row in rows for one in row if one.epsilon > 0})
    out = [f"| | {' | '.join(f'ε={e:g}' for e in epsilons)} |", "|---" * (len(epsilons) + 1) + "|"]
    for name, row in rows:
        by = {one.epsilon: one for one in row}
        cells = [cell(by.get(e), signed) for e in epsilons]
        if set(by) == {0.0}:
            cells = [cell(by[0.0])] + [""] * (len(epsilons) - 1)
        out.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(out)


def named(results: list[Result]) -> list[tuple[str, list[Result]]]:
    """By `what`, in the order in which they come; the curator's settings left out."""
    rows: dict[str, list[Result]] = {}
    for one in results:
        rows.setdefault(one.what.split(":")[0] if one.what.startswith("curator") else one.what, []).append(one)
    return list(rows.items())


def write() -> None:
    every = load()
    parts = [HEAD]
    adult = [one for one in every if one.part == "adult" and one.unit == "test error, %"]
    if adult:
        parts += ["## Adult", ADULT_NOTE, table(named(adult))]
    above = [one for one in every if one.unit == "points" and one.part != "adult"]
    if above:
        rows = {name: [one for one in above if one.set == name] for name in dict.fromkeys(one.set for one in above)}
        easy = ("waveform", "twonorm", "cohort")
        order = sorted(rows, key=lambda name: (name not in easy, name))
        parts += ["## Beside a tuned curator", ABOVE_NOTE, table([(name, rows[name]) for name in order], signed=True)]
    if adult or above:
        draw(adult, above)
        parts.append("![Error against ε, and points above a tuned curator](pictures/accuracy-sets.png)")
    tables = [one for one in every if one.part == "tables"]
    if tables:
        parts += ["## Beside diffprivlib and no privacy", TABLES_NOTE]
        for name in dict.fromkeys(one.set for one in tables):
            own = [one for one in tables if one.set == name]
            parts += [f"**{name}**", table(named(own))]
            if all(one.what != "diffprivlib" for one in own):
                parts.append("diffprivlib: missing, it was not run or could not be installed.")
    for part, title in (("regression", "Regression"), ("quantiles", "Quantiles"), ("curves", "Curves")):
        own = [one for one in every if one.part == part]
        if own:
            parts += [f"## {title}", table([(f"{one.set}: {one.what}; {one.unit}", [one]) for one in own])]
    counts = ", ".join(f"{name} {max(one.splits for one in every if one.set == name)}"
                       for name in dict.fromkeys(one.set for one in every))  # fmt: skip
    missed = [f"{one.set}, ε={one.epsilon:g}, {one.what}: {shown(one)} where {one.limit:g} is the limit"
              for one in every if one.met is False]  # fmt: skip
    earlier = list(dict.fromkeys(one.set for one in every if one.earlier))
    parts += ["## Beyond a limit", "\n".join(f"* {text}" for text in missed) or "Nothing.", f"Splits: {counts}.",
              f"Measured with code that has changed since: {', '.join(earlier)}." if earlier
              else "All numbers were measured with the code as it is."]  # fmt: skip
    PAGE.write_text("\n\n".join(part.rstrip("\n") for part in parts) + "\n")
    print(f"{PAGE.name}: {len(every)} numbers, {len(missed)} beyond a limit")


def draw(adult: list[Result], above: list[Result]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for name, row in named(adult):
        style = {"color": "black", "linestyle": ":"} if name == "curator" else {}
        left.errorbar([one.epsilon for one in row], [one.value for one in row], [one.error for one in row],
                      marker="o", markersize=3, capsize=2, label=name, **style)  # fmt: skip
    left.set(xscale="log", xlabel="ε", ylabel="test error, %", title="Adult")
    if adult:
        left.legend(fontsize=8)
    for name in dict.fromkeys(one.set for one in above):
        row = [one for one in above if one.set == name]
        right.errorbar([one.epsilon for one in row], [one.value for one in row], [one.error for one in row],
                       marker="o", markersize=3, capsize=2, label=name)  # fmt: skip
    right.axhline(0, color="black", linewidth=0.8, linestyle=":")
    right.set(xscale="log", xlabel="ε", ylabel="points above a tuned curator", title="Five parties, c=1")
    if above:
        right.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    for axes, results in ((left, adult), (right, above)):
        ticks = sorted({one.epsilon for one in results})
        axes.set_xticks(ticks, [f"{e:g}" for e in ticks])
        axes.minorticks_off()
    figure.savefig(PICTURE, dpi=100)
    plt.close(figure)
