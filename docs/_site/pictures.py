"""`make pictures`: the pictures that README and the site's first page show, into docs/pictures.

The demo's picture, accuracy against ε, and, where a Chromium is installed, the top of a report. Colours are reduced to
a palette, which keeps each below 150 kB.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image

FOLDER = Path(__file__).parent.parent / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LIMIT = 150_000
WIDTH = 1200  # pixels; all that a page shows


def main() -> None:
    import gallery

    from confide import report
    from confide.cli.picture import picture
    from confide.demo import simulated as demo
    from confide.report.subject import Subject

    FOLDER.mkdir(exist_ok=True)
    result = demo.run()
    with tempfile.TemporaryDirectory() as folder:
        save("demo.png", picture(result, Path(folder) / "demo.png").read_bytes())
        page = report.write(Subject.of(result.shown, title="Readmission within 30 days"), Path(folder) / "report.html")
        screenshot(page)
    _, drawn = gallery.run(gallery.FOLDER / "accuracy_against_epsilon.py")
    save("accuracy.png", drawn["accuracy_against_epsilon.png"])


def save(name: str, content: bytes) -> None:
    """Write a picture of at most WIDTH pixels, in at most 128 colours."""
    image = Image.open(io.BytesIO(content)).convert("RGB")
    if image.width > WIDTH:
        image = image.resize((WIDTH, round(image.height * WIDTH / image.width)), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.quantize(128, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    size = len(buffer.getvalue())
    if size > LIMIT:
        raise ValueError(f"{name}: {size:,} bytes, at most {LIMIT:,} are allowed")
    (FOLDER / name).write_bytes(buffer.getvalue())
    print(f"docs/pictures/{name}: {image.width} x {image.height}, {size:,} bytes")


def screenshot(page: Path) -> None:
    """The top of a report as a browser shows it; without a browser the old picture stays."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        print("docs/pictures/report.png: no Chromium found, left as it is", file=sys.stderr)
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        window = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        tab = window.new_page(viewport={"width": WIDTH, "height": 860}, color_scheme="light")
        tab.goto(page.as_uri())
        save("report.png", tab.screenshot())
        window.close()


if __name__ == "__main__":
    main()
