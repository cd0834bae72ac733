"""A curve in a terminal: a line for each value, a mark where its error stands."""

import math
from collections.abc import Sequence

__all__ = ["curve"]

NARROWEST = 8


def curve(
    points: Sequence[tuple[str, float, float]], width: int, is_ascii: bool = False
) -> list[str]:
    """Lines of text for points of name, error and standard error; errors grow to the right."""
    mark, line, left, right = ("o", "-", "|", "|") if is_ascii else ("●", "─", "├", "┤")
    names = max(len(name) for name, _, _ in points)
    known = [spread if math.isfinite(spread) else 0.0 for _, _, spread in points]
    room = max(NARROWEST, width - names - 11)
    low = min(error - spread for (_, error, _), spread in zip(points, known, strict=True))
    high = max(error + spread for (_, error, _), spread in zip(points, known, strict=True))

    def place(error: float) -> int:
        return round((error - low) / (high - low) * (room - 1)) if high > low else 0

    lines = []
    for (name, error, _), spread in zip(points, known, strict=True):
        cells = [" "] * room
        first, last = place(error - spread), place(error + spread)
        cells[first : last + 1] = [line] * (last + 1 - first)
        if last > first:
            cells[first], cells[last] = left, right
        cells[place(error)] = mark
        lines.append(f"{name:>{names}} {''.join(cells)} {error:7.2%}".rstrip())
    return lines
