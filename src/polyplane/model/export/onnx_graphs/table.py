"""Tables as ONNX: an input for each column, from which the graph makes rows of X.

Numbers     float32, NaN where there is none: the median then, and the column that says so. Those
            of a column of large ones are double, and are scaled.
Dates       double, seconds since 1970 by the clock of the column; days and parts of the calendar
            are computed, the month by the civil calendar counted from the 1st of March.
Texts       string. ONNX has no operator that trims or splits: a Tokenizer, which is ONNX Runtime's
            own, finds what is left between the blanks around a text.
Categories  a LabelEncoder gives the column of X, that of the rest for unknown values.
Words       are found by a Tokenizer in small letters, which are a StringNormalizer's: it knows
            the letters of ASCII. Words are known with other capitals, too: see `_with_capitals`.
Statistics  a LabelEncoder gives the code of a value, another the row of a code, or of a pair of
            codes, in a table of numbers whose last row is that of all other values.
X           numbers, and behind them zeros into which a ScatterElements writes ones; what sets no
            column writes into one more, which is cut off. Target statistics come last.
"""

import functools
import itertools
import math
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from polyplane.model.export.onnx_graphs.graph import Graph
from polyplane.model.export.table_input import (
    CATEGORY,
    DATE,
    MICROSECONDS_A_DAY,
    NONE,
    NUMBER,
    PARTS,
    WORDS,
    TableColumn,
    TableInput,
    TableKey,
    TableStatistic,
)

__all__ = ["ROWS", "input_names", "table_inputs", "table_rows"]

ROWS = "X"  # what the input is called where all columns are numbers
BLANKS = (
    r"\x09-\x0d\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}"
    r"\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
)
TRIMMED = rf"[^{BLANKS}](?:(?s:.*)[^{BLANKS}])?"
WORD = r"[\pL\pN']+"  # what `data/table/texts.py` splits texts into
LETTER, NO_WORD = "a", "?"  # to keep tensors from being empty, and where there is no more
ONE_LETTER = {"\u0130": "i"}  # small letters of a capital that become two in Python
MOST_SPELLINGS = 32  # of a word
A_DAY, AN_HOUR = np.float64(MICROSECONDS_A_DAY), np.float64(MICROSECONDS_A_DAY / 24)
TYPES = {
    NUMBER: (TensorProto.FLOAT, "numbers; NaN is missing"),
    DATE: (TensorProto.DOUBLE, "dates as seconds since 1970; NaN is missing"),
    CATEGORY: (TensorProto.STRING, "categories as text; an empty one is missing"),
    WORDS: (TensorProto.STRING, "texts; an empty one is missing"),
}


# ---- inputs ------------------------------------------------------------------------------


def input_names(table: TableInput, taken: Iterable[str]) -> list[str]:
    """A name for the input of each column: its own, made printable, and different from all."""
    used, names = {"", *taken}, []
    for place, column in enumerate(table.columns):
        plain = column.name.encode("utf-8", "replace").decode()
        name = "".join("_" if unicodedata.category(c)[0] == "C" else c for c in plain)
        name = name if name.strip() else f"column_{place + 1}"
        while name in used:
            name += "_"
        used.add(name)
        names.append(name)
    return names


def table_inputs(table: TableInput, names: list[str]) -> list[Any]:
    """Return the inputs of the graph: rows of numbers, or a matrix of one column for each."""
    if table.is_of_numbers:
        shape: list[str | int | None] = ["N", len(table.columns)]
        words = "rows of columns; NaN is missing"
        return [helper.make_tensor_value_info(ROWS, TensorProto.FLOAT, shape, words)]
    made = []
    for column, name in zip(table.columns, names, strict=True):
        kind, words = TYPES[column.kind]
        kind = TensorProto.DOUBLE if column.is_scaled else kind
        made.append(helper.make_tensor_value_info(name, kind, ["N", 1], words))
    return made


# ---- rows of X ---------------------------------------------------------------------------


def table_rows(graph: Graph, table: TableInput, names: list[str]) -> str:
    """The rows of X."""
    parts, entries = [], []
    numbers, texts = _numbers(graph, table, names), _trimmed(graph, table, names)
    if numbers is not None:
        lacks = graph.add("IsNaN", numbers)
        with_number = [column for column in table.columns if column.number != NONE]
        fills = np.array([column.fill for column in with_number], np.float32)
        filled = graph.add("Where", lacks, fills, numbers)
        limits = np.float32(-table.largest), np.float32(table.largest)
        parts.append(graph.add("Clip", filled, *limits))
        missing = np.array([column.missing for column in with_number])
        told = np.flatnonzero(missing != NONE)
        if told.size:
            lacks = graph.add("Gather", lacks, told, axis=1)
            entries.append(graph.add("Where", lacks, missing[told], np.int64(table.end_of_pairs)))
    for column, name in zip(table.columns, names, strict=True):
        if column.kind == DATE:
            entries += _date(graph, column, name, table)
        elif column.kind != NUMBER:
            entries += _TEXT_ENTRIES[column.kind](graph, column, texts[name], table)
    if table.n_pairs > 0:
        parts.append(_ones(graph, entries, table, ROWS if table.is_of_numbers else names[0]))
    codes = [_codes(graph, key, names[key.column], texts, table) for key in table.keys]
    parts += [_looked_up(graph, one, table, codes) for one in table.statistics]
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)


def _numbers(graph: Graph, table: TableInput, names: list[str]) -> str | None:
    """The numbers of all columns that have some, NaN where they are missing."""
    if table.is_of_numbers:
        return ROWS
    found = []
    for column, name in zip(table.columns, names, strict=True):
        if column.is_scaled:
            distance = graph.add("Sub", name, np.float64(column.origin))
            number = graph.add("Div", distance, np.float64(column.unit))
            found.append(graph.cast(number, np.float32))
        elif column.kind == NUMBER:
            found.append(name)
        elif column.kind == DATE:
            since = graph.add("Sub", _moments(graph, name), np.float64(column.origin))
            found.append(graph.cast(graph.add("Div", since, A_DAY), np.float32))
    if not found:
        return None
    return found[0] if len(found) == 1 else graph.add("Concat", *found, axis=1)


def _ones(graph: Graph, entries: list[str], table: TableInput, of_rows: str) -> str:
    """The columns of X behind the numbers, 1 where an entry names them."""
    n_pairs = table.n_pairs
    n_rows = graph.add("Slice", graph.add("Shape", of_rows), np.array([0]), np.array([1]))
    shape = graph.add("Concat", n_rows, np.array([n_pairs + 1]), axis=0)
    zeros = graph.add("ConstantOfShape", shape, value=_one_number(0))
    if entries:
        places = entries[0] if len(entries) == 1 else graph.add("Concat", *entries, axis=1)
        places = graph.add("Sub", places, np.int64(table.n_numbers))
        ones = graph.add("ConstantOfShape", graph.add("Shape", places), value=_one_number(1))
        zeros = graph.add("ScatterElements", zeros, places, ones, axis=1)
    ends = np.array([0]), np.array([n_pairs]), np.array([1])
    return graph.add("Slice", zeros, *ends)


def _one_number(number: float) -> Any:
    return numpy_helper.from_array(np.array([number], np.float32))


# ---- target statistics -------------------------------------------------------------------


def _codes(
    graph: Graph, key: TableKey, name: str, texts: Mapping[str, str], table: TableInput
) -> str:
    """Return the code of each row's value, -1 where it is not known, as a column."""
    if key.codes:
        known = {**key.codes, **dict.fromkeys(table.missing_texts, key.missing)}
        return graph.add(
            "LabelEncoder",
            texts[name],
            domain="ai.onnx.ml",
            keys_strings=list(known),
            values_int64s=list(known.values()),
            default_int64=-1,
        )
    found = graph.add(
        "LabelEncoder",
        name,
        domain="ai.onnx.ml",
        keys_floats=key.numbers.tolist(),
        values_int64s=list(range(key.numbers.size)),
        default_int64=-1,
    )
    return graph.add("Where", graph.add("IsNaN", name), np.int64(key.missing), found)


def _looked_up(
    graph: Graph, statistic: TableStatistic, table: TableInput, codes: Sequence[str]
) -> str:
    """Return the numbers of each row's value, or pair of values."""
    code = codes[statistic.keys[0]]
    for k in statistic.keys[1:]:
        least = graph.add("Min", code, codes[k])
        scaled = graph.add("Mul", code, np.int64(table.keys[k].missing + 1))
        joined = graph.add("Add", scaled, codes[k])
        code = graph.add("Where", graph.add("Less", least, np.int64(0)), np.int64(-1), joined)
    n_entries = statistic.codes.size
    place = graph.add(
        "LabelEncoder",
        code,
        domain="ai.onnx.ml",
        keys_int64s=[-1, *statistic.codes.tolist()],
        values_int64s=[n_entries, *range(n_entries)],
        default_int64=n_entries,
    )
    values = np.vstack([statistic.values, statistic.rest])
    found = graph.add("Gather", values, place, axis=0)
    return graph.add("Reshape", found, np.array([-1, statistic.rest.size]))


# ---- categories and words ----------------------------------------------------------------


def _trimmed(graph: Graph, table: TableInput, names: list[str]) -> dict[str, str]:
    """All columns of texts without the blanks around these, by name of the input."""
    is_text = [column.kind in (CATEGORY, WORDS) for column in table.columns]
    given = [name for name, one in zip(names, is_text, strict=True) if one]
    if not given:
        return {}
    texts = given[0] if len(given) == 1 else graph.add("Concat", *given, axis=1)
    trimmed = graph.add("Reshape", _tokens(graph, texts, TRIMMED), np.array([-1, len(given)]))
    places = [np.array([k]) for k in range(len(given))]
    return {
        name: graph.add("Gather", trimmed, place, axis=1)
        for name, place in zip(given, places, strict=True)
    }


def _tokens(graph: Graph, texts: str, pattern: str, is_small: bool = False) -> str:
    """Return the matches of a pattern in each text, a row for each text."""
    flat = graph.add("Reshape", texts, np.array([-1]))
    flat = graph.add("Concat", flat, np.array([LETTER], object), axis=0)
    if is_small:
        flat = graph.add("StringNormalizer", flat, case_change_action="LOWER", locale="C")
    found = graph.add(
        "Tokenizer",
        flat,
        domain="com.microsoft",
        mark=0,
        mincharnum=1,
        pad_value=NO_WORD,
        tokenexp=pattern,
    )
    return graph.add("Slice", found, np.array([0]), np.array([-1]), np.array([0]))


def _category(graph: Graph, column: TableColumn, texts: str, table: TableInput) -> list[str]:
    known = {**column.values, **dict.fromkeys(table.missing_texts, column.missing)}
    return [_encoded(graph, texts, known, column.rest, table)]


def _words(graph: Graph, column: TableColumn, texts: str, table: TableInput) -> list[str]:
    """A text that is missing has no words."""
    words = _tokens(graph, texts, WORD, is_small=True)
    found = _encoded(graph, words, _with_capitals(column.values), NONE, table)
    blanks = dict.fromkeys(table.missing_texts, 1)
    lacks = graph.cast(_encoded(graph, texts, blanks, 0, table), np.bool_)
    entries = [graph.add("Where", lacks, np.int64(table.end_of_pairs), found)]
    if column.missing != NONE:
        places = np.int64(column.missing), np.int64(table.end_of_pairs)
        entries.append(graph.add("Where", lacks, *places))
    return entries


def _with_capitals(words: Mapping[str, int]) -> dict[str, int]:
    """Words as a normalizer leaves them that makes the letters of ASCII small, and no others.

    Of words with few letters that have other capitals, all spellings; else one in which the first
    letter is a capital, and one in which all are.
    """
    known = dict(words)
    for word, place in words.items():
        letters = [(letter, *_capitals().get(letter, ())) for letter in word]
        if math.prod(map(len, letters)) <= MOST_SPELLINGS:
            spellings = ["".join(one) for one in itertools.product(*letters)]
        else:
            spellings = [first + word[1:] for first in letters[0]]
            spellings.append(
                "".join(c if c.isascii() else _capitals().get(c, [c])[-1] for c in word)
            )
        for other in spellings:
            known.setdefault(other, place)
    return known


@functools.cache
def _capitals() -> dict[str, list[str]]:
    """Return the capitals beyond ASCII of each small letter, the usual one last."""
    found: dict[str, list[str]] = {}
    for capital in map(chr, range(0x80, sys.maxunicode + 1)):
        small = ONE_LETTER.get(capital, capital.lower())
        if small != capital:
            found.setdefault(small, []).append(capital)
    for small, capitals in found.items():
        capitals.sort(key=lambda capital: capital == small.upper())
    return found


def _encoded(
    graph: Graph, texts: str, places: Mapping[str, int], other: int, table: TableInput
) -> str:
    """Whole numbers of texts; no column of X is the one behind the last."""
    spare = table.end_of_pairs
    return graph.add(
        "LabelEncoder",
        texts,
        domain="ai.onnx.ml",
        keys_strings=list(places),
        values_int64s=[spare if place == NONE else place for place in places.values()],
        default_int64=spare if other == NONE else other,
    )


# ---- dates -------------------------------------------------------------------------------


def _moments(graph: Graph, name: str) -> str:
    """Microseconds since 1970, whole."""
    shifted = graph.add("Add", graph.add("Mul", name, np.float64(1e6)), np.float64(0.5))
    return graph.add("Floor", shifted)


def _date(graph: Graph, column: TableColumn, name: str, table: TableInput) -> list[str]:
    """The parts of a date that set columns; a date that is missing sets none."""
    lacks = graph.add("IsNaN", name)
    moments = _moments(graph, graph.add("Where", lacks, np.float64(0), name))
    days = graph.add("Floor", graph.add("Div", moments, A_DAY))
    of_day = graph.add("Sub", moments, graph.add("Mul", days, A_DAY))
    day = graph.cast(days, np.int64)
    entries = []
    for part in PARTS:
        places = np.array(column.parts[part])
        if (places == NONE).all():
            continue
        if part == "hour":
            value = graph.cast(graph.add("Floor", graph.add("Div", of_day, AN_HOUR)), np.int64)
        elif part == "weekday":
            monday = np.int64(3)  # the 1st of January 1970 was a Thursday
            value = graph.add("Mod", graph.add("Add", day, monday), np.int64(7))
        else:
            value = _month(graph, day)
        places = np.where(places == NONE, table.end_of_pairs, places)
        found = graph.add("Gather", places, value)
        entries.append(graph.add("Where", lacks, np.int64(table.end_of_pairs), found))
    return entries


def _month(graph: Graph, day: str) -> str:
    """0 for January, of days since 1970: eras of 400 years, their years, and 153 days in 5 months.

    https://howardhinnant.github.io/date_algorithms.html, civil_from_days
    """

    def of(operator: str, one: Any, other: Any) -> str:
        other = other if isinstance(other, str) else np.int64(other)
        return graph.add(operator, one, other)

    in_era = of("Mod", of("Add", day, 719_468), 146_097)
    leap = of("Sub", of("Div", in_era, 36_524), of("Div", in_era, 1_460))
    leap = of("Sub", leap, of("Div", in_era, 146_096))
    year = of("Div", of("Add", in_era, leap), 365)
    start = of("Sub", of("Add", of("Mul", year, 365), of("Div", year, 4)), of("Div", year, 100))
    in_year = of("Sub", in_era, start)
    from_march = of("Div", of("Add", of("Mul", in_year, 5), 2), 153)
    return of("Mod", of("Add", from_march, 2), 12)


_TEXT_ENTRIES = {CATEGORY: _category, WORDS: _words}
