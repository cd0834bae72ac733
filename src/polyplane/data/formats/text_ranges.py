"""Ranges of text, which is cut after line feeds."""

from collections.abc import Iterator
from typing import BinaryIO

from polyplane.data.formats.csv.records import line_ends_in
from polyplane.data.formats.row_format import Range

__all__ = ["bytes_of", "cuts_of", "lines_before"]

LOOKED_AT = 1 << 16  # bytes at a time, for the end of a line


def cuts_of(file: BinaryIO, size: int, n_bytes: int, least: int = 0) -> list[int]:
    """Return places after line feeds, about `n_bytes` apart, with the beginning and the end."""
    return [0, *_cuts(file, size, n_bytes, least), size]


def _cuts(file: BinaryIO, size: int, n_bytes: int, least: int) -> Iterator[int]:
    last = 0
    for place in range(n_bytes, size - n_bytes // 2, n_bytes):
        if place < max(last, least):
            continue
        file.seek(place)
        while (some := file.read(LOOKED_AT)) and b"\n" not in some:
            place += len(some)
        last = place + some.find(b"\n") + 1
        if not some or last >= size:
            return
        yield last


def bytes_of(part: Range) -> bytes:
    """Return the bytes of a range."""
    with open(part.path, "rb") as file:
        file.seek(part.start)
        return file.read(part.stop - part.start)


def lines_before(part: Range) -> int:
    """Return the number of lines before a range."""
    text = bytes_of(part._replace(start=0, stop=part.start))
    return line_ends_in(text, 0, len(text))
