"""Columns of a table, or of a matrix, in SQL: what is known of them before planes see them.

Numbers     NULL and NaN are missing: the median then, and a choice that says so.
Dates       timestamps; in SQLite texts as ISO 8601 writes them.
Categories  texts without the blanks around them, or anything that is cast to text.
Statistics  the place of a value, or of a pair of values, among those that are known.
Free text   is refused: a table that has some is exported to ONNX.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from polyplane.arrays import Array
from polyplane.model.export.content import Exported, Scaling
from polyplane.model.export.sql_queries.text import (
    Dialect,
    Query,
    branches,
    identifier,
    number,
    text,
)
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
from polyplane.model.format.model_file import ModelError

__all__ = ["Choice", "Columns", "scaled_values", "select_columns"]

WHOLE_IN_SINGLE = 1 << 24  # below it whole numbers are exact


@dataclass(frozen=True)
class Choice:
    """Columns of X of which a row sets one, or none: of a category, or of a missing value."""

    name: str  # of the number of the choice, from 0 on
    places: Sequence[int]  # the column of X of each choice, or NONE


@dataclass
class Columns:
    """Columns of X: names of their numbers, and choices that set the others."""

    numbers: dict[int, str] = field(default_factory=dict)
    choices: list[Choice] = field(default_factory=list)


def select_columns(query: Query, exported: Exported) -> Columns:
    """Add the sub-selects that end with the columns of X, scaled."""
    made = Columns()
    table = exported.table
    if table is None:
        names = exported.column_names or [f"x{j}" for j in range(exported.n_columns)]
        _check_names(names)
        inputs = {f"number_{j}": _number(query.dialect, name) for j, name in enumerate(names)}
        values = {f"x_{j}": query.dialect.single.format(f"number_{j}") for j in range(len(names))}
        made.numbers.update({j: f"x_{j}" for j in range(len(names))})
        query.select("inputs", inputs)
        query.select("columns", values)
    else:
        _select_table(query, table, made)
    if exported.scalings:
        scaled = {
            f"scaled_{j}": _scaled(query.dialect, own, exported.scalings, j)
            for j, own in made.numbers.items()
        }
        query.select("scaled", scaled)
        made.numbers = {j: f"scaled_{j}" for j in made.numbers}
    return made


def _check_names(names: Sequence[str]) -> None:
    """Databases find columns in spite of capitals, so that names differ in more than these."""
    folded = [name.casefold() for name in names]
    for name in names:
        if folded.count(name.casefold()) > 1:
            raise ModelError(
                f"two columns are called {name!r}, if small and capital letters are the same, as "
                "they are in SQL: give others as column_names"
            )


# ---- numbers -----------------------------------------------------------------------------


def _number(dialect: Dialect, name: str, missing: Sequence[str] = ("",)) -> str:
    """Return the number of a column of the user's table, NULL where there is none."""
    texts = ", ".join(text(one) for one in missing)
    return dialect.as_number.format(f"r.{identifier(name)}", missing=texts)


def _scaled(dialect: Dialect, own: str, scalings: Sequence[Scaling], j: int) -> str:
    value = own
    for scaling in scalings:
        if scaling.shift is not None:
            value = f"({value} - {number(scaling.shift[j])})"
        if scaling.divisor is not None:
            value = f"({value} / {number(scaling.divisor[j])})"
        if scaling.limits is not None:
            value = dialect.bounds(value, *scaling.limits)
    return f"CASE WHEN {own} IS NOT NULL THEN {value} END"


def scaled_values(scalings: Sequence[Scaling], j: int, values: Array) -> Array:
    """Return what scalings make of values of column j of X."""
    for scaling in scalings:
        if scaling.shift is not None:
            values = values - scaling.shift[j]
        if scaling.divisor is not None:
            values = values / scaling.divisor[j]
        if scaling.limits is not None:
            values = np.clip(values, *scaling.limits)
    return values


# ---- tables ------------------------------------------------------------------------------


def _select_table(query: Query, table: TableInput, made: Columns) -> None:
    _check_names([column.name for column in table.columns])
    dialect = query.dialect
    inputs: dict[str, str] = {}
    columns: dict[str, str] = {}
    for k, column in enumerate(table.columns):
        given = f"r.{identifier(column.name)}"
        if column.kind == NUMBER:
            inputs[f"number_{k}"] = _number(dialect, column.name, table.missing_texts)
            columns |= _numbers(dialect, table, column, k, made)
        elif column.kind == DATE:
            inputs[f"date_{k}"] = dialect.as_moment.format(given)
            columns |= _dates(dialect, column, k, made)
        elif column.kind == CATEGORY:
            inputs[f"text_{k}"] = f"TRIM({dialect.as_text.format(given)}, {dialect.blanks})"
            columns |= _categories(table, column, k, made)
        else:
            assert column.kind == WORDS
            raise ModelError(
                f"column {column.name!r} is free text, which SQL cannot read: export the model to "
                "ONNX instead, which can"
            )
    for k, key in enumerate(table.keys):
        columns[f"value_{k}"] = _code(table, key)
    query.select("inputs", inputs)
    query.select("columns", columns)
    _select_statistics(query, table, made)


def _numbers(
    dialect: Dialect, table: TableInput, column: TableColumn, k: int, made: Columns
) -> dict[str, str]:
    given = value = f"number_{k}"
    if column.is_scaled:
        value = f"({value} - {number(column.origin)}) / {number(column.unit)}"
    near = dialect.single.format(dialect.bounds(value, -table.largest, table.largest))
    return _filled(column, k, made, given, near)


def _dates(dialect: Dialect, column: TableColumn, k: int, made: Columns) -> dict[str, str]:
    given = f"date_{k}"
    seconds = dialect.seconds.format(given)
    moment = f"FLOOR(({seconds}) * {number(1e6)} + {number(0.5)})"
    days = f"({moment} - {number(column.origin)}) / {number(MICROSECONDS_A_DAY)}"
    columns = _filled(column, k, made, given, dialect.single.format(days))
    for part, size in PARTS.items():
        places = column.parts[part]
        if any(place != NONE for place in places):
            own = f"{part}_{k}"
            columns[own] = f"COALESCE({dialect.parts[part].format(given)}, {size})"
            made.choices.append(Choice(own, [*places, NONE]))
    return columns


def _filled(column: TableColumn, k: int, made: Columns, given: str, value: str) -> dict[str, str]:
    """Return a number without gaps, and whether there was one."""
    own = f"x_{column.number}"
    made.numbers[column.number] = own
    columns = {own: f"CASE WHEN {given} IS NULL THEN {number(column.fill)} ELSE {value} END"}
    if column.missing != NONE:
        columns[f"gap_{k}"] = f"CASE WHEN {given} IS NULL THEN 0 ELSE 1 END"
        made.choices.append(Choice(f"gap_{k}", [column.missing, NONE]))
    return columns


def _categories(table: TableInput, column: TableColumn, k: int, made: Columns) -> dict[str, str]:
    """Return the number of the choice of a text."""
    places = sorted({column.missing, column.rest, *column.values.values()})
    if places == [NONE]:
        return {}
    made.choices.append(Choice(f"category_{k}", places))
    numbers = {value: places.index(place) for value, place in column.values.items()}
    numbers |= dict.fromkeys(table.missing_texts, places.index(column.missing))
    return {
        f"category_{k}": _of_text(
            f"text_{k}", numbers, places.index(column.missing), places.index(column.rest)
        )
    }


def _of_text(own: str, numbers: Mapping[str, int], missing: int, rest: int) -> str:
    """Return the whole number of a text; one with a NUL character is not met."""
    whens = [
        f"WHEN {own} = {text(value)} THEN {place}"
        for value, place in numbers.items()
        if place != rest and "\0" not in value
    ]
    return f"CASE WHEN {own} IS NULL THEN {missing} {' '.join(whens)} ELSE {rest} END"


# ---- target statistics -------------------------------------------------------------------


def _code(table: TableInput, key: TableKey) -> str:
    """Return the code of a value, -1 where it is not known."""
    if key.codes:
        codes = {**key.codes, **dict.fromkeys(table.missing_texts, key.missing)}
        return _of_text(f"text_{key.column}", codes, key.missing, NONE)
    own = f"number_{key.column}"
    whens = " ".join(
        f"WHEN {_is_number(own, value)} THEN {code}"
        for code, value in enumerate(key.numbers.tolist())
    )
    return f"CASE WHEN {own} IS NULL THEN {key.missing} {whens} ELSE {NONE} END"


def _is_number(own: str, value: float) -> str:
    """Return whether a number is this one after rounding to single precision."""
    if value == np.floor(value) and abs(value) < WHOLE_IN_SINGLE:
        return f"{own} = {number(value)}"
    beside = np.nextafter(np.float32(value), np.array([-np.inf, np.inf], np.float32))
    low, high = ((beside.astype(np.float64) + value) / 2).tolist()
    return f"{own} BETWEEN {number(low)} AND {number(high)}"


def _select_statistics(query: Query, table: TableInput, made: Columns) -> None:
    """Add the place of each value or pair, and then the numbers that stand there."""
    pairs = {
        f"pair_{k}": _pair(table, statistic)
        for k, statistic in enumerate(table.statistics)
        if len(statistic.keys) > 1
    }
    query.select("pairs", pairs)
    entries: dict[str, str] = {}
    numbers: dict[str, str] = {}
    j = table.end_of_pairs
    for k, statistic in enumerate(table.statistics):
        code = f"pair_{k}" if f"pair_{k}" in pairs else f"value_{statistic.keys[0]}"
        entries[f"entry_{k}"] = _entry(code, statistic)
        for values in np.vstack([statistic.values, statistic.rest]).T:
            numbers[f"x_{j}"] = query.dialect.pick(f"entry_{k}", values)
            made.numbers[j] = f"x_{j}"
            j += 1
    query.select("entries", entries)
    query.select("statistics", numbers)


def _pair(table: TableInput, statistic: TableStatistic) -> str:
    first, second = (f"value_{k}" for k in statistic.keys)
    n_codes = table.keys[statistic.keys[1]].missing + 1
    code = f"{first} * {n_codes} + {second}"
    return f"CASE WHEN {first} < 0 OR {second} < 0 THEN {NONE} ELSE {code} END"


def _entry(code: str, statistic: TableStatistic) -> str:
    """Return the place of a code among those that are known; others stand behind the last."""
    n_entries = statistic.codes.size
    starts: list[str] = []
    results = [str(n_entries)]
    for place, known in enumerate(statistic.codes.tolist()):
        if starts and starts[-1] == str(known):
            results[-1] = str(place)
        else:
            starts.append(str(known))
            results.append(str(place))
        starts.append(str(known + 1))
        results.append(str(n_entries))
    return branches(code, starts, results)
