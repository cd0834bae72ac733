"""Small random CSV files in which everything varies at once, read in several ways.

A seed is a case: a file, the options it is read with, and the sizes of blocks and chunks. `check`
reads it by the reader and by the rules in `tests/reference`. What is found out from the first rows
is found out from the first block: blocks that are smaller are read with what all rows tell.
`check_ways` reads it by Arrow, by Arrow as texts and record by record: they must agree in every
word.
"""

import contextlib
import io
import random
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

import polyplane as pp
from polyplane.data.chunks import ERRORS_KEPT, BadRows, DataError
from polyplane.data.formats.csv import reader as csv_text
from polyplane.data.formats.csv import records as csv_records
from polyplane.data.formats.csv.reader import CsvOptions
from polyplane.data.table.layout import Layout, Source
from polyplane.engine.inspection import LARGEST
from tests.reference import csv_text as reference

__all__ = ["case_of", "check", "check_ways"]

WHOLE = [b"0", b"1", b"2", b"-3", b"255", b"+4", b"007", b"-0"]
DECIMAL = [b"0.5", b"-1.25", b".5", b"5.", b"1e-3", b"3.4e5", b"0.1", b"1E+2", b"1e-50"]
LONG = [b"0.0039215686274509803", b"123456789.012345678901234", b"16777217", b"900719925.4740993"]
PADDED = [b" 1", b"2 ", b"\t3", b" 4.5 ", b"  0"]
QUOTED = [b'"1"', b'" 2"', b'"0.5"', b'"1"0']
WORDS = [b"red", b"blue", b"a b", "é".encode(), b"x", b"green ", b" red", b"1_0", b"0001_01", b"1x"]
QUOTED_WORDS = [b'"a,b"', b'"c;d"', b'"q""q"', b'"e\nf"', b'"g\r\nh"', b'"red"', b'""', b'"x"y"']
STRAY = [b'5"', b'x"y', b'"a""', b'a""b', b'"x" ', b' "x"', b'"']
MISSING = [b"", b"?", b"NA", b"nan", b"NULL", b" ", b"n/a", b"nAn", b"nan(1)", b"-NaN"]
BAD = [
    b"1e39",
    b"inf",
    b"-Infinity",
    b"1e999",
    b"x",
    b"1_0",
    b"\xff",
    b"1,5",
    b"0x1",
    b"--1",
    b"1e",
]
SPACED = ["\u3000weit\u3000", "\u00a0x", "x\u00a0", "\x0bred", "red\x1c", "\u00a0", "\u65e5\u672c"]
LETTERS = "aab\u00e9 -"
LABELS = [[b"0", b"1"], [b"1", b"2", b"3"], [b"a", b"b"], [b"0.5", b"1"], [b"1", b"b", b"c", b"2"]]
NAMES = [
    b"a",
    b"b",
    b"width",
    b"y",
    b"label",
    b"Class",
    b'"c,d"',
    b"",
    b"1",
    b"a",
    b" e ",
    b"5",
    b"x",
]
ENDS = [b"\n", b"\n", b"\n", b"\r\n", b"\r\n", b"\r"]
BLANK_LINES = [b"", b"", b" ", b"\t"]
EDITS = b'",;\t\n\r 0123456789.-+eEx"\xff'


class Case(NamedTuple):
    """A file and how it is read."""

    text: bytes
    options: dict
    skips: bool
    chunk_rows: int
    size: int  # of blocks, in bytes; 0 is large enough for the file
    is_public: bool  # read by `pp.read`, too


def case_of(seed):
    """The case of a seed."""
    rng = random.Random(seed)
    delimiter = rng.choice([b",", b",", b",", b";", b"\t", b" ", b"|"])
    size = rng.choice([5, 7, 20, 50, 100]) if rng.random() < 0.4 else 0
    width = rng.choice([1, 2, 3, 3, 4, 5])
    if not size and rng.random() < 0.04:
        width = rng.randrange(6, 90)
    text, is_named = _text(rng, delimiter, width, size > 0)
    options = {}
    if size or delimiter in b" |" or rng.random() < 0.3:
        options["delimiter"] = delimiter.decode()
    if size or rng.random() < 0.2:
        options["header"] = is_named if size or rng.random() < 0.7 else rng.random() < 0.5
    if rng.random() < 0.4:
        options["label"] = rng.choice([None, None, 0, -1, width - 1, 1, "a", "label"])
    if rng.random() < 0.15:
        options["drop"] = [rng.choice([0, 1, -1, "b", width - 2])]
    if rng.random() < 0.15:
        options["text_columns"] = [rng.choice([0, 1, "a", width - 1])]
    options["missing"] = rng.choice(["zero", "skip", "error", "error"])
    if rng.random() < 0.15:
        options |= {"categories": "hash", "n_hash": rng.choice([1, 2, 7])}
    chunk_rows = rng.choice([1, 2, 3, 5, 100, 100])
    skips, is_public = rng.random() < 0.5, rng.random() < 0.02
    return Case(text, options, skips, chunk_rows, size, is_public)


def _words(rng):
    """Texts of any length that begin alike, so that tables have to look at all of them."""
    stem = "".join(rng.choices(LETTERS, k=rng.choice([0, 3, 7, 8, 15, 16, 23, 30])))
    ends = ["".join(rng.choices(LETTERS, k=rng.randrange(5))) for _ in range(rng.randrange(1, 60))]
    return [(stem + end).encode() for end in ends]


def _text(rng, delimiter, width, is_sure):
    chance = rng.random
    kinds = []
    for _ in range(width):
        kind = list(rng.choice([WHOLE, DECIMAL, LONG, WHOLE, WORDS, QUOTED_WORDS, PADDED]))
        if chance() < 0.2:
            kind = _words(rng)
        if chance() < 0.1:
            kind += [word.encode() for word in SPACED]
        while chance() < 0.25:
            kind += rng.choice([WHOLE, DECIMAL, LONG, PADDED, WORDS, QUOTED])
        kinds.append(kind)
    if chance() < 0.7:
        kinds[-1] = rng.choice(LABELS)
    # how often something happens, and in most files never
    rare = [0.0 if chance() < 0.6 else chance() ** 2 / 2 for _ in range(6)]
    is_missing, is_bad, is_stray, is_uneven, has_blank, is_quoted = rare
    end, is_named = rng.choice(ENDS), is_sure or chance() < 0.5
    lines = []
    if is_named:
        names = rng.sample(NAMES[:3] + NAMES[4:5] + NAMES[6:7], width) if is_sure else NAMES
        lines.append(delimiter.join(names if is_sure else rng.choices(names, k=width)))
    n_rows = int(9 * chance()) + (chance() < 0.9)
    if width < 6 and not is_sure and delimiter != b"\t" and chance() < 0.03:
        n_rows = rng.randrange(10, 600)  # more than a tile; between tabs, quotes may be characters
    padding = b" " * (rng.choice([1, 2, 8, 70]) if chance() < 0.1 and delimiter != b" " else 0)
    is_tidy = chance() < 0.1  # each field in quotes that needs them, or may have them
    for _ in range(n_rows):
        fields = [rng.choice(kind) for kind in kinds]
        for pool, share in ((MISSING, is_missing), (BAD, is_bad), (STRAY, is_stray)):
            if share and chance() < share:
                fields[rng.randrange(width)] = rng.choice(pool)
        if is_tidy or (is_quoted and chance() < is_quoted):
            fields = [b'"%s"' % field.replace(b'"', b"") for field in fields]
        elif padding:
            fields = [rng.choice([padding + field, field + padding, field]) for field in fields]
        if is_uneven and chance() < is_uneven:
            fields = fields[:-1] if chance() < 0.5 and width > 1 else [*fields, b"1"]
        lines.append(delimiter.join(fields))
        if has_blank and chance() < has_blank:
            lines.append(rng.choice(BLANK_LINES))
    text = end.join(lines) + end * (chance() < 0.8)
    if chance() < 0.03:
        text = b"\xef\xbb\xbf" + text
    if not is_sure and chance() < 0.15:
        for _ in range(rng.choice([1, 1, 2, 3])):
            k, removed = rng.randrange(len(text) + 1), rng.choice([0, 0, 1, 1, 2])
            added = bytes([rng.choice(EDITS)]) if chance() < 0.7 else b""
            text = text[:k] + added + text[k + removed :]
    return text, is_named


def check(seed):
    """Raise an AssertionError where the reader differs from the rules."""
    case = case_of(seed)
    asked = {name: value for name, value in case.options.items() if name != "categories"}
    wanted = reference.read(case.text, skips=case.skips, **asked)
    layout = _layout_of(case, wanted)
    bad, found, error = BadRows(case.skips), [], None
    file, options = io.BytesIO(case.text), CsvOptions(**case.options)
    try:
        with _sizes_of(case):
            found.extend(csv_text.chunks(file, "f", case.chunk_rows, options, bad, layout))
    except DataError as problem:
        error = problem
    _compare(case, wanted, found, bad, error, layout)
    if case.is_public and found and error is None:
        on_bad = "skip" if case.skips else "raise"
        whole = pp.stream(io.BytesIO(case.text), format="csv", on_bad=on_bad, **case.options)
        rows = _rows_of(whole.all_chunks())
        assert len(rows) == len(wanted.rows), (case, wanted)
        if whole.layout.feature_names == wanted.names:  # rare values may share a column
            _assert_same_rows(rows, wanted.rows, case)


@contextlib.contextmanager
def _sizes_of(case):
    """Blocks and parts of them as the case has them."""
    with (
        patch.object(csv_records, "FIRST_BYTES", case.size or csv_records.FIRST_BYTES),
        patch.object(csv_records, "BLOCK_BYTES", case.size or csv_records.BLOCK_BYTES),
        patch.object(csv_text, "BYTES_A_THREAD", 2 * case.size or csv_text.BYTES_A_THREAD),
    ):
        yield


def check_ways(seed):
    """Raise an AssertionError where the three ways of reading differ in anything."""
    case = case_of(seed)
    is_whole = random.Random(seed).random() < 0.5
    ways = [_read_by(case, is_whole, ways) for ways in (None, ["_as_texts"], [])]
    for other in ways[1:]:
        assert other == ways[0], (case, ways[0], other)


def _read_by(case, is_whole, ways):
    """All that a reading leaves, by some of its ways; None: by all."""
    bad, layout, chunks, error = BadRows(case.skips), Layout(), [], None
    layout.grows = not is_whole
    options = CsvOptions(**{**case.options, "missing": None} if is_whole else case.options)
    with contextlib.ExitStack() as patches:
        patches.enter_context(_sizes_of(case))
        if ways is not None:
            patches.enter_context(patch.object(csv_text._CsvRows, "WAYS", ways))
        try:
            chunks.extend(
                csv_text.chunks(io.BytesIO(case.text), "f", case.chunk_rows, options, bad, layout)
            )
        except DataError as problem:
            error = str(problem)
    labels = [(y.dtype.str, y.tolist()) for _, y in chunks]
    shapes = [(X.shape, X.dtype, type(X)) for X, _ in chunks]
    found = _rows_of(chunks), labels, shapes, layout.to_dict(), layout.gaps, layout.n_left_out
    return found, error, bad.n_skipped, [str(problem) for problem in bad.errors], layout.remarks


def _layout_of(case, wanted):
    """What is known of columns before the file is read: nothing, unless blocks are small."""
    layout = Layout()
    if case.size and wanted.is_text:
        whole = Layout()
        file, options = io.BytesIO(case.text), CsvOptions(**case.options)
        list(csv_text.chunks(file, "f", 100, options, BadRows(skips=True), whole))
        layout.sources = [Source(*source) for source in whole.sources]
        layout.has_names = whole.has_names
        layout.label, layout.label_position = whole.label, whole.label_position
        layout.label_is_text = whole.label_is_text
        layout.categories.n_hash = whole.categories.n_hash
    return layout


def _assert_same_rows(rows, wanted, case):
    """Raise an AssertionError where rows differ, except in columns that the reader scales."""
    scaled = {
        column
        for row in wanted
        for column, value in row.items()
        if abs(np.frombuffer(value, np.float32)[0]) > LARGEST
    }
    kept = [
        [{k: v for k, v in row.items() if k not in scaled} for row in each]
        for each in (rows, wanted)
    ]
    assert kept[0] == kept[1], (case, rows, wanted)


def _rows_of(chunks):
    """The rows as the reference has them."""
    rows = []
    for X, _ in chunks:
        if isinstance(X, np.ndarray):
            assert X.dtype == np.float32 or X.shape[1] == 0
            rows += [{k: v.tobytes() for k, v in enumerate(row)} for row in X]
            continue
        for i in range(X.shape[0]):
            place = slice(X.indptr[i], X.indptr[i + 1])
            columns, values = X.indices[place].tolist(), X.data[place]
            assert columns == sorted(set(columns))
            rows.append(dict(zip(columns, (v.tobytes() for v in values), strict=True)))
    return rows


def _compare(case, wanted, found, bad, error, layout):
    if error is not None or wanted.error is not None:
        assert error is not None, (case, found, wanted)
        assert wanted.error is not None, (case, error, wanted)
        if wanted.error != (None, None):
            assert (error.line, error.column) == wanted.error, (case, error, wanted)
        return
    _assert_same_rows(_rows_of(found), wanted.rows, case)
    labels = [label for _, y in found for label in y.tolist()]
    assert labels == wanted.labels, (case, labels, wanted)
    sizes = [X.shape[0] for X, _ in found]
    assert all(size == case.chunk_rows for size in sizes[:-1]), (case, sizes)
    assert not found or sizes[-1] <= case.chunk_rows, (case, sizes)
    assert layout.feature_names == wanted.names, (case, layout, wanted)
    assert not found or found[-1][0].shape[1] == len(wanted.names), (case, wanted)
    assert layout.n_left_out == wanted.n_left_out, (case, layout, wanted)
    assert bad.n_skipped == len(wanted.refused), (case, bad, wanted)
    places = [(error.line, error.column) for error in bad.errors]
    assert places == wanted.refused[:ERRORS_KEPT], (case, bad, wanted)
