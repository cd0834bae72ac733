"""Small random files of LIBSVM text in which everything varies at once, read in two ways.

A seed is a case: a file, the options it is read with, and the sizes of blocks and chunks.
`check` reads it by the reader, whole or in chunks, and by the rules in `tests/reference`.
"""

import io
import random
from typing import NamedTuple
from unittest.mock import patch

import polyplane as pp
from polyplane.data.chunks import ERRORS_KEPT, BadRows, DataError
from polyplane.data.formats.libsvm import reader as libsvm_text
from tests.reference import libsvm_text as reference

__all__ = ["case_of", "check"]

ONES, SHORT = [b"1"], [b"0", b"1", b"7", b"12", b"255", b"-3", b"-0", b"007"]
DECIMAL = [b"0.5", b"-0.25", b"1.5", b"12.125", b"0.0039", b"1234567.5", b"5.", b"0.1", b"3"]
LONG = [b"0.0039215686274509803", b"1.2345678901234567", b"-9.86899159742946", b"16777217.0"]
EXPONENTIAL = [b"1e5", b"-1.5e-07", b"9.86899159742946E-02", b"1E+15", b"2e-3", b"1e16", b"1e-9"]
ODD = [
    b"+5", b".5", b"-.5", b"12345678", b"123456789012345678901234567890", b"1e-46", b"1e-400",
    b"0." + b"0" * 40 + b"1e40", b"16777217", b"9007199254740993", b"3.4028235677973362e38",
    b"1e-005", b"7.006492321624085e-46", b"0.00000000000000000000001", b"00000000000000000001",
]  # fmt: skip
BAD = [
    b"", b"x", b"nan", b"-inf", b"1e39", b"1e", b"1_0", b"0x10", b"1.2.3", b"--1", b"1e+", b".",
    b"1\x00", b"1:2", b"1,5", b"\xff", b"e5", b"3.4028235677973366e38",
]  # fmt: skip
VALUES = [ONES, SHORT, DECIMAL, LONG, EXPONENTIAL, ODD]
INT_LABELS = [b"1", b"-1", b"+1", b"0", b"2", b"7", b"-0"]
NUMBER_LABELS = [*INT_LABELS, b"1.5", b"-2e3", b"1e-3", b"9007199254740993", b"0.1", b".5", b"5."]
TEXT_LABELS = [b"a", b"spam", b"1x", "é".encode(), b"1_000", b"-", b"x.y", b"0x1"]
LABELS = [INT_LABELS, INT_LABELS, INT_LABELS, NUMBER_LABELS, TEXT_LABELS]
MIXED_LABELS = [*INT_LABELS, *TEXT_LABELS]
BAD_LABELS = [b"1:1", b"1,2", b"nan", b"inf", b"\xff", b"1e999", b"qid:3", b"\x01"]
BLANKS = [b"  ", b"\t", b"\r", b" \t ", b"\x0b", b"   "]
TAILS = [b" ", b" # a comment 1:2", b"#1:2 3:4", b"\t", b"\r", b"  ", b" #"]
BETWEEN = [b"\n", b"# 1 1:1\n", b" \n", b"\r\n", b"\t#\n"]
EDITS = b" 0123456789:.-+eE#\t\r\n\0\x0bqid1111 :::\xff_,"
SIZES = [1, 5, 16, 33, 64, 100, 150, 1 << 12, 1 << 16]
ALL_ROWS = 1 << 62
LONG_FILES, LONG_ROWS = 0.006, 0.0004
ENTRIES = [0, 1, 2, 3, 6, 7, 8, 8, 8, 9, 10, 15, 16, 17, 24]


class Case(NamedTuple):
    """A file and how it is read."""

    text: bytes
    options: dict
    skips: bool
    chunk_rows: int
    size: int  # of blocks, in bytes
    is_whole: bool  # or in chunks
    is_public: bool  # read by `pp.read` or `pp.stream`, too


def case_of(seed):
    """The case of a seed."""
    rng = random.Random(seed)
    text = _text(rng)
    options = {}
    if rng.random() < 0.3:
        options["n_features"] = rng.choice([1, 3, 8, 9, 10, 20, 30, 1000, 900_000, 900_001])
    if rng.random() < 0.25:
        options["base"] = rng.randrange(2)
    if rng.random() < 0.2:
        options["text_labels"] = rng.random() < 0.6
    return Case(
        text, options, rng.random() < 0.5, rng.choice([1, 2, 3, 4, 7, 100]), rng.choice(SIZES),
        rng.random() < 0.5, rng.random() < 0.02,
    )  # fmt: skip


def _text(rng):
    chance = rng.random
    values = list(rng.choice(VALUES))
    while chance() < 0.4:
        values += rng.choice(VALUES)
    labels = MIXED_LABELS if chance() < 0.1 else rng.choice(LABELS)
    first_label = rng.choice(TEXT_LABELS) if chance() < 0.1 else b""
    # how often something happens, and in most files never
    rare = [0.0 if chance() < 0.6 else chance() ** 2 / 2 for _ in range(10)]
    (
        is_bad,
        is_late,
        is_mixed,
        is_twice,
        is_odd,
        has_query,
        has_tail,
        has_line,
        is_step,
        is_wrong,
    ) = rare
    base, end = int(chance() < 0.7), b"\n" if chance() < 0.8 else b"\r\n"
    parts = [b"\xef\xbb\xbf"] if chance() < 0.02 else []
    size = rng.choice(ENTRIES)
    n_rows = int(9 * chance()) + (chance() < 0.9)
    if chance() < LONG_FILES:
        n_rows += rng.randrange(300)
    for row in range(n_rows):
        if has_line and chance() < has_line:
            parts.append(rng.choice(BETWEEN))
        label = first_label if row == 0 and first_label else rng.choice(labels)
        if is_wrong and chance() < is_wrong / 3:
            label = rng.choice(BAD_LABELS)
        n = size if chance() < 0.5 else rng.choice(ENTRIES)
        if chance() < LONG_ROWS:
            n = rng.randrange(2_000)
        start = base if chance() < 0.8 else int(1 + 20 * chance())
        indices = list(range(start, start + n))
        if is_step:
            step = 1
            for k in range(n):
                step += int(1 / (0.02 + chance())) if chance() < is_step else 1
                indices[k] = start + step
        if is_late and n and chance() < is_late:
            k = rng.randrange(n)
            indices[k] = rng.choice([999, 1000, 9_999, 99_999, 900_000, 9_999_999, 2**31 - 2])
        if is_twice and n and chance() < is_twice:
            indices[rng.randrange(n)] = rng.choice(indices)
        if is_mixed and chance() < is_mixed:
            rng.shuffle(indices)
        words = [b"%d:%s" % pair for pair in zip(indices, rng.choices(values, k=n), strict=True)]
        if is_bad and n and chance() < is_bad:
            k = rng.randrange(n)
            index = rng.choice(
                [b"", b"x", b"-1", b"2147483647", b"007", b"99999999999", b"1", b"0"]
            )
            words[k] = index + b":" + rng.choice(BAD if chance() < 0.7 else values)
        if has_query and chance() < 0.1 + has_query:
            words.insert(0, rng.choice([b"qid:1", b"qid:123456789", b"qid:1", b"qid:x", b"qid:"]))
        line = b" ".join([label, *words])
        if is_odd and chance() < is_odd:
            line = line.replace(b" ", rng.choice(BLANKS), rng.choice([1, 2, 99]))
            line = line if chance() < 0.7 else b" " + line
        parts.append(line)
        if has_tail and chance() < has_tail:
            parts.append(rng.choice(TAILS))
        parts.append(end)
    text = b"".join(parts)
    if chance() < 0.2:
        text = text[: -len(end)]
    return _edited(text, rng) if chance() < 0.15 else text


def _edited(text, rng):
    for _ in range(rng.choice([1, 1, 2, 3])):
        k, removed = rng.randrange(len(text) + 1), rng.choice([0, 0, 1, 1, 2])
        added = bytes([rng.choice(EDITS)]) if rng.random() < 0.7 else b""
        text = text[:k] + added + text[k + removed :]
    return text


def check(seed):
    """Raise an AssertionError where the reader differs from the rules."""
    case = case_of(seed)
    chunk_rows = None if case.is_whole else case.chunk_rows
    wanted = reference.read(case.text, **case.options, skips=case.skips, chunk_rows=chunk_rows)
    _compare(case, wanted, *_chunks(case))
    if case.is_public and case.text and wanted.error is None and wanted.chunks:
        _check_public(case, wanted)


def _chunks(case):
    bad, file, found = BadRows(case.skips), io.BytesIO(case.text), []
    chunk_rows = ALL_ROWS if case.is_whole else case.chunk_rows
    try:
        with patch.object(libsvm_text, "BLOCK", case.size):
            found.extend(libsvm_text.chunks(file, "f", chunk_rows, bad=bad, **case.options))
    except DataError as error:
        return found, bad, error
    return found, bad, None


def _plain(chunk):
    X, y = chunk
    assert X.has_canonical_format
    assert X.indptr.size == X.shape[0] + 1
    kinds = {"i": "int64", "f": "float64"}
    assert y.dtype == kinds.get(y.dtype.kind, y.dtype)
    return X.shape[1], X.indptr.tolist(), X.indices.tolist(), X.data.tobytes(), y.tolist()


def _compare(case, wanted, found, bad, error):
    place = None if error is None else (error.line, error.column)
    assert place == wanted.error, (case, error, wanted)
    rows = [_plain(chunk) for chunk in found]
    assert repr(rows) == repr(wanted.chunks), (case, rows, wanted)
    assert bad.n_skipped == len(wanted.refused), (case, bad, wanted)
    places = [(error.line, error.column) for error in bad.errors]
    assert places == wanted.refused[:ERRORS_KEPT], (case, bad, wanted)


def _check_public(case, wanted):
    """The same by the names that users call; rows of no width at all are theirs to refuse."""
    options = {**case.options, "format": "libsvm", "on_bad": "skip" if case.skips else "raise"}
    if wanted.chunks[-1][0] == 0:
        return
    file = io.BytesIO(case.text)
    if case.is_whole:
        found = [_plain(pp.read(file, **options))]
        assert repr(found) == repr(wanted.chunks), case
    else:
        stream = pp.stream(file, chunk_rows=case.chunk_rows, **options)
        found = [_plain(chunk) for chunk in stream]
        assert found[-1][0] == wanted.chunks[-1][0], case
        assert repr([c[1:] for c in found]) == repr([c[1:] for c in wanted.chunks]), case
