"""Rows from blocks of LIBSVM text: runs the compiled loops and answers what they ask."""

from collections.abc import Iterator
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from polyplane.data.chunks import Array, BadRows, DataError
from polyplane.data.formats.libsvm.blocks import TextBlock
from polyplane.data.formats.libsvm.errors import (
    entries_of,
    entry_problem,
    label_problem,
    number_pattern,
    repeated_problem,
    shown,
    value_problem,
    width_problem,
    word_at,
)
from polyplane.data.formats.libsvm.lines import (
    AFTER_LABEL,
    ASK_LABEL,
    ASK_VALUE,
    BAD,
    BASE,
    BEFORE_LABEL,
    DONE,
    END,
    ENTRY,
    HAS_TEXT_LABELS,
    IS_UNSORTED,
    LINE,
    OUT_OF_ORDER,
    PART,
    POSITION,
    PREVIOUS,
    REPEATED,
    ROW,
    STATE_SIZE,
    TOKEN,
    TOKEN_END,
    TOO_WIDE,
    WANTED_ROWS,
    WIDEST,
    WIDTH,
    ZERO_INDEX,
    Table,
    parse_lines,
)

__all__ = ["Part", "RowReader"]

NO_WIDTH = 2**31 - 1
SHORTEST_ROW, SHORTEST_ENTRY = 2, 4  # bytes: "1\n" and "1:1 "
GROWTH = 1.125  # of arrays that are full: the system moves large ones without copying them


class Part(NamedTuple):
    """Rows that have been read."""

    labels: Array
    starts: Array
    columns: Array
    values: Array
    n_columns: int


def _with_room(array: Array, used: int, needed: int) -> Array:
    """The array, or its used part in one with more room."""
    if needed <= array.size:
        return array
    if used == 0:
        return np.empty(needed, array.dtype)
    array.resize(max(needed, int(GROWTH * array.size)), refcheck=False)
    return array


def _cut(array: Array, used: int) -> Array:
    """The array without what is not used; its memory is given back."""
    array.resize(used, refcheck=False)
    return array


class RowReader:
    """Reads lines into a table until it is taken; what it knows of the file stays."""

    def __init__(
        self,
        path: str,
        n_features: int | None,
        base: int | None,
        text_labels: bool | None,
        bad: BadRows,
    ) -> None:
        self.path, self.bad, self.stated_base = path, bad, base
        self.text_labels = self._stated_text_labels = text_labels
        self.is_base_settled = base is not None
        self.has_rows = False
        self._state: Any = np.zeros(STATE_SIZE, np.int64)
        self._texts = list[str]()
        self._expected = 0, 0  # rows and entries of the next table
        self._start_table()
        self._state[BASE] = 1 if base is None else base
        self._state[WIDTH] = NO_WIDTH if n_features is None else n_features
        self._state[WIDEST] = -1
        self._state[HAS_TEXT_LABELS] = text_labels is True
        self._answers = {
            ASK_LABEL: self._answer_label,
            ASK_VALUE: self._answer_value,
            ZERO_INDEX: self._answer_zero_index,
            OUT_OF_ORDER: self._put_in_order,
            REPEATED: self._refuse_repeated,
            TOO_WIDE: self._refuse_width,
            BAD: self._refuse_entry,
        }

    @property
    def n_rows(self) -> int:
        """Rows in the table."""
        return int(self._state[ROW])

    def read(self, block: TextBlock, n_rows: int) -> None:
        """Read the block until it ends or the table has so many rows."""
        self._block, state = block, self._state
        self._make_room(block.end - block.position, n_rows)
        state[POSITION], state[END], state[WANTED_ROWS] = block.position, block.end, n_rows
        while (code := parse_lines(block.array, self.table, state)) != DONE:
            self._answers[code]()
        block.position = int(state[POSITION])

    def _start_table(self) -> None:
        """Begin a table without rows."""
        n_rows, n_entries = self._expected
        self.table = Table(
            np.empty(n_rows, np.float64),
            np.zeros(n_rows + 1, np.int64),
            np.empty(n_entries, np.int32),
            np.empty(n_entries, np.float32),
        )

    def _make_room(self, n_bytes: int, n_rows: int) -> None:
        """Make room for whatever so many bytes hold, up to so many rows."""
        rows, entries = self.n_rows, int(self._state[ENTRY])
        most_rows = min(n_rows, rows + n_bytes // SHORTEST_ROW)
        most_entries = entries + n_bytes // SHORTEST_ENTRY
        self.table = Table(
            _with_room(self.table.labels, rows, most_rows),
            _with_room(self.table.starts, rows + 1, most_rows + 1),
            _with_room(self.table.columns, entries, most_entries),
            _with_room(self.table.values, entries, most_entries),
        )

    def take(self) -> Part:
        """The rows of the table, which starts again with none."""
        rows, entries = self.n_rows, int(self._state[ENTRY])
        part = Part(
            np.array(self._texts, str) if self.text_labels else _cut(self.table.labels, rows),
            _cut(self.table.starts, rows + 1),
            _cut(self.table.columns, entries),
            _cut(self.table.values, entries),
            int(self._state[WIDEST]) + 1,
        )
        self.has_rows |= rows > 0
        self._expected, self._texts = (rows, entries), []
        self._start_table()
        self._state[ROW] = self._state[ENTRY] = 0
        return part

    def _error(self, position: int, problem: str) -> DataError:
        start, _ = self._block.line_at(position)
        return DataError(problem, self.path, int(self._state[LINE]) + 1, position - start + 1)

    def _refuse(self, position: int, problem: str) -> None:
        """Hand the row to `bad`; if that lets it pass, go on after it."""
        self.bad.meet(self._error(position, problem))
        state, row = self._state, self.n_rows
        state[ENTRY] = self.table.starts[row]
        state[POSITION] = self._block.bytes.index(b"\n", position) + 1
        state[PART], state[IS_UNSORTED] = BEFORE_LABEL, False
        state[LINE] += 1
        del self._texts[row:]
        if row == 0 and not self.has_rows:  # it has not settled the kind of labels
            self.text_labels = self._stated_text_labels
            state[HAS_TEXT_LABELS] = self.text_labels is True

    def _answer_label(self) -> None:
        """Take a label that is text, or a number that only Python reads to the last bit."""
        position, row = int(self._state[TOKEN]), self.n_rows
        word = word_at(self._block.bytes, position)
        problem = label_problem(word)
        is_number = number_pattern.fullmatch(word) is not None
        if problem is None and not is_number and self.text_labels is None:
            self.text_labels = not (self.has_rows or row > 0)
            self._state[HAS_TEXT_LABELS] = self.text_labels
        if problem is None and not self.text_labels and not (is_number and isfinite(float(word))):
            problem = (
                f"the label {shown(word)} is not a finite number, as labels here are; "
                "if labels are text, state text_labels=True"
            )
        if problem is not None:
            return self._refuse(position, problem)
        if self.text_labels:
            self._texts.append(word.decode())
        else:
            self.table.labels[row] = float(word)
        self._state[PART], self._state[PREVIOUS] = AFTER_LABEL, -1
        self._state[POSITION] = position + len(word)

    def _answer_value(self) -> None:
        """Read a value that lies between two float32, or far out."""
        start, end = int(self._state[TOKEN]), int(self._state[TOKEN_END])
        word = bytes(self._block.bytes[start:end])
        with np.errstate(over="ignore"):
            value = np.float32(float(word))
        if not np.isfinite(value):
            return self._refuse(start, value_problem(word))
        self.table.values[self._state[ENTRY]] = value
        self._state[ENTRY] += 1
        self._state[POSITION] = end

    def _answer_zero_index(self) -> None:
        """Indices start at 0, where that may still be learned."""
        position, state = int(self._state[TOKEN]), self._state
        if self.stated_base is not None:
            return self._refuse(position, "found the index 0, but base=1 was stated: state base=0")
        if self.is_base_settled:
            problem = "found the index 0 after rows read with indices from 1 on: state base=0"
            raise self._error(position, problem)
        self.is_base_settled = True
        self.table.columns[: state[ENTRY]] += 1
        state[BASE] = 0
        state[PREVIOUS] += state[PREVIOUS] >= 0
        state[WIDEST] += state[WIDEST] >= 0
        if state[WIDEST] >= state[WIDTH]:
            raise self._error(position, width_problem(int(state[WIDEST]), 0, int(state[WIDTH])))

    def _put_in_order(self) -> None:
        """Sort the row, unless an index stands twice."""
        row = slice(int(self.table.starts[self.n_rows]), int(self._state[ENTRY]))
        order = np.argsort(self.table.columns[row], kind="stable")
        columns = self.table.columns[row][order]
        repeated = np.flatnonzero(columns[1:] == columns[:-1])
        if repeated.size:
            index = int(columns[repeated[0]] + self._state[BASE])
            places = [p for p, found in self._entries() if found == index]
            return self._refuse(places[1], repeated_problem(index))
        self.table.columns[row], self.table.values[row] = columns, self.table.values[row][order]
        self._state[PREVIOUS] = columns[-1]
        self._state[IS_UNSORTED] = False

    def _entries(self) -> Iterator[tuple[int, int]]:
        """Where the entries of the line stand, and their indices."""
        start, line = self._block.line_at(int(self._state[POSITION]))
        return ((start + offset, index) for offset, index in entries_of(line))

    def _refuse_repeated(self) -> None:
        index = int(self._state[PREVIOUS] + self._state[BASE])
        self._refuse(int(self._state[TOKEN]), repeated_problem(index))

    def _refuse_width(self) -> None:
        base, width = int(self._state[BASE]), int(self._state[WIDTH])
        position, index = next(found for found in self._entries() if found[1] - base >= width)
        self._refuse(position, width_problem(index, base, width))

    def _refuse_entry(self) -> None:
        position = int(self._state[TOKEN])
        offset, problem = entry_problem(word_at(self._block.bytes, position))
        self._refuse(position + offset, problem)
