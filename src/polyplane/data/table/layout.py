"""Layout of a table: facts learned about its columns, from files and frames alike.

Label     a column by name or by position (0 is the first, -1 the last), None for no label, which
          makes `y` empty; "auto" is the label of the files before, if it is there, and in the
          first file a column called label, class, target or y, else the last.
Sources   the other columns, each of one of the `kinds`.
X         numbers and dates come first, in the order of the table, then pairs of a source and a
          value (see `categories`), then target statistics, if a training chose some (see
          `statistics`). It is CSR if there are categories, texts or dates, and else dense: always,
          so that all chunks of a file and of its test part are stored alike.
Missing   no value, NaN, or a text such as ? and NA. Under "fill" a missing number is the median of
          its column, and sets the pair (column, missing) if there were gaps in training; a missing
          category is a category of its own. Else it is an error in its row, or read as 0 (a text
          sets no column then), or the row is left out. A row without a label is never filled.
Large     numbers of a column in which some are beyond what float32 products bear are taken from
          their median and divided by their mean distance from it, in double precision. A number
          that prediction meets is never read as more than products bear.
Whole     a table that is learned at once gives rare values of a column one pair together; one that
          comes in chunks is known by its first, and grows by each new value.
Handed    from table to table a layout keeps columns in place: they are found by name, or in order
          where there are no names; other columns are not read, and those that lack are an error.
          Frozen, it gives no column to new values: they are the rest of their column.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from polyplane.data.chunks import Array, DataError, placed
from polyplane.data.table.categories import Categories, Pair
from polyplane.data.table.kinds import (
    ASIDE,
    CATEGORY,
    DATE,
    KINDS,
    LIST,
    NUMBER,
    NUMERIC,
    OPEN,
    SECONDS,
    UNKNOWN,
)
from polyplane.data.table.statistics import Key, KeyedRows, TargetStatistics

__all__ = [
    "AUTO",
    "CHOICES",
    "ERROR",
    "FILL",
    "SKIP",
    "ZERO",
    "LaidOut",
    "Layout",
    "Places",
    "Source",
    "TableOptions",
    "label_by_name",
    "places_in",
]  # fmt: skip

AUTO = "auto"
LABEL_NAMES = "label", "class", "target", "y"  # in any case of letters
FILL, ERROR, ZERO, SKIP = "fill", "error", "zero", "skip"
CHOICES = {"missing": (FILL, ERROR, ZERO, SKIP), "categories": ("onehot", "hash")}
MOST_NAMED = 20  # columns in one sentence
log = logging.getLogger("polyplane")


@dataclass(frozen=True)
class TableOptions:
    """Options of reading tables; columns are named, or given by position from 0."""

    label: str | int | None = AUTO
    drop: Sequence[str | int] = ()  # columns that are not read
    text_columns: Sequence[str | int] = ()  # categories, or a label, even if they look like numbers
    missing: str | None = None  # as the layout says; at first FILL
    categories: str = "onehot"
    n_hash: int = 4096

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            is_open = name == "missing" and self.missing is None
            if not is_open and getattr(self, name) not in known:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected one of {known}.")
        if not 1 <= self.n_hash < 1 << 31:
            raise ValueError(f"n_hash is {self.n_hash}, expected 1 to 2147483647.")


class Source(NamedTuple):
    """A column of the table that rows are made of."""

    name: str
    kind: str
    fill: float = 0.0  # what a missing number is: the median
    origin: float = 0.0  # of dates: microseconds since 1970; of large numbers: their median
    unit: float = 1.0  # of large numbers: their mean distance from the median

    @property
    def is_scaled(self) -> bool:
        """Return True if numbers are taken from `origin` and divided by `unit`."""
        return self.kind in NUMERIC and (self.origin, self.unit) != (0.0, 1.0)


@dataclass(frozen=True)
class LaidOut:
    """Rows of X that a layout has made, and the layout."""

    X: Any
    layout: "Layout"

    @property
    def shape(self) -> tuple[int, int]:
        """Return rows and columns."""
        shape: tuple[int, int] = self.X.shape
        return shape


@dataclass
class Layout:
    """Columns that rows are made of, and what each became; empty until a table is read."""

    sources: list[Source] = field(default_factory=list)
    has_names: bool = True  # else columns are known by their order
    label: str | None = None  # its name, where columns have names
    label_position: int | None = None
    label_is_text: bool = False
    categories: Categories = field(default_factory=Categories)
    missing: str = FILL
    grows: bool = True  # with each chunk; else it is learned from a whole table
    is_learned: bool = False  # kinds, medians and first categories are known
    statistics: TargetStatistics | None = None  # that a training chose
    keeps_keys: bool = field(default=False, compare=False)  # for a training: see `keyed`
    keys: Sequence[Key] | None = field(default=None, compare=False)  # known once keys are kept
    keyed: KeyedRows | None = field(default=None, repr=False, compare=False)  # of the latest rows
    is_begun: bool = field(default=False, compare=False)  # a block has been looked at
    n_left_out: int = field(default=0, compare=False)  # rows without a value, under SKIP
    gaps: dict[str, int] = field(default_factory=dict, compare=False)  # missing values, by source
    remarks: set[str] = field(default_factory=set, repr=False, compare=False)  # that were made

    def remark(self, words: str, path: Any, line: int | None = None) -> None:
        """Tell the user something about a file, once in all passes over it."""
        remark = placed(words, path, line)
        if remark not in self.remarks:
            self.remarks.add(remark)
            log.warning(remark)

    def copied(self) -> "Layout":
        """Return a copy, to grow by itself."""
        made = Layout(**{name: getattr(self, name) for name in self.__dataclass_fields__})
        made.sources, made.categories = list(self.sources), self.categories.copied()
        return made

    @property
    def is_frozen(self) -> bool:
        """Return True if the layout has been learned and no longer grows."""
        return self.is_learned and self.categories.is_frozen

    @property
    def number_sources(self) -> list[int]:
        """Return the positions of the sources that have a column of numbers in X."""
        numeric = (*NUMERIC, DATE)
        return [i for i, source in enumerate(self.sources) if source.kind in numeric]

    @property
    def is_dense(self) -> bool:
        """Return True if there are only numbers, and marks of missing ones."""
        kinds = {source.kind for source in self.sources}
        return kinds <= {*NUMERIC, ASIDE} and not self.categories.n_hash

    @property
    def width_without_statistics(self) -> int:
        """Number of columns of X that are numbers, dates, and pairs of a source and a value."""
        return len(self.number_sources) + self.categories.width

    @property
    def width(self) -> int:
        """Columns of X."""
        n_statistics = 0 if self.statistics is None else self.statistics.width
        return self.width_without_statistics + n_statistics

    def for_training(self) -> "Layout":
        """Return a copy that gives X no target statistics, but keeps the keys of rows instead.

        Rows of a training have statistics of their own, from which their labels are left out.
        """
        made = self.copied()
        made.statistics, made.keeps_keys, made.keys, made.keyed = None, True, None, None
        return made

    @property
    def set_aside(self) -> list[str]:
        """Columns that are known and not read."""
        return [source.name for source in self.sources if source.kind == ASIDE]

    def sources_of_columns(self) -> Array | None:
        """The source of each column of X but target statistics; None where they are hashed."""
        if self.categories.n_hash:
            return None
        places = {source.name: place for place, source in enumerate(self.sources)}
        pairs = [places[pair.source] for pair in self.categories.numbers]
        return np.array([*self.number_sources, *pairs], np.int32)

    def explained_columns(self) -> tuple[Array | None, Array]:
        """Return the source as which each column of X is explained, and pairs of sources.

        Statistics of a pair of keys are explained as the pair, which stands behind the sources.
        """
        sources = self.sources_of_columns()
        if sources is None or self.statistics is None:
            return sources, np.empty((0, 2), np.int32)
        places = self.statistics.places()
        pairs = sorted({one for one in places if len(one) > 1})
        numbers = {pair: len(self.sources) + k for k, pair in enumerate(pairs)}
        behind = [one[0] if len(one) == 1 else numbers[one] for one in places]
        return np.append(sources, behind).astype(np.int32), np.array(pairs, np.int32).reshape(-1, 2)

    @property
    def feature_names(self) -> list[str]:
        """Return names of the columns of X, as far as they are known; hashed ones are numbered."""
        numbers = [self.sources[i].name for i in self.number_sources]
        pairs = [pair.name for pair in self.categories.numbers]
        pairs += [f"hash {k}" for k in range(self.categories.n_hash)]
        names = [source.name for source in self.sources]
        behind = [] if self.statistics is None else self.statistics.names(names)
        return numbers + pairs + behind

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a model file."""
        return {
            "sources": [list(source) for source in self.sources],
            "has_names": self.has_names,
            "label": self.label,
            "label_position": self.label_position,
            "label_is_text": self.label_is_text,
            "n_hash": self.categories.n_hash,
            "pairs": [list(pair) for pair in self.categories.numbers],
            "missing": self.missing,
            "grows": self.grows,
            "is_learned": self.is_learned,
            "statistics": None if self.statistics is None else self.statistics.to_dict(),
        }

    @staticmethod
    def from_dict(plain: Mapping[str, Any], is_frozen: bool) -> "Layout":
        """The layout again, to read other tables with the same columns."""
        pairs = [Pair(str(source), str(what), str(value)) for source, what, value in plain["pairs"]]
        numbers = {pair: number for number, pair in enumerate(pairs)}
        sources = [_source_of(*source) for source in plain["sources"]]
        if plain["missing"] not in CHOICES["missing"] or len(numbers) < len(pairs):
            raise ValueError("a table is laid out in an unknown way")
        strangers = {pair.source for pair in pairs} - {source.name for source in sources}
        if strangers:
            raise ValueError(f"a feature is of column {min(strangers)!r}, which the table has not")
        return Layout(
            sources,
            bool(plain["has_names"]),
            plain["label"],
            plain["label_position"],
            bool(plain["label_is_text"]),
            Categories(int(plain["n_hash"]), is_frozen, numbers),
            str(plain["missing"]),
            bool(plain["grows"]),
            bool(plain["is_learned"]),
            None
            if plain["statistics"] is None
            else TargetStatistics.from_dict(plain["statistics"], len(sources)),
        )


def _source_of(name: Any, kind: Any, fill: Any, origin: Any, unit: Any = 1.0) -> Source:
    if kind not in (*KINDS, *OPEN):
        raise ValueError(f"column {name!r} is of an unknown kind")
    source = Source(str(name), str(kind), float(fill), float(origin), float(unit))
    if not np.isfinite(source[2:]).all() or source.unit <= 0:
        raise ValueError(f"column {name!r} is scaled by no number")
    return source


class Places(NamedTuple):
    """Where the columns of the layout stand in one table, and how errors call its columns."""

    sources: list[int | None]  # None for those that need not be there
    label: int | None
    names: list[str] | None
    kinds: list[str]  # of sources

    @property
    def numbers(self) -> list[int]:
        """Where sources stand that are written as numbers."""
        at = zip(self.sources, self.kinds, strict=True)
        return [place for place, kind in at if place is not None and kind in (NUMBER, SECONDS)]

    @property
    def texts(self) -> list[int]:
        """Where the others stand, if they are read."""
        at = zip(self.sources, self.kinds, strict=True)
        return [place for place, kind in at if place is not None and kind not in NOT_TEXTS]

    def within(self, position: int) -> str:
        """Words for the column where it has a name; its position is part of every error."""
        return f" in column {self.names[position]!r}" if self.names else ""


NOT_TEXTS = NUMBER, SECONDS, ASIDE


def places_in(
    layout: Layout,
    names: list[str] | None,
    kinds: Sequence[str],
    options: TableOptions,
    path: Any,
) -> Places:
    """The columns of a table by what they are for; an empty layout is filled by this table."""
    width = len(kinds)
    label = _label_position(layout, names, width, options.label, path)
    forced = {_position(names, width, column, path) for column in options.text_columns}
    left_out = {_position(names, width, column, path) for column in options.drop} | {label}
    present = [position for position in range(width) if position not in left_out]
    found = [
        Source(
            names[p] if names else str(p + 1), CATEGORY if p in forced else _first_kind(kinds[p])
        )
        for p in present
    ]
    if not found:
        raise DataError(
            f"found {width} column{'s' * (width != 1)}, expected at least one besides the label; "
            "check the delimiter, or say label=None if there is no label",
            path,
        )
    if options.missing is not None:
        layout.missing = options.missing
    if not layout.sources:
        layout.sources, layout.has_names = found, names is not None
        layout.label_position = label
        if label is not None:
            layout.label = names[label] if names else None
            is_text = kinds[label] in (*OPEN, CATEGORY)
            layout.label_is_text = is_text or label in forced
        layout.categories.n_hash = _hashed_width(found, options)
    at = _matched(layout, names, found, present, path)
    return Places(at, label, names, [source.kind for source in layout.sources])


def _first_kind(kind: str) -> str:
    return NUMBER if kind in (LIST, UNKNOWN) else kind


def _hashed_width(sources: Iterable[Source], options: TableOptions) -> int:
    has_text = any(source.kind in (*OPEN, CATEGORY) for source in sources)
    return options.n_hash if has_text and options.categories == "hash" else 0


def _matched(
    layout: Layout, names: list[str] | None, found: list[Source], present: list[int], path: Any
) -> list[int | None]:
    """The position in this table of each source of the layout."""
    wanted = [source.name for source in layout.sources]
    in_order = names is None or not layout.has_names
    if in_order or wanted == [source.name for source in found]:
        if len(present) != len(wanted):
            raise DataError(
                f"found {len(present)} columns besides the label, expected {len(wanted)} as in "
                "the table before",
                path,
            )
        return list(present)
    assert names is not None
    names = _as_in_training(names, layout)
    known = set(names)
    needed = [source.name for source in layout.sources if source.kind != ASIDE]
    lacking = [name for name in needed if name not in known]
    if lacking:
        raise DataError(
            f"found no column{'s' * (len(lacking) > 1)} {_listed(lacking)}, expected all that "
            f"were there in training; the names are {_listed(names)}",
            path,
        )
    return [
        _position(names, len(names), source.name, path)
        if source.kind != ASIDE or names.count(source.name) == 1
        else None
        for source in layout.sources
    ]


def _as_in_training(names: list[str], layout: Layout) -> list[str]:
    """The names, with the blanks around them that were there in training; files have none."""
    wanted = [source.name for source in layout.sources]
    free = [name for name in names if name not in wanted]
    blanks = {
        name.strip(): name
        for name in wanted
        if name not in names and [one.strip() for one in free].count(name.strip()) == 1
    }
    return [name if name in wanted else blanks.get(name.strip(), name) for name in names]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(map(repr, names[:MOST_NAMED])) + more


def _label_position(
    layout: Layout, names: list[str] | None, width: int, label: str | int | None, path: Any
) -> int | None:
    if label is None:
        return None
    if label != AUTO:
        return _position(names, width, label, path)
    if not layout.sources:
        by_name = label_by_name(names or [])
        return width - 1 if by_name is None else by_name
    if names and layout.label is not None:
        return names.index(layout.label) if layout.label in names else None
    return layout.label_position if width > len(layout.sources) else None


def label_by_name(names: Sequence[str]) -> int | None:
    """The column whose name says that it is the label, if any."""
    lower = [name.strip().lower() for name in names]
    return next((lower.index(name) for name in LABEL_NAMES if name in lower), None)


def _position(names: list[str] | None, width: int, column: str | int, path: Any) -> int:
    """Where a column stands that was asked for by name or position."""
    if isinstance(column, int):
        if not -width <= column < width:
            raise DataError(f"found {width} columns, expected one at position {column}", path)
        return column % width
    count = (names or []).count(column)
    if names is None or count != 1:
        found = "no names of columns" if names is None else f"{count} columns of that name"
        known = f"; the names are {', '.join(map(repr, names[:20]))}" if names else ""
        raise DataError(f"expected one column called {column!r}, found {found}{known}", path)
    return names.index(column)
