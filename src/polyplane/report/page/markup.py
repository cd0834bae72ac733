"""Numbers in words, and the few kinds of HTML that all parts of a page are made of."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from polyplane.report.page.charts import Chart, words

__all__ = [
    "Content", "chance", "duration", "figure", "image", "kind_of", "points", "price", "size",
    "table",
]  # fmt: skip

Content = Mapping[str, Any]


def price(microseconds: float) -> str:
    """A time in words."""
    if not math.isfinite(microseconds):
        return "–"
    sign = "−" if microseconds < 0 else ""
    return f"{sign}{_three(abs(microseconds))} µs"


def duration(seconds: float) -> str:
    """A longer time in words."""
    return f"{_three(1000 * seconds)} ms" if seconds < 1 else f"{_three(seconds)} s"


def size(n_bytes: float) -> str:
    """Bytes in words."""
    sign, n = "−" if n_bytes < 0 else "", abs(n_bytes)
    for unit in ("B", "kB", "MB"):
        if n < 1000:
            return f"{sign}{_three(n) if unit != 'B' else f'{n:.0f}'} {unit}"
        n /= 1000
    return f"{sign}{_three(n)} GB"


def _three(value: float) -> str:
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:,.{min(digits, 4)}f}"


def points(share: float) -> str:
    """Hundredths, with their sign."""
    return f"{100 * share:+.2f}".replace("-", "−")


def chance(p: float | None) -> str:
    """The p of a test; nothing where there was none."""
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def kind_of(name: str, content: Content) -> str:
    """Return the style of an algorithm."""
    return "best" if name == content["best"] else "beside" if name == content["beside"] else ""


def table(caption: str, head: Sequence[str], rows: str, left: Sequence[int] = ()) -> str:
    """A table that can be scrolled by keyboard where it is too wide; some columns are words."""
    cells = "".join(
        f'<th scope="col"{" class=left" if k in left else ""}>{title}</th>'
        for k, title in enumerate(head)
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table><caption>'
        f"<span>{caption}</span></caption><thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def figure(chart: Chart, caption: str) -> str:
    """A chart with words below, which can be scrolled as well."""
    return (
        f'<figure><div class="scroll" tabindex="0" role="region" aria-label="{words(chart.title)}">'
        f"{chart.svg()}</div><figcaption>{caption}</figcaption></figure>"
    )


def image(address: str | None, told: str, kind: str) -> str:
    """A picture with words for who does not see it; nothing where there is none."""
    return f'<img class="{kind}" src="{words(address)}" alt="{words(told)}">' if address else ""
