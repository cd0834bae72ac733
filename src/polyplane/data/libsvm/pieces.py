"""A whole file of LIBSVM text, a piece at a time.

The entries of all pieces lie one after the other in one pair of arrays, whose size is guessed from
the first lines and the size of the file: where the guess is right, nothing is copied.
"""

import io
import os
from typing import Any, BinaryIO

import numpy as np

from polyplane.data.chunks import Array, BadRows, DataError
from polyplane.data.libsvm.block_reader import Part, RowReader, Scratch, room_for
from polyplane.data.libsvm.errors import width_problem
from polyplane.data.libsvm.lines import measure
from polyplane.data.libsvm.state import Table
from polyplane.data.text.blocks import TextBlock, TextBlocks

__all__ = ["read_pieces"]

FIRST_PIECE, PIECE = 1 << 18, 1 << 20  # bytes
ALL_ROWS = 1 << 62
SPARE = 1.05  # the first lines may have fewer entries than others


def _size_of(file: Any) -> int:
    """Bytes left in the file, as far as that can be known beforehand."""
    if isinstance(file, io.BytesIO):
        position = file.tell()
        size = file.seek(0, os.SEEK_END)
        file.seek(position)
        return size - position
    try:
        return os.fstat(file.fileno()).st_size
    except (AttributeError, OSError):
        return 0


class _EntryRoom:
    """Hands out consecutive parts of one pair of arrays, and of a larger pair when it is full."""

    def __init__(self, n_bytes: int) -> None:
        self._bytes_left, self._used = n_bytes, 0
        self.columns, self.values = np.empty(0, np.int32), np.empty(0, np.float32)

    def take(self, n_entries: int, n_bytes: int) -> tuple[Array, Array]:
        """Room for the entries of a piece of so many bytes."""
        if self._used + n_entries > self.columns.size:
            share = max(1.0, SPARE * self._bytes_left / n_bytes)
            size = max(int(n_entries * share), 2 * self.columns.size)
            self.columns, self.values = np.empty(size, np.int32), np.empty(size, np.float32)
            self._used = 0
        room = slice(self._used, self._used + n_entries)
        self._used += n_entries
        self._bytes_left -= n_bytes
        return self.columns[room], self.values[room]

    def together(self, parts: list[Part]) -> tuple[Array, Array]:
        """The entries of all parts, without what was left free between them."""
        n_entries = sum(part.columns.size for part in parts)
        if any(part.columns.base is not self.columns for part in parts):
            return (
                np.concatenate([part.columns for part in parts]),
                np.concatenate([part.values for part in parts]),
            )
        end = 0
        for part in parts:
            place = slice(end, end := end + part.columns.size)
            if self.columns[place].ctypes.data != part.columns.ctypes.data:
                self.columns[place], self.values[place] = part.columns, part.values
        return self.columns[:n_entries], self.values[:n_entries]


class _Pieces:
    """The pieces of a file that have been read."""

    def __init__(self, file: BinaryIO, path: str, bad: BadRows, **settings: Any) -> None:
        self._text, self._bad, self._settings = TextBlocks(file, path), bad, settings
        self._n_lines = 0
        self._room = _EntryRoom(_size_of(file))
        self._parts: list[Part] = []

    def read(self) -> None:
        """Read all pieces, small ones until a row settles the kind of the labels."""
        block, scratch = TextBlock(FIRST_PIECE), Scratch()
        while self._text.fill(block):
            is_open = self._settings["text_labels"] is None
            reader = self._reader(block, scratch)
            reader.parse(block, block.end, ALL_ROWS)
            self._parts.append(reader.take())
            if is_open and reader.has_rows:
                self._settings["text_labels"] = reader.text_labels is True
                block = TextBlock(PIECE)

    def _reader(self, block: TextBlock, scratch: Scratch) -> RowReader:
        """A reader with room for the rows of the block."""
        reader = RowReader(self._text.path, bad=self._bad, scratch=scratch, **self._settings)
        _, n_lines, n_colons = measure(block.array, block.position, block.end, ALL_ROWS)
        labels, starts, _, _ = room_for(n_lines, 0)
        room = self._room.take(n_colons, block.end - block.position)
        reader.table = Table(labels, starts, *room)
        reader.skip_lines(self._n_lines)
        self._n_lines += n_lines
        return reader

    def whole(self) -> Part:
        """All parts as one."""
        base = min((part.base for part in self._parts), default=1)  # of rows left out, too
        parts = [part for part in self._parts if part.starts.size > 1] or self._parts[:1]
        for part in parts:
            if part.base > base:
                part.columns[:] += part.base - base
        wide = [part for part in parts if part.n_columns > 0]
        n_columns = max((part.n_columns + part.base - base for part in wide), default=0)
        width = self._settings["n_features"]
        if width is not None and n_columns > width:
            raise DataError(width_problem(n_columns - 1 + base, base, width), self._text.path)
        columns, values = self._room.together(parts)
        labels = np.concatenate([part.labels for part in parts]) if parts else np.empty(0)
        return Part(labels, _joined_starts(parts), columns, values, base, n_columns)


def _joined_starts(parts: list[Part]) -> Array:
    """Where the rows of all parts start, one part after the other."""
    starts = np.zeros(1 + sum(part.starts.size - 1 for part in parts), np.int64)
    row = 0
    for part in parts:
        place = slice(row + 1, row + part.starts.size)
        np.add(part.starts[1:], starts[row], out=starts[place])
        row += part.starts.size - 1
    return starts


def read_pieces(file: BinaryIO, path: str, bad: BadRows, **settings: int | bool | None) -> Part:
    """All rows of the file; settings are those of `RowReader`."""
    pieces = _Pieces(file, path, bad, **settings)
    pieces.read()
    return pieces.whole()
