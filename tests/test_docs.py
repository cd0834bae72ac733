"""What documents point to is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    targets = re.findall(r"\]\(([^)#]+)", page.read_text("utf-8"))
    inside = [target for target in targets if not target.startswith(("http:", "https:"))]
    assert [target for target in inside if not (page.parent / target).exists()] == []


@pytest.mark.compiled
def test_the_example_of_the_readme_prints_what_it_says(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGES[0].read_text("utf-8"), re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed.startswith(("[[0.9", "[[1."))
    assert "expected error" in printed
