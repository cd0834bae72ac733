"""Texts of columns are numbered as they are met, whatever their hashes."""

import random

import numpy as np
import pytest

from polyplane.data.formats.csv import block_reader, dictionaries
from polyplane.data.formats.csv.block_reader import BlockReader
from polyplane.data.formats.csv.dictionaries import Dictionaries
from polyplane.data.formats.csv.records import block_of
from polyplane.data.table.texts import MISSING_TEXTS, NONE
from polyplane.engine.jit import jit_is_disabled

pytestmark = pytest.mark.loops


def numbered(texts):
    """The different texts in the order in which they are met, and their numbers."""
    known = {}
    codes = [
        NONE if text.strip() in MISSING_TEXTS else known.setdefault(text.strip(), len(known))
        for text in texts
    ]
    return list(known), codes


def read_columns(rows, reader=None):
    """Texts of columns as compiled code reads them."""
    width = len(rows[0])
    reader = reader or BlockReader(width, "|", True, None, range(width))
    text = "".join("|".join(row) + "\n" for row in rows)
    found = reader.read(block_of(text.encode()), [])
    return [found.texts[k] for k in range(width)]


def check(rows, reader=None):
    for column, texts in zip(zip(*rows, strict=True), read_columns(rows, reader), strict=True):
        values, codes = numbered(column)
        named = texts.values.to_pylist()
        assert len(set(named)) == len(named)
        assert [None if code == NONE else named[code] for code in texts.codes] == [
            None if code == NONE else values[code] for code in codes
        ]
        assert not set(named) & set(MISSING_TEXTS)


@pytest.mark.parametrize("hash_bits", [0, 1, 2**63 - 2**40, -1], ids=["none", "one", "high", "all"])
def test_texts_that_meet_in_a_table_are_told_apart(hash_bits, monkeypatch):
    monkeypatch.setattr(
        block_reader, "Dictionaries", lambda n_columns: Dictionaries(n_columns, hash_bits)
    )
    rng = random.Random(0)
    stems = ["", "a", "abcdefg", "abcdefgh", "abcdefghi", "x" * 15, "x" * 16, "x" * 17, "y" * 40]
    words = [stem + str(k) for stem in stems for k in range(5)] + list(MISSING_TEXTS)
    check([[rng.choice(words), rng.choice(words)] for _ in range(200)])


def test_texts_are_numbered_in_the_order_in_which_they_are_met():
    (texts,) = read_columns([[word] for word in ["b", "NA", "a", " b ", "c", "?", '"a"', "c"]])
    assert texts.values.to_pylist() == ["b", "a", "c"]
    assert texts.codes.tolist() == [0, NONE, 1, 0, 2, NONE, 1, 2]


def test_a_hundred_thousand_texts_of_a_column():
    n_texts = 2_000 if jit_is_disabled() else 100_000
    order = np.random.default_rng(0).permutation(2 * n_texts) % n_texts
    check([[f"text number {k}", f"{k % 7}"] for k in order.tolist()])


def test_texts_longer_than_all_room_are_kept():
    check([["a" * 50_000, "b"], ["c", "d" * 200_000], ["a" * 50_000 + "b", "b"]])


def test_tables_of_many_texts_are_forgotten_after_a_block(monkeypatch):
    monkeypatch.setattr(dictionaries, "MANY", 50)
    reader = BlockReader(2, "|", True, None, [0, 1])
    for block in range(4):
        check([[f"{block} {k}", "yes" if k % 2 else "no"] for k in range(100)], reader)
        sizes = [len(texts.values) for texts in read_columns([["x", "no"]], reader)]
        assert sizes == [1, 2]


def test_all_texts_are_forgotten_before_they_are_too_much_for_arrow(monkeypatch):
    monkeypatch.setattr(dictionaries, "MOST_BYTES", 1_000)
    reader = BlockReader(2, "|", True, None, [0, 1])
    check([["x" * 1_000, "yes"], ["y", "no"]], reader)
    assert [len(texts.values) for texts in read_columns([["z", "no"]], reader)] == [1, 1]
    assert [len(texts.values) for texts in read_columns([["z", "yes"]], reader)] == [1, 2]


def test_what_is_refused_leaves_no_texts_behind():
    reader = BlockReader(2, "|", True, None, [0])
    assert reader.read(block_of(b"bad|x\n"), [1]) is None
    assert reader.read(block_of(b"\xff|1\n"), [1]) is None
    assert reader.read(block_of(b"good|1\n"), [1]).texts[0].values.to_pylist() == ["good"]


def test_doubled_quotes_are_one_in_fields_in_quotes_and_two_where_quotes_are_characters():
    text = b'"a ""b""|c"|x\n"""|x\n'
    (texts,) = BlockReader(2, "|", True, None, [0]).read(block_of(text[:14]), []).texts.values()
    assert texts.values.to_pylist() == ['a "b"|c']
    (texts,) = BlockReader(2, "|", False, None, [0]).read(block_of(text[14:]), []).texts.values()
    assert texts.values.to_pylist() == ['"""']
