"""The page over all finished experiments: what was published, what was measured, and a verdict for each."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from confide.files import write_whole
from confide.reproduce.experiment import names, paper_titles
from confide.reproduce.findings import DIFFERS, IN_SHAPE, MATCHES

Document = dict[str, Any]
TOP = """# The papers' figures and tables, reproduced

Made by `confide reproduce`; {findings} findings of {experiments} experiments: **{matches}** match within the stated
distance, **{shape}** match in shape, **{differs}** differ for the reason given{open}. Every run is a simulation: its
noise is seeded and protects nobody.
"""


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
        documents.append({**document, "seconds": timing["core_seconds"]})
    known = [d for d in documents if (d["paper"], d["name"]) in order]  # files that are gone are no longer shown
    return sorted(known, key=lambda d: order[d["paper"], d["name"]])


def page(documents: list[Document]) -> str:
    """The page as Markdown."""
    findings = [finding for document in documents for finding in document["findings"]]
    count = Counter(finding["verdict"] for finding in findings)
    unexplained = sum(document["unexplained"] for document in documents)
    parts = [TOP.format(
        experiments=len(documents), findings=len(findings), matches=count[MATCHES], shape=count[IN_SHAPE],
        differs=count[DIFFERS] - unexplained,
        open=f", and **{unexplained} differ without a known cause**" if unexplained else "",
    ), contents(documents)]  # fmt: skip
    titles = {folder.replace("_", "-"): title for folder, title in paper_titles().items()}
    paper = None
    for document in documents:
        if document["paper"] != paper:
            paper = document["paper"]
            parts.append(f"## {titles.get(paper, paper)}\n")
        parts.append(section(document))
    return "\n".join(parts)


def contents(documents: list[Document]) -> str:
    """One line an experiment."""
    lines = ["| experiment | shows | match | in shape | differ |", "|---|---|---:|---:|---:|"]
    for d in documents:
        count = Counter(finding["verdict"] for finding in d["findings"])
        link = f"[{d['paper']} {d['name']}](#{anchor(d)})"
        lines.append(f"| {link} | {_cell(d['title'])} | {count[MATCHES]} | {count[IN_SHAPE]} | {count[DIFFERS]} |")
    return "\n".join(lines) + "\n"


def anchor(document: Document) -> str:
    return f"{document['paper']}-{document['name']}"


def section(document: Document) -> str:
    """One experiment: what it is, its table of findings, its figure, its files."""
    folder = f"{document['paper']}/{document['name']}"
    trials = document["trials"]
    lines = [
        f'<a id="{anchor(document)}"></a>\n', f"### {document['paper']} {document['name']}: {document['title']}\n",
        f"{document['text']}\n",
        f"Trials: {trials['measured']} measured, {trials['published'] or 'the paper does not say how many'}"
        f"{' published' if trials['published'] else ''}. "
        f"Took {_about(document['seconds'])} of one core.\n",
    ]  # fmt: skip
    if document["findings"]:
        lines += ["| what | published | measured | difference | verdict |", "|---|---|---|---|---|"]
        for f in document["findings"]:
            verdict = f"**{f['verdict']}**"
            if f["verdict"] == DIFFERS:
                verdict += f": {f['why'] or 'cause unknown'}"
            cells = (f["what"], f["published"], f["measured"], f["difference"], verdict)
            lines.append("| " + " | ".join(_cell(c) for c in cells) + " |")
        lines.append("")
    lines += [
        f"![{document['title']}]({folder}/{document['name']}.png)\n",
        f"[data.csv]({folder}/data.csv) · [data.json]({folder}/data.json) · [SVG]({folder}/{document['name']}.svg) · "
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
