"""The page over all finished experiments: what was published, what was measured, and a verdict for each."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from confide.errors import ConfideError
from confide.files import write_whole
from confide.papers.reproduce.experiment import digest, names, paper_titles
from confide.papers.reproduce.findings import DIFFERS, IN_SHAPE, MATCHES

Document = dict[str, Any]
TOP = """# The papers' figures and tables, reproduced

Made by `confide reproduce`: {experiments} experiments.
**{claims} claims of the papers**: {matches} match within the stated distance, {shape} match in shape, {differs} differ
for the reason given{open}.
**{own} checks of our own**, of what no paper says: {held} hold, {failed} do not.
{criteria}Every run is a simulation: its noise is seeded and protects nobody.{earlier}
"""
EARLIER = "Measured with earlier code than the present."
SHARED = 2  # findings from which on a cause is told once for the paper


def write_page(out: Path) -> Path | None:
    """`out`/index.md over every finished experiment below `out`; nothing if there is none."""
    documents = finished(out)
    if not documents:
        return None
    write_whole(out / "index.md", page(documents).encode())
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


def page(documents: list[Document]) -> str:
    """The page as Markdown."""
    findings = [finding for document in documents for finding in document["findings"]]
    count = Counter(finding["verdict"] for finding in findings if not finding["ours"])
    own = Counter(finding["verdict"] for finding in findings if finding["ours"])
    unexplained = sum(document["unexplained"] for document in documents)
    earlier = sum(not document["current"] for document in documents)
    parts = [TOP.format(
        experiments=len(documents), claims=count.total(), matches=count[MATCHES], shape=count[IN_SHAPE],
        differs=count[DIFFERS], open=f", **{unexplained} of them without a known cause**" if unexplained else "",
        own=own.total(), held=own[MATCHES] + own[IN_SHAPE], failed=own[DIFFERS], criteria=criteria(documents),
        earlier=f" {earlier} of the experiments were measured with earlier code, and say so." if earlier else "",
    ), contents(documents)]  # fmt: skip
    titles = {folder.replace("_", "-"): title for folder, title in paper_titles().items()}
    paper, shared = None, {}
    for document in documents:
        if document["paper"] != paper:
            paper = document["paper"]
            parts.append(f"## {titles.get(paper, paper)}\n")
            shared = causes([d for d in documents if d["paper"] == paper])
            if shared:
                lines = [f"- **{name}**: {_cell(why)}" for why, name in shared.items()]
                parts.append("\n".join(["Causes that several differences share:\n", *lines, ""]))
        parts.append(section(document, shared))
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


def causes(documents: list[Document]) -> dict[str, str]:
    """Causes that several differences of a paper have -> the letter they are called by."""
    count = Counter(f["why"] for d in documents for f in d["findings"] if f["verdict"] == DIFFERS and f["why"])
    many = [why for why, n in count.items() if n >= SHARED]
    return {why: f"cause {chr(ord('A') + i)}" for i, why in enumerate(many)}


def contents(documents: list[Document]) -> str:
    """One line an experiment."""
    lines = ["| experiment | shows | match | in shape | differ | own checks |", "|---|---|---:|---:|---:|---:|"]
    for d in documents:
        count = Counter(finding["verdict"] for finding in d["findings"] if not finding["ours"])
        own = [finding["verdict"] != DIFFERS for finding in d["findings"] if finding["ours"]]
        link = f"[{d['paper']} {d['name']}](#{anchor(d)})"
        said = f"{sum(own)} of {len(own)}" if own else ""
        cells = (link, _cell(d["title"]), count[MATCHES], count[IN_SHAPE], count[DIFFERS], said)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def anchor(document: Document) -> str:
    return f"{document['paper']}-{document['name']}"


def section(document: Document, shared: dict[str, str]) -> str:
    """One experiment: what it is, its findings, its figure, its files."""
    folder = f"{document['paper']}/{document['name']}"
    trials = document["trials"]
    lines = [
        f'<a id="{anchor(document)}"></a>\n', f"### {document['paper']} {document['name']}: {document['title']}\n",
        f"{document['text']}\n",
        f"Trials: {trials['measured']} measured, {trials['published'] or 'the paper does not say how many'}"
        f"{' published' if trials['published'] else ''}. "
        f"Took {_about(document['seconds'])} of one core.{'' if document['current'] else f' {EARLIER}'}\n",
    ]  # fmt: skip
    for ours in (False, True):
        some = [f for f in document["findings"] if f["ours"] == ours]
        if not some:
            continue
        lines += ["| beyond the paper | measured | verdict |", "|---|---|---|"] if ours else [
            "| what | published | measured | difference | verdict |", "|---|---|---|---|---|"]  # fmt: skip
        for f in some:
            holds = f["verdict"] != DIFFERS
            verdict = f"**{'holds' if holds and ours else f['verdict'] if not ours else 'does not hold'}**"
            verdict += "" if holds else f": {shared.get(f['why'], f['why']) or 'cause unknown'}"
            row = (f["what"], f["published"], f["measured"], f["difference"], verdict)
            lines.append("| " + " | ".join(_cell(c) for c in ((row[0], row[2], row[4]) if ours else row)) + " |")
        lines.append("")
    lines += [
        f"![{document['title']}]({folder}/{document['name']}.png)\n",
        f"[data.csv]({folder}/data.csv) · [data.json]({folder}/data.json) · "
        f"`confide reproduce {document['paper']} {document['name']}`\n",
    ]  # fmt: skip
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def _about(seconds: float) -> str:
    """One significant digit: the time of a run says no more."""
    if seconds < 1:
        return "less than a second"
    if seconds < 100:
        return f"about {float(f'{seconds:.1g}'):.0f} s"
    return f"about {float(f'{seconds / 60:.1g}'):.0f} min"
