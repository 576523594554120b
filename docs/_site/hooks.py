"""What mkdocs builds beyond the pages in docs: methods, gallery, API reference, and links that leave the folder.

Pages in docs are plain Markdown that also reads on a code host: a link to `../src/confide/algorithms/x.py` leads there
to the file and here to the method's page; a link to `../CHANGELOG.md` to the file, and here to a copy of it.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

import gallery
import methods
import reference
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
SECTIONS = {"methods": methods.navigation, "gallery": gallery.navigation, "reference": reference.navigation}
ALONE = ("index.md", "reproductions/index.md")  # sections of one page need no list of pages
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
FILES = re.compile(
    r"\[([^\]]+)\]\(((?:\.\./(?:src|tests|experiments)|_site)/[^)\s]+)\)"
)  # which have no page on the site


def on_config(config: Any) -> Any:
    """Put the generated pages where mkdocs.yml says `methods`, `gallery` and `reference`."""
    for entry in config["nav"] or []:
        if isinstance(entry, dict):
            for title, value in entry.items():
                entry[title] = SECTIONS[value]() if isinstance(value, str) and value in SECTIONS else value
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add every generated page; nothing generated is written to docs."""
    made: dict[str, str | bytes] = {**methods.pages(), **reference.pages(), **gallery.pages()}
    made |= {path: (ROOT / name).read_text(encoding="utf-8") for name, path in DOCUMENTS.items()}
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links that leave docs, and those to scripts of the gallery, to pages of the site."""
    if page.file.src_uri in ALONE:
        page.meta["hide"] = ["navigation"]
    here = PurePosixPath(page.file.src_uri).parent
    leads = {f"../src/confide/algorithms/{methods.module(kind)}.py": f"algorithms/{methods.slug(name)}"
             for name, kind in methods.kinds().items()}  # fmt: skip
    leads |= {f"../{name}": path for name, path in DOCUMENTS.items()}
    leads |= {"docs/architecture.md": "architecture.md"}  # from a document that lies above docs
    leads |= {f"gallery/{script.name}": f"gallery/{script.stem}.md" for script in gallery.scripts()}
    leads |= {"../src/confide/algorithms": "algorithms/index.md", "gallery": "gallery/README.md"}

    def lead(match: re.Match[str]) -> str:
        path = normpath(str(here / match.group(1)))
        if path not in leads:
            return match.group(0)
        return f"]({relpath(leads[path], str(here))}{match.group(2) or ''})"

    markdown = LINK.sub(lead, markdown)
    return FILES.sub(r"`\1`", markdown) if page.file.src_uri == "architecture.md" else markdown
