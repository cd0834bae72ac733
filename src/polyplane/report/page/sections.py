"""The parts of the page: each makes HTML of what was found, or a sentence why there is nothing."""

import math
from collections.abc import Callable, Sequence

from polyplane.report.page import model_sections
from polyplane.report.page.charts import (
    Axis,
    Chart,
    axis_of,
    logs_of,
    percent,
    shown,
    whole_percent,
    words,
)
from polyplane.report.page.markup import (
    Content,
    chance,
    duration,
    figure,
    kind_of,
    points,
    price,
    size,
    table,
)

__all__ = ["SECTIONS", "facts_of", "notes_of"]

MAJORITY = "majority"


# ---- head --------------------------------------------------------------------------------


def facts_of(content: Content) -> str:
    """Some numbers under the verdict."""
    best = next((m for m in content["machines"] if m["machine"] == content["best"]), None)
    met = f"{content['n_met']:,}{'' if content['is_all'] else ', not all'}"
    facts = [("rows used", f"{content['n_rows']:,}"), ("rows read", met)]
    facts.append(("columns", f"{content['n_columns']:,}"))
    if best is not None:
        facts.append((f"error of {best['machine']}", percent(best["error"])))
        facts.append(("one prediction", price(best["microseconds"])))
        facts.append(("the model", size(best["bytes"])))
    items = "".join(f"<div><dt>{words(k)}</dt><dd>{words(v)}</dd></div>" for k, v in facts)
    return f'<dl class="facts">{items}</dl>'


def notes_of(content: Content) -> str:
    """Return the list of suspicions."""
    notes = content.get("suspicions") or []
    items = "".join(f"<li><b>{words(kind)}</b>{words(text)}</li>" for kind, text in notes)
    return f'<ul class="notes" aria-label="Suspicious">{items}</ul>' if items else ""


# ---- algorithms ----------------------------------------------------------------------------


def _steps(content: Content) -> str:
    steps = content.get("steps") or []
    if not steps:
        return "<p>No algorithm above a linear one was tried.</p>"
    rows = "".join(
        f"<tr{' class=best' if one['is_taken'] else ''}><th scope='row'>{words(one['step'])}"
        f"{'<span class=tag>worth it</span>' if one['is_taken'] else ''}</th>"
        f"<td class='left'>{words(one['machine'])} beside {words(one['below'])}</td>"
        f"<td>{points(one['points'])} ± {100 * one['spread']:.2f}</td>"
        f"<td>{chance(one['p'])}</td><td>{price(one['microseconds'])}</td>"
        f"<td>{size(one['bytes'])}</td><td>{one['rows']:,}</td></tr>"
        for one in steps
    )
    head = ("step", "algorithms", "buys, points", "p", "costs a row", "costs in memory", "rows")
    return (
        "<p>Each step beside the best one below it that was worth taking. Worth it is a lead of "
        "more than three standard errors and a twentieth of the error.</p>"
        + table("What each step up buys and costs", head, rows, (1,))
    )


def _machines(content: Content) -> str:
    rows = ""
    for one in content["machines"]:
        name = one["machine"]
        is_best = name == content["best"]
        lead = (
            "" if one["lead"] is None else f"{points(one['lead'])} ± {100 * one['lead_spread']:.2f}"
        )
        amount = f"{one['size']:,.0f} {one['unit']}" if one["size"] and one["unit"] else ""
        rows += (
            f"<tr{' class=best' if is_best else ''}><th scope='row'>{shown(name)}"
            f"{'<span class=tag>use this</span>' if is_best else ''}"
            f"<br><span class='quiet'>{words(one['what'])}</span></th>"
            f"<td>{percent(one['error'])}<br><span class='quiet'>{percent(one['low'])} to "
            f"{percent(one['high'])}</span></td><td>{lead}</td><td>{chance(one['p'])}</td>"
            f"<td>{price(one['microseconds'])}</td><td>{size(one['bytes'])}<br>"
            f"<span class='quiet'>{words(amount)}</span></td>"
            f"<td>{duration(one['fit_seconds'])}</td><td>{one['rows']:,}</td></tr>"
        )
    beside = words(content["beside"])
    head = (
        "algorithm",
        "error, 95%",
        f"lead over {beside}",
        "p",
        "a prediction",
        "memory",
        "a fit",
        "rows",
    )
    made = table("Every algorithm on the largest sample that it reached", head, rows)
    return f'<div class="wide">{made}</div>'


def _highlighters(content: Content) -> str:
    names = [one["machine"] for one in content["machines"] if one["machine"] != MAJORITY]
    buttons = "".join(
        f'<button type="button" aria-pressed="false" data-machine="{words(name)}">{shown(name)}'
        "</button>"
        for name in names
    )
    return (
        '<div class="controls tight" role="group" aria-label="Highlight one in all charts">'
        f'<span class="quiet">Highlight</span>{buttons}</div>'
    )


def _prices(content: Content) -> str:
    lines = [m for m in content["machines"] if m["machine"] != MAJORITY]
    lines = [m for m in lines if math.isfinite(m["microseconds"]) and m["microseconds"] > 0]
    if not lines:
        return "<p>No prices are known.</p>"
    x = logs_of(
        [m["microseconds"] for m in lines], "a prediction, µs a row (log scale)", lambda v: f"{v:g}"
    )
    y = axis_of([v for m in lines for v in (m["low"], m["high"])], "error", whole_percent, True)
    told = "; ".join(
        f"{m['machine']} {percent(m['error'])} at {price(m['microseconds'])}" for m in lines
    )
    chart = Chart(x, y, "Error against the price of a prediction", told)
    for m in sorted(lines, key=lambda one: one["machine"] == content["best"]):
        name, kind = m["machine"], kind_of(m["machine"], content)
        chart.bar(m["microseconds"], m["low"], m["high"], kind, name)
        chart.dot(
            m["microseconds"],
            m["error"],
            kind,
            f"{name}: {percent(m['error'])}, {price(m['microseconds'])}",
            name,
        )
        chart.label(m["microseconds"], m["error"], name, kind)
    usual = next((m for m in content["machines"] if m["machine"] == MAJORITY), None)
    aside = (
        f" Always saying the most frequent label has {percent(usual['error'])}." if usual else ""
    )
    return _highlighters(content) + figure(
        chart,
        "Down is better, left is cheaper; bars are 95% intervals. Algorithms may have reached "
        f"samples of different sizes: the table says which.{aside}",
    )


def _learning(content: Content) -> str:
    curves = {k: v for k, v in (content.get("curves") or {}).items() if k != MAJORITY}
    if all(len(points) < 2 for points in curves.values()):
        return "<p>All algorithms were tried on samples of one size: there is no curve yet.</p>"
    sizes = [p[0] for points in curves.values() for p in points]
    ticks: list[int] = []
    for n_rows in sorted({*sizes}, reverse=True):
        apart = (max(sizes) / min(sizes)) ** 0.1  # a tenth of the axis
        if not ticks or ticks[0] > apart * n_rows:
            ticks.insert(0, n_rows)
    x = Axis(
        min(sizes) / 1.1,
        max(sizes) * 1.1,
        [(t, f"{t:,}") for t in ticks],
        "rows of the sample",
        True,
    )
    y = axis_of([p[1] for points in curves.values() for p in points], "error", whole_percent, True)
    told = "; ".join(
        f"{name} from {percent(points[0][1])} to {percent(points[-1][1])}"
        for name, points in curves.items()
    )
    chart = Chart(x, y, "Error by rows", told)
    for name in sorted(curves, key=lambda one: one == content["best"]):
        kind, points = kind_of(name, content), curves[name]
        chart.line([(p[0], p[1]) for p in points], kind, name)
        if name in (content["best"], content["beside"]):
            for n, _, low, high in points:
                if low >= y.low and high <= y.high:
                    chart.bar(n, low, high, kind, name)
        for n, error, *_ in points:
            chart.dot(n, error, kind, f"{name}: {percent(error)} on {n:,} rows", name, 3.5)
        chart.label(points[-1][0], points[-1][1], name, kind)
    return figure(
        chart,
        "Samples of different sizes, two thirds or more of each for training. A "
        "curve that still falls asks for more rows.",
    )


def _code(content: Content) -> str:
    code = content.get("code")
    if not code:
        return "<p>There is nothing to train.</p>"
    own = (m["rows"] for m in content["machines"] if m["machine"] == content["best"])
    n_rows = next(own, content["n_rows"])
    about = f", with settings that were found on {n_rows:,} rows; more rows may need others"
    about = "" if content["kind"] == "comparison" else about
    return (
        f"<p>Use {shown(content['best'])}{about}.</p>"
        f'<pre id="code" tabindex="0" role="region" aria-label="Code">{words_of_code(code)}</pre>'
        '<div class="controls" style="margin-top:.7rem"><button type="button" id="copy">Copy'
        "</button></div>"
    )


def words_of_code(code: str) -> str:
    """Lines stay lines."""
    return "\n".join(words(line) for line in code.split("\n"))


SECTIONS: Sequence[tuple[str, str, Callable[[Content], str]]] = (
    ("recommendation", "What to use", _code),
    ("steps", "What each step buys", _steps),
    ("prices", "Error against price", _prices),
    ("machines", "All algorithms", _machines),
    ("learning", "Learning curves", _learning),
    ("history", "How planes grew", model_sections.history),
    ("planes", "What each plane is for", model_sections.planes),
    ("splines", "Curves of columns", model_sections.splines),
    ("regions", "Regions", model_sections.regions),
    ("confusion", "Confusion", model_sections.confusion),
    ("mistakes", "Worst mistakes", model_sections.mistakes),
    ("rows", "Row by row", model_sections.rows),
)
