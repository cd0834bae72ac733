"""What the loops that read LIBSVM text share with each other and with who calls them."""

from typing import Any, NamedTuple

__all__ = ["LARGEST_INDEX", "STATE_SIZE", "Table"]

# read by compiled code
LARGEST_INDEX = 2**31 - 2

# what a call ends with
DONE, GO_ON, ASK_LABEL, ASK_VALUE, ZERO_INDEX, OUT_OF_ORDER, REPEATED, TOO_WIDE, BAD = range(9)
# where a row stands
BEFORE_LABEL, AFTER_LABEL, AMONG_ENTRIES = range(3)
# places in `state`
(
    POSITION,  # next byte
    END,  # just after the newline of the last line
    UNEVEN_END,  # just after the row that is not for the fastest loop
    LINE,  # lines ended so far
    ROW,  # rows ended so far
    WANTED_ROWS,
    PART,  # where the row stands
    ENTRY,  # entries so far
    PREVIOUS,  # last column of the row, -1 before the first
    IS_UNSORTED,  # a column of the row fell
    BASE,  # what is taken from an index to get its column
    WIDTH,  # columns from this one on are too many
    WIDEST,  # largest column so far
    HAS_TEXT_LABELS,
    TOKEN,  # what a question is about
    TOKEN_END,
    STOP,  # next of the stops of the section
    N_STOPS,
    SECTION_START,
) = range(19)
STATE_SIZE = 19


class Table(NamedTuple):
    """Rows as they are read: labels, and the entries of row i from starts[i] to starts[i + 1]."""

    labels: Any
    starts: Any
    columns: Any
    values: Any
