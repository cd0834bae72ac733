"""The columns of a table as another program reads them: what each of them becomes in X.

`estimator/files/exported_tables.py` makes it of a layout; a `table.py` in each of the folders
beside this file writes it down. A table of nothing but numbers is read as rows of numbers, any
other column by column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from polyplane.arrays import Array

__all__ = [
    "CATEGORY", "DATE", "MICROSECONDS_A_DAY", "NONE", "NUMBER", "PARTS", "WORDS", "TableColumn",
    "TableInput", "TableKey", "TableStatistic",
]  # fmt: skip

NUMBER, DATE, CATEGORY, WORDS = "number", "date", "category", "words"
NONE = -1  # no column of X
PARTS = {"month": 12, "weekday": 7, "hour": 24}  # of a date, and how many values they have
MICROSECONDS_A_DAY = 86_400_000_000.0


@dataclass(frozen=True)
class TableColumn:
    """A column of the table; columns of X that it does not set are `NONE`."""

    name: str
    kind: str
    number: int = NONE  # the column of X that takes its number, or days of a date
    fill: float = 0.0  # that number where the value is missing
    missing: int = NONE  # the column of X that is 1 there
    origin: float = 0.0  # of dates: microseconds since 1970; of numbers: what is subtracted
    unit: float = 1.0  # of numbers: what they are divided by after that
    parts: Mapping[str, Sequence[int]] = field(default_factory=dict)  # of dates, by value
    values: Mapping[str, int] = field(default_factory=dict)  # of categories, or words
    rest: int = NONE  # of all other categories

    @property
    def is_scaled(self) -> bool:
        """Return True if the column holds numbers that need double precision."""
        return self.kind == NUMBER and (self.origin, self.unit) != (0.0, 1.0)


@dataclass(frozen=True)
class TableKey:
    """A column by whose values numbers are looked up; each value has a code."""

    column: int  # place among the columns that are read
    codes: Mapping[str, int]  # of texts; empty where the values are numbers
    numbers: Array  # float32, rising: the code is the place; empty where the values are texts
    missing: int  # code of a missing value; codes are below this one, -1 is not known


@dataclass(frozen=True)
class TableStatistic:
    """Numbers of the values of a key, or of pairs of values."""

    keys: Sequence[int]  # one or two, by place
    codes: Array  # [entry] int64, rising: of a pair, first * (missing of the second + 1) + second
    values: Array  # [entry, column] float32
    rest: Array  # [column] float32, of all other values


@dataclass(frozen=True)
class TableInput:
    """The columns that are read, in the order of the table."""

    columns: Sequence[TableColumn]
    width: int  # columns of X
    missing_texts: Sequence[str]  # that stand for no value
    largest: float  # number, on its scale, that is not read as less
    keys: Sequence[TableKey] = ()
    statistics: Sequence[TableStatistic] = ()  # the last columns of X, in this order

    @property
    def is_of_numbers(self) -> bool:
        """Return True if rows of float32 are all that is read."""
        return all(column.kind == NUMBER and not column.is_scaled for column in self.columns)

    @property
    def n_numbers(self) -> int:
        """Columns of X that take numbers: the first ones."""
        return sum(column.number != NONE for column in self.columns)

    @property
    def n_statistics(self) -> int:
        """Return the number of columns of X that are looked up: the last ones."""
        return sum(one.rest.size for one in self.statistics)

    @property
    def n_pairs(self) -> int:
        """Return the number of columns of X that are 1 or 0, behind the numbers."""
        return self.end_of_pairs - self.n_numbers

    @property
    def end_of_pairs(self) -> int:
        """Return the first column of X that is neither a number nor a pair."""
        return self.width - self.n_statistics

    @property
    def sets_no_more(self) -> bool:
        """Return True if X is the numbers alone."""
        return self.width == self.n_numbers == len(self.columns)
