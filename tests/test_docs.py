"""What documents point to is there."""

import re
from pathlib import Path

import pytest

import polyplane

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/site").glob("*.md")),
]
MADE_BY_SPHINX = "gallery/"  # below docs/site, of examples/
REFERENCE = ROOT / "docs" / "site" / "reference.rst"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    targets = re.findall(r"\]\(([^)#]+)", page.read_text("utf-8"))
    inside = [target for target in targets if not target.startswith(("http:", "https:"))]
    assert [target for target in inside if not _leads_somewhere(page, target)] == []


@pytest.mark.compiled
def test_the_example_of_the_readme_prints_what_it_says(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGES[0].read_text("utf-8"), re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed.startswith(("[[0.9", "[[1."))
    in_percent = r"expected error ([\d.]+)% ± ([\d.]+) \(a linear model: ([\d.]+)%\)"
    (promised,) = re.findall("# " + in_percent, code)
    (found,) = re.findall(in_percent, printed)
    assert list(map(float, found)) == pytest.approx(list(map(float, promised)), abs=0.2)


def test_every_public_name_is_in_the_reference():
    listed = set(re.findall(r"^   (\S+)$", REFERENCE.read_text("utf-8"), re.MULTILINE))
    assert set(polyplane.__all__) - listed == {"__version__", "plots"}  # which it names otherwise


@pytest.mark.parametrize("name", ["pyproject.toml", "CITATION.cff"])
def test_every_file_names_the_same_version(name):
    (found,) = re.findall(r'^version(?:: | = ")([\d.]+)', (ROOT / name).read_text(), re.MULTILINE)
    assert found == polyplane.__version__


def _leads_somewhere(page, target):
    if target.startswith(MADE_BY_SPHINX):
        name = target.removeprefix(MADE_BY_SPHINX)
        return name == "index" or (ROOT / "examples" / f"{name}.py").exists()
    return (page.parent / target).exists()
