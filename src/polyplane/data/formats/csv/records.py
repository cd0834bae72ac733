"""CSV text cut into blocks of whole records, and blocks into records with their lines."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO, NamedTuple

import numpy as np

from polyplane.data.careful_reading import parts_up_to, read_up_to
from polyplane.data.chunks import Array, DataError

__all__ = [
    "Block", "Blocks", "Record", "after", "block_of", "delimiter_of", "end_of_records",
    "first_long_field", "has_stray_quotes", "head_of", "joined", "line_ends_in", "records_of",
]  # fmt: skip

FIRST_BYTES = 1 << 20  # of a file, from which a layout is learned that grows
BLOCK_BYTES = 1 << 23
LONGEST_RECORD = 1 << 26
DELIMITERS = ",", ";", "\t"
LINES_TO_JUDGE_QUOTES = 20  # to see that quotes mean nothing
RECORDS_TRIED = 20  # to find the delimiter
LOOKED_AT = 1 << 13  # bytes, for the delimiter and the end of a record
MARKS_OF_UTF16 = b"\xff\xfe", b"\xfe\xff"
QUOTE = b'"'
LINE_FEED, CARRIAGE_RETURN = b"\n\r"


class Block(NamedTuple):
    """Whole records, which stand in a buffer, and the number of the line on which they begin."""

    buffer: bytes
    start: int
    stop: int
    line: int

    @property
    def text(self) -> bytes:
        """The records by themselves."""
        return self.buffer[self.start : self.stop]

    def has_text(self) -> bool:
        """Return True if they are more than blanks and line ends."""
        few = self.buffer[self.start : min(self.start + LOOKED_AT, self.stop)]
        return bool(few.strip() or self.text.strip())

    def has(self, byte: bytes) -> bool:
        """Return True if that byte is in them."""
        return self.buffer.find(byte, self.start, self.stop) >= 0


def block_of(text: bytes, line: int = 1) -> Block:
    """A block of all of the text."""
    return Block(text, 0, len(text), line)


def joined(block: Block, other: Block) -> Block:
    """Both as one block."""
    return block_of(block.text + other.text, block.line)


class Record(NamedTuple):
    """Fields, the line on which they begin and the line after them."""

    line: int
    fields: list[str]
    next_line: int


def head_of(file: BinaryIO, path: str) -> bytes:
    """The first bytes, without the mark of UTF-8."""
    head = read_up_to(file, FIRST_BYTES)
    if head.startswith(MARKS_OF_UTF16):
        raise DataError("found UTF-16, expected UTF-8; save the file as UTF-8", path)
    return head.removeprefix(b"\xef\xbb\xbf")


class Blocks:
    """A file as blocks of whole records; one over `LONGEST_RECORD`, or endless, is an error."""

    def __init__(
        self, file: BinaryIO, head: bytes, delimiter: str, path: str, has_quotes: bool, grows: bool
    ) -> None:
        self._file, self._head, self._path = file, head, path
        self._delimiter, self._has_quotes = delimiter, has_quotes
        self._n_more = 0 if grows else BLOCK_BYTES - FIRST_BYTES  # bytes, behind the head

    def __iter__(self) -> Iterator[Block]:
        rest, parts, line = b"", [self._head, *parts_up_to(self._file, self._n_more)], 1
        while rest or any(parts):
            buffer = b"".join([rest, *parts])
            _check_nul(buffer, len(rest), line, self._path)
            parts = parts_up_to(self._file, BLOCK_BYTES)
            end = self._end_of_block(buffer, line, is_last=not parts)
            if end:
                yield Block(buffer, 0, end, line)
            rest = buffer[end:]
            if rest or parts:
                line += line_ends_in(buffer, 0, end)

    def _end_of_block(self, buffer: bytes, line: int, is_last: bool) -> int:
        end, open_quote = _end_of_records(buffer, self._delimiter, self._has_quotes)
        if open_quote >= 0 and (is_last or len(buffer) > LONGEST_RECORD):
            line += line_ends_in(buffer, 0, open_quote)
            raise DataError("found a quote that is not closed, expected its end", self._path, line)
        if is_last:
            return len(buffer)
        if len(buffer) - end > LONGEST_RECORD:
            raise DataError("found a line of more than 64 MiB, expected CSV", self._path, line)
        return end


def _check_nul(buffer: bytes, start: int, line: int, path: str) -> None:
    place = buffer.find(b"\0", start)
    if place >= 0:
        line += line_ends_in(buffer, 0, place)
        raise DataError("found a NUL byte, expected UTF-8 text (is this UTF-16?)", path, line)


def line_ends_in(text: bytes, start: int, stop: int) -> int:
    """Return how many lines end between two places of a text: with LF, CRLF or CR."""
    n_feeds, n_returns = text.count(b"\n", start, stop), text.count(b"\r", start, stop)
    return n_feeds + n_returns - (text.count(b"\r\n", start, stop) if n_returns else 0)


# ---- quotes ------------------------------------------------------------------------------


def _edges(text: bytes, delimiter: str) -> Array:
    """Return where fields in quotes open and close in turn; the last may be open.

    Quotes count at the beginning of a field alone, and two of them inside are one.
    """
    places = np.flatnonzero(np.frombuffer(text, np.uint8) == ord(QUOTE))
    if not places.size:
        return places
    follows = np.diff(places) == 1
    before = np.frombuffer(b"\n" + text, np.uint8)[places[::2]]  # those that open, if none is stray
    is_start = np.isin(before, [*delimiter.encode(), *b"\r\n"])
    is_start[1:] |= follows[1::2]
    if is_start.all():
        keep = np.ones(places.size, np.bool_)
        second = 2 + 2 * np.flatnonzero(follows[1::2])  # of two inside
        keep[second] = keep[second - 1] = False
        return places[keep]
    field = rb'"(?<![^%b\n\r]")(?:[^"]++|"")*+("?)' % re.escape(delimiter.encode())
    spans = [(one.start(), one.end() - 1 if one[1] else -1) for one in re.finditer(field, text)]
    edges = np.array(spans, np.int64).ravel()
    return edges[: edges.size - (edges[-1:] == -1).sum()]


def _end_of_records(text: bytes, delimiter: str, has_quotes: bool) -> tuple[int, int]:
    """Return where the last whole record ends, and where a quote is not closed, or -1."""
    edges = _edges(text, delimiter) if has_quotes else np.empty(0, np.int64)
    stop = len(text)
    while True:
        end = max(text.rfind(b"\n", 0, stop), text.rfind(b"\r", 0, min(stop, len(text) - 1))) + 1
        n_before = int(np.searchsorted(edges, end))
        if n_before % 2 == 0:
            return end, int(edges[-1]) if edges.size % 2 else -1
        stop = int(edges[n_before - 1])


def end_of_records(text: bytes, delimiter: str, has_quotes: bool = True) -> int:
    """Return where the last whole record of a text ends that begins with one."""
    return _end_of_records(text, delimiter, has_quotes)[0]


def first_long_field(block: Block, delimiter: str) -> tuple[int, int] | None:
    """Return the line and the number of lines of the first field of several; None without one."""
    text = block.text
    edges = _edges(text, delimiter)
    opened, closed = edges[: edges.size // 2 * 2].reshape(-1, 2).T
    letters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero((letters == LINE_FEED) | (letters == CARRIAGE_RETURN))
    is_long = np.searchsorted(ends, opened) < np.searchsorted(ends, closed)
    if not is_long.any():
        return None
    first, last = int(opened[is_long.argmax()]), int(closed[is_long.argmax()])
    return block.line + line_ends_in(text, 0, first), 1 + line_ends_in(text, first, last)


# ---- records -----------------------------------------------------------------------------


def records_of(
    block: Block, delimiter: str, path: str, has_quotes: bool = True
) -> Iterator[Record]:
    """Records that are not blank; bytes that are not UTF-8 stay in them as surrogates."""
    lines = io.TextIOWrapper(io.BytesIO(block.text), "utf-8", "surrogateescape", newline="")
    if has_quotes:
        reader = csv.reader(lines, delimiter=delimiter)
    else:
        reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    line = block.line
    try:
        for fields in reader:
            next_line = block.line + reader.line_num
            if fields:
                yield Record(line, fields, next_line)
            line = next_line
    except csv.Error as error:
        raise DataError(f"found a record that cannot be read: {error}", path, line) from error


def after(block: Block, record: Record) -> Block:
    """Return the part of a block that follows a record."""
    n_lines, n_bytes = record.next_line - block.line, LOOKED_AT
    size = block.stop - block.start
    lines = block.buffer[block.start : block.start + n_bytes].splitlines(keepends=True)
    while len(lines) <= n_lines and n_bytes < size:  # the last may be cut
        n_bytes *= 8
        lines = block.buffer[block.start : block.start + n_bytes].splitlines(keepends=True)
    start = min(block.start + sum(map(len, lines[:n_lines])), block.stop)
    return block._replace(start=start, line=record.next_line)


def has_stray_quotes(head: bytes, delimiter: str) -> bool:
    """Return True if quotes between tabs are but characters.

    They are if they join lines that by themselves have equal numbers of fields.
    """
    if delimiter != "\t" or QUOTE not in head:
        return False
    text = head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]
    lines = [line for line in text.splitlines() if line.strip()]
    if QUOTE not in text or len(lines) < LINES_TO_JUDGE_QUOTES:
        return False
    block = block_of(text)
    is_open = len(head) < FIRST_BYTES and _end_of_records(text, delimiter, has_quotes=True)[1] >= 0
    if not is_open and first_long_field(block, delimiter) is None:
        return False
    n_fields = {line.count(delimiter.encode()) for line in lines}
    return len(n_fields) == 1 and n_fields != {0}


def _first_widths(head: bytes, delimiter: str) -> list[int]:
    """Return the numbers of fields of the first records; none where they cannot be read."""
    if delimiter.encode() not in head:
        return []
    lines = io.TextIOWrapper(io.BytesIO(head), "utf-8", "replace", newline="")
    try:
        records = filter(None, csv.reader(lines, delimiter=delimiter))
        return [len(fields) for fields in islice(records, RECORDS_TRIED)]
    except csv.Error:
        return []


def delimiter_of(head: bytes) -> str:
    """Return the delimiter with which most of the first records have the same number of fields."""
    few = head[:LOOKED_AT]
    lines = [] if QUOTE in few else list(filter(None, few.splitlines()))

    def evenness(delimiter: str) -> tuple[int, int]:
        if len(lines) > RECORDS_TRIED:  # the last may be cut; without quotes they are records
            widths = [line.count(delimiter.encode()) + 1 for line in lines[:RECORDS_TRIED]]
        else:
            widths = _first_widths(head, delimiter)
        ((width, count),) = Counter(widths).most_common(1) or [(0, 0)]
        return (count, width) if width > 1 else (0, 0)

    return max(DELIMITERS, key=evenness)
