"""How Sphinx builds the site: `make docs`. Nothing is fetched, while building or while reading."""

import inspect
import os
import re
import sys
from pathlib import Path

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

import polyplane

sys.path.insert(0, str(Path(__file__).parent))
from llms import write_llms_txt

HERE = Path(__file__).parent

project = "polyplane"
author = "the polyplane developers"
copyright = f"2026, {author}"
version = release = polyplane.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
templates_path = [str(HERE / "templates")]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["gallery/**/*.ipynb", "**/sg_execution_times.rst", "sg_execution_times.rst"]
default_role = "py:obj"
highlight_language = "python"
pygments_style = "default"

# Markdown
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]
suppress_warnings = ["config.cache", "misc.highlighting_failure"]

# Reference
toc_object_entries_show_parents = "hide"
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parents[1] / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "image_scrapers": ("matplotlib",),
    "min_reported_time": 1,
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib",),
    "doc_module": ("polyplane",),
    "backreferences_dir": "reference/backreferences",
}
os.environ.setdefault("MPLBACKEND", "agg")

# Pages
html_theme = "pydata_sphinx_theme"
html_title = "polyplane"
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_copy_source = True
html_show_sourcelink = False
html_show_search_summary = False  # a page read from a disk cannot fetch other pages
html_search_scorer = str(HERE / "scorer.js")
html_context = {"default_mode": "auto"}
html_math_renderer = "mathml"
html_sidebars = {"index": [], "choose": [], "search": []}
html_theme_options = {
    "logo": {"text": "polyplane"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def _is_foreign(app, what, name, member, skip, options):
    """Leave out what scikit-learn wrote, its routing of metadata, and what Attributes list."""
    if isinstance(member, property):
        return True
    home = getattr(inspect.unwrap(member) if callable(member) else member, "__module__", "") or ""
    if name.startswith("set_") and name.endswith("_request"):
        return True
    if home.startswith("sklearn"):
        return name not in ("get_params", "set_params", "score", "fit_transform") or skip
    return skip


def _adapt(app, what, name, obj, options, lines):
    """Let plain text pass as reStructuredText: a vertical bar and a final underscore are text."""
    literal = None  # indent of the line above a literal block
    for k, line in enumerate(lines):
        text = line.lstrip()
        indent = len(line) - len(text)
        if literal is not None and text and indent <= literal:
            literal = None
        if literal is not None or text.startswith((">>>", "...", "..")):
            continue
        literal = indent if text.endswith("::") else None
        line = re.sub(r":ref:`([^<`]*?)\s*<[^>]*>`", r"\1", line)  # pages of scikit-learn
        parts = re.split(r"(``.*?``|`[^`]*`)", line)
        parts[::2] = [re.sub(r"(?<!\\)\||(?<=\w)_(?!\w)", r"\\\g<0>", part) for part in parts[::2]]
        lines[k] = "".join(parts)


def _tidy(app, error):
    """Remove a template of the theme, and a role that references contradict."""
    (app.outdir / "_static" / "webpack-macros.html").unlink(missing_ok=True)
    for path in (app.outdir / "reference").glob("*.html"):  # its children are no list items
        text = path.read_text("utf-8")
        path.write_text(text.replace('<div role="list" class="citation-list">', "<div>"), "utf-8")


def _write_math(self, node):
    """Write a formula as MathML, which browsers draw by themselves."""
    inline = node.tagname == "math"
    self.body.append(tex2mathml(node.astext(), as_block=not inline))
    raise SkipNode


def setup(app):
    """Register what this site adds to Sphinx."""
    app.add_html_math_renderer("mathml", (_write_math, None), (_write_math, None))
    app.connect("autodoc-process-docstring", _adapt, priority=900)
    app.connect("autodoc-skip-member", _is_foreign)
    app.connect("build-finished", _tidy)
    app.connect("build-finished", write_llms_txt)
