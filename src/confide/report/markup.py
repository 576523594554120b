"""HTML and SVG that cannot be broken out of: text is escaped unless this module made it."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

VOID = {"meta", "link", "br", "hr", "img", "input", "path", "line", "circle", "rect"}


class Markup(str):
    """Text that is markup already; made by `element` and `join` only."""

    __slots__ = ()


Child = Markup | str | int | float | None


def escape(value: Any) -> Markup:
    """Text for an element or an attribute. Control characters, which HTML forbids, are shown as a replacement."""
    if isinstance(value, Markup):
        return value
    text = "".join(c if c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f") else "\ufffd" for c in str(value))
    return Markup(html.escape(text, quote=True))


def join(parts: Iterable[Child], between: str = "") -> Markup:
    return Markup(str(escape(between)).join(escape(p) for p in parts if p is not None))


def element(_name: str, *children: Child, **attributes: Any) -> Markup:
    """An element; `class_` loses its underscore, other names turn it into a hyphen. None and False leave one out."""
    given = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        shown = number(value) if isinstance(value, float) else value
        given.append(f" {key}" if value is True else f' {key}="{escape(shown)}"')
    inner = join(children)
    tail = "/>" if _name in VOID and not inner else f">{inner}</{_name}>"
    return Markup(f"<{_name}{''.join(given)}{tail}")


def number(value: float) -> str:
    """A coordinate, to a hundredth."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def shown(value: float | None, digits: int = 4) -> str:
    """A number as people read it; the script has the same function."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    small = 0 < abs(value) < 1e-3
    text = f"{value:.{digits - 1}e}" if small else f"{value:.{digits}g}"
    if "e" in text:
        mantissa, power = text.split("e")
        return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(power)}"
    return text


def table(
    head: Iterable[Child], rows: Iterable[Iterable[Child]], numeric: Iterable[int] = (), **attributes: Any
) -> Markup:
    """A table whose `numeric` columns are aligned to the right; it scrolls by itself on a narrow page."""
    right = set(numeric)

    def cells(name: str, row: Iterable[Child], **more: Any) -> list[Markup]:
        return [element(name, c, class_="n" if k in right else None, **more) for k, c in enumerate(row)]

    body = [element("tr", *cells("td", row)) for row in rows]
    top = element("thead", element("tr", *cells("th", head, scope="col")))
    whole = element("table", top, element("tbody", *body), **attributes)
    return element("div", whole, class_="scroll", tabindex="0", role="group", aria_label="table")


def facts(pairs: Mapping[str, Child] | Iterable[tuple[Child, Child]]) -> Markup:
    """A list of names and values."""
    items = pairs.items() if isinstance(pairs, Mapping) else pairs
    return element("dl", *(join([element("dt", name), element("dd", value)]) for name, value in items))


def data(value: Any) -> Markup:
    """A JSON block that no text in it can end, for the script to read."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(f'<script type="application/json">{text}</script>')
