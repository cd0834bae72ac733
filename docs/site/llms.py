"""`llms.txt`: the list of pages for programs that read, with links to the pages' plain text."""

import re

from docutils import nodes

ASIDE = (nodes.entry, nodes.Admonition, nodes.caption)
LONGEST = 200  # characters of a page's first paragraph


def write_llms_txt(app, error) -> None:
    """Write the file beside the pages: title, summary, and the pages of each chapter."""
    if error is not None or app.builder.name != "html":
        return
    env = app.builder.env
    chapters = env.toctree_includes.get("index", [])
    lines = ["# polyplane", "", f"> {_first_paragraph(env, 'index', longest=1000)}"]
    alone = [page for page in chapters if page not in env.toctree_includes]
    lines += ["", "## Start", "", *(_entry(app, page) for page in ["index", *alone])]
    for chapter in chapters:
        if chapter in alone:
            continue
        lines += ["", f"## {env.titles[chapter].astext()}", ""]
        lines += [_entry(app, page) for page in _below(env, chapter)]
    (app.outdir / "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")


def _below(env, chapter: str) -> list[str]:
    """Return the pages of a chapter, those of its pages included."""
    found = []
    for page in env.toctree_includes.get(chapter, []):
        found += [page, *_below(env, page)]
    return list(dict.fromkeys(found))


def _entry(app, page: str) -> str:
    env = app.builder.env
    suffix = env.doc2path(page, base=False).suffix
    text = _first_paragraph(env, page, longest=LONGEST)
    is_generated = suffix == ".rst"  # directives say little: the built page is better
    link = f"{page}.html" if is_generated else f"_sources/{page}{suffix}.txt"
    return f"- [{env.titles[page].astext()}]({link}){': ' + text if text else ''}"


def _first_paragraph(env, page: str, longest: int) -> str:
    for paragraph in env.get_doctree(page).findall(nodes.paragraph):
        text = re.sub(r"\s+", " ", paragraph.astext()).strip()
        if len(text) > 30 and not isinstance(paragraph.parent, ASIDE):
            return text if len(text) <= longest else text[: longest - 1].rsplit(" ", 1)[0] + " …"
    return ""
