"""Methods by name: those of this package, and those that other packages offer.

A package offers its methods by entry points, each named as its class:

    [project.entry-points."confide.algorithms"]
    MyMethod = "my_package.my_method:MyMethod"

They are *proven* by the same rule as a class passed as an object: only if they ask the engine's questions and nothing
else. Nodes run them by explicit consent (`confide.node.outside`).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from confide.algorithms.base import Algorithm
from confide.errors import ConfideError, WrongType

GROUP = "confide.algorithms"


def ours() -> dict[str, type[Algorithm]]:
    """This package's methods that learn a model: those of papers, and joint descent, which "auto" stands for."""
    from confide.algorithms import REGISTRY, JointDescent

    return {**REGISTRY, JointDescent.__name__: JointDescent}


def catalogue() -> dict[str, type[Algorithm]]:
    """Every method by name; a name of this package is never another's."""
    return {**ours(), **{name: loaded(point) for name, point in _offered().items()}}


def method_class(
    name: str, what: str = "method", also: Mapping[str, type[Algorithm]] = MappingProxyType({})
) -> type[Algorithm]:
    """The class of this name; `what` names the option in an error; `also`: further ones of ours that may be named."""
    known = {**ours(), **also}
    if name in known:
        return known[name]
    offered = _offered()
    if name in offered:
        return loaded(offered[name])
    raise ConfideError(f"{what} {name!r}: must be one of {', '.join([*known, *offered])}")


def _offered() -> dict[str, EntryPoint]:
    own = ours()
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in own}


def loaded(point: EntryPoint) -> type[Algorithm]:
    """The class behind an entry point; one line for whatever is wrong with it."""
    try:
        found = point.load()
    except Exception as error:  # another package's import may fail in any way
        said = " ".join(str(error).split())
        raise ConfideError(f"method {point.name!r} of {point.value}: can't be loaded: {said}") from error
    if not (isinstance(found, type) and issubclass(found, Algorithm)):
        raise WrongType(f"method {point.name!r} of {point.value}: must be a class of confide.algorithms.Algorithm")
    return found
