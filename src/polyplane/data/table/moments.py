"""Dates and times as numbers: days since a first one, and the parts of a calendar that vary.

A date is a number for what grows with time, and categories for what comes again: its month, its
day of the week and its hour.
"""

import datetime
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from polyplane.data.chunks import Array
from polyplane.data.table.texts import NONE, Texts, arrow_of, codes_of, is_null, strings_of

__all__ = [
    "PARTS", "are_dates", "as_moments", "days_of", "earliest", "moments_of_objects",
    "moments_of_texts", "part_of", "seconds_of",
]  # fmt: skip

ISO_ZONE = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
ISO_TIME = rf"[ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}(\.[0-9]{{1,6}})?)?({ISO_ZONE[:-1]})?"
ISO_DATE = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}({ISO_TIME})?$"
MOMENT = pa.timestamp("us")
MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 0.001}
OF_A_DAY = 86_400_000_000
PARTS = {  # by Arrow's function, which is loaded when it is used
    "month": ("month", range(1, 13)),
    "weekday": ("day_of_week", range(7)),  # 0 is Monday
    "hour": ("hour", range(24)),
}


def are_dates(values: Any) -> bool:
    """Return True if all texts are dates as ISO 8601 writes them."""
    if len(values) == 0 or re.match(ISO_DATE, values[0].as_py()) is None:
        return False
    if not pc.all(pc.match_substring_regex(values, ISO_DATE)).as_py():
        return False
    try:
        _moments(values)
    except pa.ArrowInvalid:  # such as the 30th of February
        return False
    return True


def _moments(values: Any) -> Any:
    """Dates that texts write out, those of a time zone as its clocks show them."""
    if pc.any(pc.match_substring_regex(values, rf":[0-9.:]+{ISO_ZONE}")).as_py():
        values = pc.replace_substring_regex(values, rf"(:[0-9.:]+){ISO_ZONE}", r"\1")
    return pc.cast(values, MOMENT)


def moments_of_texts(texts: Texts) -> Any:
    """The date that each row writes out, as an Arrow array."""
    used = texts.used
    places = np.full(len(texts.values) + 1, NONE, np.int32)  # NONE reads the last
    places[used] = np.arange(used.size)
    codes = places[texts.codes]
    moments = _moments(texts.present())
    return moments.take(arrow_of(codes, codes == NONE))


def as_moments(column: Any) -> Any:
    """Dates of any type of Arrow in microseconds; those of a time zone as its clocks show them."""
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = pc.local_timestamp(column)
    return pc.cast(column, MOMENT, safe=False)


def moments_of_objects(values: Sequence[Any]) -> Any:
    """Return dates of Python and NumPy likewise, whatever type and time zone each of them has."""
    return pa.array([_clock(value) for value in values], MOMENT, safe=False)


def _clock(value: Any) -> Any:
    if isinstance(value, np.datetime64):
        value = value.astype("M8[us]").item()
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    return datetime.datetime.combine(value, datetime.time.min)


def days_of(moments: Any, origin: float) -> Array:
    """Days since a moment in microseconds; NaN where there is none."""
    days = (_numbers(moments) - origin) / OF_A_DAY
    return np.where(is_null(moments), np.nan, days) if moments.null_count else days


def earliest(moments: Any) -> float:
    """The first of some moments in microseconds, at the beginning of its day."""
    found = pc.min(pc.cast(moments, pa.int64())).as_py()
    return 0.0 if found is None else float(found // OF_A_DAY * OF_A_DAY)


def part_of(moments: Any, part: str) -> Texts:
    """A part of each date, as a category."""
    name, numbers = PARTS[part]
    codes = codes_of(getattr(pc, name)(moments))
    codes = np.where(codes == NONE, NONE, codes - numbers.start).astype(np.int32)
    return Texts(strings_of([str(number) for number in numbers]), codes)


def seconds_of(column: Any) -> Any:
    """Durations and times of day as an Arrow array of seconds."""
    per_second = 1_000_000 / MICROSECONDS[column.type.unit]
    is_short = pa.types.is_time32(column.type)
    plain = pc.cast(column, pa.int32() if is_short else pa.int64())
    return pc.divide(pc.cast(plain, pa.float64(), safe=False), per_second)


def _numbers(moments: Any) -> Array:
    buffer = moments.buffers()[1]
    if buffer is None:
        return np.empty(0)
    there = np.frombuffer(buffer, np.int64)[moments.offset :][: len(moments)]
    return there.astype(np.float64)
