"""Kind of each column of a table: by its type, or by its texts where the type leaves it open.

Number     whole, real or decimal numbers; texts that all are numbers.
Flag       truth values, and texts that all are true or false: 0 or 1.
Date       days since the first one and parts of the calendar (see `moments`); texts by ISO 8601.
Seconds    durations and times of a day.
Category   a type that says so, and texts that come again.
Text       most cells differ and hold several words: words are what comes again.
           Numbers of which no two rows have the same are such where they count the rows, or where
           the name of the column says so.
Empty      no row of training has a value: numbers are numbers, anything else is unknown.
Aside      nearly every cell differs and is a word or a few: an id, a name, an address. It says
           nothing about rows to come, and is not read unless the user calls it a category.
"""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from polyplane.data.chunks import Array
from polyplane.data.table.moments import are_dates
from polyplane.data.table.texts import NONE, Texts, bytes_of, strings_of

__all__ = [
    "ASIDE", "CATEGORY", "DATE", "EMPTY", "FLAG", "KINDS", "LIST", "NO_NUMBERS", "NUMBER",
    "NUMERIC", "OPEN", "SECONDS", "TEXT", "UNDECIDED", "UNKNOWN", "counts_rows",
    "flags_of", "identifies_rows", "is_called_identifier", "is_word", "kind_of_texts",
    "kind_of_type", "known_numbers", "numbers_of_texts",
]  # fmt: skip

NUMBER, FLAG, DATE, SECONDS = "number", "flag", "date", "seconds"
CATEGORY, TEXT, ASIDE, EMPTY = "category", "text", "aside", "empty"
KINDS = NUMBER, FLAG, DATE, SECONDS, CATEGORY, TEXT, ASIDE, EMPTY
NUMERIC = NUMBER, FLAG, SECONDS, EMPTY  # a number in each row, and nothing else
UNDECIDED = "undecided"  # text of which no cell has been seen
NO_NUMBERS = "no numbers"  # the same, of which some have been
OPEN = UNDECIDED, NO_NUMBERS
LIST, UNKNOWN = "list", "unknown"  # types that are no column of a table
MIN_ROWS_TO_KNOW_IDS = 50  # with values; from fewer nobody can tell ids from categories
NEARLY_ALL, MOST = 0.9, 0.5  # shares of cells that differ: of ids, of texts
MIN_WORDS_OF_TEXT = 5  # on average; names and addresses have fewer
TEXTS_COUNTED = 1_000  # texts whose words are counted
BETWEEN_WORDS = re.compile(rb"[\t\n\f\r ]+")  # what Arrow takes for white space
SELDOM_BETWEEN_WORDS = b"  ", b"\t", b"\n", b"\f", b"\r"
FLAGS = "true", "false"
IDENTIFIER = re.compile(r"((?i:.*[^a-zA-Z])?(?i:id|uid|uuid|guid|index|rowid)|.*[a-z](Id|ID))")
NUMBER_TEXT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def kind_of_type(kind: Any) -> str:
    """Return the kind of a column of an Arrow type; UNDECIDED of texts."""
    types = pa.types
    if types.is_dictionary(kind):
        inner = kind_of_type(kind.value_type)
        return inner if inner in (LIST, UNKNOWN) else CATEGORY
    if types.is_boolean(kind):
        return FLAG
    if kind in (pa.string(), pa.large_string(), pa.string_view()):
        return UNDECIDED
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return LIST if kind_of_type(kind.value_type) in (NUMBER, FLAG) else UNKNOWN
    if types.is_timestamp(kind) or types.is_date(kind):
        return DATE
    if types.is_duration(kind) or types.is_time(kind):
        return SECONDS
    tests = types.is_integer, types.is_floating, types.is_decimal, types.is_null
    return NUMBER if any(test(kind) for test in tests) else UNKNOWN


def kind_of_texts(texts: Texts, may_be_number: bool = True) -> str:
    """Return the kind of a column of texts, by those that stand in rows."""
    n_values, n_rows = texts.tally.n_used, texts.codes.size - texts.n_missing
    if n_values == 0:
        return NUMBER
    present = texts.present()
    first = present[0].as_py()
    if may_be_number and NUMBER_TEXT.fullmatch(first) and _are_numbers(present):
        return NUMBER
    if first.lower() in FLAGS and flags_of(present) is not None:
        return FLAG
    if first[:1].isdigit() and are_dates(present):
        return DATE
    share = n_values / n_rows
    if n_rows < MIN_ROWS_TO_KNOW_IDS or share <= MOST:
        return CATEGORY
    if _mean_words(present) >= MIN_WORDS_OF_TEXT:
        return TEXT
    return ASIDE if share > NEARLY_ALL else CATEGORY


def _mean_words(values: Any) -> float:
    """Return the mean number of words of the first texts, which have no blanks around them."""
    text, n_texts = bytes_of(values.slice(0, TEXTS_COUNTED)), min(len(values), TEXTS_COUNTED)
    is_plain = not any(blanks in text for blanks in SELDOM_BETWEEN_WORDS)
    n_between = text.count(b" ") if is_plain else len(BETWEEN_WORDS.findall(text))
    return 1 + n_between / n_texts


def _are_numbers(values: Any) -> bool:
    try:
        numbers = pc.cast(values, pa.float64())
    except pa.ArrowInvalid:
        return False
    return bool(pc.all(pc.is_finite(numbers)).as_py())


def flags_of(values: Any) -> Any:
    """Truth values of texts as an Arrow array; None if one is neither true nor false."""
    if len(values) == 0 or values[0].as_py().lower() not in FLAGS:
        return None
    lower = pc.utf8_lower(values)
    is_true = pc.is_in(lower, value_set=strings_of(["true"]))
    is_known = pc.is_in(lower, value_set=strings_of(list(FLAGS)))
    return is_true if pc.all(is_known).as_py() else None


def is_word(text: str) -> bool:
    """Return True if a text is neither a number nor a truth value nor a date."""
    is_plain = NUMBER_TEXT.fullmatch(text) or text.lower() in FLAGS
    return not is_plain and not are_dates(strings_of([text]))


def numbers_of_texts(texts: Texts) -> tuple[Array, str | None]:
    """The number that each row writes out, NaN where there is none, and a text that is no number.

    True and false are 1 and 0.
    """
    used, present = texts.used, texts.present()
    table = np.full(len(texts.values) + 1, np.nan)  # NONE reads the last
    flags = flags_of(present)
    try:
        numbers = pc.cast(present if flags is None else pc.cast(flags, pa.uint8()), pa.float64())
    except pa.ArrowInvalid:
        return np.empty(0), next(text for text in present.to_pylist() if not _is_number(text))
    if len(used):
        table[used] = np.frombuffer(numbers.buffers()[1], np.float64)[: len(used)]
    assert NONE == -1
    return table[texts.codes], None


def identifies_rows(numbers: Array) -> bool:
    """Return True if no two rows have the same number, and all are whole."""
    few = numbers[:TEXTS_COUNTED]
    if (
        numbers.size < MIN_ROWS_TO_KNOW_IDS
        or not np.isfinite(numbers).all()
        or np.unique(few).size < few.size
    ):
        return False
    is_whole = bool((np.floor(numbers) == numbers).all())
    return is_whole and np.unique(numbers).size == numbers.size


def counts_rows(numbers: Array) -> bool:
    """Return True if numbers rise by one from 0 or 1 on."""
    return numbers[0] in (0, 1) and bool((np.diff(numbers) == 1).all())


def is_called_identifier(name: str) -> bool:
    """Return True if the name of a column says that it tells rows apart, such as user_id."""
    return IDENTIFIER.fullmatch(name.strip()) is not None


def known_numbers(texts: Texts) -> Array:
    """Return the number that each row writes out, NaN where there is none or something else."""
    present = texts.present().to_pylist()
    numbers = [text if NUMBER_TEXT.fullmatch(text) else None for text in present]
    table = np.full(len(texts.values) + 1, np.nan)  # NONE reads the last
    table[texts.used] = [np.nan if number is None else float(number) for number in numbers]
    return table[texts.codes]


def _is_number(text: str) -> bool:
    try:
        pc.cast(pa.array([text]), pa.float64())
    except pa.ArrowInvalid:
        return False
    return True
