"""SQL as it is written: dialects, literals, sums, branches, and a query of sub-selects."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from polyplane.arrays import Array
from polyplane.model.format.model_file import ModelError

__all__ = ["DIALECTS", "Dialect", "Query", "branches", "identifier", "number", "text", "total"]

TERMS = 40  # of a sum or a function: SQLite takes 127 arguments, and expressions 1,000 deep
LEAVES = 8  # of a CASE; longer ones are searched by halves
OWN_NAME = re.compile(r"\b[a-z]+_[0-9]+\b")  # of a column of a sub-select
BLANKS = (
    *(*range(0x09, 0x0E), *range(0x1C, 0x21), 0x85, 0xA0, 0x1680),
    *(*range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000),
)


# ---- literals ----------------------------------------------------------------------------


def identifier(name: str) -> str:
    """Return a name in double quotes."""
    _check_characters(name)
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return a string literal."""
    _check_characters(value)
    return "'" + value.replace("'", "''") + "'"


def _check_characters(value: str) -> None:
    if "\0" in value:
        raise ModelError(f"{value!r} holds a NUL character, which SQL cannot write: rename it")


def number(value: float) -> str:
    """Return a literal of double precision, with all digits.

    The exponent is always there: without one DuckDB reads a decimal number.
    """
    value = float(value)
    if not math.isfinite(value):
        raise ModelError(
            "the model holds numbers that are not finite, which SQL cannot write: scale the columns"
        )
    digits = repr(value)
    return digits if "e" in digits else f"{digits}e0"


# ---- expressions -------------------------------------------------------------------------


def total(terms: Sequence[str]) -> str:
    """Return the sum of some terms, in parts that keep the expression flat."""
    if not terms:
        return number(0.0)
    while len(terms) > TERMS:
        parts = [terms[k : k + TERMS] for k in range(0, len(terms), TERMS)]
        terms = [f"({' + '.join(part)})" for part in parts]
    return " + ".join(terms)


def branches(value: str, starts: Sequence[str], results: Sequence[str]) -> str:
    """Return a CASE of the result whose start is the last that is not above a value.

    Starts rise, and the first result has none. Long ones are searched by halves.
    """
    if len(results) <= LEAVES:
        whens = zip(starts, results, strict=False)
        arms = " ".join(f"WHEN {value} < {start} THEN {result}" for start, result in whens)
        return f"CASE {arms} ELSE {results[-1]} END" if arms else results[0]
    middle = len(results) // 2
    low = branches(value, starts[: middle - 1], results[:middle])
    high = branches(value, starts[middle:], results[middle:])
    return f"CASE WHEN {value} < {starts[middle - 1]} THEN {low} ELSE {high} END"


# ---- dialects ----------------------------------------------------------------------------


def _pick_by_case(index: str, values: Array) -> str:
    starts = [str(place) for place in range(1, len(values))]
    return branches(index, starts, list(map(number, values.tolist())))


def _pick_from_list(index: str, values: Array) -> str:
    """DuckDB plans a list that is one text many times faster than a CASE."""
    numbers = ", ".join(map(number, values.tolist()))
    return f"CAST('[{numbers}]' AS DOUBLE[])[{index} + 1]"


@dataclass(frozen=True)
class Dialect:
    """The words of a database; `{}` stands for an expression."""

    name: str
    requires: str
    greatest: str
    least: str
    as_number: str  # NULL where there is none
    as_text: str
    blanks: str  # that are trimmed
    as_moment: str  # what the next four take
    seconds: str  # since 1970
    parts: Mapping[str, str]  # of a date, counted from 0: months, days from Monday on, hours
    single: str  # rounded to single precision, where the database can
    floor: str  # of a number that is not negative, as a whole number
    sub_select: str  # how one begins; it must be computed once
    most_columns: int  # of a sub-select
    whole_below: int  # whole numbers below it are exact
    pick: Callable[[str, Array], str]  # one of some numbers, by its place from 0 on

    def bounds(self, value: str, low: float, high: float) -> str:
        """Return an expression that is not NULL, kept within two numbers."""
        return f"{self.greatest}({self.least}({value}, {number(high)}), {number(low)})"

    def call(self, function: str, values: Sequence[str]) -> str:
        """Return the greatest or least of some values, a part of them at a time."""
        while len(values) > 1:
            parts = [values[k : k + TERMS] for k in range(0, len(values), TERMS)]
            values = [
                f"{function}({', '.join(part)})" if len(part) > 1 else part[0] for part in parts
            ]
        return values[0]


_NAN = "CAST('NaN' AS DOUBLE PRECISION)"
_BLANKS = " || ".join(f"CHR({code})" for code in BLANKS)
_OF_TIMESTAMPS = {
    "month": "CAST(EXTRACT(MONTH FROM {0}) AS INTEGER) - 1",
    "weekday": "CAST(EXTRACT(ISODOW FROM {0}) AS INTEGER) - 1",
    "hour": "CAST(EXTRACT(HOUR FROM {0}) AS INTEGER)",
}
DUCKDB = Dialect(
    name="duckdb",
    requires="DuckDB",
    greatest="GREATEST",
    least="LEAST",
    as_number=f"NULLIF(TRY_CAST({{0}} AS DOUBLE), {_NAN})",
    as_text="CAST({0} AS VARCHAR)",
    blanks=_BLANKS,
    as_moment="TRY_CAST({0} AS TIMESTAMP)",
    seconds="EXTRACT(EPOCH FROM {0})",
    parts=_OF_TIMESTAMPS,
    single="TRY_CAST({0} AS REAL)",
    floor="CAST(FLOOR({0}) AS INTEGER)",
    sub_select="AS",
    most_columns=1 << 16,
    whole_below=1 << 127,
    pick=_pick_from_list,
)
POSTGRES = Dialect(
    name="postgres",
    requires="PostgreSQL 12 or newer",
    greatest="GREATEST",
    least="LEAST",
    as_number=f"NULLIF(CAST({{0}} AS DOUBLE PRECISION), {_NAN})",
    as_text="CAST({0} AS VARCHAR)",
    blanks=_BLANKS,
    as_moment="CAST({0} AS TIMESTAMP)",
    seconds="EXTRACT(EPOCH FROM {0})",
    parts=_OF_TIMESTAMPS,
    single="CAST({0} AS REAL)",
    floor="CAST(FLOOR({0}) AS INTEGER)",
    sub_select="AS MATERIALIZED",
    most_columns=1_600,
    whole_below=1 << 63,
    pick=_pick_by_case,
)
SQLITE = Dialect(
    name="sqlite",
    requires="SQLite 3.35 or newer with its mathematical functions, exp and ln",
    greatest="MAX",
    least="MIN",
    as_number="CASE WHEN TRIM({0}) IN ({missing}) THEN NULL ELSE CAST({0} AS REAL) END",
    as_text="CAST({0} AS TEXT)",
    blanks=f"char({', '.join(map(str, BLANKS))})",
    as_moment="NULLIF(TRIM({0}), '')",
    seconds="CAST(STRFTIME('%s', {0}) AS REAL) + STRFTIME('%f', {0}) - STRFTIME('%S', {0})",
    parts={
        "month": "CAST(STRFTIME('%m', {0}) AS INTEGER) - 1",
        "weekday": "(CAST(STRFTIME('%w', {0}) AS INTEGER) + 6) % 7",
        "hour": "CAST(STRFTIME('%H', {0}) AS INTEGER)",
    },
    single="(({0}) * 536870913e0 - (({0}) * 536870913e0 - ({0})))",  # by 2^29 + 1: Veltkamp
    floor="CAST({0} AS INTEGER)",
    sub_select="AS MATERIALIZED",
    most_columns=2_000,
    whole_below=1 << 63,
    pick=_pick_by_case,
)
DIALECTS = {dialect.name: dialect for dialect in (DUCKDB, SQLITE, POSTGRES)}


# ---- queries -----------------------------------------------------------------------------


class Query:
    """Sub-selects so far, each over the one before it; the first is over the table, called r.

    Columns of sub-selects have names of our own, such as x_3. A sub-select hands on those columns
    of the ones before it that later ones use.
    """

    def __init__(self, dialect: Dialect, keys: Sequence[str]) -> None:
        self.dialect = dialect
        self.keys = {f"key_{k}": key for k, key in enumerate(keys)}
        self.selects: list[tuple[str, dict[str, str]]] = []

    def select(self, name: str, columns: Mapping[str, str]) -> None:
        """Add a sub-select of some expressions by name, unless there are none."""
        if not self.selects:
            keys = {own: f"r.{identifier(key)}" for own, key in self.keys.items()}
            self.selects.append((name, {**keys, **columns}))
        elif columns:
            self.selects.append((name, dict(columns)))

    def statement(self, table: Sequence[str], outputs: Mapping[str, str]) -> str:
        """Return the whole; the last select has keys, and expressions by name."""
        prefix = "model"
        while any(table[-1].casefold() == f"{prefix}_{name}" for name, _ in self.selects):
            prefix += "_"
        outputs = {**{key: own for own, key in self.keys.items()}, **outputs}
        needed = set(OWN_NAME.findall(" ".join(outputs.values())))
        parts: list[str] = []
        for place in reversed(range(len(self.selects))):
            name, columns = self.selects[place]
            before = {own for _, earlier in self.selects[:place] for own in earlier}
            kept = [own for own in sorted(needed & before) if own not in columns]
            lines = [*kept, *(f"{value} AS {own}" for own, value in columns.items())]
            self._check_columns(len(lines))
            source = f"{prefix}_{self.selects[place - 1][0]}"
            if place == 0:
                source = f"{'.'.join(identifier(part) for part in table)} AS r"
            select = ",\n    ".join(lines)
            opening = f"{prefix}_{name} {self.dialect.sub_select}"
            parts.append(f"{opening} (\n  SELECT\n    {select}\n  FROM {source}\n)")
            needed |= {own for value in columns.values() for own in OWN_NAME.findall(value)}
        select = ",\n  ".join(f"{value} AS {identifier(name)}" for name, value in outputs.items())
        source = f"{prefix}_{self.selects[-1][0]}"
        return f"WITH {', '.join(reversed(parts))}\nSELECT\n  {select}\nFROM {source}\n"

    def _check_columns(self, n_columns: int) -> None:
        if n_columns > self.dialect.most_columns:
            raise ModelError(
                f"the query would have a sub-select of {n_columns:,} columns, and "
                f"{self.dialect.name} has at most {self.dialect.most_columns:,}: fit with fewer "
                "columns or planes, or choose the dialect duckdb"
            )
