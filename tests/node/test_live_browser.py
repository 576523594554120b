"""The live page in a real browser: it draws, follows the node, shows hostile words as words, and asks nobody else."""

import shutil

import pytest
from village import Village
from waiting import wait_for

from confide.node import window
from confide.node.daemon import Status
from confide.node.outlook import Outlook
from confide.node.window import Window

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-first-run")  # fmt: skip
CDP = {"name": "CDPADMM", "rounds": 40, "coupling": 0.2, "step": 2.0, "clip": 0.5, "noise": 3.0}


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the path")
    with api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=program, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 360])
def test_the_live_page_follows_the_node(tmp_path, browser, width, scheme):
    neighbours = {
        "birch": {"up": True, "trouble": "", "misbehaved": "", "way": "relay"},
        "elm": {"up": False, "trouble": "<img src=x onerror=alert(1)>", "misbehaved": "", "way": ""},
    }
    status = Status("ash", "village", "0" * 16, "CDPADMM", "proven", 40, state="training", round=7, spent_epsilon=0.5,
                    left_epsilon=1.5, consensus_distance=0.25, relay="up", neighbours=neighbours)  # fmt: skip
    outlook = Outlook(Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5)).federation, "ash")
    outlook.show(status)
    one = Window("127.0.0.1:0", window.page(outlook), local=True)
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, complaints, asked = context.new_page(), [], []
    page.on("console", lambda m: complaints.append(m.text))
    page.on("pageerror", lambda e: complaints.append(str(e)))
    page.on("request", lambda r: asked.append(r.url))
    home = f"http://127.0.0.1:{one.port}/"
    try:
        page.goto(home)
        page.get_by_text("7 of 40", exact=True).wait_for()
        assert page.title() == "ash: training" and page.inner_text("#spent") == "ε = 0.5"
        assert page.locator("circle").count() == 5 and page.locator("svg line").count() == 5
        kinds = {
            name: page.get_attribute(f"circle[data-member={name}]", "class")
            for name in ("ash", "birch", "cedar", "elm")
        }
        assert kinds == {"ash": "self", "birch": "up", "cedar": "", "elm": "down"}
        assert "elm down" in page.inner_text("#alert") and page.locator("img").count() == 0
        assert "<img src=x" in page.inner_text("#neighbours") and "through the relay" in page.inner_text("#neighbours")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.screenshot(path=tmp_path / "live.png", full_page=True)
        status.round, status.state = 40, "finished"
        status.neighbours = {name: {**how, "up": name == "elm", "finished": name == "birch", "trouble": ""}
                             for name, how in neighbours.items()}  # fmt: skip
        outlook.show(status)
        page.get_by_text("40 of 40", exact=True).wait_for()
        assert page.title() == "ash: finished" and page.locator("circle.down").count() == 0
        assert not page.is_visible("#alert")
        assert page.get_attribute("circle[data-member=birch]", "class") == "finished"
        assert "finished, was reached through the relay" in page.inner_text("#neighbours")
        assert {url.split("?")[0] for url in asked} == {
            home,
            *(home + name for name in ("live.css", "live.js", "state")),
        }
        assert complaints == []
        one.close()
        page.locator("#alert:not([hidden])").wait_for()
        assert "does not answer" in page.inner_text("#alert")
    finally:
        context.close()
        if wait_for(lambda: one._thread.is_alive(), 0):
            one.close()
