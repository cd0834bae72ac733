"""LIBSVM text by its rules, a word at a time: slow, plain, and without a line of the reader.

The rules are those at the top of `polyplane.data.formats.libsvm.reader`. A file is bytes; what
comes out is chunks of plain lists, the rows that were left out, and the error that ended the
reading, if any.
"""

import itertools
import math
import re
import struct
from typing import NamedTuple

__all__ = ["Outcome", "Refusal", "read"]

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)
WORD = re.compile(rb"[^ \t\r]+")
LARGEST_INDEX = 2**31 - 2
WHOLE_BELOW = 2**53


class Refusal(Exception):
    """Where a row or a file cannot be read; line and column are counted from 1."""

    def __init__(self, line, column, ends_reading=False):
        super().__init__(line, column)
        self.place, self.ends_reading = (line, column), ends_reading


class Outcome(NamedTuple):
    """What a file holds."""

    chunks: list  # of (width, starts, columns, bytes of the values, labels)
    refused: list  # places of the rows that were left out
    error: tuple | None  # place of what ended the reading


class _File:
    def __init__(self, n_features, base, text_labels, skips, chunk_rows):
        self.n_features, self.skips, self.chunk_rows = n_features, skips, chunk_rows
        self.base, self.is_base_open = (1, True) if base is None else (base, False)
        self.is_base_stated = base is not None
        self.text_labels, self.n_rows, self.widest = text_labels, 0, -1
        self.are_whole = True
        self.rows, self.chunks, self.refused = [], [], []

    def line(self, number, text):
        words = [(m.start(), m[0]) for m in WORD.finditer(text.partition(b"#")[0])]
        if not words:
            return
        try:
            row = self.row(number, words)
        except Refusal as refusal:
            if refusal.ends_reading or not self.skips:
                raise
            self.refused.append(refusal.place)
            return
        self.rows.append(row)
        self.n_rows += 1
        if len(self.rows) == self.chunk_rows:
            self.end_chunk()

    def row(self, number, words):
        at, word = words[0]
        label, is_text = self.label(number, at, word)
        rest = words[1:]
        if rest and re.fullmatch(rb"qid:[0-9]+", rest[0][1]):
            rest = rest[1:]
        entries, places = [], []
        for at, word in rest:
            index, colon, value = word.partition(b":")
            if not colon or not index.isdigit() or int(index) > LARGEST_INDEX:
                raise Refusal(number, at + 1)
            index = int(index)
            if index < self.base:
                self.zero(number, at)
            if entries and entries[-1][0] == index:
                raise Refusal(number, at + 1)
            entries.append((index, self.value(number, at + len(word) - len(value), value)))
            places.append((index, at))
        self.check_indices(number, places)
        if self.text_labels is None:
            self.text_labels = is_text
        entries.sort(key=lambda entry: entry[0])
        if entries:
            self.widest = max(self.widest, entries[-1][0])
        return label, entries

    def label(self, number, at, word):
        is_number = NUMBER.fullmatch(word) is not None
        if not is_number:
            try:
                is_printable = word.decode().isprintable()
            except UnicodeDecodeError:
                is_printable = False
            is_wrong = b":" in word or b"," in word or NOT_FINITE.fullmatch(word)
            if is_wrong or not is_printable:
                raise Refusal(number, at + 1)
        is_text = self.text_labels is True or (self.text_labels is None and not is_number)
        if is_text:
            return word.decode(), True
        if not is_number or not math.isfinite(float(word)):
            raise Refusal(number, at + 1)
        return float(word), False

    def zero(self, number, at):
        """Indices start at 0: what that means for what was read before."""
        if self.is_base_stated:
            raise Refusal(number, at + 1)
        if not self.is_base_open:
            raise Refusal(number, at + 1, ends_reading=True)
        self.base, self.is_base_open = 0, False
        if self.n_features is not None and self.widest >= self.n_features:
            raise Refusal(number, at + 1, ends_reading=True)

    def value(self, number, at, text):
        if not NUMBER.fullmatch(text) or not math.isfinite(float(text)):
            raise Refusal(number, at + 1)
        try:
            return struct.pack("<f", float(text))
        except OverflowError:
            raise Refusal(number, at + 1) from None

    def check_indices(self, number, places):
        """Each index once, and none beyond the stated width."""
        indices = sorted(index for index, _ in places)
        for index, other in itertools.pairwise(indices):
            if index == other:
                at = [at for found, at in places if found == index][1]
                raise Refusal(number, at + 1)
        if self.n_features is not None:
            for index, at in places:
                if index - self.base >= self.n_features:
                    raise Refusal(number, at + 1)

    def end_chunk(self):
        """Hand out the rows so far: their indices are columns from then on."""
        if not self.rows:
            return
        columns = [index - self.base for _, entries in self.rows for index, _ in entries]
        values = b"".join(value for _, entries in self.rows for _, value in entries)
        starts, labels = [0], [label for label, _ in self.rows]
        for _, entries in self.rows:
            starts.append(starts[-1] + len(entries))
        if not self.text_labels:
            is_whole = all(abs(x) < WHOLE_BELOW and x == int(x) for x in labels)
            self.are_whole = self.are_whole and is_whole
            labels = [int(x) for x in labels] if self.are_whole else labels
        found = self.widest - self.base + 1 if self.widest >= 0 else 0
        width = found if self.n_features is None else self.n_features
        self.chunks.append((width, starts, columns, values, labels))
        self.rows = []
        self.is_base_open = self.is_base_open and not columns


def read(text, n_features=None, base=None, text_labels=None, skips=False, chunk_rows=None):
    """All rows of a file, in chunks of so many or in one."""
    file, error = _File(n_features, base, text_labels, skips, chunk_rows), None
    if text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return Outcome([], [], (None, None))
    try:
        for number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
            file.line(number, line)
    except Refusal as refusal:
        error = refusal.place
    else:
        file.end_chunk()
    return Outcome(file.chunks, file.refused, error)
