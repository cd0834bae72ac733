"""CSV text cut into blocks of whole records, and blocks into records with their lines."""

import csv
import io
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO, NamedTuple

import numpy as np

from polyplane.data.careful_reading import read_up_to
from polyplane.data.chunks import Array, DataError
from polyplane.engine.jit import jit

__all__ = [
    "Block",
    "Record",
    "after",
    "blocks_of",
    "count_lines",
    "delimiter_of",
    "first_long_field",
    "has_stray_quotes",
    "head_of",
    "in_larger_blocks",
    "records_of",
    "without_padding",
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


class Block(NamedTuple):
    """Whole records, and the number of the line on which they begin."""

    text: bytes
    line: int


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


def blocks_of(
    file: BinaryIO, head: bytes, delimiter: str, path: str, has_quotes: bool = True
) -> Iterator[Block]:
    """Blocks of whole records; a record over `LONGEST_RECORD`, or never ending, is an error."""
    text, line = head, 1
    while text:
        _check_nul(text, line, path)
        more = read_up_to(file, BLOCK_BYTES)
        end, open_quote = _end_of_records(text, delimiter, has_quotes)
        if open_quote >= 0 and (not more or len(text) > LONGEST_RECORD):
            line += count_lines(text[:open_quote])
            raise DataError("found a quote that is not closed, expected its end", path, line)
        if not more:
            end = len(text)
        elif len(text) - end > LONGEST_RECORD:
            raise DataError("found a line of more than 64 MiB, expected CSV", path, line)
        if end:
            yield Block(text[:end], line)
            line += count_lines(text[:end])
        text = text[end:] + more


def in_larger_blocks(blocks: Iterator[Block]) -> Iterator[Block]:
    """Several blocks as one, so that what is done once a block is done less often."""
    while some := list(islice(blocks, BLOCKS_TOGETHER)):
        yield Block(b"".join(block.text for block in some), some[0].line)


def _check_nul(text: bytes, line: int, path: str) -> None:
    place = text.find(b"\0")
    if place >= 0:
        line += count_lines(text[:place])
        raise DataError("found a NUL byte, expected UTF-8 text (is this UTF-16?)", path, line)


def count_lines(text: bytes) -> int:
    """How many lines end in the text, by LF, CRLF or CR."""
    letters = np.frombuffer(text, np.uint8)
    is_feed = letters == LINE_FEED
    n_lines = int(np.count_nonzero(is_feed))
    if b"\r" in text:
        is_return = letters == CARRIAGE_RETURN
        n_lines += int(np.count_nonzero(is_return)) - int(
            np.count_nonzero(is_return[:-1] & is_feed[1:])
        )
    return n_lines


def _end_of_records(text: bytes, delimiter: str, has_quotes: bool) -> tuple[int, int]:
    """Where the last whole record ends, and where a quote opens that is not closed, or -1."""
    if has_quotes and b'"' in text:
        return _scan(np.frombuffer(text, np.uint8), ord(delimiter))
    return max(text.rfind(b"\n"), text.rfind(b"\r", 0, -1)) + 1, -1


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
    start, end = _long_field(np.frombuffer(block.text, np.uint8), ord(delimiter))
    if start < 0:
        return None
    return block.line + count_lines(block.text[:start]), 1 + count_lines(block.text[start:end])


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
    lines = block.text[:n_bytes].splitlines(keepends=True)
    while len(lines) <= n_lines and n_bytes < len(block.text):  # the last may be cut
        n_bytes *= 8
        lines = block.text[:n_bytes].splitlines(keepends=True)
    return Block(block.text[sum(map(len, lines[:n_lines])) :], record.next_line)


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
    is_open = len(head) < BLOCK_BYTES and _end_of_records(text, delimiter, True)[1] >= 0
    if not is_open and first_long_field(Block(text, 1), delimiter) is None:
        return False
    n_fields = {line.count(delimiter.encode()) for line in lines}
    return len(n_fields) == 1 and n_fields != {0}


def without_padding(text: bytes, delimiter: str) -> bytes:
    """The same fields without blanks around them, of text without quotes."""
    blanks = b" \t".replace(delimiter.encode(), b"")
    out = np.empty(len(text), np.uint8)
    n = _strip(np.frombuffer(text, np.uint8), ord(delimiter), blanks[0], out)
    return out[:n].tobytes()


@jit
def _strip(text: Array, delimiter: int, blank: int, out: Array) -> int:
    """Copy all but blanks next to a delimiter or a line end; return how many bytes are left.

    A line of nothing but blanks is a record, unlike an empty one: it keeps a blank.
    """
    n, field, line = 0, 0, 0  # written, and where field and line begin there
    is_padded = False
    for c in text:
        if c in (delimiter, LINE_FEED, CARRIAGE_RETURN):
            while n > field and out[n - 1] == blank:
                n -= 1
            if c != delimiter:
                if n == line and is_padded:
                    out[n] = blank
                    n += 1
                line, is_padded = n + 1, False
            out[n] = c
            n += 1
            field = n
        elif c != blank or n > field:
            out[n] = c
            n += 1
        else:
            is_padded = True
    while n > field and out[n - 1] == blank:
        n -= 1
    if n == line and is_padded:
        out[n] = blank
        n += 1
    return n


def delimiter_of(head: bytes) -> str:
    """That which gives most of the first records the same number of fields, and most fields."""

    def evenness(delimiter: str) -> tuple[int, int]:
        lines = io.TextIOWrapper(io.BytesIO(head), "utf-8", "replace", newline="")
        try:
            records = filter(None, csv.reader(lines, delimiter=delimiter))
            widths = [len(fields) for fields in islice(records, RECORDS_TRIED)]
        except csv.Error:
            return 0, 0
        ((width, count),) = Counter(widths).most_common(1) or [(0, 0)]
        return (count, width) if width > 1 else (0, 0)

    return max(DELIMITERS, key=evenness)
