"""Blocks of CSV text read by compiled code, numbers and texts alike.

Rules and messages are those of the slower ways: a block with anything odd in it is refused.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from polyplane.data.chunks import Array
from polyplane.data.formats.csv.columns import ODD, Columns, read_columns
from polyplane.data.formats.csv.dictionaries import NOT_ASCII, PLAIN, Dictionaries
from polyplane.data.formats.csv.fields import NO_QUOTE, fields_of
from polyplane.data.formats.csv.records import Block
from polyplane.data.table.texts import Texts, stripped

__all__ = ["BlockReader", "Parsed"]

IN_NUMBERS = "0123456789+-.eE"  # that part no fields here
QUOTE, LINE_FEED = b'"\n'


class Parsed(NamedTuple):
    """Rows of a block by column."""

    numbers: Array  # NaN where there is none
    y: Array  # labels that are numbers
    texts: dict[int, Texts]  # by position
    is_whole: bool  # no number lacks


class BlockReader:
    """Reads the columns that are numbers, that which is a label and a number, and those of text."""

    def __init__(
        self,
        width: int,
        delimiter: str,
        has_quotes: bool,
        label: int | None,
        texts: Sequence[int],
    ) -> None:
        self._width, self._delimiter, self._has_quotes = width, delimiter, has_quotes
        self._labels = np.array([] if label is None else [label], np.int64)
        self._texts = np.array(texts, np.int64)
        self._tables = Dictionaries(len(texts))

    def read(self, block: Block, numbers: Sequence[int | None]) -> Parsed | None:
        """Rows with a number for each of some positions, or room for one; None if refused."""
        self._tables.forget_many()
        found = None if self._delimiter in IN_NUMBERS else self._read(block, numbers)
        if found is None:  # there may be texts of rows that are bad
            self._tables = Dictionaries(self._texts.size)
        return found

    def _read(self, block: Block, numbers: Sequence[int | None]) -> Parsed | None:
        text, size = np.frombuffer(block.buffer, np.uint8)[block.start :], block.stop - block.start
        if size and text[size - 1] != LINE_FEED and text[size] == LINE_FEED:
            size += 1  # the end of the last line, or the second half of it
        quote = QUOTE if self._has_quotes and block.has(b'"') else NO_QUOTE
        fields = fields_of(text, size, self._width, ord(self._delimiter), quote)
        if fields is None:
            return None
        n_rows = fields.firsts.size
        pairs = [(place, k) for k, place in enumerate(numbers) if place is not None]
        columns = Columns(np.array(pairs, np.int64).reshape(-1, 2), self._labels, self._texts)
        X = np.empty((n_rows, len(numbers)), np.float32)
        y = np.empty(n_rows if self._labels.size else 0)
        codes = np.empty((self._texts.size, n_rows), np.int32)
        row, has_gaps = 0, False
        while row < n_rows:
            row, column, lacks = read_columns(
                text, fields, row, columns, quote, self._tables.tables, X, y, codes
            )
            has_gaps |= lacks
            if row < n_rows and column == ODD:
                return None
            if row < n_rows:
                self._tables.make_room(column)
        try:
            texts = dict(zip(self._texts.tolist(), self._texts_of(codes), strict=True))
        except pa.ArrowInvalid:  # other bytes than UTF-8
            return None
        return Parsed(X, y, texts, not has_gaps)

    def _texts_of(self, codes: Array) -> list[Texts]:
        """The texts of each column."""
        texts, tables = [], self._tables
        is_doubled = self._has_quotes and tables.has(b'"')  # for they stand in fields in quotes
        for values, oddness, own in zip(tables.values(), tables.oddness(), codes, strict=True):
            if oddness == NOT_ASCII:
                values.validate(full=True)
            plain = pc.replace_substring(values, '""', '"') if is_doubled else values
            texts.append(Texts(plain, own) if oddness == PLAIN else stripped(plain, own))
        return texts
