"""Put the pages of the site together: `python docs/site/assemble.py FOLDER`.

The pages are Markdown files of the repository, written to be read there, too. Here they get the
places that they have on the site, and their links follow: links to pages lead to pages, and links
to source files lead to pages that show these files.
"""

import os
import posixpath
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = Path("docs/site")
LINK = re.compile(r"(?<=\]\()(?!\w+:|#|<)([^)#\s]*)(#[^)\s]*)?(?=\))")
FENCE = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)

# Chapters and their pages, in order. Pages of docs/ that no chapter names join the user guide.
CHAPTERS = {
    "user_guide": (
        ["polyplane", "tables", "data", "uneven_classes", "many_classes", "explaining"],
        ["exploring", "training_curves", "alpha_path", "kernel_machines", "dask"],
        ["command_line", "export", "importing"],
    ),
    "papers": (
        ["pegasos", "passive_aggressive", "arow", "multi_hyperplane", "amm", "growing_amm"],
        ["sparse_amm", "convex_polytope", "poly2"],
        ["huller", "lasvm", "kernel_pegasos", "kernel_perceptron", "nystrom"],
    ),
    "inside": (
        ["architecture", "engine", "contributing", "model_files", "testing", "glossary"],
        ["benchmarks/README", "changelog"],
    ),
}
LANGUAGES = {".py": "python", ".c": "c", ".sql": "sql", ".toml": "toml", ".json": "json"}


def places() -> dict[str, str]:
    """Return the place on the site of each file of the repository that is a page or a picture."""
    found = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
    found |= {"README.md": "index.md"}  # the first page of the site stands for it
    for path in sorted((ROOT / SITE).glob("*.md")) + sorted((ROOT / SITE).glob("*.rst")):
        found[str(path.relative_to(ROOT))] = path.name
    for path in sorted((ROOT / "docs").glob("*.md")) + sorted((ROOT / "docs/pictures").iterdir()):
        found[str(path.relative_to(ROOT))] = str(path.relative_to(ROOT / "docs"))
    for path in sorted((ROOT / "benchmarks").rglob("*.md")):
        found[str(path.relative_to(ROOT))] = str(path.relative_to(ROOT))
    return found


def with_links_followed(text: str, source: str, known: dict[str, str], shown: set[str]) -> str:
    """Return a page with links that hold on the site; add the source files it shows to `shown`."""
    place = posixpath.dirname(known[source])

    def follow(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        if target not in known and not (ROOT / target).is_file():
            return match[0]  # a page that Sphinx makes, such as those of the reference
        if target not in known:
            shown.add(target)
        to = known.get(target, f"sources/{target}.md")
        return posixpath.relpath(to, place or ".") + (match[2] or "")

    parts = FENCE.split(text)
    return "".join(part if part.startswith("```") else LINK.sub(follow, part) for part in parts)


def source_page(path: str) -> str:
    """Return a page that shows a file of the repository."""
    text = (ROOT / path).read_text("utf-8")
    fence = "`" * (1 + max([3, *map(len, re.findall(r"`{3,}", text))]))
    language = LANGUAGES.get(Path(path).suffix, "text")
    head = f"---\norphan: true\nsearch: false\n---\n\n# {path}\n\n"
    return f"{head}{fence}{language}\n{text}{fence}\n"


def chapters(known: dict[str, str]) -> dict[str, list[str]]:
    """Return the pages of each chapter that exist, every page of docs/ in one of them."""
    pages = {place.removesuffix(".md") for place in known.values()}
    found = {
        name: [page for group in groups for page in group if page in pages]
        for name, groups in CHAPTERS.items()
    }
    placed = {page for chapter in found.values() for page in chapter}
    ours = {place.removesuffix(".md") for path, place in known.items() if path.count("/") == 1}
    rest = {page for page in ours if f"docs/{page}.md" in known} - placed
    found["user_guide"] += sorted(rest)
    found["benchmarks/README"] = sorted(
        page for page in pages if page.startswith("benchmarks/results/")
    )
    return found


def toctree(chapter: str, pages: list[str]) -> str:
    """Return the list of a chapter's pages, as MyST reads it."""
    entries = "\n".join(
        posixpath.relpath(page, posixpath.dirname(chapter) or ".") for page in pages
    )
    return f"\n```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n"


def assemble(folder: Path) -> None:
    """Write all pages below a folder, and take away what an earlier run left there."""
    known, shown = places(), set[str]()
    in_chapters = chapters(known)
    written = {}
    for source, place in known.items():
        if source == "README.md":
            continue
        path = ROOT / source
        if path.suffix not in (".md", ".rst"):
            written[place] = path.read_bytes()
            continue
        text = with_links_followed(path.read_text("utf-8"), source, known, shown)
        chapter = place.removesuffix(".md")
        if chapter in in_chapters:
            text += toctree(chapter, in_chapters[chapter])
        written[place] = text.encode()
    for path in sorted(shown):
        written[f"sources/{path}.md"] = source_page(path).encode()
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.rglob("*.md")):
        if str(path.relative_to(folder)) not in written:
            path.unlink()
    for place, content in written.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:  # so that Sphinx reads only news
            path.write_bytes(content)
    shutil.rmtree(folder / "reference", ignore_errors=True)  # autosummary writes it anew


if __name__ == "__main__":
    assemble(Path(os.path.abspath(sys.argv[1])))
