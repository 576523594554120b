"""The API reference: one page per module of public names, in the order the package lists them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

import griffe

import confide

ESTIMATORS = [name for name in confide.__all__ if name.startswith("Private") or name == "FunctionalQuantileRegressor"]
CORE = [name for name in confide.__all__ if callable(getattr(confide, name)) and name not in ESTIMATORS]
MODULES = {  # page -> (title, module, names; None: what the module itself lists)
    "core": ("Problems, networks, runs", "confide", CORE),
    "estimators": ("Estimators", "confide", ESTIMATORS),
    "losses": ("Losses", "confide.problem.losses", None),
    "penalties": ("Penalties", "confide.problem.penalties", None),
    "algorithms": (
        "The contract of a method",
        "confide.algorithms",
        ["Algorithm", "GaussianMethod", "GaussianRelease", "Ask", "Schedule"],
    ),
    "metrics": ("Metrics", "confide.runs.metrics", None),
    "privacy": ("Privacy", "confide.privacy", None),
    "ledger": ("Ledger", "confide.privacy.ledger", ["Ledger", "BudgetExceeded"]),
    "secure": ("Secure noise and responses", "confide.privacy.secure", ["SecureNoise", "charge"]),
    "audit": ("Audit", "confide.audit", None),
    "datasets": ("Data sets", "confide.papers.datasets", ["load_adult", "load_raetsch", "load_tecator"]),
    "testing": ("Testing a method", "confide.testing", None),
    "errors": ("Errors", "confide.errors", ["ConfideError", "WrongType", "Diverged", "MissingExtra"]),
    "theory": ("The papers' theorems", "confide.papers.theory", None),
}


def names(module: str, given: list[str] | None) -> list[str]:
    """The public names of a module: as given, as it lists them, or its classes and functions."""
    if given is not None:
        return given
    home = importlib.import_module(module)
    if hasattr(home, "ALL"):
        return [kind.__name__ for kind in home.ALL]
    if hasattr(home, "METRICS"):
        return [*home.METRICS, "Snapshot"]
    if hasattr(home, "__path__") and not hasattr(home, "__all__"):  # a package of modules
        return sorted(found.name for found in pkgutil.iter_modules(home.__path__))
    listed = [(name, getattr(home, name)) for name in getattr(home, "__all__", ())]
    return [name for name, value in listed if callable(value) or inspect.ismodule(value)]  # constants have no docstring


def target(module: str, name: str) -> str:
    """Where a name is defined, so that the reference needs no alias."""
    home = importlib.import_module(module)
    if not hasattr(home, name) and name not in getattr(home, "METRICS", {}):
        return importlib.import_module(f"{module}.{name}").__name__
    value = getattr(home, "METRICS", {}).get(name) or getattr(home, name)
    if inspect.ismodule(value):
        return value.__name__
    where = getattr(value, "__module__", module) or module
    return f"{where}.{getattr(value, '__name__', name)}" if where.startswith("confide") else f"{module}.{name}"


def page(key: str) -> str:
    title, module, given = MODULES[key]
    found = [(name, target(module, name)) for name in names(module, given)]
    parts = [f"# {title}\n\n`import {module}`\n" if module != "confide" else f"# {title}\n"]
    parts += [f"::: {where}\n    options:\n      heading_level: 2\n" for _, where in found]
    return "\n".join(parts)


def pages() -> dict[str, str]:
    index = "\n".join(f"* [{title}]({key}.md)" for key, (title, *_) in MODULES.items())
    return {
        "reference/index.md": f"# API reference\n\nMade from the code. The [guide](../guide.md) shows every name in "
        f"use; methods have [pages of their own](../algorithms/index.md).\n\n{index}\n",
        **{f"reference/{key}.md": page(key) for key in MODULES},
    }


def navigation() -> list[Any]:
    return ["reference/index.md", *({title: f"reference/{key}.md"} for key, (title, *_) in MODULES.items())]


class Columns(griffe.Extension):
    """Docstrings list arguments in columns, "name   what it is"; Markdown would run the lines together."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = in_columns(obj.docstring.value)


def in_columns(text: str) -> str:
    """Paragraphs whose lines are columns become lists; the rest stays."""
    out = []
    for block in inspect.cleandoc(text).split("\n\n"):
        lines = block.split("\n")
        heads = [line for line in lines if not line.startswith(" ")]
        apart = [line.split("  ", 1) for line in heads]
        if heads and lines[0] == heads[0] and all(len(a) == 2 and " " not in a[0].replace(", ", "") for a in apart):
            items: list[str] = []
            for line in lines:
                if line.startswith(" "):
                    items[-1] += f" {line.strip()}"
                else:
                    name, said = line.split("  ", 1)
                    items.append(f"* `{name}`: {said.strip()}")
            block = "\n".join(items)
        out.append(block)
    return "\n\n".join(out)
