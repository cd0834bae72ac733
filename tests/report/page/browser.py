"""The system's Chromium for tests; where it is absent tests are skipped, or fail in CI."""

import os
import shutil

import pytest

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
    "--disable-component-update", "--no-first-run",
]  # fmt: skip


def chromium():
    """Where it is."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    words = "there is no Chromium, which tests of the page need: `make browser` installs it"
    if os.environ.get("POLYPLANE_REQUIRE_DATA"):
        pytest.fail(words)
    pytest.skip(words)


def playwright():
    """The library that drives it."""
    try:
        from playwright import sync_api  # noqa: PLC0415
    except ImportError:
        words = "playwright is not installed, which tests of the page need: `make env`"
        if os.environ.get("POLYPLANE_REQUIRE_DATA"):
            pytest.fail(words)
        pytest.skip(words)
    return sync_api
