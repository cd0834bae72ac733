"""The system's Chromium for tests; where it is absent tests are skipped, or fail in CI."""

import os
import shutil

import pytest

try:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright
except ImportError:  # the oldest versions are tested without
    Axe = sync_playwright = None

__all__ = ["FLAGS", "Axe", "chromium", "sync_playwright"]

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
    "--disable-component-update", "--no-first-run",
]  # fmt: skip
NAMES = "chromium", "chromium-browser", "google-chrome"


def chromium():
    """Where it is, if there is also what drives it."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is not None and sync_playwright is not None:
        return path
    words = "tests of the page need Chromium and playwright: `make browser env` installs them"
    if os.environ.get("POLYPLANE_REQUIRE_DATA"):
        pytest.fail(words)
    pytest.skip(words)
