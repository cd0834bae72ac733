"""A file of text as blocks of whole lines, in padded buffers that compiled code can read."""

from typing import BinaryIO

import numpy as np

from polyplane.data.chunks import Array, DataError
from polyplane.data.formats.libsvm.numbers import PADDING

__all__ = ["TextBlock", "TextBlocks"]

LONGEST_LINE = 1 << 30
FRONT = 8  # compiled code looks that many bytes back
UTF8_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class TextBlock:
    """Whole lines: the bytes from `first` to `end`; those before `position` have been read."""

    def __init__(self, size: int) -> None:
        self.first = self.position = self.end = FRONT
        self._allocate(size)

    def _allocate(self, size: int) -> None:
        self.bytes = bytearray(FRONT + size + PADDING)
        self.array: Array = np.frombuffer(self.bytes, np.uint8)
        self.size = size

    def grow(self) -> None:
        """Make twice the room; what is there stays."""
        before = self.bytes
        self._allocate(2 * self.size)
        self.bytes[: len(before)] = before

    def line_at(self, position: int) -> tuple[int, bytes]:
        """Where the line around a position starts, and its text without the newline."""
        start = max(self.bytes.rfind(b"\n", 0, position) + 1, self.first)
        return start, bytes(self.bytes[start : self.bytes.index(b"\n", position)])


class TextBlocks:
    """Cuts a file at line ends."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.path = path
        self._file, self._rest, self._is_first = file, b"", True
        self._size = 0  # of the largest block, so that it does not matter which one is filled

    def fill(self, block: TextBlock) -> bool:
        """Put the next lines into the block; False where the file has ended."""
        n_rest = len(self._rest)
        while block.size <= n_rest or block.size < self._size:
            block.grow()
        block.bytes[FRONT : FRONT + n_rest] = self._rest
        filled = self._read_lines(block, FRONT + n_rest)
        self._rest, self._size = bytes(block.bytes[block.end : filled]), block.size
        block.position = block.first = FRONT
        if self._is_first:
            self._is_first = False
            self._skip_mark(block)
        return block.end > FRONT

    def _read_lines(self, block: TextBlock, filled: int) -> int:
        """Read until the block is full or the file ends; set its end; return where text ends."""
        while True:
            room = memoryview(block.bytes)[filled : FRONT + block.size]
            n = self._file.readinto(room)  # type: ignore[attr-defined]
            if not n:
                if filled > FRONT and block.bytes[filled - 1] != 10:
                    block.bytes[filled] = 10
                    filled += 1
                block.end = filled
                return filled
            newline = block.bytes.rfind(b"\n", filled, filled + n)
            filled += n
            if newline >= 0:
                block.end = newline + 1
                return filled
            if filled == FRONT + block.size:
                if block.size >= LONGEST_LINE:
                    raise DataError(
                        f"a line is longer than {LONGEST_LINE:,} bytes: is this text?", self.path
                    )
                block.grow()

    def _skip_mark(self, block: TextBlock) -> None:
        if block.bytes.startswith(UTF16_MARKS, FRONT):
            raise DataError(
                "the text is UTF-16: turn it to UTF-8 first, with `iconv -f utf-16 -t utf-8`",
                self.path,
            )
        if block.bytes.startswith(UTF8_MARK, FRONT):
            block.position = block.first = FRONT + len(UTF8_MARK)
