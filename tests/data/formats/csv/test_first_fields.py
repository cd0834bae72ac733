"""Fields of the first records are counted by what the plain rules say of their texts."""

import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import polyplane as pp
from polyplane.data.formats.csv import first_fields, first_records, records
from polyplane.data.formats.csv.first_fields import NUMBERS, TEXTS, UNSURE, look_at_fields
from polyplane.data.formats.csv.first_records import NUMBER, FirstRecords, is_number, is_text
from polyplane.data.formats.csv.records import block_of
from polyplane.data.table.layout import Layout
from polyplane.data.table.texts import MISSING_TEXTS

pytestmark = pytest.mark.loops

WORDS = [
    *("1", "-2.5", "+.5", "5.", ".", "1e5", "1e", "1e+", "-1E-3", "e5", "+", "-", "1_0", "12a"),
    *("inf", "-Infinity", "nAn", "nan(1)", "No", "in", "n", "i", "Nadia", "IN", "+nan", "1,5"),
    *("red", " red", "1 ", "\u00a01", "1\u00a0", "\x0b1", "1\x1f", "\u0661", "\u00e9", 'a "b"'),
    *('"', '"1"', "a;b", "", " ", "?", "NA", "-nan", "#N/A", "null"),
]
ROWS = st.lists(st.lists(st.sampled_from(WORDS), min_size=2, max_size=2), min_size=1, max_size=40)


def text_of(rows, delimiter, is_quoted, end):
    lines = [
        delimiter.join(
            '"' + word.replace('"', '""') + '"'
            if is_quoted or set(word) & {'"', delimiter}
            else word
            for word in row
        )
        for row in rows
    ]
    return (end.join(lines) + end).encode()


def plain_counts(column):
    """What is sure of each text, by the plain rules."""
    texts = [text.strip() for text in column if text.strip() not in MISSING_TEXTS]
    n_numbers = sum(NUMBER.fullmatch(text) is not None for text in texts)
    return n_numbers, sum(not is_number(text) for text in texts), len(texts)


@settings(deadline=None)
@given(ROWS, st.sampled_from(",;\t"), st.booleans(), st.sampled_from(["\n", "\r\n", "\r"]))
@example([["a", "1"], ["", ""]], ",", False, "\r\n")
def test_what_is_sure_is_what_the_plain_rules_say(rows, delimiter, is_quoted, end):
    found = look_at_fields(block_of(text_of(rows, delimiter, is_quoted, end)), delimiter, True, 201)
    assert (found.width, found.n_records) == (2, len(rows))
    for place in range(2):
        for part, counts in ((rows[:1], found.of_first), (rows[1:], found.counts)):
            n_numbers, n_texts, n_present = plain_counts([row[place] for row in part])
            sure = counts[place].tolist()
            assert sum(sure) == n_present
            assert sure[NUMBERS] <= n_numbers <= sure[NUMBERS] + sure[UNSURE]
            assert sure[TEXTS] <= n_texts <= sure[TEXTS] + sure[UNSURE]


@pytest.mark.parametrize("word", ["1", "-2.5", "+.5", "5.", "1e5", "-1E-3"])
def test_usual_numbers_are_sure(word):
    found = look_at_fields(block_of(f"a\n{word}\n".encode()), ",", True, 201)
    assert found.counts.tolist() == [[1, 0, 0]]


@pytest.mark.parametrize(
    "word", ["red", "No", "-x", "e5", "Female", "<=50K", "A11", "7590-VHVEG", "1e", "12a", "-"]
)
def test_usual_texts_are_sure(word):
    found = look_at_fields(block_of(f"a\n{word}\n".encode()), ",", True, 201)
    assert found.counts.tolist() == [[0, 1, 0]]


@settings(deadline=None)
@given(ROWS, st.sampled_from(",;"), st.sampled_from([None, True, False]))
def test_counted_or_not_the_first_records_tell_the_same(rows, delimiter, header):
    block = block_of(text_of(rows, delimiter, False, "\n"))
    looks = []
    for count in (look_at_fields, lambda *given: None):
        with pytest.MonkeyPatch.context() as patches:
            patches.setattr(first_records, "look_at_fields", count)
            records = FirstRecords(block, delimiter, "f", True)
            look = first_records.look_at(records, header, "f")
        texts = [(is_text(column), column.texts()) for column in look.columns]
        looks.append(
            (look[:3], texts, records.first, len(records), first_records.is_numbered(records))
        )
    assert looks[0] == looks[1]


def test_lines_of_other_widths_and_blank_ones_are_left_to_the_plain_rules():
    for text in (b"a,b\n1\n", b"a,b\n\n1,2\n", b'a"b\n1\n', b'"a\nb"\n1\n', b"\n1\n"):
        assert look_at_fields(block_of(text), ",", True, 201) is None


@pytest.mark.parametrize("header", ["", "a,b,y\n"])
@pytest.mark.parametrize("word", ["red", '"r,ed"', "5", '"two\nlines"'])
def test_a_part_of_the_first_bytes_tells_what_all_of_them_do(header, word, monkeypatch):
    """A whole table is one block where that suffices, and a header is left out of it."""
    rows = "".join(f"{k % 7},{word if k % 3 else 'blue'},{k % 2}\n" for k in range(900))
    found = []
    for n_bytes in (1 << 12, 1 << 30):
        with monkeypatch.context() as patches:
            patches.setattr(first_records, "BYTES_LOOKED_AT", n_bytes)
            patches.setattr(first_fields, "BYTES_LOOKED_AT", n_bytes)
            patches.setattr(records, "BLOCK_BYTES", 1 << 13)
            layout = Layout()
            X, y = pp.read(io.BytesIO((header + rows).encode()), format="csv", layout=layout)
            found.append((X.toarray().tolist(), y.tolist(), layout.to_dict()))
    assert found[0] == found[1]
    assert len(found[0][0]) == 900


def test_only_the_first_records_count():
    found = look_at_fields(block_of(b"a\n" + b"1\n" * 3 + b"x\n" * 9 + b"1,2\n"), ",", True, 4)
    assert (found.n_records, found.end) == (4, 2)
    assert found.counts.tolist() == [[3, 0, 0]]
