"""CSV text cut into blocks of whole records, and blocks into records with their lines."""

import csv
import io
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO, NamedTuple

import numpy as np

from polyplane.data.careful_reading import parts_up_to, read_up_to
from polyplane.data.chunks import Array, DataError
from polyplane.data.formats.csv.fields import count_line_ends, last_record_end
from polyplane.data.formats.text.numbers import PADDING
from polyplane.engine.jit import jit

__all__ = [
    "Block",
    "Blocks",
    "Record",
    "after",
    "block_of",
    "delimiter_of",
    "end_of_records",
    "first_long_field",
    "has_stray_quotes",
    "head_of",
    "joined",
    "records_of",
]

BLOCK_BYTES = 1 << 20
BLOCKS_TOGETHER = 8
LONGEST_RECORD = 1 << 26
DELIMITERS = ",", ";", "\t"
ENOUGH_LINES = 20  # to see that quotes mean nothing
RECORDS_TRIED = 20  # to find the delimiter
LOOKED_AT = 1 << 13  # bytes, for the end of a record
MARKS_OF_UTF16 = b"\xff\xfe", b"\xfe\xff"
QUOTE, LINE_FEED, CARRIAGE_RETURN = b'"\n\r'
AFTER_TEXT = b"\n" + bytes(PADDING)  # ends a last line, and lets compiled code load whole words


class Block(NamedTuple):
    """Whole records, and the number of the line on which they begin.

    They stand in a buffer, so that compiled code can read them where they are: after the last of
    them come either the next records or `AFTER_TEXT`.
    """

    buffer: bytes
    start: int
    stop: int
    line: int

    @property
    def text(self) -> bytes:
        """The records by themselves."""
        return self.buffer[self.start : self.stop]

    def has_text(self) -> bool:
        """Whether they are more than blanks and line ends."""
        few = self.buffer[self.start : min(self.start + LOOKED_AT, self.stop)]
        return bool(few.strip() or self.text.strip())

    def has(self, byte: bytes) -> bool:
        """Whether that byte is in them."""
        return self.buffer.find(byte, self.start, self.stop) >= 0


def block_of(text: bytes, line: int = 1) -> Block:
    """A block of all of the text."""
    return Block(text + AFTER_TEXT, 0, len(text), line)


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
    head = read_up_to(file, BLOCK_BYTES)
    if head.startswith(MARKS_OF_UTF16):
        raise DataError("found UTF-16, expected UTF-8; save the file as UTF-8", path)
    return head.removeprefix(b"\xef\xbb\xbf")


class Blocks:
    """A file as blocks of whole records; one over `LONGEST_RECORD`, or endless, is an error."""

    def __init__(
        self, file: BinaryIO, head: bytes, delimiter: str, path: str, has_quotes: bool = True
    ) -> None:
        self._file, self._head, self._path = file, head, path
        self._delimiter, self._has_quotes = delimiter, has_quotes
        self._n_more = 0  # bytes that are read for a block, besides `BLOCK_BYTES`

    def grow(self) -> None:
        """Make blocks larger, so that what is done once a block is done less often."""
        self._n_more = (BLOCKS_TOGETHER - 1) * BLOCK_BYTES

    def __iter__(self) -> Iterator[Block]:
        rest, parts, line = b"", [self._head], 1
        while rest or any(parts):
            parts += parts_up_to(self._file, self._n_more)
            buffer = b"".join([rest, *parts, AFTER_TEXT])
            size = len(buffer) - len(AFTER_TEXT)
            _check_nul(buffer, len(rest), size, line, self._path)
            parts = parts_up_to(self._file, BLOCK_BYTES)
            end = self._end_of_block(buffer, size, line, is_last=not parts)
            if end:
                yield Block(buffer, 0, end, line)
            rest = buffer[end:size]
            if rest or parts:
                line += _count_lines(buffer, 0, end)

    def _end_of_block(self, buffer: bytes, size: int, line: int, is_last: bool) -> int:
        end, open_quote = _end_of_records(buffer, size, self._delimiter, self._has_quotes)
        if open_quote >= 0 and (is_last or size > LONGEST_RECORD):
            line += _count_lines(buffer, 0, open_quote)
            raise DataError("found a quote that is not closed, expected its end", self._path, line)
        if is_last:
            return size
        if size - end > LONGEST_RECORD:
            raise DataError("found a line of more than 64 MiB, expected CSV", self._path, line)
        return end


def _check_nul(buffer: bytes, start: int, stop: int, line: int, path: str) -> None:
    place = buffer.find(b"\0", start, stop)
    if place >= 0:
        line += _count_lines(buffer, 0, place)
        raise DataError("found a NUL byte, expected UTF-8 text (is this UTF-16?)", path, line)


def _count_lines(buffer: bytes, start: int, stop: int) -> int:
    """How many lines end between two places of a buffer."""
    return int(count_line_ends(np.frombuffer(buffer, np.uint8), start, stop))


def _end_of_records(buffer: bytes, size: int, delimiter: str, has_quotes: bool) -> tuple[int, int]:
    """Where the last whole record ends, and where a quote opens that is not closed, or -1."""
    if not has_quotes or buffer.find(b'"', 0, size) < 0:
        return max(buffer.rfind(b"\n", 0, size), buffer.rfind(b"\r", 0, size - 1)) + 1, -1
    text, end = np.frombuffer(buffer, np.uint8), 0
    if size > LOOKED_AT:
        end = max(0, last_record_end(text, size, ord(delimiter), QUOTE))
    more, opened = _scan(text[end:size], ord(delimiter))  # all of it, where quotes are odd
    return end + more, end + opened if opened >= 0 else -1


def end_of_records(text: bytes, delimiter: str, has_quotes: bool = True) -> int:
    """Where the last whole record of a text ends that begins with one."""
    return _end_of_records(text + AFTER_TEXT, len(text), delimiter, has_quotes)[0]


@jit
def _scan(text: Array, delimiter: int) -> tuple[int, int]:
    """The same where there are quotes: they count only at the beginning of a field."""
    end, opened = 0, -1
    is_start = True  # of a field
    i, n = 0, text.size
    while i < n:
        c = text[i]
        if opened >= 0:
            if c == QUOTE:
                if i + 1 < n and text[i + 1] == QUOTE:
                    i += 1
                else:
                    opened = -1
        elif c == QUOTE and is_start:
            opened, is_start = i, False
        elif c == LINE_FEED or (c == CARRIAGE_RETURN and i + 1 < n and text[i + 1] != LINE_FEED):
            end, is_start = i + 1, True
        else:
            is_start = c == delimiter
        i += 1
    return end, opened


def first_long_field(block: Block, delimiter: str) -> tuple[int, int] | None:
    """The line and the number of lines of the first field that has several; None without one."""
    text = np.frombuffer(block.buffer, np.uint8)[block.start : block.stop]
    start, end = _long_field(text, ord(delimiter))
    if start < 0:
        return None
    first, last = block.start + start, block.start + end
    line = block.line + _count_lines(block.buffer, block.start, first)
    return line, 1 + _count_lines(block.buffer, first, last)


@jit
def _long_field(text: Array, delimiter: int) -> tuple[int, int]:
    """Where the first field in quotes with a line end in it starts and ends, or -1."""
    opened = -1
    is_start, is_long = True, False
    i, n = 0, text.size
    while i < n:
        c = text[i]
        if opened >= 0:
            if c == QUOTE:
                if i + 1 < n and text[i + 1] == QUOTE:
                    i += 1
                elif is_long:
                    return opened, i
                else:
                    opened = -1
            is_long |= c in (LINE_FEED, CARRIAGE_RETURN)
        elif c == QUOTE and is_start:
            opened, is_start = i, False
        else:
            is_start = c in (delimiter, LINE_FEED, CARRIAGE_RETURN)
        i += 1
    return -1, -1


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
    """What follows a record of the block."""
    n_lines, n_bytes = record.next_line - block.line, LOOKED_AT
    size = block.stop - block.start
    lines = block.buffer[block.start : block.start + n_bytes].splitlines(keepends=True)
    while len(lines) <= n_lines and n_bytes < size:  # the last may be cut
        n_bytes *= 8
        lines = block.buffer[block.start : block.start + n_bytes].splitlines(keepends=True)
    start = min(block.start + sum(map(len, lines[:n_lines])), block.stop)
    return block._replace(start=start, line=record.next_line)


def has_stray_quotes(head: bytes, delimiter: str) -> bool:
    """Whether quotes between tabs are but characters.

    They are if they join lines that by themselves have equal numbers of fields.
    """
    if delimiter != "\t" or b'"' not in head:
        return False
    text = head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]
    lines = [line for line in text.splitlines() if line.strip()]
    if b'"' not in text or len(lines) < ENOUGH_LINES:
        return False
    block = block_of(text)
    is_open = (
        len(head) < BLOCK_BYTES
        and _end_of_records(block.buffer, block.stop, delimiter, has_quotes=True)[1] >= 0
    )
    if not is_open and first_long_field(block, delimiter) is None:
        return False
    n_fields = {line.count(delimiter.encode()) for line in lines}
    return len(n_fields) == 1 and n_fields != {0}


def _first_widths(head: bytes, delimiter: str) -> list[int]:
    """How many fields the first records have; none where they cannot be read."""
    if delimiter.encode() not in head:
        return []
    lines = io.TextIOWrapper(io.BytesIO(head), "utf-8", "replace", newline="")
    try:
        records = filter(None, csv.reader(lines, delimiter=delimiter))
        return [len(fields) for fields in islice(records, RECORDS_TRIED)]
    except csv.Error:
        return []


def delimiter_of(head: bytes) -> str:
    """That which gives most of the first records the same number of fields, and most fields."""
    few = head[:LOOKED_AT]
    lines = [] if b'"' in few else list(filter(None, few.splitlines()))

    def evenness(delimiter: str) -> tuple[int, int]:
        if len(lines) > RECORDS_TRIED:  # the last may be cut; without quotes they are records
            widths = [line.count(delimiter.encode()) + 1 for line in lines[:RECORDS_TRIED]]
        else:
            widths = _first_widths(head, delimiter)
        ((width, count),) = Counter(widths).most_common(1) or [(0, 0)]
        return (count, width) if width > 1 else (0, 0)

    return max(DELIMITERS, key=evenness)
