"""The page as people meet it: in a real browser, by mouse and by keyboard."""

import numpy as np
import pytest

import polyplane as pp
from polyplane.report.page.page import page_of
from polyplane.report.page.sections import SECTIONS
from polyplane.tuning.budget import Budget
from polyplane.tuning.contents import EXPLAINED
from tests.report.page.browser import FLAGS, Axe, chromium, sync_playwright
from tests.report.page.hostile import HOSTILE, hostile_table
from tests.tuning import problems

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def browser():
    path = chromium()
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A usual page, a hostile one, and the latter as it is at first."""
    folder = tmp_path_factory.mktemp("pages")
    X, y = problems.xor(600)
    labels = np.where(y, "yes", "no")
    pp.explore(X, labels, budget=Budget(rows=(200, 600)), n_folds=2, report=folder / "usual.html")
    frame, y = hostile_table()
    found = pp.explore(frame, y, budget=Budget(rows=(300,)), n_folds=2)
    found.to_html(folder / "hostile.html")
    explained = dict.fromkeys(EXPLAINED)  # parts of a page that the first one does not have
    early = {**found.content, **explained, "is_final": False, "to_come": EXPLAINED}
    (folder / "early.html").write_text(page_of(early), "utf-8")
    return folder


class Watched:
    """A page, and all it said and asked for."""

    def __init__(self, page, path):
        self.page, self.said, self.asked = page, [], []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto(path.as_uri())


@pytest.fixture
def opened(browser, pages):
    contexts = []

    def open_page(name="usual", **options):
        contexts.append(browser.new_context(**options))
        return Watched(contexts[-1].new_page(), pages / f"{name}.html")

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", ["usual", "hostile", "early"])
def test_the_page_is_quiet_and_whole(opened, name):
    watched = opened(name)
    page = watched.page
    assert page.locator("section").count() == len(SECTIONS) - len(EXPLAINED) * (name == "early")
    for key, title, _ in SECTIONS:
        if name == "early" and key in EXPLAINED:
            continue
        assert page.locator(f"section#{key} h2").inner_text() == title
        assert page.locator(f"section#{key}").bounding_box()["height"] > 50
    assert page.locator("h1").inner_text()
    assert watched.said == []
    outside = [one for one in watched.asked if not one.startswith(("file:", "data:"))]
    assert outside == []
    assert len(watched.asked) == 1 + sum(one.startswith("data:") for one in watched.asked)


def test_hostile_text_stays_text(opened):
    page = opened("hostile").page
    assert page.evaluate("window.hacked") is None
    assert page.locator("img[src='x']").count() == 0
    assert page.locator("bdi", has_text=HOSTILE[0]).count() > 0
    options = page.locator("#region-x option").all_inner_texts()
    assert HOSTILE[1] in options
    page.locator("#row-after").click()
    page.locator("#region-x").select_option(index=1)
    assert page.evaluate("window.hacked") is None


def test_rows_are_picked_by_mouse_and_by_keyboard(opened):
    watched = opened()
    page = watched.page
    panel = page.locator("#row-panel")
    first = panel.inner_text()
    page.locator("#row-after").click()
    second = panel.inner_text()
    assert first != second
    page.locator("#row-before").focus()
    page.keyboard.press("Enter")
    assert panel.inner_text() == first
    page.locator("#row").focus()
    page.keyboard.press("ArrowDown")
    assert panel.inner_text() == second
    button = page.locator("button[data-row]").last
    chosen = int(button.get_attribute("data-row"))
    button.click()
    assert page.evaluate("document.getElementById('row').selectedIndex") == chosen
    assert page.evaluate("document.activeElement.id") == "row"
    assert watched.said == []


def test_regions_are_drawn_for_the_columns_picked(opened):
    page = opened().page
    page.locator("#region[aria-label^='Labels']").wait_for()  # unpacked
    drawn = "document.getElementById('region').toDataURL()"
    before, told = page.evaluate(drawn), page.locator("#region").get_attribute("aria-label")
    page.locator("#region-machine").select_option("linear")
    assert page.evaluate(drawn) != before
    page.locator("#region-machine").select_option(index=1)
    page.locator("#region-y").select_option(index=2)
    assert page.evaluate(drawn) != before
    assert page.locator("#region").get_attribute("aria-label") != told
    page.locator("#region-x").select_option(index=2)
    assert "two different columns" in page.locator("#region-said").inner_text()


def test_a_machine_is_highlighted_in_all_charts(opened):
    page = opened().page
    button = page.locator("button[data-machine='amm']")
    button.focus()
    page.keyboard.press("Space")
    assert button.get_attribute("aria-pressed") == "true"
    assert page.locator("#learning svg .faded").count() > 0
    assert page.locator("#learning svg .hit[data-of='amm']").count() > 0
    button.click()
    assert page.locator("svg .faded").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system_until_they_are_chosen(opened, scheme):
    page = opened(color_scheme=scheme).page
    paper = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(paper)
    page.locator("#theme").click()
    assert page.evaluate(paper) != before
    page.locator("#theme").click()
    assert page.evaluate(paper) == before


@pytest.mark.parametrize("name", ["usual", "hostile"])
def test_a_phone_scrolls_one_way_only(opened, name):
    page = opened(name, viewport={"width": 390, "height": 844}).page
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_paper_has_no_controls(opened):
    page = opened(color_scheme="dark").page
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator("#theme").is_visible()
    white = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(white) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["usual", "hostile"])
def test_axe_finds_no_serious_fault(opened, name, scheme):
    page = opened(name, color_scheme=scheme).page
    found = Axe().run(page).response["violations"]
    grave = [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert grave == []
