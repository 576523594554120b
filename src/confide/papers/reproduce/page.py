"""The page over all finished experiments: what was published, what was measured, and a verdict for each.

A sentence that is judged in several figures or tables of a paper is one claim: it holds if it holds in all of them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confide.errors import ConfideError
from confide.files import write_whole
from confide.papers.reproduce import last
from confide.papers.reproduce.experiment import digest, names, paper_titles
from confide.papers.reproduce.findings import DIFFERS, IN_SHAPE, MATCHES, VERDICTS

Document = dict[str, Any]
TOP = """# The papers' figures and tables, reproduced

Made by `confide reproduce`: {experiments} experiments, {time} of one core in all{wall}.
**{claims} claims of the papers**: {matches} match within the stated distance, {shape} match in shape, {differs} differ
for the reason given{open}. A sentence that is judged in several figures or tables is one claim, and differs if it
does in any of them.
**{own} checks of our own**, of what no paper says: {held} hold, {failed} do not{own_open}.
{criteria}{left}Every run is a simulation: its noise is seeded and protects nobody.{earlier}
"""
EARLIER = "Measured with earlier code than the present."
OLDER = "Not measured in the last run: its data was missing."
SHARED = 2  # claims from which on a cause is told once for the paper
PRINTED = re.compile(r"(fig|table)(\d+)")  # names of what is in a paper; any other experiment is ours
NOUN = {"fig": "figures", "table": "tables"}
NO_CAUSE = "no cause is known"  # how a cause begins that says so


@dataclass(frozen=True)
class JudgedSentence:
    """A sentence, and what each experiment that judges it found: name -> finding."""

    what: str
    ours: bool
    found: dict[str, Document]

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(self.found)

    @property
    def verdict(self) -> str:
        """The weakest."""
        return max((f["verdict"] for f in self.found.values()), key=VERDICTS.index)

    @property
    def causes(self) -> list[str]:
        return list(dict.fromkeys(f["why"] for f in self.found.values() if f["verdict"] == DIFFERS))

    @property
    def unexplained(self) -> bool:
        return any(not why.strip() or why.startswith(NO_CAUSE) for why in self.causes)


def claims(documents: list[Document]) -> list[JudgedSentence]:
    """What is judged in the experiments of one paper; equal sentences of its numbered figures, or tables, are one."""
    merged: dict[tuple[Any, ...], JudgedSentence] = {}
    for document in documents:
        printed, seen = PRINTED.fullmatch(document["name"]), Counter[tuple[str, bool]]()
        for finding in document["findings"]:
            sentence = (finding["what"], finding["ours"])
            seen[sentence] += 1
            key = (printed[1] if printed else document["name"], *sentence, seen[sentence])
            merged.setdefault(key, JudgedSentence(*sentence, {})).found[document["name"]] = finding
    return list(merged.values())


def write_page(out: Path) -> Path | None:
    """`out`/index.md over every finished experiment below `out`; nothing if there is none."""
    documents = finished(out)
    if not documents:
        return None
    skipped = last.read(out)["skipped"]
    for document in documents:
        document["older"] = _title(document) in skipped
    wall = last.took(out, {_title(d): d.get("code", "") for d in documents})
    write_whole(out / "index.md", page(documents, wall).encode())
    return out / "index.md"


def finished(out: Path) -> list[Document]:
    """What every experiment with a data.json says of itself, in the order of the papers."""
    order = {pair: place for place, pair in enumerate(names())}
    documents = []
    for file in sorted(out.glob("*/*/data.json")):
        document = json.loads(file.read_text(encoding="utf-8"))
        timing = json.loads((file.parent / "timing.json").read_text(encoding="utf-8"))
        findings = [{"ours": False, **finding} for finding in document["findings"]]
        unknown = {"measured": None, "criteria_before_the_run": False}
        documents.append({"judged": unknown, **document, "findings": findings, "seconds": timing["core_seconds"]})
    known = [d for d in documents if (d["paper"], d["name"]) in order]  # files that are gone are no longer shown
    for document in known:
        document["current"] = is_current(document)
    return sorted(known, key=lambda d: order[d["paper"], d["name"]])


def is_current(document: Document) -> bool:
    """Would its tasks be measured by the same code today?"""
    try:
        return bool(document.get("code") == digest(document["paper"], document["name"]))
    except ConfideError:  # the file can't be read any more
        return False


def _title(document: Document) -> str:
    return f"{document['paper']} {document['name']}"


def page(documents: list[Document], wall: str = "") -> str:
    """The page as Markdown; `wall` is how long one run of them all took."""
    papers = {
        paper: [d for d in documents if d["paper"] == paper] for paper in dict.fromkeys(d["paper"] for d in documents)
    }
    judged = {paper: claims(some) for paper, some in papers.items()}
    every = [claim for some in judged.values() for claim in some]
    count = Counter(claim.verdict for claim in every if not claim.ours)
    own = Counter(claim.verdict for claim in every if claim.ours)
    unknown = Counter(claim.ours for claim in every if claim.unexplained)
    said = {ours: f", **{n} of them without a known cause**" for ours, n in unknown.items()}
    earlier = sum(not document["current"] for document in documents)
    parts = [TOP.format(
        experiments=len(documents), time=_about(sum(document["seconds"] for document in documents)),
        claims=count.total(), matches=count[MATCHES], shape=count[IN_SHAPE],
        differs=count[DIFFERS], open=said.get(False, ""), own_open=said.get(True, ""),
        wall=wall, left=last.left_out(_title(d) for d in documents if d.get("older")),
        own=own.total(), held=own[MATCHES] + own[IN_SHAPE], failed=own[DIFFERS], criteria=criteria(documents),
        earlier=f" {earlier} of the experiments were measured with earlier code, and say so." if earlier else "",
    ), contents(papers, judged)]  # fmt: skip
    titles = {folder.replace("_", "-"): title for folder, title in paper_titles().items()}
    for paper, some in papers.items():
        parts.append(f"## {titles.get(paper, paper)}\n")
        shared = causes(judged[paper])
        if shared:
            lines = [f"- **{name}**: {_cell(why)}" for why, name in shared.items()]
            parts.append("\n".join(["Causes that several differences share:\n", *lines, ""]))
        for document, where, here in laid_out(some, judged[paper]):
            if document is None:
                parts.append(together(paper, where, here, shared))
            else:
                parts.append(
                    section(document, here, [w for w in spans(judged[paper]) if document["name"] in w], shared)
                )
    return "\n".join(parts)


def criteria(documents: list[Document]) -> str:
    """Whether what judges the runs was committed before them, in one sentence."""
    late = [f"{d['paper']} {d['name']}" for d in documents if not d["judged"]["criteria_before_the_run"]]
    commits = {d["judged"]["measured"]["commit"] for d in documents if d["judged"]["measured"]} - {None}
    at = f" at commit {', '.join(sorted(c[:10] for c in commits))}" if commits else ""
    if not late:
        return f"Every criterion was committed before the run that it judges{at}.\n"
    some = ", ".join(late[:8]) + (f" and {len(late) - 8} more" if len(late) > 8 else "")
    return f"Measured{at}; not known to be judged by criteria committed before the run: {some}.\n"


def causes(judged: list[JudgedSentence]) -> dict[str, str]:
    """Causes that several differences of a paper have -> the letter they are called by."""
    count = Counter(why for claim in judged for why in claim.causes if why)
    many = [why for why, n in count.items() if n >= SHARED]
    return {why: f"cause {chr(ord('A') + i)}" for i, why in enumerate(many)}


def spans(judged: list[JudgedSentence]) -> list[tuple[str, ...]]:
    """The groups of experiments that have claims in common."""
    return list(dict.fromkeys(claim.places for claim in judged if len(claim.places) > 1))


def laid_out(
    documents: list[Document], judged: list[JudgedSentence]
) -> list[tuple[Document | None, tuple[str, ...], list[JudgedSentence]]]:
    """(experiment, its name, its own claims) in order; before the first of a group (None, the group, its claims)."""
    out: list[tuple[Document | None, tuple[str, ...], list[JudgedSentence]]] = []
    for document in documents:
        name = document["name"]
        for where in (*(w for w in spans(judged) if w[0] == name), (name,)):
            here = [claim for claim in judged if claim.places == where]
            out.append((document if len(where) == 1 else None, where, here))
    return out


def contents(papers: dict[str, list[Document]], judged: dict[str, list[JudgedSentence]]) -> str:
    """One line an experiment, and one for each group that has claims in common."""
    lines = ["| experiment | shows | match | in shape | differ | own checks |", "|---|---|---:|---:|---:|---:|"]
    for paper, documents in papers.items():
        for document, where, here in laid_out(documents, judged[paper]):
            count = Counter(claim.verdict for claim in here if not claim.ours)
            own = [claim.verdict != DIFFERS for claim in here if claim.ours]
            title = document["title"] if document else f"What is said of each of these {_noun(where)}"
            said = f"{sum(own)} of {len(own)}" if own else ""
            link = f"[{paper} {span(where)}](#{anchor(paper, where)})"
            numbers = (count[verdict] if count else "" for verdict in VERDICTS)  # none: they are in a group's line
            lines.append(_row(link, title, *numbers, said))
    return "\n".join(lines) + "\n"


def span(where: tuple[str, ...]) -> str:
    """fig3; fig4 and fig6; table1 to table6."""
    numbers = [int(found[2]) for name in where if (found := PRINTED.fullmatch(name))]
    if len(where) > 2 and numbers == list(range(numbers[0], numbers[0] + len(where))):
        return f"{where[0]} to {where[-1]}"
    return " and ".join([", ".join(where[:-1]), where[-1]] if len(where) > 1 else where)


def anchor(paper: str, where: tuple[str, ...]) -> str:
    return f"{paper}-{span(where)}".replace(", ", "-").replace(" ", "-")


def _noun(where: tuple[str, ...]) -> str:
    found = PRINTED.fullmatch(where[0])
    assert found is not None
    return NOUN[found[1]]


def together(paper: str, where: tuple[str, ...], judged: list[JudgedSentence], shared: dict[str, str]) -> str:
    """The claims that a group of figures or tables has in common, each in one line with what every one of them gave."""
    name = span(where)
    lines = [
        f'<a id="{anchor(paper, where)}"></a>\n', f"### {paper} {name}: what is said of each of them\n",
        "Measured values, the published ones in brackets where they are not all the same; bold where it differs.\n",
    ]  # fmt: skip
    for ours in (False, True):
        some = [claim for claim in judged if claim.ours == ours]
        if not some:
            continue
        columns = ("beyond the paper",) if ours else ("what", "published")
        lines += [_row(*columns, *where, "verdict"), "|---" * (len(columns) + len(where) + 1) + "|"]
        for claim in some:
            found = list(claim.found.values())
            published = list(dict.fromkeys(f["published"] for f in found))
            alone = len(published) == 1
            first = [claim.what] if ours else [claim.what, (published[0] if alone else "in brackets") + _within(found)]
            said = f"holds in {sum(f['verdict'] != DIFFERS for f in found)} of {len(found)} {_noun(where)}"
            verdict = f"**{said}**" if ours else f"**{claim.verdict}**: {said}"
            because = _because(claim, shared, "; ")
            lines.append(_row(*first, *(_value(f, alone) for f in found), verdict + because))
        lines.append("")
    return "\n".join(lines)


def _within(found: list[Document]) -> str:
    """The distance at which numbers match, if it is one."""
    stated = {f["difference"].partition("(±")[2].rstrip(")") for f in found} - {""}
    return f", ±{stated.pop()}" if len(stated) == 1 else ""


def _value(finding: Document, alone: bool) -> str:
    """What was measured, with the published value where others have another one; bold where it differs."""
    said = f"**{finding['measured']}**" if finding["verdict"] == DIFFERS else finding["measured"]
    return said if alone else f"{said} ({finding['published']})"


def _because(claim: JudgedSentence, shared: dict[str, str], before: str) -> str:
    if claim.verdict != DIFFERS:
        return ""
    return before + "; ".join(shared.get(why, why) or "cause unknown" for why in claim.causes)


def section(
    document: Document, judged: list[JudgedSentence], groups: list[tuple[str, ...]], shared: dict[str, str]
) -> str:
    """One experiment: what it is, its findings, its figure, its files."""
    paper, name = document["paper"], document["name"]
    folder = f"{paper}/{name}"
    links = ", ".join(f"[{span(where)}](#{anchor(paper, where)})" for where in groups)
    lines = [
        f'<a id="{anchor(paper, (name,))}"></a>\n', f"### {paper} {name}: {document['title']}\n",
        f"{document['text']}\n",
        f"Trials: {document['trials']['measured']} measured, {_published(document)}. "
        f"Took {_about(document['seconds'])} of one core.{'' if document['current'] else f' {EARLIER}'}"
        f"{f' {OLDER}' if document.get('older') else ''}"
        f"{f' What is said of several is under {links}.' if links else ''}\n",
    ]  # fmt: skip
    for ours in (False, True):
        some = [claim for claim in judged if claim.ours == ours]
        if not some:
            continue
        lines += ["| beyond the paper | measured | verdict |", "|---|---|---|"] if ours else [
            "| what | published | measured | difference | verdict |", "|---|---|---|---|---|"]  # fmt: skip
        for claim in some:
            f = claim.found[name]
            verdict = f"**{f['verdict'] if not ours else 'does not hold' if f['verdict'] == DIFFERS else 'holds'}**"
            rest = (f["measured"],) if ours else (f["published"], f["measured"], f["difference"])
            lines.append(_row(claim.what, *rest, verdict + _because(claim, shared, ": ")))
        lines.append("")
    lines += [
        f"![{document['title']}]({folder}/{name}.png)\n",
        f"[data.csv]({folder}/data.csv) · [data.json]({folder}/data.json) · `confide reproduce {paper} {name}`\n",
    ]
    return "\n".join(lines)


def _published(document: Document) -> str:
    if not PRINTED.fullmatch(document["name"]):
        return "the experiment is not in the paper"
    number = document["trials"]["published"]
    return f"{number} published" if number else "the paper does not say how many"


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def _row(*cells: Any) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _about(seconds: float) -> str:
    """One significant digit: the time of a run says no more."""
    if seconds < 1:
        return "less than a second"
    if seconds < 100:
        return f"about {float(f'{seconds:.1g}'):.0f} s"
    if seconds < 6000:
        return f"about {float(f'{seconds / 60:.1g}'):.0f} min"
    return f"about {seconds / 3600:.1f} h"
