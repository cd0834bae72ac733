"""A format of rows: one record says how it is known, read, written and cut."""

import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from polyplane.data.chunks import BadRows, Chunk
from polyplane.data.formats.csv.reader import CsvOptions
from polyplane.data.table.layout import AUTO, Layout

__all__ = [
    "ALL_ROWS",
    "TABLE",
    "Columns",
    "FirstRows",
    "Range",
    "Ranges",
    "ReadOptions",
    "Reading",
    "RowFormat",
]

ALL_ROWS = 1 << 62  # where all are read
TABLE = frozenset(option.name for option in fields(CsvOptions))


@dataclass(frozen=True)
class ReadOptions:
    """Options of reading; each format takes its own, and refuses the others."""

    format: str | None = None  # the name of one; None is found out
    n_features: int | None = None  # LIBSVM text
    base: int | None = None
    text_labels: bool | None = None
    label: str | int | None = AUTO  # tables: CSV, Parquet, Arrow
    drop: Sequence[str | int] = ()
    text_columns: Sequence[str | int] = ()
    missing: str | None = None  # "fill", or as the layout says
    categories: str = "onehot"
    n_hash: int = 4096
    delimiter: str | None = None
    header: bool | None = None
    labels: Any = None  # npy, npz, IDX: the file of labels
    part: str = "train"  # npz

    def __post_init__(self) -> None:
        if self.base not in (None, 0, 1):
            raise ValueError(f"base is {self.base!r}, expected 0 or 1, or None to find out.")
        is_whole = isinstance(self.n_features, numbers.Integral)
        if self.n_features is not None and not (is_whole and 1 <= self.n_features < 1 << 31):
            raise ValueError(f"n_features is {self.n_features!r}, expected 1 to 2147483647.")
        self.of_table()

    def of_table(self) -> CsvOptions:
        """Return the options of tables; a single column may stand without brackets."""
        given = {name: getattr(self, name) for name in TABLE}
        for name in ("drop", "text_columns"):
            columns = given[name]
            given[name] = (columns,) if isinstance(columns, str | int) else columns
        return CsvOptions(**given)


class Reading(NamedTuple):
    """A source that is read: its bytes, decompressed, and how."""

    path: Path | None  # of a file with a name
    name: str  # in messages
    file: BinaryIO
    options: ReadOptions
    bad: BadRows
    layout: Layout


class Columns(NamedTuple):
    """Names and number of the columns that are written."""

    names: Sequence[str] | None
    n_features: int | None
    is_piped: bool = False


class Range(NamedTuple):
    """Some rows of a file."""

    path: str
    kind: str | None = None  # format; None: the file as a whole
    start: int = 0  # bytes of text, row groups of Parquet
    stop: int = 0
    header: bytes = b""  # of CSV: the names of columns, in front of each range but the first
    has_header: bool = False
    delimiter: str = ""

    @property
    def is_first(self) -> bool:
        """Return True if the file begins with it."""
        return self.start == 0


class Ranges(NamedTuple):
    """Functions that cut large files of a format into ranges of whole rows."""

    cut: Callable[[str, ReadOptions, int, int], list[Range]]  # path, size in bytes, bytes wanted
    read: Callable[[Range, ReadOptions, BadRows, Layout], Chunk]
    learn: Callable[[Sequence[Range], ReadOptions, BadRows, Layout, int], None] | None = None
    # a layout from the first rows of all ranges, of so many bytes each


FirstRows = Callable[[int | None], Chunk | None]  # of a file, read with a base; None: no rows


@dataclass(frozen=True)
class RowFormat:
    """A format of rows."""

    name: str
    suffixes: tuple[str, ...]
    options: frozenset[str]  # fields of `ReadOptions` that concern it
    read: Callable[[Reading, int], Iterator[Chunk]]  # chunks of so many rows
    write: Callable[[BinaryIO, Iterable[Chunk], Columns], int] | None = None  # to files and pipes
    write_file: Callable[[Path, Iterable[Chunk], Columns], int] | None = None  # to files alone
    magic: tuple[bytes, ...] = ()  # with which a file begins
    looks_like: Callable[[bytes], bool] | None = None  # the first bytes, where names say nothing
    is_text: bool = False  # which may be compressed when it is written
    needs_file: bool = False  # it is read from its end, or where it lies
    labels_beside: Callable[[str | Path], Path | None] | None = None  # the file of labels
    settle: Callable[[FirstRows, ReadOptions], Mapping[str, Any]] | None = None  # by the first file
    ranges: Ranges | None = None  # None: files stay whole

    @property
    def is_table(self) -> bool:
        """Return True if its columns have names."""
        return "label" in self.options
