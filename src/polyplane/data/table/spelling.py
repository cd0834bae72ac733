"""Spelling of the values of a column of categories, whatever stands beside them.

Whole     numbers below 2^63 have neither point nor exponent: 1, not 1.0.
Reals     have the fewest digits that give them back, decimals no zeros at the end.
Flags     are true and false.
Dates     are 2024-01-31, or 2024-01-31 12:00:00 with as many digits of a second as differ from 0.
Times     of a day likewise; durations are seconds.
Texts     stay as they are, but for other spellings of flags, whole numbers and dates that pandas
          writes to CSV: True, 1.0, 2024-01-31 00:00:00 and 2024-01-31T12:00:00.
"""

import datetime
import decimal
import numbers
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from polyplane.data.table.moments import as_moments, moments_of_objects, seconds_of
from polyplane.data.table.texts import Texts, bytes_of, codes_of, stripped

__all__ = [
    "BYTES", "DATES", "families_of", "other_spellings", "respelled", "spelled", "spelled_objects",
    "texts_of",
]  # fmt: skip

FIRST_TOO_LARGE = float(1 << 63)  # of whole numbers that int64 holds
MIDNIGHT = "00:00:00"
NO_FRACTION = r"\.0+$"
ZEROS_AT_END = r"(\.[0-9]*[1-9])0+$"
WHOLE = re.compile(r"(-?[1-9][0-9]*|0)\.0")
MOMENT = re.compile(rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})[ T]([0-9:]{{{len(MIDNIGHT)}}})")
MAY_BE_RESPELLED = re.compile(rb"True|TRUE|False|FALSE|\.0|[0-9][ T][0-9]{2}:")
FLAGS = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}
TEXTS, BYTES, BOOLEANS, DATES, DURATIONS, TIMES, NUMBERS = range(7)
FAMILIES = (
    ((str,), TEXTS),
    ((bytes,), BYTES),
    ((bool, np.bool_), BOOLEANS),
    ((datetime.date, np.datetime64), DATES),
    ((datetime.timedelta, np.timedelta64), DURATIONS),  # which is a number for NumPy
    ((datetime.time,), TIMES),
    ((numbers.Real, decimal.Decimal), NUMBERS),
)


# ---- values with a type ------------------------------------------------------------------


def texts_of(column: Any) -> Texts:
    """Return an Arrow array of any type as text, missing values marked."""
    if pa.types.is_float16(column.type):  # of which older releases of Arrow make no dictionary
        column = column.cast(pa.float32())
    if not pa.types.is_dictionary(column.type):
        column = pc.dictionary_encode(column)
    return stripped(spelled(column.dictionary), codes_of(column.indices))


def spelled(values: Any) -> Any:
    """Return the values of an Arrow array as strings, each as if it stood alone."""
    types = pa.types
    if values.type == pa.string_view():  # Arrow before 18 cannot cast it; polars hands it out
        return pa.array(values.to_pylist(), pa.string())
    if types.is_timestamp(values.type) or types.is_date(values.type):
        strings = _without_zeros(pc.cast(as_moments(values), pa.string()))
        return pc.replace_substring(strings, f" {MIDNIGHT}", "")
    if types.is_duration(values.type):
        values = seconds_of(values)
    strings = pc.cast(values, pa.string())
    if types.is_floating(values.type):
        return _without_points(pc.cast(values, pa.float64()), strings)
    has_zeros = types.is_time(values.type) or types.is_decimal(values.type)
    return _without_zeros(strings) if has_zeros else strings


def _without_zeros(strings: Any) -> Any:
    """Return decimal strings without zeros at the end of a fraction."""
    strings = pc.replace_substring_regex(strings, NO_FRACTION, "")
    return pc.replace_substring_regex(strings, ZEROS_AT_END, r"\1")


def _without_points(reals: Any, strings: Any) -> Any:
    """Return the strings of real numbers, those of whole ones as integers are written."""
    is_small = pc.less(pc.abs(reals), FIRST_TOO_LARGE)
    is_whole = pc.and_kleene(is_small, pc.equal(pc.floor(reals), reals))
    whole = pc.cast(pc.if_else(is_whole, reals, 0.0), pa.int64())
    return pc.if_else(is_whole, pc.cast(whole, pa.string()), strings)


# ---- values of Python --------------------------------------------------------------------


def families_of(kinds: Iterable[type]) -> set[int | None]:
    """Return the families of some types, None for values that are no cell of a table.

    An Arrow array of several families says of some values something else than they are.
    """
    return {
        next((family for known, family in FAMILIES if issubclass(kind, known)), None)
        for kind in kinds
    }


def spelled_objects(values: Sequence[Any]) -> list[str]:
    """Return Python values of any families as strings, each as if it stood alone."""
    places: dict[type, list[int]] = {}
    for place, value in enumerate(values):
        places.setdefault(type(value), []).append(place)
    texts = [""] * len(values)
    for kind, of_kind in places.items():
        strings = _of_one_type(kind, [values[place] for place in of_kind])
        for place, text in zip(of_kind, strings, strict=True):
            texts[place] = text
    return texts


def _of_one_type(kind: type, values: Sequence[Any]) -> list[str]:
    (family,) = families_of([kind])
    if family == TEXTS:
        return [str(value) for value in values]
    if family == BYTES:
        return [value.decode("utf-8", "replace") for value in values]
    if family == NUMBERS and issubclass(kind, numbers.Integral):
        return [str(int(value)) for value in values]
    if issubclass(kind, decimal.Decimal):
        strings: list[str] = _without_zeros(pa.array([f"{one:f}" for one in values])).to_pylist()
        return strings
    if family == NUMBERS:
        is_short = issubclass(kind, np.float16 | np.float32)
        array = pa.array(np.array(values, np.float32 if is_short else np.float64))
    elif family == DATES:
        array = moments_of_objects(values)
    elif family == DURATIONS:
        array = pa.array([np.timedelta64(value, "us").item() for value in values])
    else:
        array = pa.array(values)
    found: list[str] = spelled(array).to_pylist()
    return found


# ---- texts -------------------------------------------------------------------------------


def respelled(texts: Texts) -> Texts:
    """Return the same texts, where flags, whole numbers and dates are spelled as values are."""
    if MAY_BE_RESPELLED.search(bytes_of(texts.values)) is None:
        return texts
    written = texts.values.to_pylist()
    values = [_respelled(text) for text in written]
    return texts if values == written else stripped(pa.array(values, pa.string()), texts.codes)


def _respelled(text: str) -> str:
    whole, moment = WHOLE.fullmatch(text), MOMENT.fullmatch(text)
    if whole is not None:
        return whole[1]
    if moment is not None:
        day, time = moment.groups()
        return day if time == MIDNIGHT else f"{day} {time}"
    return FLAGS.get(text, text)


def other_spellings(value: str) -> list[str]:
    """Return the texts that are respelled to a value."""
    candidates = [f"{value}.0", f"{value} {MIDNIGHT}", f"{value}T{MIDNIGHT}", *FLAGS]
    candidates.append(value.replace(" ", "T", 1))
    return [text for text in candidates if text != value and _respelled(text) == value]
