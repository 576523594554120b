"""The site builds without network, complete, with links that lead somewhere and nothing loaded from elsewhere."""

import ast
import inspect
import os
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import confide
from confide.algorithms import PHASES, REGISTRY

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(not (ROOT / "mkdocs.yml").exists(), reason="documents are in the checkout only")
TUTORIALS = ("consortium", "researcher", "data-scientist")
METHODS = {**REGISTRY, **PHASES}
OFFLINE = """\
import socket
import sys

def refuse(*_, **__):
    raise OSError("the documentation must build without network")

socket.create_connection = socket.getaddrinfo = refuse
socket.socket.connect = socket.socket.connect_ex = refuse
from mkdocs.__main__ import cli
sys.argv = ["mkdocs", "build", "--strict", "--site-dir", sys.argv[1]]
cli()
"""


class Page(HTMLParser):
    """Links, what is loaded, and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.anchors, self.text = [], [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed", "object"):
            self.loaded += [given[name] for name in ("src", "data", "srcset") if given.get(name)]
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev", "alternate"):
            self.loaded.append(given["href"])

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Pages by name, and the folder; built once, also where several workers share the tests."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "site"
    folder, finished = shared / "pages", shared / "finished"
    try:
        shared.mkdir()
    except FileExistsError:
        limit = time.monotonic() + 1500
        while not finished.exists() and time.monotonic() < limit:
            time.sleep(0.5)
        assert finished.read_text() == "yes", "the build failed in another worker"
    else:
        try:
            build(folder)
            finished.write_text("yes")
        finally:
            if not finished.exists():
                finished.write_text("no")
    return {str(path.relative_to(folder)): Page(path.read_text()) for path in folder.rglob("*.html")}, folder


def build(folder):
    before = {path for path in DOCS.rglob("*") if "reproductions" not in path.parts}
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(folder)], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=1500,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    after = {path for path in DOCS.rglob("*") if "reproductions" not in path.parts}
    assert before == after  # nothing generated is left in docs


@pytest.mark.slow
def test_every_page_is_there(site):
    pages, _ = site
    wanted = {"index.html", "guide.html", "auto.html", "privacy.html", "changelog.html", "contributing.html"}
    wanted |= {"architecture.html"}
    wanted |= {f"tutorials/{name}.html" for name in TUTORIALS} | {"reproductions/index.html", "reference/index.html"}
    wanted |= {f"algorithms/{name.lower()}.html" for name in METHODS} | {"algorithms/index.html", "gallery/index.html"}
    wanted |= {f"gallery/{path.stem}.html" for path in (DOCS / "gallery").glob("*.py")}
    assert len(METHODS) == 20 and wanted <= set(pages)
    reached = {"index.html"}  # by links alone, from the first page
    while True:
        more = {resolved(page, link)[0] for page in reached for link in pages[page].links if local(link)} & set(pages)
        if more <= reached:
            break
        reached |= more
    assert wanted <= reached


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_a_method_s_page_holds_its_docstring_parameters_and_guarantee(site, name):
    from dataclasses import fields

    kind = METHODS[name]
    text = squeezed("".join(site[0][f"algorithms/{name.lower()}.html"].text))
    source = ast.get_docstring(ast.parse(Path(sys.modules[kind.__module__].__file__).read_text()))
    source = source.replace("Differs from the paper: ", "").replace("Privacy: ", "").replace("`", "")
    words = re.findall(r"[A-Za-z]{4,}", source)
    missing = [word for word in words if word.lower() not in text.lower()]
    assert len(words) > 20 and not missing
    assert all(field.name in text for field in fields(kind))
    assert any(label in text for label in ("proven", "assumed", "refuted", "none"))
    assert "Differs from the paper" in text and "Privacy" in text and "simulation: seeded noise" in text


@pytest.mark.slow
def test_nothing_comes_from_elsewhere(site):
    pages, folder = site
    outside = {(name, what) for name, page in pages.items() for what in page.loaded if not local(what)}
    assert not outside
    for sheet in folder.rglob("*.css"):  # a style sheet may load fonts and pictures as well
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", sheet.read_text()), sheet
    assert sum(len(page.loaded) for page in pages.values()) > len(pages)


@pytest.mark.slow
def test_links_lead_somewhere(site):
    pages, folder = site
    wrong = []
    for name, page in pages.items():
        for link in [*page.links, *page.loaded]:
            if not local(link) or name == "404.html":
                continue
            target, anchor = resolved(name, link)
            if not (folder / target).is_file() or (anchor and target in pages and anchor not in pages[target].anchors):
                wrong.append((name, link))
    assert not wrong


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(site):
    entries = {anchor for name, page in site[0].items() if name.startswith("reference/") for anchor in page.anchors}
    last = {anchor.rpartition(".")[2] for anchor in entries if anchor.startswith("confide.")}
    public = {name for home in (confide, confide.privacy) for name in home.__all__
              if not inspect.ismodule(getattr(home, name)) and name != "__version__"}  # fmt: skip
    assert {name for name in public if callable(getattr(confide, name, None) or getattr(confide.privacy, name))} <= last


@pytest.mark.slow
def test_search_works_from_a_folder(site):
    browser = next((p for p in ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
                    if Path(p).exists()), None)  # fmt: skip
    if browser is None:
        pytest.skip("no Chromium is installed")
    from playwright.sync_api import sync_playwright

    requests = []
    with sync_playwright() as play:
        window = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        tab = window.new_page(viewport={"width": 1300, "height": 900})
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto((site[1] / "privacy.html").as_uri())
        tab.click("input[name=query]", force=True)
        tab.keyboard.type("recycled", delay=30)
        tab.wait_for_selector(".md-search-result__item", timeout=20_000)
        links = tab.locator(".md-search-result__item a").all()
        found = [link.get_attribute("href") for link in links]
        window.close()
    assert any("admm" in href for href in found)  # R-ADMM, MR-ADMM and what they share are about it
    assert not [url for url in requests if url.startswith("http")]


def test_readme_s_pictures_are_made_and_light():
    readme = (ROOT / "README.md").read_text()
    shown = re.findall(r"!\[[^\]]+\]\((docs/pictures/[^)]+)\)", readme)
    makers = ("docs/_site/pictures.py", "benchmarks/accuracy_page.py", "benchmarks/scale.py")
    made = "".join((ROOT / maker).read_text() for maker in makers)
    assert 1 <= len(shown) <= 2
    for name in {*shown, *(f"docs/pictures/{path.name}" for path in (DOCS / "pictures").glob("*.png"))}:
        content = (ROOT / name).read_bytes()
        assert content.startswith(b"\x89PNG") and len(content) < 150_000
        assert f'"{Path(name).name}"' in made


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(DOCS)))
def test_links_lead_to_files_on_a_code_host_too(path):
    """Links of the Markdown as it lies in the repository."""
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
    for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
        assert not local(link) or (path.parent / link).exists(), link


def local(link):
    parts = urlsplit(link)
    return not parts.scheme and not parts.netloc and not link.startswith("data:")


def resolved(page, link):
    """File in the site, and anchor, that a link of a page leads to."""
    parts = urlsplit(link)
    target = os.path.normpath(Path(page).parent / unquote(parts.path)) if parts.path else page
    return "index.html" if target == "." else target, unquote(parts.fragment)


def squeezed(text):
    return " ".join(text.split())
