"""One self-contained page about an exploration or a comparison: words first, then pictures.

Style and script stand in the page, which asks nobody for anything. Names, labels and cells come
from outside: in HTML they are escaped (`charts.words`), in the data for the script `<` is, and the
script writes them as text only.
"""

import json
import math
from collections.abc import Mapping
from importlib import resources
from typing import Any

from polyplane.report.page.charts import words
from polyplane.report.page.sections import SECTIONS, facts_of, notes_of

__all__ = ["page_of"]

SAYS = {
    "linear": "Linear is enough",
    "additive": "Nonlinear: curves are enough",
    "piecewise-linear": "Nonlinear: use planes",
    "kernel": "Nonlinear: use a kernel",
    "more-data": "Not clear yet",
    "noise": "No signal found",
}

LEAKS = "A column decides nearly alone"  # where nothing else does
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page_of(content: Mapping[str, Any]) -> str:
    """The page, as one text; parts that are still to come are left out."""
    without = {*content.get("to_come", ()), *content.get("absent", ())}
    sections = [(key, title, body(content)) for key, title, body in SECTIONS if key not in without]
    links = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, title, _ in sections)
    parts = "".join(
        f'<section id="{key}" aria-labelledby="{key}-title"><h2 id="{key}-title">{title}</h2>'
        f"{body}</section>"
        for key, title, body in sections
    )
    verdict = str(content["verdict"])
    title = f"{verdict}: {content['title']}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{words(title)}</title><style>{_file('page.css')}</style></head><body>"
        '<a class="skip" href="#main">To the verdict</a><div class="wrap">'
        f'<header class="bar"><span><strong>polyplane</strong> · {words(content["title"])}</span>'
        '<button id="theme" type="button">Dark</button></header>'
        f'<main id="main">{_head(content, verdict)}'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav>{parts}</main>'
        f"<footer>{_foot(content)}</footer></div>"
        f'<script type="application/json" id="data">{_data(content)}</script>'
        f"<script>{_file('page.js')}</script></body></html>\n"
    )


def _head(content: Mapping[str, Any], verdict: str) -> str:
    """The verdict."""
    unfinished = ""
    if not content.get("is_final", True):
        unfinished = (
            '<p role="status" class="quiet">Still exploring: load this page again later.</p>'
        )
    elif content.get("is_interrupted"):
        unfinished = '<p class="quiet">Stopped early: this is what was found until then.</p>'
    outlook = f"<p>{words(content['outlook'])}</p>" if content.get("outlook") else ""
    heading = SAYS.get(verdict, verdict)
    if verdict == "noise" and content.get("dropped"):
        heading = LEAKS
    elif content["kind"] == "comparison":
        heading = "A tie" if verdict != content["best"] else f"{verdict} is best"
    return (
        f'<p class="eyebrow">Verdict: {words(verdict)}</p><h1>{words(heading)}</h1>'
        f'<p class="lead">{words(content["headline"])}</p>{outlook}{unfinished}'
        f"{facts_of(content)}{notes_of(content)}"
    )


def _foot(content: Mapping[str, Any]) -> str:
    left_out = content.get("left_out") or {}
    lines = [
        f"Errors are shares of held-out rows, each held out once in {content['n_folds']} folds "
        "that are the same for all algorithms; intervals are 95% (Wilson's), tests are paired over "
        "rows. Times are those of one core of this machine while it was at work."
    ]
    for name, why in left_out.items():
        lines.append(f"{words(name)} was left out: {words(why)}.")
    lines.append(f"Made {words(content.get('made', ''))} in {content['seconds']:.0f} seconds.")
    if content.get("compiling"):
        lines.append(words(content["compiling"]))
    return "".join(f"<p>{line}</p>" for line in lines)


def _data(content: Mapping[str, Any]) -> str:
    """Return the data of the script as JSON, in letters that cannot end the script."""
    wanted = {key: content.get(key) for key in ("regions", "rows")}
    return json.dumps(_finite(wanted), allow_nan=False).replace("<", "\\u003c")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return 0.0
    return value


def _file(name: str) -> str:
    return resources.files("polyplane.report.page").joinpath(name).read_text("utf-8")
