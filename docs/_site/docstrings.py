"""The docstrings of methods as Markdown: paragraphs, pseudo-code, symbol tables, and sections by their first words."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

SECTIONS = ("Differs from the paper", "Privacy")
HEADER = re.compile(r"^(paper|symbol) {2,}")
LEADING = re.compile(rf"^({'|'.join(SECTIONS)}): ")


def markdown(docstring: str, links: Mapping[str, str]) -> str:
    """The whole docstring; a name in backticks that is in `links` becomes a link."""
    parts = re.split(r"\n\s*\n", docstring.strip("\n"))
    return "\n\n".join(part for block in parts for part in _blocks(block, links)) + "\n"


def sentence(docstring: str) -> str:
    """The first paragraph, on one line."""
    return " ".join(re.split(r"\n\s*\n", docstring.strip())[0].split())


def wrapped(text: str, width: int = 100) -> str:
    """Output with its long lines broken, so that a page need not be scrolled sideways."""
    return "\n".join(
        textwrap.fill(line, width, subsequent_indent="  ") if len(line) > width else line for line in text.split("\n")
    )


def _blocks(block: str, links: Mapping[str, str]) -> list[str]:
    """One paragraph of the docstring, cut where a section begins."""
    lines = block.split("\n")
    if all(line.startswith("    ") for line in lines):
        return ["```text\n" + "\n".join(line[4:] for line in lines) + "\n```"]
    if HEADER.match(lines[0]):
        return [table(lines)]
    out: list[str] = []
    for line in lines:
        found = LEADING.match(line)
        if found:
            first = line[found.end() :]
            out += [f"## {found.group(1)}", prose(first[:1].upper() + first[1:], links)]
        elif out:
            out[-1] += "\n" + prose(line, links)
        else:
            out.append(prose(line, links))
    return out


def table(lines: list[str]) -> str:
    """Columns are kept apart by two spaces or more."""
    rows = [re.split(r" {2,}", line.strip()) for line in lines]
    width = len(rows[0])
    cells = [[prose(cell, {}).replace("|", "\\|") for cell in row] + [""] * (width - len(row)) for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], ["---"] * width, *cells[1:]))


def prose(text: str, links: Mapping[str, str]) -> str:
    """Text in which only backticks mean anything: formulas are full of underscores and stars."""
    parts = text.split("`")
    for k, part in enumerate(parts):
        if k % 2 == 0:
            parts[k] = re.sub(r"([\\*_\[\]])", r"\\\1", part).replace("<", "&lt;")
        else:
            parts[k] = f"[`{part}`]({links[part]})" if part in links else f"`{part}`"
    return "".join(parts)
