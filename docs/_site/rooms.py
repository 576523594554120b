"""The rooms of the house and who imports whom, drawn: `make docs` writes docs/pictures/rooms.svg.

The table of layers stands here once: tests/test_layers.py holds every import of src/confide against it, and the picture
in docs/architecture.md is made of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "confide"
PICTURE = ROOT / "docs" / "pictures" / "rooms.svg"

# A room imports those below its own line, never above; beside it only what SIDEWAYS lists.
LAYERS = (
    ("cli",),
    ("planning", "report", "demo", "papers"),
    ("estimators", "node", "audit", "testing"),
    ("runs",),
    ("algorithms", "network"),
    ("schema",),
    ("problem", "privacy"),
    ("compiled",),
    ("files",),
    ("errors", "threads", "_version"),
)
SIDEWAYS: frozenset[tuple[str, str]] = frozenset()
# Rooms that others may enter by some doors only. An audit is independent evidence: it must not know the accountants.
DOORS = {("audit", "privacy"): ("confide.privacy.noise.",)}
DOOR = "__init__"  # confide/__init__.py hands out public names of all rooms, when they are first used
START = "__main__"  # `python -m confide`: of the room cli, though Python looks for it here
TOP_LEVEL = 5  # modules beside the rooms, at most


class Import(NamedTuple):
    """`room` imports `module` of the room `other`, at `place`."""

    room: str
    other: str
    module: str
    place: str


def rooms(source: Path = SOURCE) -> set[str]:
    """Packages, and modules at the top level."""
    packages = {path.parent.name for path in source.glob("*/__init__.py")}
    return packages | set(modules(source))


def modules(source: Path = SOURCE) -> list[str]:
    """Those at the top level."""
    return sorted(path.stem for path in source.glob("*.py") if path.stem != START)


def imports(source: Path = SOURCE) -> Iterator[Import]:
    """Every import from one room into another, wherever it stands: in functions and for types, too."""
    for file in sorted(source.rglob("*.py")):
        path = file.relative_to(source)
        room = "cli" if path.stem == START else path.parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            for module in _modules(node):
                other = module.split(".")[1] if "." in module else DOOR
                if other != room:
                    yield Import(room, other, module, f"{path}:{node.lineno}")


def _modules(node: ast.AST) -> list[str]:
    match node:
        case ast.Import():
            found = [alias.name for alias in node.names]
        case ast.ImportFrom(level=0, module="confide"):
            found = [f"confide.{alias.name}" for alias in node.names]
        case ast.ImportFrom(level=0, module=str(module)):
            found = [f"{module}.{alias.name}" for alias in node.names]
        case ast.ImportFrom():  # relative: the house spells its names out
            found = [f"confide.relative import of {alias.name}" for alias in node.names]
        case _:
            found = []
    return [name for name in found if name.split(".")[0] == "confide"]


def wrong(source: Path = SOURCE) -> list[str]:
    """Everything that breaks the plan, one line each."""
    level = {room: i for i, layer in enumerate(LAYERS) for room in layer}
    top = modules(source)
    found = [f"{room}: in no layer" for room in sorted(rooms(source) - set(level) - {DOOR})]
    if len(top) > TOP_LEVEL:
        found.append(f"{len(top)} modules at the top level, {', '.join(top)}: at most {TOP_LEVEL}")
    for one in imports(source):
        if one.room == DOOR or one.room not in level:
            continue
        if one.other not in level:
            found.append(f"{one.place}: {one.module} is in no layer")
        elif level[one.other] < level[one.room]:
            found.append(f"{one.place}: {one.room} imports {one.module}, which is above it")
        elif level[one.other] == level[one.room] and (one.room, one.other) not in SIDEWAYS:
            found.append(f"{one.place}: {one.room} imports {one.module}, which is beside it")
        elif not f"{one.module}.".startswith(doors := DOORS.get((one.room, one.other), ("confide.",))):
            found.append(
                f"{one.place}: {one.room} imports {one.module}: open to it is only {', '.join(d + '*' for d in doors)}"
            )
    return found


# --- the picture ------------------------------------------------------------------------------------------------------

WIDTH, STEP, BOX, HIGH = 760, 78, 118, 34
HIDDEN = ("_version",)  # a number, which says nothing about the house


def arrows(source: Path = SOURCE) -> list[tuple[str, str]]:
    """Who imports whom, without what follows: where a room imports b and b imports c, its own import of c."""
    below: dict[str, set[str]] = {}
    for one in imports(source):
        if DOOR not in (one.room, one.other) and not {one.room, one.other} & set(HIDDEN):
            below.setdefault(one.room, set()).add(one.other)

    def reach(room: str) -> set[str]:
        return {far for near in below.get(room, ()) for far in {near, *reach(near)}}

    return sorted(
        (room, near) for room, all_below in below.items() for near in all_below
        if not any(near in reach(other) for other in all_below - {near})
    )  # fmt: skip


def picture(source: Path = SOURCE) -> str:
    """The rooms, a line per layer, and their arrows, as SVG."""
    at: dict[str, tuple[float, float]] = {}
    for i, layer in enumerate(LAYERS):
        here = [room for room in layer if room not in HIDDEN]
        for j, room in enumerate(here):
            at[room] = (WIDTH * (j + 1) / (len(here) + 1), STEP * (i + 0.5))
    height = STEP * len(LAYERS)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" font-family="sans-serif"'
        ' font-size="15"><title>Who imports whom; arrows that follow from others are left out</title>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
        ' orient="auto"><path d="M0 0L8 4L0 8z" fill="#789"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for room, other in arrows(source):
        (a, b), (c, d) = at[room], at[other]
        parts.append(f'<path d="M{a:.0f} {b + HIGH / 2:.0f}C{a:.0f} {b + STEP / 2 + 12:.0f} {c:.0f} '
                     f'{d - STEP / 2 - 12:.0f} {c:.0f} {d - HIGH / 2 - 1:.0f}" fill="none" stroke="#789" '
                     'stroke-width="1.2" marker-end="url(#tip)"/>')  # fmt: skip
    for room, (x, y) in at.items():
        parts.append(f'<rect x="{x - BOX / 2:.0f}" y="{y - HIGH / 2:.0f}" width="{BOX}" height="{HIGH}" rx="7" '
                     'fill="#e8eef7" stroke="#3a5a8c"/>')  # fmt: skip
        parts.append(f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle" fill="#123">{escape(room)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
