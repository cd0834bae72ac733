"""A whole file of LIBSVM text, a piece at a time, by threads that take pieces in turn.

The entries of all pieces lie one after the other in one pair of arrays, whose size is guessed from
the first lines and the size of the file: where the guess is right, nothing is copied.
"""

import contextlib
import io
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, BinaryIO

import numpy as np

from polyplane.data.chunks import Array, BadRows, DataError
from polyplane.data.formats.libsvm.block_reader import Part, RowReader, Scratch, room_for
from polyplane.data.formats.libsvm.errors import width_problem
from polyplane.data.formats.libsvm.lines import measure
from polyplane.data.formats.libsvm.state import Table
from polyplane.data.formats.text.blocks import TextBlock, TextBlocks

__all__ = ["read_pieces"]

FIRST_PIECE, PIECE = 1 << 18, 1 << 20  # bytes
ALL_ROWS = 1 << 62
MOST_THREADS = 4  # pieces are filled and measured by one thread at a time, which is a tenth of it
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


class _Piece:
    """Lines of a file: in the end their rows, or the error that they are."""

    def __init__(self, skips: bool) -> None:
        self.bad = BadRows(skips)
        self.part: Part | None = None
        self.error: BaseException | None = None


class _Pieces:
    """The pieces of a file, in its order.

    A thread that takes the next one learns here all that depends on those before it: the number
    of its first line, and where its entries go. It then reads on as if there were no others.
    """

    def __init__(self, file: BinaryIO, path: str, bad: BadRows, **settings: Any) -> None:
        self._text, self._bad, self._settings = TextBlocks(file, path), bad, settings
        self._lock, self._is_over = Lock(), False
        self._n_bytes, self._n_lines = _size_of(file), 0
        self._room = _EntryRoom(self._n_bytes)
        self._pieces: list[_Piece] = []

    def read(self, n_threads: int) -> None:
        """Read all pieces, small ones by this thread until a row settles the kind of the labels."""
        block, scratch = TextBlock(FIRST_PIECE), Scratch()
        while self._settings["text_labels"] is None:
            if not self._read_next(block, scratch):
                return
        with ThreadPoolExecutor(MOST_THREADS) as pool:
            try:
                for _ in range(1, self._worth_threads(n_threads)):
                    pool.submit(self._read_on)
                self._read_on()
            finally:
                self._is_over = True  # also by Ctrl-C, of which only this thread hears

    def _worth_threads(self, n_threads: int) -> int:
        """One a piece at most, and one where Python reads the labels, which are text."""
        n_pieces = self._n_bytes // PIECE if self._n_bytes else MOST_THREADS
        return 1 if self._settings["text_labels"] else min(n_threads, n_pieces, MOST_THREADS)

    def _read_on(self) -> None:
        block, scratch = TextBlock(PIECE), Scratch()
        while self._read_next(block, scratch):
            pass

    def _read_next(self, block: TextBlock, scratch: Scratch) -> bool:
        """Read the next piece; False where there is none."""
        reader, piece = None, _Piece(self._bad.skips)
        with self._lock:
            if self._is_over:
                return False
            self._pieces.append(piece)
            with self._kept_error(piece):
                reader = self._next_reader(block, scratch, piece.bad)
        if reader is None:
            return False
        with self._kept_error(piece):
            reader.parse(block, block.end, ALL_ROWS)
            piece.part = reader.take()
            if reader.has_rows and self._settings["text_labels"] is None:
                self._settings["text_labels"] = reader.text_labels is True
        return True

    @contextlib.contextmanager
    def _kept_error(self, piece: _Piece) -> Iterator[None]:
        """An error is kept, since a piece before this one may hold another; no more are begun."""
        try:
            yield
        except BaseException as error:
            piece.error, self._is_over = error, True

    def _next_reader(self, block: TextBlock, scratch: Scratch, bad: BadRows) -> RowReader | None:
        """A reader with room for the next rows, which are put into the block; None at the end."""
        if not self._text.fill(block):
            self._is_over = True
            return None
        reader = RowReader(self._text.path, bad=bad, scratch=scratch, **self._settings)
        _, n_lines, n_colons = measure(block.array, block.position, block.end, ALL_ROWS)
        labels, starts, _, _ = room_for(n_lines, 0)
        room = self._room.take(n_colons, block.end - block.position)
        reader.table = Table(labels, starts, *room)
        reader.skip_lines(self._n_lines)
        self._n_lines += n_lines
        return reader

    def parts(self) -> list[Part]:
        """What has been read; the first error of the file is raised, rows before it are counted."""
        for piece in self._pieces:
            self._bad.add(piece.bad)
            if piece.error is not None:
                raise piece.error
        return [piece.part for piece in self._pieces if piece.part is not None]

    def whole(self) -> Part:
        """All parts as one."""
        found = self.parts()
        base = min((part.base for part in found), default=1)  # of rows left out, too
        parts = [part for part in found if part.starts.size > 1] or found[:1]
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


def read_pieces(
    file: BinaryIO, path: str, bad: BadRows, n_threads: int, **settings: int | bool | None
) -> Part:
    """All rows of the file; settings are those of `RowReader`."""
    pieces = _Pieces(file, path, bad, **settings)
    pieces.read(n_threads)
    return pieces.whole()
