"""Blocks of CSV text end where records end, and quotes count where fields begin."""

import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polyplane.data.chunks import DataError
from polyplane.data.formats.csv import records
from polyplane.data.formats.csv.records import (
    Blocks,
    block_of,
    end_of_records,
    first_long_field,
    line_ends_in,
)

pytestmark = pytest.mark.loops
TEXTS = st.text(st.sampled_from('ab",\n\r;'), max_size=60)
TIDY = st.lists(
    st.sampled_from(
        ["a", '"a"', '""', '"a,b"', '"a\nb"', '"a""b"', '"\r\n"', ",", ",", "\n", "\r\n"]
    ),
    max_size=30,
).map("".join)


def scan(text):
    """One byte after the other: fields in quotes, where the last record ends, an open quote."""
    fields, end, opened, is_start, i = [], 0, -1, True, 0
    while i < len(text):
        c = text[i]
        if opened >= 0:
            if c == '"' and text[i + 1 : i + 2] == '"':
                i += 1
            elif c == '"':
                fields.append((opened, i))
                opened = -1
        elif c == '"' and is_start:
            opened, is_start = i, False
        elif c == "\n" or (c == "\r" and i + 1 < len(text) and text[i + 1] != "\n"):
            end, is_start = i + 1, True
        else:
            is_start = c == ","
        i += 1
    return fields, end, opened


@settings(deadline=None, max_examples=1000)
@example('"a""')
@example('a"b,"c\n"\n')
@given(st.one_of(TEXTS, TIDY))
def test_the_end_of_records_and_open_quotes_are_those_of_a_plain_scan(text):
    _, end, opened = scan(text)
    assert records._end_of_records(text.encode(), ",", True) == (end, opened)
    assert end_of_records(text.encode(), ",") == end


@settings(deadline=None, max_examples=1000)
@given(st.one_of(TEXTS, TIDY))
def test_the_first_field_of_several_lines_is_that_of_a_plain_scan(text):
    fields, _, _ = scan(text)
    long_ones = [(a, b) for a, b in fields if "\n" in text[a:b] or "\r" in text[a:b]]
    expected = None
    if long_ones:
        first, last = long_ones[0]
        before, inside = (len(one.splitlines()) for one in (text[:first] + "x", text[first:last]))
        expected = 6 + before, inside + text[last - 1 : last].isspace()
    assert first_long_field(block_of(text.encode(), 7), ",") == expected


@given(TEXTS, st.integers(1, 20))
def test_blocks_are_the_file_in_whole_records(text, n_bytes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "BLOCK_BYTES", n_bytes)
        patch.setattr(records, "FIRST_BYTES", n_bytes)
        file, data = io.BytesIO(text.encode()), text.encode()
        try:
            blocks = list(Blocks(file, file.read(n_bytes), ",", "f", True, True))
        except DataError as error:
            assert "quote that is not closed" in str(error)  # noqa: PT017
            return
    assert b"".join(block.text for block in blocks) == data
    place = 0
    for block in blocks:
        assert block.line == 1 + line_ends_in(data, 0, place)
        assert scan(text[:place])[1] == place or text[place - 1 : place] == "\r"
        place += len(block.text)
