"""`confide report`: a run as one HTML page that needs nothing else. It makes no request, prints, and is light or dark.

Everything on the page is public, or says that it is not: a metric computed from private rows is shown for simulations
only, and quality only on a test set that was declared public, or on held-out rows that paid for it.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from pathlib import Path
from string import Template

from confide._version import __version__
from confide.files import write_whole
from confide.report import guarantee, model, overview, quality, rounds
from confide.report.markup import Markup, element, escape, join
from confide.report.subject import Subject, warning
from confide.report.trust import first_line
from confide.runs.run import Run

TABS = (
    ("overview", "Network", overview.overview),
    ("privacy", "Privacy", guarantee.guarantee),
    ("convergence", "Convergence", rounds.convergence),
    ("quality", "Quality", quality.quality),
    ("model", "Model", model.model),
    ("about", "Run", rounds.about),
)


def page(subject: Run | Subject) -> str:
    """The page as text."""
    subject = Subject.of(subject) if isinstance(subject, Run) else subject
    files = resources.files(__package__)
    style, script, frame = (files.joinpath(f"page.{end}").read_text("utf-8") for end in ("css", "js", "html"))
    tabs = [
        element(
            "button",
            name,
            role="tab",
            id=f"tab-{key}",
            aria_controls=key,
            type="button",
            aria_selected=str(k == 0).lower(),
            tabindex="0" if k == 0 else "-1",
        )
        for k, (key, name, _) in enumerate(TABS)
    ]
    bodies = [
        element(
            "div",
            element("h2", name),
            *build(subject),
            role="tabpanel",
            id=key,
            tabindex="0",
            aria_labelledby=f"tab-{key}",
        )
        for key, name, build in TABS
    ]
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest(style)}'; script-src 'sha256-{digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    count = subject.run.privacy.agents
    title = subject.title or f"{subject.run.algorithm} with {count:,} {'party' if count == 1 else 'parties'}"
    return Template(frame).substitute(
        policy=escape(policy),
        title=escape(title),
        style=style,
        script=script,
        heading=escape(title),
        first=escape(first_line(subject)),
        line=_line(subject),
        warning=warning(subject) or "",
        tabs=join(tabs),
        panels=join(bodies),
        foot=escape(f"Written by confide {__version__}; run {subject.run.id}."),
    )


def write(subject: Run | Subject, path: str | Path) -> Path:
    """Write the page, whole or not at all."""
    path, text = Path(path), page(subject)
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_whole(path, text.encode())


def digest(text: str) -> str:
    """As a content policy names an inline script or style."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _line(subject: Subject) -> Markup:
    run = subject.run
    what = [run.algorithm, f"{run.rounds:,} rounds", f"run {run.id[:8]}"]
    if subject.simulated:
        what.append(f"simulation, {len(run.seeds):,} seed{'s' if len(run.seeds) != 1 else ''}")
    return escape(" · ".join(what))
