"""A few rows opened together, so that several models may visit them one after the other.

CSR rows are read where they lie. Rows of other kinds are opened on a page that holds one of them,
and are written down from there.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from polyplane.engine.jit import chosen_by_type, inlined
from polyplane.engine.records import array, filled, spans_function
from polyplane.engine.rows.storage import CsrPage, open_row, value_at
from polyplane.engine.tiles import at, put

__all__ = [
    "RowsAtHand",
    "no_rows_at_hand",
    "open_some",
    "page_at_hand",
    "spans_at_hand",
    "with_more_entries",
]

MOST_ROWS = 64  # at a time: those of 16 to 256 are alike, more would not stay near the processor
FIRST_ENTRIES = 1 << 14  # room for as many; a longer row asks for more
NO_ROOM = -1


class RowsAtHand(NamedTuple):
    """Where the rows are, and the entries of those that are written down."""

    index: Annotated[Any, array(np.int32, "entry")]
    value: Annotated[Any, array(np.float32, "entry")]
    first: Annotated[Any, array(np.int64, "row")]  # entry of each row
    end: Annotated[Any, array(np.int64, "row")]
    ahead: Annotated[Any, array(np.int64, "row")]  # see `open_row`


_, spans_at_hand = spans_function(RowsAtHand, n_entries="record.index.size")


def no_rows_at_hand() -> RowsAtHand:
    """None yet."""
    return filled(RowsAtHand, entry=FIRST_ENTRIES, row=MOST_ROWS)


def with_more_entries(hand: RowsAtHand) -> RowsAtHand:
    """Room for a row that was too long."""
    return filled(RowsAtHand, entry=2 * hand.index.size, row=MOST_ROWS)


def _csr_page(page: Any, hand: Any) -> Any:
    return page


def _written_page(page: Any, hand: Any) -> Any:
    return CsrPage(hand.index, hand.value, page.constant, hand.first)


def _keep_csr(page: Any, a: Any, b: Any, n: Any, hand: Any) -> Any:
    return a


def _write_down(page: Any, a: Any, b: Any, n: Any, hand: Any) -> Any:
    if n + b - a > hand.n_entries:
        return NO_ROOM
    for j in range(b - a):
        put(hand.index, n + j, np.int32(at(page.index, a + j)))
        put(hand.value, n + j, value_at(page, a + j))
    return n


def _csr_ahead(page: Any, ahead: Any) -> Any:
    return ahead


def _nothing_ahead(page: Any, ahead: Any) -> Any:
    return 0


_BODIES: dict[str, tuple[Any, Any]] = {
    "page_at_hand": (_csr_page, _written_page),
    "keep_row": (_keep_csr, _write_down),
    "still_ahead": (_csr_ahead, _nothing_ahead),
}


def _body(word: str, page: Any) -> Any:
    return _BODIES[word][type(page) is not CsrPage]


def page_at_hand(page: Any, hand: Any) -> Any:
    """The page on which rows at hand are read."""
    return _body("page_at_hand", page)(page, hand)


def keep_row(page: Any, a: Any, b: Any, n: Any, hand: Any) -> Any:
    """Where the opened row begins on the page at hand, of which n entries are taken; or NO_ROOM."""
    return _body("keep_row", page)(page, a, b, n, hand)


def still_ahead(page: Any, ahead: Any) -> Any:
    """Where a later row is to be asked for while this one is scored."""
    return _body("still_ahead", page)(page, ahead)


for _word in (page_at_hand, keep_row, still_ahead):
    _of_csr, _of_others = _BODIES[_word.__name__]
    chosen_by_type(_word, {CsrPage: _of_csr}, _of_others)


@inlined
def open_some(page: Any, order: Any, done: Any, rows_ahead: Any, hand: Any) -> Any:
    """Open the next entries of `order` from `done` on; return up to where, `done` without room."""
    n, k, last = 0, done, order.size - 1
    while k < order.size and k - done < MOST_ROWS:
        a, b, ahead = open_row(page, order[k], order[min(k + rows_ahead, last)])
        first = keep_row(page, a, b, n, hand)
        if first == NO_ROOM:
            break
        n = first + b - a
        put(hand.first, k - done, first)
        put(hand.end, k - done, n)
        put(hand.ahead, k - done, still_ahead(page, ahead))
        k += 1
    return k
