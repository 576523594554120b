"""The page in a real browser: it loads quietly, asks for nothing, draws, answers, and is read by keyboard."""

import re
import shutil

import numpy as np
import pytest
from report_cases import charts, classifier, quantile, rows
from test_report_page import hostile

from confide import report

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
TABS = ("overview", "privacy", "convergence", "quality", "model", "about")


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


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Three reports: a classifier, a functional quantile model, and one with hostile names."""
    X, y = rows(seed=5)
    folder = tmp_path_factory.mktemp("reports")
    grid = np.linspace(0, 1, 21)
    runs = {
        "classifier": classifier().with_evaluation(X, np.sign(y), source="made up"),
        "quantile": quantile()
        .with_evaluation(X, y, source="made up")
        .with_function(grid, np.cos(np.outer(grid, [0, 3, 6]))),
        "hostile": hostile(),
    }
    return {name: report.write(run, folder / f"{name}.html") for name, run in runs.items()}


class Visit:
    """A page that is open, and everything it complained of or asked for."""

    def __init__(self, browser, file, width=1100, **options):
        self.context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        self.page = self.context.new_page()
        self.complaints, self.requests, self.failures = [], [], []
        self.page.on("console", lambda m: self.complaints.append(m.text))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("requestfailed", lambda r: self.failures.append(r.failure or ""))
        self.page.goto(file.as_uri())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def open(self, tab):
        self.page.click(f"#tab-{tab}")

    def visible(self):
        return [t for t in TABS if self.page.locator(f"#{t}").is_visible()]


@pytest.mark.parametrize("name", ["classifier", "quantile", "hostile"])
@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (390, "dark")])
def test_every_panel_loads_without_complaint_or_request_and_draws(browser, pages, name, width, scheme):
    with Visit(browser, pages[name], width, color_scheme=scheme) as visit:
        drawn = 0
        for tab in TABS:
            visit.open(tab)
            for figure in visit.page.locator(f"#{tab} .chart").all():
                box = figure.locator(".plot > svg").bounding_box()
                shapes = figure.locator(".plot path.curve, .plot circle.dot").all()
                assert box["width"] > 250 and box["height"] > 150 and len(shapes) > 0
                assert all((spot := s.bounding_box()) and spot["width"] > 1 for s in shapes)
                drawn += 1
            wide = visit.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width  # nothing sticks out of a telephone
        assert drawn == len(charts(pages[name].read_text())) >= 5
        assert visit.page.locator("#overview .network .party").count() == 4
        assert visit.complaints == []
        assert visit.requests == [pages[name].as_uri()] or visit.requests == [pages[name].as_uri(), "data:,"]
        assert visit.page.title().endswith(": confide report")


def test_hostile_names_do_nothing(browser, pages):
    with Visit(browser, pages["hostile"]) as visit:
        assert visit.page.title().startswith("<script>") and visit.page.title() != "broken"
        assert visit.page.locator("img").count() == 0 and visit.page.locator("script").count() > 1
        assert visit.page.evaluate("[...document.scripts].filter((s) => !s.type).length") == 1
        assert "<script>" in visit.page.locator("#overview table").inner_text()


def test_the_policy_stops_requests_and_foreign_scripts(browser, pages):
    with Visit(browser, pages["classifier"]) as visit:
        visit.page.evaluate("""() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';
                               document.body.append(s); const i = new Image(); i.src = 'http://127.0.0.1:9/x'; }""")
        refused = visit.page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')")
        assert refused == "refused" and visit.page.evaluate("window.ran") is None
        assert len([c for c in visit.complaints if "Content Security Policy" in c]) >= 3
        assert visit.failures and all("csp" in why.lower() for why in visit.failures)  # stopped before it left


def test_tabs_by_pointer_and_by_keyboard(browser, pages):
    with Visit(browser, pages["classifier"]) as visit:
        page = visit.page
        assert visit.visible() == ["overview"]
        visit.open("quality")
        assert visit.visible() == ["quality"] and page.locator("#tab-quality").get_attribute("aria-selected") == "true"
        for key, tab in (
            ("ArrowRight", "model"),
            ("ArrowRight", "about"),
            ("ArrowRight", "overview"),
            ("ArrowLeft", "about"),
            ("Home", "overview"),
            ("End", "about"),
        ):
            page.keyboard.press(key)
            assert visit.visible() == [tab]
            assert page.evaluate("document.activeElement.id") == f"tab-{tab}"
        assert page.locator("[role=tab][tabindex='0']").count() == 1
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "about"
        page.goto(f"{pages['classifier'].as_uri()}#privacy")
        page.reload()
        assert visit.visible() == ["privacy"]


def test_the_read_out_shows_the_number_under_the_pointer_and_by_arrow_keys(browser, pages):
    exact, claim = charts(pages["classifier"].read_text())["spent"]["series"]
    with Visit(browser, pages["classifier"]) as visit:
        visit.open("privacy")
        figure = visit.page.locator("#chart-spent")
        svg, tip = figure.locator(".plot > svg"), figure.locator(".tip")
        svg.scroll_into_view_if_needed()
        box = svg.bounding_box()
        visit.page.mouse.move(box["x"] + 60 + (box["width"] - 76) * 0.5, box["y"] + 100)
        said = tip.inner_text()
        assert said.startswith("round 10\n") and tip.is_visible()
        assert float(re.search(r"exact: ([\d.e-]+)", said).group(1)) == pytest.approx(exact["y"][10], rel=1e-3)
        assert float(re.search(r"corollary: ([\d.e-]+)", said).group(1)) == pytest.approx(claim["y"][9], rel=1e-3)
        visit.page.mouse.move(5, 5)
        assert not tip.is_visible()
        svg.focus()
        for key, t in (("End", 20), ("ArrowLeft", 19), ("Home", 0), ("ArrowRight", 1)):
            visit.page.keyboard.press(key)
            said = tip.inner_text()
            assert said.startswith(f"round {t}\n")
            assert float(re.search(r"exact: ([\d.e-]+)", said).group(1)) == pytest.approx(exact["y"][t], rel=1e-3)


def test_lines_scale_and_range_can_be_changed(browser, pages):
    with Visit(browser, pages["classifier"]) as visit:
        visit.open("privacy")
        figure = visit.page.locator("#chart-spent")
        curve, keys = figure.locator(".plot path.curve"), figure.locator(".key")
        assert curve.count() == 2
        keys.nth(1).click()
        assert curve.count() == 1 and keys.nth(1).get_attribute("aria-pressed") == "false"
        keys.nth(1).press("Enter")
        assert curve.count() == 2
        before = curve.first.get_attribute("d")
        figure.locator(".log").click()
        assert (
            curve.first.get_attribute("d") != before and figure.locator(".log").get_attribute("aria-pressed") == "true"
        )
        figure.locator(".log").click()
        assert curve.first.get_attribute("d") == before
        svg, reset = figure.locator(".plot > svg"), figure.locator(".reset")
        svg.scroll_into_view_if_needed()
        box = svg.bounding_box()
        assert reset.is_disabled()
        visit.page.mouse.move(box["x"] + 150, box["y"] + 80)
        visit.page.mouse.down()
        visit.page.mouse.move(box["x"] + 350, box["y"] + 90, steps=4)
        visit.page.mouse.up()
        assert curve.first.get_attribute("d") != before and reset.is_enabled()
        reset.click()
        assert curve.first.get_attribute("d") == before
        svg.focus()
        visit.page.keyboard.press("+")
        assert curve.first.get_attribute("d") != before
        visit.page.keyboard.press("Escape")
        assert curve.first.get_attribute("d") == before and visit.complaints == []


def test_parties_by_pointer_and_by_keyboard(browser, pages):
    with Visit(browser, pages["classifier"]) as visit:
        parties, tip = visit.page.locator(".network .party"), visit.page.locator(".drawing .tip")
        parties.nth(2).locator(".body").hover()
        assert tip.inner_text() == "2: would spend ε = 1, 100 rows"
        parties.first.focus()
        visit.page.keyboard.press("ArrowRight")
        assert tip.inner_text().startswith("1: ") and visit.page.locator(".party[tabindex='0']").count() == 1


def luminance(visit, what="document.documentElement"):
    """Of a background, 0 to 1."""
    colour = visit.page.evaluate(f"getComputedStyle({what}).backgroundColor")
    return sum(int(v) for v in re.findall(r"\d+", colour)[:3]) / 765


def test_light_and_dark_by_wish_and_by_button(browser, pages):
    for wish, button in (("light", "dark"), ("dark", "light")):
        with Visit(browser, pages["classifier"], color_scheme=wish) as visit:
            first = luminance(visit)
            assert (first > 0.8) == (wish == "light") and visit.page.locator("#theme").inner_text() == button
            visit.page.click("#theme")
            assert (luminance(visit) > 0.8) == (wish == "dark")
            visit.page.click("#theme")
            assert luminance(visit) == first


def test_it_prints_every_panel_on_white(browser, pages):
    with Visit(browser, pages["classifier"], color_scheme="dark") as visit:
        visit.page.emulate_media(media="print")
        assert visit.visible() == list(TABS) and luminance(visit) == 1.0
        assert not visit.page.locator("[role=tablist]").is_visible()
        document = visit.page.pdf(format="A4")
        count = len(re.findall(rb"/Type\s*/Page\b", document))
        assert document.startswith(b"%PDF") and 4 <= count <= 14 and visit.complaints == []


def test_without_a_script_a_chart_is_its_numbers(browser, pages):
    with Visit(browser, pages["classifier"], java_script_enabled=False) as visit:
        assert visit.visible() == list(TABS)
        for figure in visit.page.locator(".chart").all():
            assert not figure.locator(".plot").is_visible()
            assert figure.locator(".numbers table").is_visible() and figure.locator(".numbers tbody tr").count() > 0


def test_every_point_is_drawn_where_the_axes_say(browser, pages):
    """The numbers written at the ticks, read as a ruler, give back the numbers that the page holds."""
    held = charts(pages["classifier"].read_text())
    with Visit(browser, pages["classifier"], width=798) as visit:
        visit.open("privacy")
        figure = visit.page.locator("#chart-spent")
        ends = "ts => ts.map((t) => [Number(t.textContent), Number(t.getAttribute('%s'))])"
        up = np.array(figure.locator("svg text[text-anchor=end]").evaluate_all(ends % "y"))
        along = np.array(figure.locator("svg text[text-anchor=middle]:not(.label)").evaluate_all(ends % "x"))
        path = figure.locator(".plot path.curve").first.get_attribute("d")
    points = np.array(re.findall(r"-?[\d.]+", path), float).reshape(-1, 2)
    rulers = [np.polyfit(ticks[:, 1], ticks[:, 0], 1) for ticks in (along, up)]
    line = held["spent"]["series"][0]
    assert np.polyval(rulers[0], points[:, 0]) == pytest.approx(line["x"], abs=0.05)
    shift = np.polyval(rulers[1], 4.0) - np.polyval(rulers[1], 0.0)  # a label's baseline lies 4 below its tick
    assert np.polyval(rulers[1], points[:, 1]) + shift == pytest.approx(line["y"], rel=0.01, abs=0.01)
