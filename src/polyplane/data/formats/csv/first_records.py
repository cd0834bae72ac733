"""Header, width and columns of texts of a CSV text, by its first records."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from polyplane.data.chunks import DataError
from polyplane.data.formats.csv.records import Block, Record, records_of
from polyplane.data.table.layout import Layout, Places
from polyplane.data.table.texts import MISSING_TEXTS

__all__ = [
    "A_NUMBER", "FirstRecords", "hint_at_blanks", "is_number", "is_numbered", "is_text", "listed",
    "look_at", "number_of_text", "remark_commas", "utf8_of",
]  # fmt: skip

ROWS_LOOKED_AT = 200  # to tell text from numbers
MIN_TEXTS_AMONG_NUMBERS = 10  # among numbers, and one in so many: no slips of the pen
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
NOT_A_NUMBER = re.compile(r"[+-]?nan(\([a-z0-9_]*\))?", re.IGNORECASE)
INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)  # refused with its row, as too large
MAY_BE_NUMBER = re.compile(r"[+-]?[0-9.in]", re.IGNORECASE)  # how all of these begin
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+([eE][+-]?[0-9]+)?")
MOST_NAMED = 10  # columns in one sentence
A_NUMBER = "a number; if that column holds text, name it in text_columns"
MISSING = frozenset(MISSING_TEXTS)


FirstColumn = Mapping[str, int]  # how often each text stands there, without those that are missing


class Look(NamedTuple):
    """Facts about a CSV text: header, width, names and columns."""

    has_header: bool
    width: int
    names: list[str] | None
    columns: list[FirstColumn]  # below the header


class FirstRecords:
    """The first records of a block."""

    def __init__(self, block: Block, delimiter: str, path: str, has_quotes: bool) -> None:
        records = records_of(block, delimiter, path, has_quotes)
        self.records = list(islice(records, ROWS_LOOKED_AT + 1))

    @property
    def first(self) -> Record:
        """The first of them."""
        return self.records[0]

    def usual_width(self) -> int:
        """The most frequent number of fields, so that a bad first record does not decide."""
        return Counter(len(record.fields) for record in self.records).most_common(1)[0][0]

    def columns(self, width: int, start: int) -> list[FirstColumn]:
        """The columns of records of that width, from the first or the second record on."""
        rows = [record.fields for record in self.records[start:] if len(record.fields) == width]
        columns = list(zip(*rows, strict=True)) if rows else [()] * width
        return [_present(texts) for texts in columns]


def look_at(records: FirstRecords, header: bool | None, path: str) -> Look:
    """Return the facts that first records show; the header may be known."""
    width = len(records.first.fields)
    below = records.columns(width, 1) if header is not False else []
    has_header = _is_header(records.first, below) if header is None else header
    if not has_header:
        width = records.usual_width()
        return Look(False, width, None, records.columns(width, 0))
    return Look(True, width, _names_of(records.first, path), below)


def _names_of(record: Record, path: str) -> list[str]:
    try:
        return [utf8_of(name).strip() for name in record.fields]
    except ValueError as error:
        raise DataError(f"found other bytes in the header, expected {error}", path, 1) from None


def _present(column: Iterable[str]) -> dict[str, int]:
    """Count the texts of a column in the order they are met, without missing values."""
    found: dict[str, int] = Counter(column)
    texts = [text.strip() for text in found]
    if texts != list(found):
        padded, found = found, {}
        for text, n in zip(texts, padded.values(), strict=True):
            found[text] = found.get(text, 0) + n
    for text in MISSING_TEXTS:
        found.pop(text, None)
    return found


def is_text(column: FirstColumn) -> bool:
    """True if more than half of the values that are present are no numbers, or a good tenth."""
    if _are_plain_numbers(column):
        return False
    n_texts = sum(n for text, n in column.items() if not is_number(text))
    n_present = sum(column.values())
    is_often = n_texts >= MIN_TEXTS_AMONG_NUMBERS and MIN_TEXTS_AMONG_NUMBERS * n_texts > n_present
    return is_often or 2 * n_texts > n_present


def _are_numbers(column: FirstColumn) -> bool:
    """True if there are values, and all are finite numbers."""
    return bool(column) and all(map(NUMBER.fullmatch, column))


def _are_plain_numbers(texts: Iterable[str]) -> bool:
    """True if all are numbers, beyond doubt: Python takes 1_0, too, and digits of other scripts."""
    try:
        for text in texts:
            float(text)
    except ValueError:
        return False
    together = "".join(texts)
    return "_" not in together and together.isascii()


def _is_header(record: Record, below: Sequence[FirstColumn]) -> bool:
    titles = [title.strip() for title in record.fields]
    if all(title in MISSING for title in titles) or any(map(NUMBER.fullmatch, titles)):
        return False
    for title, column in zip(titles, below, strict=True):
        if title not in MISSING and _are_numbers(column):
            return True
    return not any(title in column for title, column in zip(titles, below, strict=True))


def is_numbered(records: FirstRecords) -> bool:
    """True if the first record counts from 0 or 1, and has words that its columns have not."""
    titles = [title.strip() for title in records.first.fields]
    numbers = [title for title in titles if NUMBER.fullmatch(title)]
    counts = [[str(k + start) for k in range(len(numbers))] for start in (0, 1)]
    if len(numbers) < 2 or numbers not in counts:
        return False
    words = zip(titles, records.columns(len(titles), 1), strict=True)
    is_new = [title not in column for title, column in words if title not in numbers]
    return bool(is_new) and all(is_new) and bool(_present(set(titles) - set(numbers)))


def hint_at_blanks(records: FirstRecords, width: int) -> str:
    """Words for those whose columns are parted by blanks, if they look so."""
    if width > 1 or not all(" " in record.fields[0].strip() for record in records.records):
        return ""
    return "; if blanks part the columns, state delimiter=' ' (--delimiter ' ')"


def remark_commas(
    columns: Sequence[FirstColumn], places: Places, layout: Layout, path: str
) -> None:
    """Point out texts that are numbers to those who write 1,5 for 1.5."""
    labels = [places.label] if places.label is not None and layout.label_is_text else []
    found = {}
    for place in sorted(places.texts + labels):
        texts = columns[place]
        commas = [text for text in texts if "," in text and DECIMAL_COMMA.fullmatch(text)]
        others = texts.keys() - commas if commas else set()
        if commas and all(map(NUMBER.fullmatch, others)):
            found[place] = commas[0]
    if found:
        layout.remark(
            f"found numbers with decimal commas, such as {next(iter(found.values()))!r}, in "
            f"{listed(list(found), places)}, which are read as texts: write decimal points",
            path,
        )


def listed(positions: Sequence[int], places: Places) -> str:
    """Columns by name, or counted from 1, not all of many."""
    names = places.names
    known = [repr(names[place]) if names else str(place + 1) for place in positions[:MOST_NAMED]]
    more = f" and {len(positions) - MOST_NAMED} more" if len(positions) > MOST_NAMED else ""
    return f"column{'s' * (len(positions) > 1)} {', '.join(known)}{more}"


# ---- single texts ------------------------------------------------------------------------


def number_of_text(text: str) -> float | None:
    """Return a text as the number that Arrow reads; None if it is missing."""
    text = text.strip(" \t")
    if not is_number(text):
        raise ValueError(A_NUMBER)
    return None if text in MISSING or NOT_A_NUMBER.fullmatch(text) else float(text)


def is_number(text: str) -> bool:
    """True of what Arrow takes for a number, or for a missing one."""
    text = text.strip(" \t")
    if text in MISSING:
        return True
    kinds = (NUMBER, INFINITE, NOT_A_NUMBER) if MAY_BE_NUMBER.match(text) else ()
    return any(kind.fullmatch(text) for kind in kinds)


def utf8_of(text: str) -> str:
    """The text, if its bytes without quotes are UTF-8; those that were not are surrogates."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError:
        raise ValueError("UTF-8; convert the file to it") from None
