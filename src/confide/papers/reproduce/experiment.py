"""Experiment files: where they are, what they must hold, and what a task of theirs is known by.

The folder `experiments` of a checkout (or CONFIDE_EXPERIMENTS) is loaded as the package `confide_experiments`, here
and in every worker process, so that its files may import one another and nothing of them has to be sent to a worker.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.machinery
import importlib.util
import json
import os
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from confide.errors import ConfideError
from confide.files import sources

PACKAGE = "confide_experiments"
MADE_OF = ("title", "trials", "data", "tasks", "measure", "table", "findings", "draw")
AFTERWARDS = ("title", "trials", "data", "tasks", "table", "findings", "draw")  # a task's value does not depend on them
LOOKED_UP = {"globals", "locals", "vars", "eval", "exec", "getattr", "__name__"}  # names used that no one can read off
DRAWING = "_draw.py"  # neither does it on this file


@dataclass(frozen=True)
class Trials:
    """How often an experiment is repeated: in the paper (None if it does not say), in a full run, in a quick one."""

    published: int | None
    full: int
    quick: int

    def __post_init__(self) -> None:
        if not 1 <= self.quick <= self.full or (self.published is not None and self.published < 1):
            raise ConfideError(f"{self}: must be 1 ≤ quick ≤ full, and published ≥ 1 or None")


@dataclass(frozen=True, eq=False)
class Experiment:
    """One file: `paper` and `name` as on the command line, its module, and a hash of all code its tasks depend on."""

    paper: str
    name: str
    module: ModuleType
    digest: str

    @property
    def title(self) -> str:
        return str(self.module.title)

    @property
    def trials(self) -> Trials:
        return self.module.trials  # type: ignore[no-any-return]

    @property
    def data(self) -> tuple[str, ...]:
        return tuple(self.module.data)

    @property
    def text(self) -> str:
        """The docstring."""
        return (self.module.__doc__ or "").strip()

    @property
    def settings(self) -> dict[str, Any]:
        """The file's constants that JSON can hold."""
        return {k: v for k, v in vars(self.module).items() if k.isupper() and not k.startswith("_") and _jsonable(v)}

    def key(self, task: dict[str, Any]) -> str:
        """What a task's value is kept under."""
        words = [json.dumps(task, sort_keys=True, separators=(",", ":")), self.digest]
        return hashlib.sha256("\n".join(words).encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.paper} {self.name}"


def home() -> Path:
    """The folder of the experiments: CONFIDE_EXPERIMENTS, beside `src` in a checkout, or in the current folder."""
    given = os.environ.get("CONFIDE_EXPERIMENTS")
    places = [Path(given)] if given else [Path(__file__).resolve().parents[4] / "experiments", Path("experiments")]
    folder = next((place for place in places if place.is_dir()), None)
    if folder is None:
        where = f"CONFIDE_EXPERIMENTS={given}: no such folder" if given else "the experiments are not installed"
        raise FileNotFoundError(
            f"{where}; they are the folder `experiments` of a checkout of the repository: "
            "run there, or set CONFIDE_EXPERIMENTS to it"
        )
    return folder.resolve()


def names() -> list[tuple[str, str]]:
    """(paper, name) of every experiment file: papers in the order of the package's PAPERS, names alphabetically."""
    folder = home()
    papers = sorted(p.name for p in folder.iterdir() if p.is_dir() and p.name[0] not in "._")
    order = list(paper_titles())
    papers.sort(key=lambda p: order.index(p) if p in order else len(order))
    return [(_shown(paper), _shown(file.stem)) for paper in papers
            for file in sorted((folder / paper).glob("*.py")) if not file.name.startswith("_")]  # fmt: skip


def paper_titles() -> dict[str, str]:
    """Folder -> the paper's title, for the page."""
    return dict(getattr(_package(), "PAPERS", {}))


def experiments(paper: str | None = None) -> list[Experiment]:
    """Every experiment, or those of one paper."""
    every = names()
    if paper is not None and _shown(paper) not in {p for p, _ in every}:
        raise ConfideError(f"unknown paper {paper!r}: known are {', '.join(dict.fromkeys(p for p, _ in every))}")
    return [find(p, n) for p, n in every if paper is None or p == _shown(paper)]


def find(paper: str, name: str) -> Experiment:
    """One experiment by its names on the command line; its file is read again if anything in its folder changed."""
    every = names()
    wanted = (_shown(paper), _shown(name))
    if wanted not in every:
        here = [n for p, n in every if p == wanted[0]]
        papers = ", ".join(dict.fromkeys(p for p, _ in every))
        known = f"{wanted[0]} has {', '.join(here)}" if here else f"papers are {papers}"
        raise ConfideError(f"no experiment {paper!r} {name!r}: {known}")
    hashed = digest(*wanted)
    return Experiment(*wanted, _load(_file(*wanted)), hashed)


def _shown(name: str) -> str:
    return name.replace("_", "-")


def _file(paper: str, name: str) -> Path:
    file = home() / paper.replace("-", "_") / f"{name.replace('-', '_')}.py"
    if not file.is_file():  # a folder or file spelt with a dash could not be imported
        raise ConfideError(f"{file}: names of experiments have underscores, not dashes")
    return file


def digest(paper: str, name: str) -> str:
    """Of the code that a measurement may depend on: the file without its drawing, and all that it imports of ours."""
    file = _file(paper, name)
    measuring = _measuring(file)
    try:
        packages = {**sources.HERE, PACKAGE: home()}
        named = f"{PACKAGE}.{file.parent.name}.{file.stem}"
        files = [f for f in sources.sources(measuring, named, packages) if f.name != DRAWING]
        read = sources.reads_errors(measuring) or any(_reads_errors(f, f.stat().st_mtime_ns) for f in files)
        imported = sources.digest(files, words=read)
        return hashlib.sha256(f"{ast.dump(measuring)}\n{imported}".encode()).hexdigest()
    except SyntaxError as error:
        raise ConfideError(f"{_place(Path(error.filename or file))}, line {error.lineno}: {error.msg}") from None


@lru_cache(512)
def _reads_errors(file: Path, _time: int) -> bool:
    return sources.reads_errors(sources.parsed(file))


def _measuring(file: Path) -> ast.Module:
    """The file's code that `measure` may depend on: without docstring, and without what nothing of the rest uses.

    Left out are only definitions that do nothing by themselves, so that files with the same `measure` know the same
    task by the same key, whatever else is in them.
    """
    tree = _parse(file)
    body = [node for node in tree.body if not sources.is_text(node)]
    if not _names(tree.body) & LOOKED_UP:
        kept = [node for node in body if not _defines(node) or not (_defines(node) <= {*AFTERWARDS} or _inert(node))]
        while more := [node for node in body if node not in kept and _defines(node) & {"measure", *_names(kept)}]:
            kept += more
        body = [node for node in body if node in kept]
    used = {"measure", *_names(body)}
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            node.names = [a for a in node.names if a.name == "*" or (a.asname or a.name).split(".")[0] in used]
    tree.body = [node for node in body if getattr(node, "names", True)]
    return tree


def _names(nodes: list[ast.stmt]) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def _defines(node: ast.stmt) -> set[str]:
    """The names that a function or an assignment makes; none of any other statement."""
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    if isinstance(node, ast.Assign):
        made = [e for target in node.targets for e in (target.elts if isinstance(target, ast.Tuple) else [target])]
        return {e.id for e in made if isinstance(e, ast.Name)} if all(isinstance(e, ast.Name) for e in made) else set()
    return set()


def _inert(node: ast.stmt) -> bool:
    """Whether making it calls nothing: a function without decorators, a value without calls."""
    if isinstance(node, ast.FunctionDef):
        return not node.decorator_list and not any(isinstance(n, ast.Call) for n in ast.walk(node.args))
    return not any(isinstance(n, ast.Call | ast.NamedExpr) for n in ast.walk(node))


def _parse(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_text(encoding="utf-8"), str(file))
    except SyntaxError as error:
        raise ConfideError(f"{_place(file)}, line {error.lineno}: {error.msg}") from None


class _FromSource(importlib.machinery.SourceFileLoader):
    """Compiles a file whenever it is imported: bytecode is taken for a file's own by size and second of change."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)  # type: ignore[no-any-return]


_LOADED: dict[str, str] = {}  # paper folder -> bytes of its files when they were imported


def _load(file: Path) -> ModuleType:
    """Import the file; anew if a file of its folder is not the one that was imported."""
    package = _package()
    folder = file.parent
    files = sorted(folder.glob("*.py"))
    state = hashlib.sha256(b"\0".join(f.name.encode() + f.read_bytes() for f in files)).hexdigest()
    if _LOADED.get(str(folder)) != state:
        _forget(f"{package.__name__}.{folder.name}")
        sys.path_importer_cache[str(folder)] = importlib.machinery.FileFinder(str(folder), (_FromSource, [".py"]))
        _LOADED[str(folder)] = state
    try:
        module = importlib.import_module(f"{PACKAGE}.{folder.name}.{file.stem}")
    except Exception as error:
        _LOADED.pop(str(folder))
        raise ConfideError(f"{_place(file)}: {type(error).__name__}: {error}") from error
    missing = [name for name in MADE_OF if not hasattr(module, name)]
    if missing:
        raise ConfideError(f"{_place(file)}: lacks {', '.join(missing)} (see experiments/README.md)")
    if not isinstance(module.trials, Trials):
        raise ConfideError(f"{_place(file)}: trials={module.trials!r}: must be Trials(published, full, quick)")
    return module


def _package() -> ModuleType:
    """The folder as a package, registered once; another folder replaces it."""
    folder = home()
    known = sys.modules.get(PACKAGE)
    if known is not None and list(known.__path__) == [str(folder)]:
        return known
    _forget(PACKAGE)
    _LOADED.clear()
    start = folder / "__init__.py"
    if start.is_file():
        spec = importlib.util.spec_from_file_location(PACKAGE, start, submodule_search_locations=[str(folder)])
    else:
        spec = importlib.machinery.ModuleSpec(PACKAGE, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    assert spec is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    if spec.loader is not None:
        spec.loader.exec_module(package)
    return package


def _forget(name: str) -> None:
    for module in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
        del sys.modules[module]
    importlib.invalidate_caches()


def _place(file: Path) -> str:
    return f"experiments/{file.parent.name}/{file.name}"


def _jsonable(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
