"""A curve in a terminal: a line for each value, a mark where its error stands."""

import math
from collections.abc import Callable, Sequence

__all__ = ["curve"]

NARROWEST = 8


def _as_share(error: float) -> str:
    return f"{error:.2%}"


def curve(
    points: Sequence[tuple[str, float, float]],
    width: int,
    is_ascii: bool = False,
    in_words: Callable[[float], str] = _as_share,
) -> list[str]:
    """Lines of text for points of name, error and standard error; errors grow to the right.

    It may be another number than an error; where it is not known, there is no mark.
    """
    mark, line, left, right = ("o", "-", "|", "|") if is_ascii else ("●", "─", "├", "┤")
    names = max(len(name) for name, _, _ in points)
    known = [spread if math.isfinite(spread) else 0.0 for _, _, spread in points]
    room = max(NARROWEST, width - names - 11)
    ends = [
        (error - spread, error + spread)
        for (_, error, _), spread in zip(points, known, strict=True)
        if math.isfinite(error)
    ]
    low, high = min((a for a, _ in ends), default=0.0), max((b for _, b in ends), default=0.0)

    def place(error: float) -> int:
        return round((error - low) / (high - low) * (room - 1)) if high > low else 0

    lines = []
    for (name, error, _), spread in zip(points, known, strict=True):
        if not math.isfinite(error):
            lines.append(f"{name:>{names}} {' ' * room} {'-':>7}")
            continue
        cells = [" "] * room
        first, last = place(error - spread), place(error + spread)
        cells[first : last + 1] = [line] * (last + 1 - first)
        if last > first:
            cells[first], cells[last] = left, right
        cells[place(error)] = mark
        lines.append(f"{name:>{names}} {''.join(cells)} {in_words(error):>7}".rstrip())
    return lines
