"""The lines that `tests/mutations.py` would change stand where it says, each once."""

from pathlib import Path

import pytest

from tests.mutations import MUTATIONS, ROOT


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.file)
def test_lines_to_be_changed_stand_once_in_their_files(mutation):
    source = Path(ROOT, "src", "polyplane", mutation.file).read_text(encoding="utf-8")
    assert source.count(mutation.line) == 1
    assert all(Path(ROOT, "tests", name).exists() for name in mutation.tests)
