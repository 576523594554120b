"""What other programs rely on: every public name and its signature, against tests/public_names.txt.

A changed signature is a conscious edit of that file: `python tests/test_public_names.py` writes it anew.
"""

import enum
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import confide

FILE = Path(__file__).with_name("public_names.txt")
# `confide` itself and what it hands out as packages, under the names that users write
PACKAGES = {
    "confide": "confide", "confide.losses": "confide.problem.losses", "confide.penalties": "confide.problem.penalties",
    "confide.privacy": "confide.privacy", "confide.algorithms": "confide.algorithms", "confide.audit": "confide.audit",
    "confide.metrics": "confide.runs.metrics", "confide.datasets": "confide.papers.datasets",
    "confide.errors": "confide.errors", "confide.network": "confide.network", "confide.testing": "confide.testing",
}  # fmt: skip
DERIVED_FROM = ("Algorithm", "GaussianMethod", "GaussianRelease", "SummedMethod", "Loss", "Penalty", "BlackBox")


def names(home):
    """Of a package those it lists; of a module its own functions and classes, and what is written in capitals."""
    module = import_module(home)
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == home]
    return sorted(name for name in own if not name.startswith("_"))


def signature(value):
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def lines():
    """`confide.Graph(size: int, …)`; methods of `confide`'s own classes and of those that others derive from."""
    for shown, home in PACKAGES.items():
        module = import_module(home)
        for name in names(home):
            value = getattr(module, name)
            if inspect.ismodule(value) or not callable(value):
                yield f"{shown}.{name}"
                continue
            yield f"{shown}.{name}{signature(value)}"
            if inspect.isclass(value) and (shown == "confide" or name in DERIVED_FROM):
                yield from (f"    {line}" for line in methods(value))


def methods(kind):
    """Those that confide defines, inherited ones too; what a base of another project defines is not ours to keep."""
    for name in sorted(dir(kind)):
        value = getattr(kind, name, None)
        static = inspect.getattr_static(kind, name)
        if name.startswith("_"):
            continue
        if isinstance(static, property) or type(static).__name__ == "cached_property":
            yield f".{name}"
        elif callable(value) and (getattr(value, "__module__", "") or "").startswith("confide"):
            yield f".{name}{signature(value)}"


def text():
    return "\n".join(lines()) + "\n"


def test_public_names_and_signatures_are_those_that_were_agreed():
    agreed = FILE.read_text(encoding="utf-8").splitlines()
    found = list(lines())
    gone = [line for line in agreed if line not in found]
    new = [line for line in found if line not in agreed]
    assert not gone and not new, "\n".join(["meant? python tests/test_public_names.py", *(f"- {x}" for x in gone),
                                            *(f"+ {x}" for x in new)])  # fmt: skip
    assert agreed == found


def test_every_name_that_is_listed_is_there():
    for home in PACKAGES.values():
        module = import_module(home)
        assert all(hasattr(module, name) for name in names(home)) and names(home), home
    assert set(confide.__all__) <= set(dir(confide))


def public_classes():
    for home in PACKAGES.values():
        for name in names(home):
            kind = getattr(import_module(home), name)
            if inspect.isclass(kind) and not issubclass(kind, enum.Enum | BaseException):
                yield kind


def says(kind):
    """What a class and its bases say; the signature that a dataclass without a docstring gets says nothing."""
    texts = [(base.__name__, base.__dict__.get("__doc__") or "") for base in kind.__mro__ if base is not object]
    return "\n".join(text for name, text in texts if not text.startswith(f"{name}("))


@pytest.mark.parametrize("kind", dict.fromkeys(public_classes()), ids=lambda kind: kind.__name__)
def test_docstrings_name_every_parameter(kind):
    """Of the class or, where a parameter is inherited, of its base."""
    parameters = inspect.signature(kind).parameters.values()
    names = [p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    silent = [name for name in names if not re.search(rf"\b{name}\b", says(kind))]
    assert not silent, f"{kind.__module__}.{kind.__name__} says nothing of {', '.join(silent)}"


def test_modules_are_imported_under_their_public_names():
    code = (
        "import sys; from confide.losses import Logistic; import confide.metrics, confide.penalties as p, confide\n"
        "from confide.problem import losses, penalties; from confide.runs import metrics\n"
        "assert Logistic is losses.Logistic and confide.losses is losses is sys.modules['confide.losses']\n"
        "assert confide.metrics is metrics and p is penalties and losses.__spec__.name == losses.__name__\n"
        "import confide.nothing"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip().endswith("ModuleNotFoundError: No module named 'confide.nothing'")


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
