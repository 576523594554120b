"""The picture of docs/private-sum.md: `python docs/_site/who_sees_what.py` writes docs/private-sum.svg."""

from __future__ import annotations

import math
from pathlib import Path

FILE = Path(__file__).parent.parent / "private-sum.svg"
PARTIES, COLLUSION = 5, 2
WIDTH, HEIGHT, PANEL = 960, 430, 320
HONEST, COLLUDER, INK, PALE = "#2b6cb0", "#c53030", "#1a202c", "#bee3f8"
PANELS = ((0, "an outsider"), (2, "2 who collude"), (4, "all others together"))


def place(k: int, left: float) -> tuple[float, float]:
    angle = math.tau * k / PARTIES - math.pi / 2
    return left + PANEL / 2 + 85 * math.cos(angle), 185 + 85 * math.sin(angle)


def panel(left: float, colluders: int, title: str) -> list[str]:
    """Party 0 at the top is the root and the target; the last ones collude. All pairs share masks (dashed)."""
    hidden = PARTIES - colluders
    bad = set(range(PARTIES - colluders, PARTIES))
    at = [place(k, left) for k in range(PARTIES)]
    out = [f'<text x="{left + PANEL / 2}" y="52" class="title">{title}</text>']
    honest = [k for k in range(PARTIES) if k not in bad]
    hull = " ".join(f"{at[k][0]:.0f},{at[k][1]:.0f}" for k in honest)
    out.append(f'<polygon points="{hull}" class="veil"/>')
    for i in range(PARTIES):
        for j in range(i + 1, PARTIES):
            known = i in bad or j in bad
            (a, b), (c, d) = at[i], at[j]
            out.append(
                f'<line x1="{a:.0f}" y1="{b:.0f}" x2="{c:.0f}" y2="{d:.0f}" class="{"known" if known else "mask"}"/>'
            )
    for k, (x, y) in enumerate(at):
        out.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="19" fill="{COLLUDER if k in bad else HONEST}"/>')
        out.append(f'<text x="{x:.0f}" y="{y + 5:.0f}" class="name">{"ABCDE"[k]}</text>')
    names = " + ".join("ABCDE"[k] for k in honest)
    noise = "σ" if hidden == 1 else f"σ√{hidden}"
    factor = math.sqrt((PARTIES - COLLUSION) / hidden)
    lines = (
        f"sees {names}, never less" if hidden > 1 else f"see {names} alone",
        f"under noise {noise}",
        f"costs {factor:.2f} μ",
    )
    for n, line in enumerate(lines):
        out.append(
            f'<text x="{left + PANEL / 2}" y="{330 + 24 * n}" class="{"cost" if n == 2 else "line"}">{line}</text>'
        )
    return out


def picture() -> str:
    style = (
        f"text{{font-family:sans-serif;fill:{INK};text-anchor:middle}} .title{{font-size:19px;font-weight:bold}} "
        ".line{font-size:16px} .cost{font-size:17px;font-weight:bold} .name{font-size:15px;fill:#fff} "
        f".veil{{fill:{PALE};stroke:{PALE};stroke-width:60;stroke-linejoin:round}} "
        f".mask{{stroke:{HONEST};stroke-width:2;stroke-dasharray:5 4}} .known{{stroke:#a0aec0;stroke-width:1;"
        "stroke-dasharray:2 5} .small{font-size:13px}"
    )
    body = [line for n, (colluders, title) in enumerate(PANELS) for line in panel(n * PANEL, colluders, title)]
    key = " · ".join([
        "blue: honest, with noise of their own", "red: collude", "dashed blue: a mask that they don't know",
        "pale: what they see as one sum",
    ])  # fmt: skip
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Who sees what of a private sum of five parties">',
        f"<style>{style}</style>", f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>', *body,
        f'<text x="{WIDTH / 2}" y="415" class="small">{key}</text>', "</svg>", "",
    ])  # fmt: skip


if __name__ == "__main__":
    FILE.write_text(picture())
