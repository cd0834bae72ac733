"""Charts as SVG: plain lines and marks with axes, in colours that the page's style gives them.

Every chart has a title and a description for readers who hear it, and every mark a title of its
own. What is worth looking at has the class `best`, what it is measured against `beside`.
"""

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Axis", "Chart", "axis_of", "logs_of", "percent", "shown", "whole_percent", "words"]

INVISIBLE = {*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
GAP = 15  # between labels, one below the other
ALIKE, SMALLEST = 1e-9, 1e-100  # values that differ by less are one
MOST_LETTERS = 22  # of a label in a chart
LETTER = 7.2  # its usual width


def words(text: Any) -> str:
    """Text from outside as HTML: escaped, and letters that are none spelt out."""
    plain = "".join(f"\\u{ord(c):04x}" if ord(c) in INVISIBLE else c for c in str(text))
    plain = plain.encode("utf-8", "backslashreplace").decode()
    return html.escape(plain, quote=True)


def shown(text: Any) -> str:
    """Text from outside in an element that keeps its direction to itself."""
    return f"<bdi>{words(text)}</bdi>"


def percent(share: float) -> str:
    """A share in as many digits as it deserves."""
    if not math.isfinite(share):
        return "–"
    return f"{100 * share:.1f}%" if share >= 0.1 or share == 0 else f"{100 * share:.2f}%"


def whole_percent(share: float) -> str:
    """A share for the tick of an axis."""
    return f"{100 * share:.6g}%"


@dataclass(frozen=True)
class Axis:
    """From values to places."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    title: str
    is_log: bool = False

    def share(self, value: float) -> float:
        """Return the position of a value on the axis, from 0 to 1."""
        if self.is_log:
            value, low, high = (math.log10(v) for v in (value, self.low, self.high))
        else:
            low, high = self.low, self.high
        return (value - low) / (high - low) if high > low else 0.5


def axis_of(
    values: Sequence[float],
    title: str,
    label: Callable[[float], str],
    from_zero: bool = False,
    is_whole: bool = False,
) -> Axis:
    """An axis with round ticks around the values; where they are counts, at whole numbers."""
    finite = [v for v in values if math.isfinite(v)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if from_zero:
        low = min(0.0, low)
    largest = max(abs(low), abs(high))
    span = high - low if high - low > ALIKE * largest else largest
    room = 0.06 * (span if span > SMALLEST else 1.0)
    least = 0.0 if low >= 0 else -math.inf
    low, high = max(least, low if from_zero and low == 0 else low - room), high + room
    ticks = _round_ticks(low, high, is_whole)
    return Axis(low, high, [(t, label(t)) for t in ticks], title)


def _round_ticks(low: float, high: float, is_whole: bool = False) -> list[float]:
    """About five, at round distances."""
    rough = (high - low) / 5
    rough = max(1.0, rough) if is_whole else rough
    power = 10.0 ** math.floor(math.log10(rough))
    factors = (1, 2, 5, 10) if is_whole else (1, 2, 2.5, 5, 10)
    step = next(factor * power for factor in factors if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, int(high / step + 1e-9) + 1)]


def logs_of(
    values: Sequence[float], title: str, label: Callable[[float], str], is_whole: bool = False
) -> Axis:
    """An axis of powers of ten around positive values; where there are few, with steps between."""
    good = [v for v in values if math.isfinite(v) and v > 0] or [1.0]
    low, high = min(good) / 1.25, max(good) * 1.25
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5)):
        ticks = [f * 10.0**k for k in decades for f in factors if low <= f * 10.0**k <= high]
        if len(ticks) >= 3:
            break
    else:
        ticks = [t for t in _round_ticks(low, high, is_whole) if t > 0]
    every = -(-len(ticks) // 7)
    return Axis(low, high, [(t, label(t)) for t in ticks[::every]], title, is_log=True)


class Chart:
    """Marks between two axes."""

    def __init__(
        self,
        x: Axis,
        y: Axis,
        title: str,
        told: str,
        size: tuple[int, int] = (720, 380),
        right: int = 120,
    ) -> None:
        self.x, self.y, self.title, self.told = x, y, title, told
        self.width, self.height = size
        widest = max((len(text) for _, text in y.ticks), default=0)
        self.left = max(62, 34 + 7 * widest)
        self.top, self.right, self.bottom = 14, right, 46
        self.parts: list[str] = []
        self.labels: list[tuple[float, float, str, str]] = []
        self.dots: list[tuple[float, float]] = []

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where values are."""
        across = self.width - self.left - self.right
        down = self.height - self.top - self.bottom
        return (
            round(self.left + across * self.x.share(x), 1),
            round(self.top + down * (1 - self.y.share(y)), 1),
        )

    def line(self, points: Sequence[tuple[float, float]], kind: str, name: str = "") -> None:
        """Through values, in their order."""
        path = " ".join("{:g},{:g}".format(*self.at(*point)) for point in points)
        self.parts.append(f'<polyline class="line {kind}"{_of(name)} points="{path}"/>')

    def bar(self, x: float, low: float, high: float, kind: str, name: str = "") -> None:
        """An interval."""
        (a, b), (_, c) = self.at(x, low), self.at(x, high)
        self.parts.append(
            f'<line class="interval {kind}"{_of(name)} x1="{a}" x2="{a}" y1="{b}" y2="{c}"/>'
        )

    def dot(
        self, x: float, y: float, kind: str, told: str, name: str = "", size: float = 5
    ) -> None:
        """A mark that tells what it is."""
        a, b = self.at(x, y)
        self.dots.append((a, b))
        self.parts.append(
            f'<circle class="dot {kind}"{_of(name)} cx="{a}" cy="{b}" r="{size}">'
            f"<title>{words(told)}</title></circle>"
        )

    def level(self, y: float, kind: str) -> None:
        """A line across."""
        a, b = self.at(self.x.low, y)
        c, _ = self.at(self.x.high, y)
        self.parts.append(f'<line class="level {kind}" x1="{a}" x2="{c}" y1="{b}" y2="{b}"/>')

    def label(self, x: float, y: float, text: str, kind: str = "") -> None:
        """Words beside a value; labels make room for each other."""
        self.labels.append((*self.at(x, y), text, kind))

    def _beside(self, a: float, b: float, text: str) -> tuple[float, str]:
        """Where words begin or end: right of a mark, or left where another one is in the way."""
        width = LETTER * len(_short(text))
        for start, place in ((a + 9, (a + 9, "start")), (a - 9 - width, (a - 9, "end"))):
            covered = any(
                start - 6 < x < start + width + 6 and abs(y - b) < 9
                for x, y in self.dots
                if (x, y) != (a, b)
            )
            if not covered and start > self.left:
                return place
        return a + 9, "start"

    def svg(self) -> str:
        """The chart."""
        title, told = words(self.title), words(self.told)
        return (
            f'<svg role="img" aria-label="{title}. {told}" viewBox="0 0 {self.width} '
            f'{self.height}" preserveAspectRatio="xMinYMin meet">'
            f"{self._grid()}{''.join(self.parts)}{self._placed_labels()}</svg>"
        )

    def _grid(self) -> str:
        parts = []
        bottom, end = self.height - self.bottom, self.width - self.right
        for value, text in self.y.ticks:
            _, b = self.at(self.x.low, value)
            parts.append(
                f'<line class="grid" x1="{self.left}" x2="{end}" y1="{b}" y2="{b}"/>'
                f'<text class="tick" x="{self.left - 8}" y="{b + 4}" text-anchor="end">'
                f"{words(text)}</text>"
            )
        for value, text in self.x.ticks:
            a, _ = self.at(value, self.y.low)
            parts.append(
                f'<line class="notch" x1="{a}" x2="{a}" y1="{bottom}" y2="{bottom + 5}"/>'
                f'<text class="tick" x="{a}" y="{bottom + 19}" text-anchor="middle">'
                f"{words(text)}</text>"
            )
        middle = (self.left + end) / 2
        parts.append(
            f'<line class="axis" x1="{self.left}" x2="{end}" y1="{bottom}" y2="{bottom}"/>'
            f'<text class="name" x="{middle:g}" y="{self.height - 8}" text-anchor="middle">'
            f"{words(self.x.title)}</text>"
            f'<text class="name" transform="translate(14 {(self.top + bottom) / 2:g}) '
            f'rotate(-90)" text-anchor="middle">{words(self.y.title)}</text>'
        )
        return "".join(parts)

    def _placed_labels(self) -> str:
        """Return the labels; those that would overlap move down, or up at the end of the chart."""
        placed: list[list[float]] = []
        order = sorted(self.labels, key=lambda one: one[1])
        for a, b, _, _ in order:
            near = [p for p in placed if abs(p[0] - a) < 110]
            placed.append([a, max([b, *(p[1] + GAP for p in near)])])
        for k in reversed(range(len(placed))):
            below = [p[1] - GAP for p in placed[k + 1 :] if abs(p[0] - placed[k][0]) < 110]
            placed[k][1] = min([placed[k][1], self.height - self.bottom - 6, *below])
        parts = []
        for (a, b, text, kind), (_, lower) in zip(order, placed, strict=True):
            at, anchor = self._beside(a, b, text)
            parts.append(
                f'<text class="label {kind}"{_of(text)} x="{at:g}" y="{lower + 4:g}" '
                f'text-anchor="{anchor}">{words(_short(text))}</text>'
            )
        return "".join(parts)


def _short(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"


def _of(name: str) -> str:
    return f' data-of="{words(name)}"' if name else ""
