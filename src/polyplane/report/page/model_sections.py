"""The parts of the page about what models see: planes, curves, regions, mistakes, single rows."""

import math
from collections.abc import Mapping
from typing import Any

from polyplane.report.findings import MOST_PLANES
from polyplane.report.page.charts import (
    Chart,
    axis_of,
    logs_of,
    percent,
    shown,
    whole_percent,
    words,
)
from polyplane.report.page.markup import Content, image, table

__all__ = ["confusion", "history", "mistakes", "planes", "regions", "rows", "splines"]


LINES = "thick", "dark", "dashed", "dotted"  # as the style draws best, beside, second and third


def history(content: Content) -> str:
    """Figure 2 of the AMM paper: error and planes by step."""
    found = content.get("history")
    notes = [n for n in (found or {}).get("list", []) if n["step"] > 0]
    if len(notes) < 2:
        return "<p>No algorithm that grows planes was trained.</p>"
    steps = [n["step"] for n in notes]
    x = logs_of(steps, "steps", lambda v: f"{v:,.0f}", is_whole=True)
    errors = [(n["step"], n["error"]) for n in notes if math.isfinite(n["error"])]
    y = axis_of([e for _, e in errors], "error since the point before", whole_percent, True)
    first = Chart(
        x,
        y,
        "Error by step",
        f"from {percent(errors[0][1])} to {percent(errors[-1][1])}",
        (460, 280),
        24,
    )
    first.line(errors, "best")
    top = [n[k] for n in notes for k in ("planes", "created", "pruned")]
    last = notes[-1]
    second = Chart(
        x,
        axis_of(top, "planes", lambda v: f"{v:,.0f}", True, True),
        "Planes by step",
        f"{last['planes']:.0f} now, {last['created']:.0f} created, {last['pruned']:.0f} pruned",
        (460, 280),
        72,
    )
    for key, kind, name in (
        ("planes", "best", "now"),
        ("created", "second", "created"),
        ("pruned", "third", "pruned"),
    ):
        second.line([(n["step"], n[key]) for n in notes], kind)
        second.label(last["step"], last[key], name, "best" if kind == "best" else "")
    assert found is not None
    return (
        f"<p>How {shown(found['machine'])} learned: each row is predicted before it is learned; "
        "planes are created where a row has none, and pruned when they carry little.</p>"
        '<div class="multiples" style="grid-template-columns:repeat(auto-fill,minmax(20rem,1fr))">'
        f'<figure class="small">{first.svg()}<figcaption>Progressive error</figcaption></figure>'
        f'<figure class="small">{second.svg()}<figcaption>Planes now, created and pruned'
        "</figcaption></figure></div>"
    )


def planes(content: Content) -> str:
    """Return the section about planes: the rows of each, its weights, its picture."""
    found = content.get("planes")
    if not found:
        return "<p>No algorithm with planes was trained.</p>"
    cards = ""
    for one in found["list"]:
        side = "against" if one["against"] else "for"
        picture = image(one.get("picture"), f"Plane {one['number']}", "pixels large")
        weights = "".join(
            f'<li>{shown(name)}<span class="{"for" if weight > 0 else "against"}">'
            f"{'+' if weight > 0 else '−'}{abs(weight):.2g}</span></li>"
            for name, weight in ([] if picture else one["columns"])
        )
        exemplars = "".join(
            image(row.get("picture"), f"A row it decides, labelled {row['label']}", "pixels")
            for row in one["exemplars"]
        )
        said = "".join(f"<li>{_spelt(row)}</li>" for row in one["exemplars"][:2])
        cards += (
            f"<article><h3>Plane {one['number']}, {side} {shown(one['label'])}</h3>"
            f'<div class="meter" aria-hidden="true"><span style="width:{100 * one["share"]:.1f}%">'
            f"</span></div><p class='quiet'>decides {percent(one['share'])} of the rows "
            f"({one['rows']:,}); {percent(one['error'])} of them wrong</p>{picture}"
            f'<ul class="weights">{weights}</ul>'
            + (
                f'<div class="pictures">{exemplars}</div>'
                if exemplars
                else f"<p class='quiet'>its clearest rows</p><ul class='clear quiet'>{said}</ul>"
            )
            + "</article>"
        )
    n_shown, n_all = len(found["list"]), found["n_planes"]
    more = ""
    if n_all > n_shown:
        is_rest = n_shown < MOST_PLANES  # others would stand beside them
        says = f"only these {n_shown} decide any" if is_rest else f"these {n_shown} decide most"
        more = f" Of {n_all:,} planes {says}."
    return (
        f"<p>Planes of {shown(found['machine'])} on rows that it was not trained on: a row "
        "belongs to the plane that scores highest. Weights are in units of a column's "
        f'deviation.{more}</p><div class="planes">{cards}</div>'
    )


def _spelt(row: Mapping[str, Any]) -> str:
    """A row in words."""
    cells = ", ".join(f"{shown(name)} = {shown(value)}" for name, value in row["cells"])
    return f"labelled {shown(row['label'])}: {cells}"


def splines(content: Content) -> str:
    """Scores along columns."""
    found = content.get("splines")
    if not found or not found["list"]:
        why = (content.get("left_out") or {}).get("additive", "no additive algorithm was trained")
        return f"<p>There are no curves: {words(why)}.</p>"
    figures = "".join(_spline(one) for one in found["list"])
    return (
        f"<p>What each column adds to the score in {shown(found['machine'])}, all others at "
        "their medians or most frequent values. Ticks below a curve are the tenths of the rows."
        f'</p><div class="multiples">{figures}</div>'
    )


def _spline(one: Mapping[str, Any]) -> str:
    labels, values = one["labels"], one["y"]
    told = [shown(label) for label in labels]
    if "values" not in one and len(told) > 1:
        told = [f"{label} ({kind})" for label, kind in zip(told, LINES, strict=False)]
    caption = f"{shown(one['name'])}; change of the score of {', '.join(told)}"
    y = axis_of([v for line in values for v in line], "change of the score", lambda v: f"{v:.3g}")
    if "values" in one:
        head = "".join(f'<th scope="col">{shown(label)}</th>' for label in labels)
        lines = "".join(
            f"<tr><th scope='row'>{shown(name)}</th>"
            + "".join(f"<td>{v:+.2f}</td>" for v in changes)
            + "</tr>"
            for name, *changes in zip(one["values"], *values, strict=True)
        )
        return (
            f'<figure class="small"><div class="scroll" tabindex="0" role="region" aria-label="'
            f'Changes by {words(one["name"])}"><table><caption>{caption}</caption><thead><tr>'
            f'<th scope="col">value</th>{head}</tr></thead><tbody>{lines}</tbody></table></div>'
            "</figure>"
        )
    x = axis_of(one["x"], one["name"], lambda v: f"{v:.6g}")
    chart = Chart(x, y, f"Curve of {one['name']}", "see the caption", (360, 240), 16)
    chart.level(0.0, "") if y.low <= 0 <= y.high else None
    for k, line in enumerate(values):
        kind = ("best", "beside", "second", "third")[k % 4]
        chart.line(list(zip(one["x"], line, strict=True)), kind)
    for tick in one["ticks"]:
        if x.low <= tick <= x.high:
            a, b = chart.at(tick, y.low)
            chart.parts.append(f'<line class="notch" x1="{a}" x2="{a}" y1="{b - 6}" y2="{b}"/>')
    return f'<figure class="small">{chart.svg()}<figcaption>{caption}</figcaption></figure>'


def regions(content: Content) -> str:
    """Labels along two columns, which the script draws."""
    found = content.get("regions")
    if not found:
        return "<p>There are no two columns of numbers to draw along.</p>"
    options = [
        "".join(
            f'<option value="{k}"{" selected" if k == chosen else ""}>{words(name)}</option>'
            for k, name in enumerate(found["names"])
        )
        for chosen in found["start"]
    ]
    machines = "".join(
        f'<option value="{words(name)}"{" selected" if k else ""}>{words(name)}</option>'
        for k, name in enumerate(found["machines"])
    )
    others = (
        "All other columns are held at their medians or most frequent values, so dots, which are "
        "held-out rows, need not agree with the colour behind them. The columns to pick from are "
        "those that matter most."
        if found["has_others"]
        else "Dots are held-out rows in the colour of their label."
    )
    return (
        f'<p>{others}</p><div class="controls">'
        f'<label>Across<select id="region-x">{options[0]}</select></label>'
        f'<label>Up<select id="region-y">{options[1]}</select></label>'
        f'<label>Algorithm<select id="region-machine">{machines}</select></label></div>'
        '<div class="card split"><canvas id="region" width="540" height="540" role="img" '
        'aria-label="Regions"></canvas><div><p id="region-of"></p><p id="region-across"></p>'
        '<p id="region-up"></p>'
        '<ul class="legend" id="region-legend"></ul><p id="region-said" role="status"></p></div>'
        "</div>"
    )


# ---- mistakes and rows -------------------------------------------------------------------


def confusion(content: Content) -> str:
    """True by predicted labels."""
    found = content.get("confusion")
    if not found:
        return "<p>Nothing was predicted.</p>"
    head = "".join(f"<th scope='col'>{shown(label)}</th>" for label in found["labels"])
    rows = ""
    for k, (label, line) in enumerate(zip(found["labels"], found["counts"], strict=True)):
        total = max(1, sum(line))
        cells = "".join(
            f'<td{" class=right" if j == k else ""} style="--share:{n / total:.3f}">{n:,}</td>'
            for j, n in enumerate(line)
        )
        rows += f"<tr><th scope='row'>{shown(label)}</th>{cells}</tr>"
    caption = f"True labels down, those of {words(found['machine'])} across; held-out rows"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="Confusion"><table class='
        f'"confusion"><caption>{caption}</caption><thead><tr><td></td>{head}</tr></thead><tbody>'
        f"{rows}</tbody></table></div>"
    )


def mistakes(content: Content) -> str:
    """The surest mistakes."""
    found = content.get("rows")
    wrong = [(k, row) for k, row in enumerate((found or {}).get("list", [])) if row["is_wrong"]]
    if not found:
        return "<p>No algorithm here can explain single rows.</p>"
    if not wrong:
        return "<p>Among the rows looked at there is no mistake.</p>"
    wrong.sort(key=lambda one: -one[1]["sure"])
    about = (
        f"<p>Held-out rows on which {shown(found['machine'])} is surest and wrong: the first place "
        "to look for labels that are wrong themselves.</p>"
    )
    if "picture" in wrong[0][1]:
        items = "".join(_pictured(k, row) for k, row in wrong[:12])
        return f'{about}<ul class="mistakes">{items}</ul>'
    lines = ""
    for k, row in wrong[:12]:
        reasons = ", ".join(f"{shown(c[0])} = {shown(c[1])}" for c in row["columns"][:3])
        lines += (
            f"<tr><th scope='row'>{row['row']:,}</th><td class='left'>{shown(row['label'])}</td>"
            f"<td class='left'>{shown(row['winner'])}</td><td>{row['lead']:.3g}</td>"
            f"<td class='left'>{reasons}</td><td>{_explain(k, row)}</td></tr>"
        )
    head = ("row", "label", "predicted", "lead", "because of", "look closer")
    return about + table("The surest mistakes", head, lines, (1, 2, 4))


def _pictured(k: int, row: Mapping[str, Any]) -> str:
    picture = image(row.get("picture"), f"Row {row['row']}", "pixels")
    return (
        f"<li>{picture}<p>labelled {shown(row['label'])}, predicted {shown(row['winner'])}</p>"
        f"{_explain(k, row)}</li>"
    )


def _explain(k: int, row: Mapping[str, Any]) -> str:
    return f'<button type="button" data-row="{k}">Explain row {row["row"]:,}</button>'


def rows(content: Content) -> str:
    """Single rows, which the script explains."""
    found = content.get("rows")
    if not found or not found["list"]:
        return "<p>No algorithm here can explain single rows.</p>"
    options = "".join(
        f"<option>row {row['row']:,}: {words(row['label'])}, predicted {words(row['winner'])}"
        f"{' (wrong)' if row['is_wrong'] else ''}</option>"
        for row in found["list"]
    )
    return (
        f"<p>Held-out rows, what {shown(found['machine'])} says of them and which columns gave it "
        "the lead: the surest mistakes, the closest calls, and some at random.</p>"
        f'<div class="controls"><label>Row<select id="row">{options}</select></label>'
        '<button type="button" id="row-before">Previous</button>'
        '<button type="button" id="row-after">Next</button></div>'
        '<div class="card" id="row-panel" aria-live="polite"></div>'
    )
