"""Methods of other packages on nodes: the very code that all members agreed on, and by each one's explicit consent.

A package offers methods by entry points (`confide.algorithms.catalogue`). A federation that uses one says which code
that is, so that its hash covers it:

    [package]
    name = "theirs"                  the distribution that offers the method
    version = "1.0"
    entry = "theirs.method:Theirs"   its entry point
    source = "…"                     SHA-256 of all files of the top-level package of that entry

Version and source are compared before a line of the package is executed; a node that has other code refuses. Files
count byte for byte, since a syntax tree is written differently by every version of Python. What the package imports
from elsewhere is not in the hash.

Such code runs in the node's own process and meets its rows, whatever the engine makes of its label: nobody but its
authors knows what else it does. So a node runs it once its owner has consented, for this federation and by the method's
name, and not because a file arrived. A consent is kept in the node's folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from confide.algorithms.base import Algorithm, at_home
from confide.algorithms.catalogue import GROUP, loaded
from confide.errors import ConfideError
from confide.files import write_whole
from confide.files.keys import strict
from confide.files.sources import tree_digest

if TYPE_CHECKING:
    from confide.node.federation import Federation

CONSENTS = "consents.json"  # in the node's folder: run -> the code that its owner consented to


class Package(NamedTuple):
    """The code behind a method that is not confide's own."""

    name: str
    version: str
    entry: str
    source: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @classmethod
    def from_document(cls, table: Any) -> Package:
        found = cls(**strict(table, "package", cls._fields))
        for field, value in found._asdict().items():
            if not isinstance(value, str) or not value or not value.isprintable():
                raise ConfideError(f"package.{field}={value!r}: must be a text, not empty, without control characters")
        if not re.fullmatch("[0-9a-f]{64}", found.source):
            raise ConfideError(f"package.source={found.source!r}: must be a SHA-256 in 64 hexadecimal digits")
        return found


def offered(method: str) -> Package | None:
    """The installed package that offers a method of this name; None if there is none."""
    points = [point for point in entry_points(group=GROUP) if point.name == method]
    if not points:
        return None
    if len({_distribution(point)[0] for point in points}) > 1:
        names = " and ".join(sorted(_distribution(point)[0] for point in points))
        raise ConfideError(f"algorithm {method!r}: offered by {names}, must be offered by one of them alone")
    point = points[0]
    return Package(*_distribution(point), point.value, _source(point))


def kind_of(method: str, package: Package) -> type[Algorithm]:
    """The class, once what is installed here is what was agreed on; one line if it is not."""
    same = [point for point in entry_points(group=GROUP)
            if point.name == method and _plain(_distribution(point)[0]) == _plain(package.name)]  # fmt: skip
    if not same:
        raise ConfideError(f"algorithm {method!r}: of the package {package}, which is not installed here")
    (point,) = same[:1]
    version = _distribution(point)[1]
    if version != package.version or point.value != package.entry:
        raise ConfideError(
            f"algorithm {method!r}: installed here is {package.name} {version} with {point.value}, the federation has "
            f"{package} with {package.entry}"
        )
    source = _source(point)
    if source != package.source:
        raise ConfideError(
            f"algorithm {method!r}: the files of {package} here have the hash {source[:16]}, the federation has "
            f"{package.source[:16]}: this is other code under the same version"
        )
    found = loaded(point)
    if at_home(found):
        raise ConfideError(f"algorithm {method!r} of {package}: a class of confide's, must be one of its own")
    return found


def check_consent(home: Path, federation: Federation) -> None:
    """One line where the owner of the node in `home` has not said yes to code of another package."""
    if federation.package is not None and not consented(home, federation):
        raise ConfideError(asks(federation))


def consented(home: Path, federation: Federation) -> bool:
    """Whether the owner has, for this run and this code."""
    return federation.package is None or _read(home).get(federation.founding.digest.hex()) == _said(federation)


def consent(home: Path, federation: Federation, method: str) -> None:
    """Keep the owner's consent, which is the name of the method."""
    own = federation.algorithm.name
    if federation.package is None:
        raise ConfideError(f"--consent {method}: {own} is confide's own and needs none, leave it out")
    if method != own:
        raise ConfideError(f"--consent {method}: must be {own}, the method of this federation")
    kept = {**_read(home), federation.founding.digest.hex(): _said(federation)}
    write_whole(home / CONSENTS, json.dumps(kept, indent=1, ensure_ascii=False).encode())


def asks(federation: Federation) -> str:
    """What has to be done."""
    own = federation.algorithm.name
    return f"{own} is code of the package {federation.package}, not of confide: look at it, and give --consent {own}"


def _said(federation: Federation) -> dict[str, str]:
    assert federation.package is not None
    return {"method": federation.algorithm.name, **federation.package._asdict()}


def _read(home: Path) -> Mapping[str, Any]:
    path = home / CONSENTS
    if not path.exists():
        return {}
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ConfideError(f"{path}: not JSON: {error}; remove it, and consent again") from None
    if not isinstance(kept, dict):
        raise ConfideError(f"{path}: {type(kept).__name__}: must be a table of consents; remove it, and consent again")
    return kept


def _distribution(point: EntryPoint) -> tuple[str, str]:
    """Name and version of the package that has this entry point."""
    found = point.dist
    if found is None:
        raise ConfideError(f"algorithm {point.name!r} of {point.value}: of no installed package, must be of one")
    return found.name, found.version


def _plain(name: str) -> str:
    """Names of packages are the same in any case, and with '-', '_' or '.'."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _source(point: EntryPoint) -> str:
    """Hash of the entry's top-level package, or of its only file; found without importing it."""
    words = point.module.split(".")
    for end in range(1, len(words) + 1):  # a namespace has no code of its own: look below it
        try:
            spec = find_spec(".".join(words[:end]))
        except (ImportError, ValueError):
            spec = None
        if spec is None:
            break
        if spec.origin is not None and Path(spec.origin).is_file():
            return tree_digest(Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin))
    raise ConfideError(f"algorithm {point.name!r} of {point.value}: its source is in no file here")
