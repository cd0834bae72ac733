"""Fields of a block: they are those of the plain rules, or the block is refused."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polyplane.data.formats.csv.fields import NO_QUOTE, count_line_ends, fields_of, last_record_end
from polyplane.data.formats.csv.records import _scan, block_of
from tests.reference.csv_text import records

pytestmark = pytest.mark.loops

QUOTE, COMMA, LINE_FEED, CARRIAGE_RETURN = b'",\n\r'
PIECES = ["a", "bc", " ", ",", ",", "\n", "\r", "\r\n", '"', '"d"', '"e,f"', '""', "x" * 40, '"\n"']
FIELD = r'(?:[^",\r\n]*|"(?:[^"\r\n]|"")*")'
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=120).map("".join)


def fields_in(text, width, quote=QUOTE):
    """Rows of fields as bytes, quotes and all; None if the text is refused."""
    block = block_of(text)
    size = len(text) + (text[-1] != LINE_FEED)
    array = np.frombuffer(block.buffer, np.uint8)
    found = fields_of(array, size, width, COMMA, quote)
    if found is None:
        return None
    rows = []
    for first in found.firsts.tolist():
        stops = found.stops[first : first + width + 1].tolist()
        fields = [text[a + 1 : b] for a, b in pairwise(stops)]
        rows.append([*fields[:-1], fields[-1].removesuffix(b"\r")])
    return rows


def is_tidy(text):
    """Whether every quote opens or closes a whole field on one line, or is doubled inside."""
    return re.fullmatch(f"(?:{FIELD}[,\r\n])*{FIELD}", text) is not None


def plain(field):
    """A field without its quotes."""
    text = field.decode()
    return text[1:-1].replace('""', '"') if text.startswith('"') else text


@settings(deadline=None)
@given(TEXTS)
@example('"' + "a" * 62 + '"\n')
@example("a" * 63 + "\r\n" + "b" * 63 + "\r")
@example("a" * 62 + ',"b"\r\n"c",d')
@example('a,"b""c"\n"""d""","",""\n')
@example('"' + "a" * 62 + '""b"\n')
@example('"' + "a" * 61 + '"""\n')
def test_fields_are_those_of_the_rules_or_refused(text):
    expected = list(records(text, ","))
    widths = {len(record[1]) for record in expected if record is not None}
    width = max(widths, default=1)
    found = fields_in(text.encode(), width)
    if not is_tidy(text) or len(widths) > 1:
        assert found is None
        return
    assert [list(map(plain, row)) for row in found] == [fields for _, fields in expected]


@settings(deadline=None)
@given(TEXTS.map(lambda text: text.replace('"', "'")), st.integers(1, 3))
def test_without_quotes_they_are_characters(text, width):
    rows = [fields for _, fields in records(text, ",")]
    found = fields_in(text.replace("'", '"').encode(), width, NO_QUOTE)
    if any(len(fields) != width for fields in rows):
        assert found is None
    else:
        plain = [[field.decode().replace('"', "'") for field in row] for row in found]
        assert plain == rows


@settings(deadline=None)
@given(TEXTS)
@example('"a"\n"b')
@example("a\n" * 40 + '"b\n')
def test_the_last_record_ends_where_a_scan_says(text):
    data = text.encode()
    buffer = np.frombuffer(block_of(data).buffer, np.uint8)
    found = last_record_end(buffer, len(data), COMMA, QUOTE)
    if found >= 0:
        assert found == _scan(buffer[: len(data)], COMMA)[0]
    else:
        assert '"' in text


@settings(deadline=None)
@given(TEXTS, st.integers(0, 70))
def test_line_ends_are_counted(text, start):
    data = text.encode()
    stop = len(data) if not data.endswith(b"\r") else len(data) - 1
    start = min(start, stop)
    if data[:start].endswith(b"\r"):
        start -= 1
    buffer = np.frombuffer(block_of(data).buffer, np.uint8)
    part = data[start:stop]
    assert count_line_ends(buffer, start, stop) == len((part + b".").splitlines()) - 1
