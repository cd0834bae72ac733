"""CSV text by its rules, a letter at a time: slow, plain, and without a line of the reader.

The rules are those at the top of `polyplane.data.formats.csv.reader`, `table` and `categories`.
What comes out are rows as dictionaries of column and value, labels, the places of rows that were
left out, and what ended the reading, if anything did.
"""

import math
import re
import struct
import zlib
from collections import Counter
from typing import NamedTuple

__all__ = ["Outcome", "Refusal", "read"]

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
NAN = re.compile(r"[+-]?nan(\([a-z0-9_]*\))?", re.IGNORECASE)
INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
MISSING = {
    "", "?", "#N/A", "N/A", "n/a", "NA", "na", "NaN", "nan", "NAN", "-nan", "-NaN", "NULL", "null",
    "Null",
}  # fmt: skip
LOOKED_AT, TRIED = 200, 20
NAMES_OF_LABELS = "label", "class", "target", "y"


class Refusal(Exception):
    """A row, or without a place a file, that cannot be read."""

    def __init__(self, line=None, column=None):
        super().__init__(line, column)
        self.place = line, column


class Outcome(NamedTuple):
    """What a file holds."""

    rows: list  # of {column: bytes of a float32}
    labels: list
    names: list  # of the columns of X
    refused: list  # places of rows
    n_left_out: int
    error: tuple | None
    is_text: list  # for each column of the file
    has_header: bool


def records(text, delimiter):
    """Fields, and the line on which they begin; None after those in which a quote stays open."""
    fields, field, line, start = [], [], 1, 1
    state, i, n = "start", 0, len(text)  # of a field: start, plain, quoted
    while i < n:
        c = text[i]
        is_end = c in "\r\n"
        if c == "\r" and text[i + 1 : i + 2] == "\n":
            c, i = "\r\n", i + 1
        line += is_end
        if state == "quoted":
            if c == '"' and text[i + 1 : i + 2] == '"':
                field.append(c)
                i += 1
            elif c == '"':
                state = "plain"
            else:
                field.append(c)
        elif c == delimiter:
            fields.append("".join(field))
            field, state = [], "start"
        elif is_end:
            if fields or field or state != "start":
                yield start, [*fields, "".join(field)]
            fields, field, state, start = [], [], "start", line
        elif c == '"' and state == "start":
            state = "quoted"
        else:
            field.append(c)
            state = "plain"
        i += 1
    if fields or field or state != "start":
        yield start, [*fields, "".join(field)]
    if state == "quoted":
        yield None


def delimiter_of(text):
    best, found = (0, 0), ","
    for delimiter in ",;\t":
        widths = [len(r[1]) for r in _some(text, delimiter, TRIED) if r is not None]
        if widths:
            width, count = Counter(widths).most_common(1)[0]
            if width > 1 and (count, width) > best:
                best, found = (count, width), delimiter
    return found


def _some(text, delimiter, n):
    found = []
    for record in records(text, delimiter):
        if len(found) == n:
            break
        found.append(record)
    return found


def _present(fields):
    return [field.strip() for field in fields if field.strip() not in MISSING]


def has_header(first, others):
    titles = [title.strip() for title in first]
    if all(title in MISSING for title in titles) or any(map(NUMBER.fullmatch, titles)):
        return False
    rows = [fields for fields in others if len(fields) == len(titles)]
    below = [_present(fields[k] for fields in rows) for k in range(len(titles))]
    for title, column in zip(titles, below, strict=True):
        if title not in MISSING and column and all(map(NUMBER.fullmatch, column)):
            return True
    return all(title not in column for title, column in zip(titles, below, strict=True))


def _is_text(fields):
    present = _present(fields)
    kinds = NUMBER, NAN, INFINITE
    n_texts = sum(not any(kind.fullmatch(field) for kind in kinds) for field in present)
    return 2 * n_texts > len(present) or (n_texts >= 10 and 10 * n_texts > len(present))


def _number(field):
    """A number, None if it is missing; a ValueError if it is neither."""
    field = field.strip(" \t")
    if field in MISSING or NAN.fullmatch(field):
        return None
    if not NUMBER.fullmatch(field) and not INFINITE.fullmatch(field):
        raise ValueError
    return float(field)


def _text(field):
    field = field.encode("utf-8", "surrogateescape").decode("utf-8")  # without its quotes
    return None if field.strip() in MISSING else field.strip()


def _position(column, names, width):
    if isinstance(column, int):
        if not -width <= column < width:
            raise Refusal
        return column % width
    if names is None or names.count(column) != 1:
        raise Refusal
    return names.index(column)


class _Table:
    def __init__(self, names, is_text, label, drop, text_columns, missing, n_hash):
        width = len(is_text)
        if label == "auto":
            lower = [name.lower() for name in names or []]
            known = [lower.index(name) for name in NAMES_OF_LABELS if name in lower]
            self.label = known[0] if known else width - 1
        else:
            self.label = None if label is None else _position(label, names, width)
        forced = {_position(column, names, width) for column in text_columns}
        left_out = {_position(column, names, width) for column in drop} | {self.label}
        self.is_text = [is_text[k] or k in forced for k in range(width)]
        self.used = [k for k in range(width) if k not in left_out]
        if not self.used:
            raise Refusal
        self.source = [names[k] if names else str(k + 1) for k in range(width)]
        self.numbers = [k for k in self.used if not self.is_text[k]]
        self.texts = [k for k in self.used if self.is_text[k]]
        self.missing, self.n_hash = missing, n_hash if self.texts else 0
        self.categories, self.width = {}, width
        self.rows, self.labels, self.refused, self.n_left_out = [], [], [], 0

    def row(self, line, fields):
        if len(fields) != self.width:
            raise Refusal(line, min(len(fields), self.width) + 1)
        values = {}
        for k in sorted([*self.used, *([] if self.label is None else [self.label])]):
            try:
                values[k] = _text(fields[k]) if self.is_text[k] else _number(fields[k])
            except ValueError:
                raise Refusal(line, k + 1) from None
        flaws = [k for k in values if self.flaw(k, values[k])]
        if self.missing == "skip" and None in values.values():
            self.n_left_out += 1
            return
        if flaws:
            raise Refusal(line, flaws[0] + 1)
        self.keep(values)

    def flaw(self, k, value):
        """Whether a value cannot stay."""
        if value is None:
            return k == self.label or self.missing == "error"
        if self.is_text[k]:
            return False
        if k == self.label:
            return math.isinf(value)
        return math.isinf(value) or _single(value) is None

    def keep(self, values):
        row = {}
        for column, k in enumerate(self.numbers):
            single = _single(0.0 if values[k] is None else values[k])
            if not self.texts or struct.unpack("<f", single)[0] != 0:
                row[column] = single
        for k in self.texts:
            if values[k] is None:
                continue
            pair = self.source[k], values[k]
            if self.n_hash:
                column = zlib.crc32("=".join(pair).encode()) % self.n_hash
            else:
                column = self.categories.setdefault(pair, len(self.categories))
            column += len(self.numbers)
            before = struct.unpack("<f", row.get(column, bytes(4)))[0]
            row[column] = struct.pack("<f", before + 1)
        self.rows.append(dict(sorted(row.items())))
        if self.label is not None:
            self.labels.append(values[self.label])

    def names(self):
        texts = [f"{source}={value}" for source, value in self.categories]
        hashed = [f"hash {k}" for k in range(self.n_hash)]
        return [self.source[k] for k in self.numbers] + texts + hashed


def _single(value):
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return None


def read(
    data, delimiter=None, header=None, label="auto", drop=(), text_columns=(), missing="error",
    n_hash=0, skips=False,
):  # fmt: skip
    """All rows of a file."""
    nothing = Outcome([], [], [], [], 0, (None, None), [], False)
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in data or not data.strip():
        return nothing
    text = data.decode("utf-8", "surrogateescape")
    found = list(records(text, delimiter or delimiter_of(text)))
    if None in found:
        return nothing
    first, others = found[0][1], [fields for _, fields in found[1 : LOOKED_AT + 1]]
    is_named = has_header(first, others) if header is None else header
    looked_at = others if is_named else [first, *others]
    widths = Counter(map(len, looked_at))
    width = len(first) if is_named else widths.most_common(1)[0][0]
    rows = [fields for fields in looked_at if len(fields) == width]
    is_text = [_is_text([fields[k] for fields in rows]) for k in range(width)]
    try:
        if is_named:
            list(map(_text, first))
        names = [title.strip() for title in first] if is_named else None
        table = _Table(names, is_text, label, drop, text_columns, missing, n_hash)
    except (Refusal, ValueError):
        return nothing
    error = None
    for line, fields in found[is_named:]:
        try:
            table.row(line, fields)
        except Refusal as refusal:
            table.refused.append(refusal.place)
            if not skips:
                error = refusal.place
                break
    return Outcome(
        table.rows, table.labels, table.names(), table.refused, table.n_left_out, error,
        table.is_text, is_named,
    )  # fmt: skip
