"""The built site in a real browser: `make test-docs` builds it and runs these tests."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.report.page.browser import FLAGS, Axe, chromium, sync_playwright

SITE = Path(os.environ.get("POLYPLANE_SITE", "")) if os.environ.get("POLYPLANE_SITE") else None
pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(SITE is None, reason="POLYPLANE_SITE is not set: `make test-docs` sets it"),
]
PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html")) if SITE else []
LARGEST = 20_000_000  # bytes of the whole site
LEVELS = "error", "warning"  # of messages on the console
WIDTHS = {"phone": 390, "desk": 1280}
LOOKED_AT = [
    "index.html",
    "choose.html",
    "gallery/index.html",
    "gallery/plot_1_checkerboard.html",
    "reference/polyplane.AMMClassifier.html",
    "tables.html",
]
TASKS = {  # what a reader looks for, and the page that should be among the first three found
    "train raw table": "tables",
    "missing values": "tables",
    "explain one row": "explaining",
    "serve from C": "export",
    "serve from SQL": "export",
    "resume after a crash": "model_files",
    "add a kernel": "kernel_machines",
    "read model file without this library": "model_files",
    "imbalanced classes": "uneven_classes",
    "uneven": "uneven_classes",
    "new classes": "data",
    "use a cluster": "dask",
}


class Links(HTMLParser):
    """What a page points to, what it loads, and the names that can be pointed to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.names = [], [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.names |= {found.get("id"), found.get("name")}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        is_loaded = tag == "link" and "canonical" not in (found.get("rel") or "")
        if is_loaded and "search" not in (found.get("rel") or ""):
            self.loads.append(found.get("href"))
        self.loads += [found[key] for key in ("src", "data") if tag != "a" and found.get(key)]


@pytest.fixture(scope="module")
def read():
    return {page: Links((SITE / page).read_text("utf-8")) for page in PAGES}


@pytest.fixture(scope="module")
def browser():
    path = chromium()
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield started
        started.close()


def test_the_site_is_not_large():
    assert sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file()) <= LARGEST


def test_nothing_is_loaded_from_elsewhere(read):
    outside = {
        (page, load)
        for page in PAGES
        for load in read[page].loads
        if urlsplit(load).netloc or not (SITE / page).parent.joinpath(unquote(_path(load))).exists()
    }
    assert outside == set()
    for sheet in SITE.rglob("*.css"):
        found = re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", sheet.read_text("utf-8"))
        assert found == [], sheet


def test_no_link_and_no_anchor_is_broken(read):
    broken = []
    for page in PAGES:
        for link in read[page].links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (SITE / page).parent / unquote(parts.path) if parts.path else SITE / page
            name = str(Path(os.path.normpath(target)).relative_to(SITE))
            is_lost = name in read and unquote(parts.fragment) not in read[name].names
            if is_lost or not target.exists():
                broken.append((page, link))
    assert broken == []


def test_every_page_is_quiet_and_fits(browser):
    context = browser.new_context(viewport={"width": WIDTHS["phone"], "height": 800})
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda m: said.append((page.url, m.text)) if m.type in LEVELS else None)
    page.on("pageerror", lambda error: said.append((page.url, str(error))))
    page.on("request", lambda request: asked.append(request.url))
    too_wide = []
    for name in PAGES:
        page.goto((SITE / name).as_uri())
        if page.evaluate("document.documentElement.scrollWidth") > WIDTHS["phone"] + 1:
            too_wide.append(name)
    context.close()
    assert said == []
    assert [one for one in asked if not one.startswith(("file:", "data:"))] == []
    assert too_wide == []


@pytest.mark.parametrize("words", TASKS)
def test_search_without_a_network_finds_the_page(browser, words):
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto((SITE / "search.html").as_uri() + "?q=" + words.replace(" ", "+"))
    page.locator("#search-results li a").first.wait_for()
    page.wait_for_timeout(300)  # until the list is whole
    found = page.locator("#search-results li a").evaluate_all("links => links.map(a => a.href)")
    names = [urlsplit(link).path.rsplit("/", 1)[1].removesuffix(".html") for link in found]
    context.close()
    assert TASKS[words] in names[:3]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_can_be_read(browser, theme, width, tmp_path):
    context = browser.new_context(
        viewport={"width": WIDTHS[width], "height": 900}, color_scheme=theme
    )
    page = context.new_page()
    folder = Path(os.environ.get("POLYPLANE_SCREENSHOTS", tmp_path))
    serious = []
    for name in LOOKED_AT:
        page.goto((SITE / name).as_uri())
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        page.screenshot(path=folder / f"{name.replace('/', '_')[:-5]}_{width}_{theme}.png")
        for rule in Axe().run(page).response["violations"]:
            if rule["impact"] in ("serious", "critical"):
                nodes = [node["html"][:150] for node in rule["nodes"][:3]]
                serious.append((name, rule["id"], nodes))
    context.close()
    assert serious == []


def test_programs_find_the_pages():
    text = (SITE / "llms.txt").read_text("utf-8")
    links = re.findall(r"^- \[.+?\]\((.+?)\)", text, re.MULTILINE)
    assert len(links) > 60
    assert [link for link in links if not (SITE / link).is_file()] == []


def _path(load):
    return urlsplit(load).path
