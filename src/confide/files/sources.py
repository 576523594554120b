"""Which source files a piece of code is made of, found from its import statements, without importing anything.

A name is followed to where it is defined: `from confide.algorithms import CDPADMM` leads to cdp_admm.py and what that
imports, not to every method that the package also names. What can't be followed (a package used as a value, a name that
its `__init__` makes itself) leads to the whole package: a file too many costs time, a file too few a stale result.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

Name = tuple[str, str | None]  # (module, a name in it); None: all of it
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_KINDS = ("Error", "WrongType", "Diverged", "MissingExtra")  # how the names of errors end; Stop and Exit carry values
_NUMBERS = {"errno", "lineno", "offset"}  # of an error, that are no words of ours
_TRACES = {"exc_info", "exception", "format_exc", "format_exception", "print_exc", "__cause__", "__context__"}
HERE = {"confide": Path(__file__).resolve().parents[1]}


def sources(tree: ast.Module, module: str, packages: Mapping[str, Path] = HERE) -> list[Path]:
    """The files of `packages` (name -> folder) that `tree`, the code of `module`, is made of, without its own."""
    found: set[Path] = set()
    seen: set[Name] = set()
    waiting = list(_imports(tree, module, packages))
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        elsewhere = _definition(name, packages)
        if elsewhere is not None:
            waiting.append(elsewhere)
            continue
        file = file_of(name[0], packages)
        if file is not None and file not in found:
            found.add(file)
            waiting += _imports_of(file, name[0], tuple(packages.items()), *_stamp(file))
    return sorted(found)


def digest(files: Iterable[Path], *, words: bool = True) -> str:
    """SHA-256 of what the files compute: comments, docstrings and layout do not count.

    words   whether the words of errors that they raise count: needless where nothing `reads_errors`
    """
    return hashlib.sha256(b"".join(_digest(file, words, *_stamp(file)) for file in files)).hexdigest()


def reads_errors(tree: ast.AST) -> bool:
    """Whether the code may look at the words of an error that it catches, other than to raise another with them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute | ast.alias) and _called(node) in _TRACES:
            return True
        if isinstance(node, ast.ExceptHandler) and node.name:
            raised = {id(n) for r in ast.walk(node) if isinstance(r, ast.Raise) for n in ast.walk(r)}
            number = {id(a.value) for a in ast.walk(node) if isinstance(a, ast.Attribute) and a.attr in _NUMBERS}
            kind = {id(c.args[0]) for c in ast.walk(node) if isinstance(c, ast.Call) and c.args and _asks_kind(c)}
            uses = {id(n) for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == node.name}
            if uses - raised - number - kind:
                return True
    return False


def _asks_kind(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "isinstance"


def _called(node: ast.Name | ast.Attribute | ast.alias) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else node.name


def tree_digest(place: Path) -> str:
    """SHA-256 of a file, or of the names and contents of all files below a folder, byte for byte.

    What Python itself writes there, compiled code in `__pycache__`, does not count.
    """
    files = [place] if place.is_file() else sorted(
        file for file in place.rglob("*") if file.is_file() and "__pycache__" not in file.relative_to(place).parts
    )  # fmt: skip
    found = hashlib.sha256()
    for file in files:
        name = (file.relative_to(place) if file != place else Path(place.name)).as_posix().encode()
        content = file.read_bytes()
        found.update(len(name).to_bytes(8, "big") + name + len(content).to_bytes(8, "big") + content)
    return found.hexdigest()


def file_of(module: str, packages: Mapping[str, Path] = HERE) -> Path | None:
    """The file of a dotted module, or None if `packages` have none."""
    root, *rest = module.split(".")
    if root not in packages:
        return None
    place = packages[root].joinpath(*rest)
    return next((f for f in (place / "__init__.py", place.with_name(f"{place.name}.py")) if f.is_file()), None)


def parsed(file: Path) -> ast.Module:
    """Its syntax tree, read again once the file changes."""
    return _parsed(file, *_stamp(file))


def _stamp(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_mtime_ns, status.st_size


@lru_cache(512)
def _parsed(file: Path, _time: int, _size: int) -> ast.Module:
    return ast.parse(file.read_bytes(), str(file))


@lru_cache(512)
def _imports_of(file: Path, module: str, packages: tuple[tuple[str, Path], ...], _time: int, _size: int) -> list[Name]:
    return list(_imports(_parsed(file, _time, _size), module, dict(packages)))


@lru_cache(1024)
def _digest(file: Path, words: bool, _time: int, _size: int) -> bytes:
    tree = ast.parse(file.read_bytes(), str(file))
    for node in ast.walk(tree):
        if isinstance(node, _WITH_DOCSTRING) and node.body and is_text(node.body[0]):
            node.body = node.body[1:]
        if not words and isinstance(node, ast.Raise):
            _without_words(node)
    return hashlib.sha256(ast.dump(tree).encode()).digest()


def _without_words(node: ast.Raise) -> None:
    """Take the plain words out of `raise SomeError("…", f"…")`; what is computed for them stays."""
    call = node.exc
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or not call.func.id.endswith(_KINDS):
        return
    call.args = [a for a in call.args if not (isinstance(a, ast.Constant) and isinstance(a.value, str))]
    for part in call.args:
        if isinstance(part, ast.JoinedStr):
            part.values = [v for v in part.values if not isinstance(v, ast.Constant)]


def is_text(node: ast.stmt) -> bool:
    """A docstring, or another string that nothing is done with."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _definition(name: Name, packages: Mapping[str, Path]) -> Name | None:
    """Where a name of a package comes from: a module of it, or what its `__init__` imports; None if it is here."""
    module, wanted = name
    if wanted is None:
        return None
    if file_of(f"{module}.{wanted}", packages) is not None:
        return f"{module}.{wanted}", None
    file = file_of(module, packages)
    if file is None or file.name != "__init__.py":
        return module, None
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == wanted:
                    return _absolute(node, module, package=True), alias.name
    return module, None


def _imports(tree: ast.Module, module: str, packages: Mapping[str, Path]) -> Iterator[Name]:
    """What a module imports, anywhere in it. Imports for type checkers count where names are loaded when first used."""
    file = file_of(module, packages)
    package = file is not None and file.name == "__init__.py"
    unread = set() if package else {id(node) for node in _for_type_checkers(tree)}
    bound: dict[str, str] = {}  # name here -> package that it stands for
    for node in ast.walk(tree):
        if id(node) in unread:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                if file_of(alias.name, packages) is not None:
                    root = alias.name.split(".")[0]
                    bound[alias.asname or root] = alias.name if alias.asname else root
                    if alias.name != root:
                        yield alias.name, None
        elif isinstance(node, ast.ImportFrom):
            origin = _absolute(node, module, package)
            if origin.split(".")[0] not in packages:
                continue
            for alias in node.names:
                inner = file_of(f"{origin}.{alias.name}", packages)
                if alias.name == "*":
                    yield origin, None
                elif inner is not None and inner.name == "__init__.py":
                    bound[alias.asname or alias.name] = f"{origin}.{alias.name}"
                else:
                    yield origin, alias.name
    yield from _used(tree, bound, packages)


def _used(tree: ast.Module, bound: dict[str, str], packages: Mapping[str, Path]) -> Iterator[Name]:
    """What is used of the packages that names stand for: `confide.algorithms.ADMM` is one name of one of them."""
    inside: set[int] = set()
    for node in ast.walk(tree):  # outer attributes come before inner ones
        if not isinstance(node, ast.Attribute) or id(node) in inside:
            continue
        words: list[str] = []
        part: ast.expr = node
        while isinstance(part, ast.Attribute):
            inside.add(id(part))
            words.append(part.attr)
            part = part.value
        if isinstance(part, ast.Name) and part.id in bound:
            inside.add(id(part))
            module, wanted = bound[part.id], words.pop()
            while words and _is_package(f"{module}.{wanted}", packages):
                module, wanted = f"{module}.{wanted}", words.pop()
            yield module, wanted
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in bound and id(node) not in inside:
            yield bound[node.id], None


def _is_package(module: str, packages: Mapping[str, Path]) -> bool:
    file = file_of(module, packages)
    return file is not None and file.name == "__init__.py"


def _absolute(node: ast.ImportFrom, module: str, package: bool) -> str:
    """The module that `from … import` reads, dots at its front resolved."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _for_type_checkers(tree: ast.Module) -> Iterator[ast.AST]:
    for test in ast.walk(tree):
        if isinstance(test, ast.If) and isinstance(test.test, ast.Name) and test.test.id == "TYPE_CHECKING":
            for statement in test.body:
                yield from ast.walk(statement)
