"""The demo as a user runs it."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.compiled


def test_prints_errors_planes_and_times():
    done = subprocess.run(
        [sys.executable, "-m", "polyplane.cli.demo"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "140"},
    )
    assert "linear SVM" in done.stdout
    assert "AMM" in done.stdout
    assert "CPM" in done.stdout
    assert "polyplane" in done.stdout
    assert done.stdout.count("%") == 8
    assert "planes" in done.stdout
    assert "Traceback" not in done.stderr
