"""The head of a step, shared by loops that ask every plane about every row."""

from typing import Any

from polyplane.engine.jit import inlined
from polyplane.engine.planes.planes import spans_of, tiles_used
from polyplane.engine.rows.storage import open_row, page_of, score_planes
from polyplane.engine.targets import label_of, spans_of_targets

__all__ = ["ROWS_AHEAD", "opened", "scored"]

ROWS_AHEAD = 4  # rows between asking for one and needing it; 2 to 4 are alike when all is quiet


@inlined
def opened(rows: Any, targets: Any, state: Any) -> Any:
    """Rows, targets and planes as loops read them, and the tiles that planes fill."""
    planes = spans_of(state)
    return page_of(rows), spans_of_targets(targets), planes, tiles_used(planes)


@inlined
def scored(page: Any, goals: Any, planes: Any, tiles: Any, order: Any, k: Any) -> Any:
    """Let all planes score the row at place k of `order`; return it, its label and its entries."""
    i = order[k]
    a, b, ahead = open_row(page, i, order[min(k + ROWS_AHEAD, order.size - 1)])
    score_planes(page, a, b, ahead, planes, tiles)
    return i, label_of(goals, i), a, b
