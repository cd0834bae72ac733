"""Comma-separated text to chunks of rows.

Encoding   UTF-8 with or without a byte order mark; UTF-16 and NUL bytes are errors.
Lines      end with LF, CRLF or CR; blank ones don't count. Fields may stand in double quotes, with
           delimiters, line ends and doubled quotes inside. Between tabs they are but characters if
           they would join lines that have equal numbers of fields without them.
Delimiter  stated, or that of comma, semicolon and tab which parts the first records most evenly.
Header     stated, or found: none of the fields of the first record is a number, and below one of
           them stand only numbers, or none of them stands again in its column.
Text       a column is text if more than half of its values in the first 200 rows are no numbers,
           or a tenth of them and at least ten.
           A text in a column of numbers is an error in its row.
Labels     whole numbers are int64, others float64, text is text.
Rows       of another number of fields than the header, or without one than most of the first
           rows, are errors. An empty file is an error; a header alone is a file of no rows, and
           yields nothing.
Remarks    are made once of what may have been meant otherwise: a first line of numbers and words,
           texts that are numbers with decimal commas, a field in quotes that runs over lines.
Columns, missing values and categories are those of `table`.
Blocks     of whole records are read by Arrow, which is told the type of each column. Where it
           refuses a block, columns of numbers are read as texts, and each different one becomes a
           number; if that fails, too, the block is read record by record, which finds the line and
           the column, and keeps the sound rows where bad ones are skipped.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from polyplane.data.chunk_sizes import rechunked
from polyplane.data.chunks import Array, BadRows, Chunk, DataError
from polyplane.data.formats.csv.first_records import (
    A_NUMBER,
    FirstRecords,
    hint_at_blanks,
    is_number,
    is_numbered,
    is_text,
    listed,
    look_at,
    number_of_text,
    remark_commas,
    utf8_of,
)
from polyplane.data.formats.csv.records import (
    Block,
    Blocks,
    Record,
    after,
    block_of,
    delimiter_of,
    end_of_records,
    first_long_field,
    has_stray_quotes,
    head_of,
    joined,
    records_of,
)
from polyplane.data.table.blocks import TableBlock, TableRows, reals_of
from polyplane.data.table.kinds import NO_NUMBERS
from polyplane.data.table.kinds import NUMBER as NUMBER_KIND
from polyplane.data.table.layout import Layout, TableOptions, places_in
from polyplane.data.table.rows import laid_out
from polyplane.data.table.texts import MISSING_TEXTS, arrow_of, codes_of

__all__ = ["CsvOptions", "Opening", "chunks", "end_of_records", "opening_of"]

STATE_HEADER = "if this line holds the names of the columns, state header=True (--header)"
DICTIONARY = pa.dictionary(pa.int32(), pa.string())
BYTES_A_THREAD = 1 << 20  # that Arrow parses at once
ENDS_AFTER_ERRORS = int(pa.__version__.partition(".")[0]) >= 23
# before, Arrow's threads may wait for each other for ever once one has met an error


@dataclass(frozen=True)
class CsvOptions(TableOptions):
    """Options of CSV text; None is found out."""

    delimiter: str | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        delimiter = self.delimiter
        if delimiter is not None and (
            len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0'
        ):
            raise ValueError(f"delimiter is {delimiter!r}, expected one ASCII character.")


def chunks(
    file: BinaryIO,
    path: str,
    chunk_rows: int,
    options: CsvOptions | None = None,
    bad: BadRows | None = None,
    layout: Layout | None = None,
) -> Iterator[Chunk]:
    """Chunks of `chunk_rows` rows, the last may be shorter; `layout` is learned or obeyed."""
    layout = Layout() if layout is None else layout
    blocks = _blocks(file, path, options or CsvOptions(), bad or BadRows(), layout)
    return rechunked(laid_out(blocks, layout, path), chunk_rows)


class Opening(NamedTuple):
    """Beginning of CSV text: its header, and the delimiter."""

    header: bytes  # with what stands before it; empty, where there is none
    has_header: bool
    delimiter: str


def opening_of(file: BinaryIO, path: str, options: CsvOptions) -> Opening | None:
    """Return the header and the delimiter of a text; None where it holds no whole record."""
    head = head_of(file, path)
    n_before = file.tell() - len(head)  # a mark of UTF-8
    delimiter = options.delimiter or delimiter_of(head)
    has_quotes = not has_stray_quotes(head, delimiter)
    block = block_of(head[: end_of_records(head, delimiter, has_quotes)])
    if not block.has_text():
        return None
    records = FirstRecords(block, delimiter, path, has_quotes)
    has_header = look_at(records, options.header, path).has_header
    n_header = n_before + after(block, records.first).start if has_header else 0
    file.seek(0)
    return Opening(file.read(n_header), has_header, delimiter)


def _blocks(
    file: BinaryIO, path: str, options: CsvOptions, bad: BadRows, layout: Layout
) -> Iterator[TableBlock]:
    head = head_of(file, path)
    delimiter = options.delimiter or delimiter_of(head)
    has_quotes = not has_stray_quotes(head, delimiter)
    blocks = iter(Blocks(file, head, delimiter, path, has_quotes, layout.grows))
    first, records = _first_block(blocks, delimiter, path, has_quotes)
    has_header, width, names, columns = look_at(records, options.header, path)
    kinds = [NO_NUMBERS if is_text(column) else NUMBER_KIND for column in columns]
    try:
        places = places_in(layout, names, kinds, options, path)
    except DataError as error:
        raise DataError(error.problem + hint_at_blanks(records, width), path) from None
    is_unsure = options.header is None and not has_header
    if is_unsure and is_numbered(records):
        found = "found whole numbers that rise by 1 and a text, which are read as a row"
        layout.remark(f"{found}; {STATE_HEADER}", path, records.first.line)
    remark_commas(columns, places, layout, path)
    unsure_line = records.first.line if is_unsure else None
    table = TableRows(places, layout, options, bad, path)
    reader = _CsvRows(table, width, delimiter, unsure_line, has_quotes)
    if has_header:
        first = after(first, records.first)
    for block in chain([first], blocks):
        yield reader.rows(block)


def _first_block(
    blocks: Iterator[Block], delimiter: str, path: str, has_quotes: bool
) -> tuple[Block, FirstRecords]:
    """The first block that is not blank, and what it begins with."""
    first = next((block for block in blocks if block.has_text()), None)
    if first is None:
        raise DataError("found no text, expected rows", path)
    records = FirstRecords(first, delimiter, path, has_quotes)
    if len(records.records) == 1 and (second := next(blocks, None)):  # a header of a megabyte
        first = joined(first, second)
        records = FirstRecords(first, delimiter, path, has_quotes)
    return first, records


class _Met(BadRows):
    """Keeps all errors of a block until they can be put in order."""

    def meet(self, error: DataError) -> None:
        self.errors.append(error)


class _CsvRows:
    """Turns blocks of text into rows."""

    WAYS = "_typed", "_as_texts"  # in which Arrow reads a block, one after the other

    def __init__(
        self,
        table: TableRows,
        width: int,
        delimiter: str,
        unsure_line: int | None,
        has_quotes: bool = True,
    ) -> None:
        places, layout = table.places, table.layout
        self.labels = [] if places.label is None else [places.label]
        self.numbers, self.texts = places.numbers, places.texts + self.labels * layout.label_is_text
        self.table, self.width, self.delimiter = table, width, delimiter
        self.unsure_line = unsure_line  # a first line that may be a header
        self.has_quotes = has_quotes  # else they are but characters
        self.has_long_field = False  # so far

    @functools.cached_property
    def types(self) -> dict[int, Any]:
        """Return the Arrow types of the columns that are read."""
        types = {place: pa.float64() for place in self.numbers + self.labels}
        return types | dict.fromkeys(self.texts, DICTIONARY)

    def rows(self, block: Block) -> TableBlock:
        """Rows of a block; the first bad one raises, or bad ones are skipped."""
        met, path, records = _Met(), self.table.path, list[Record]()

        def error_at(row: int, position: int, problem: str) -> DataError:
            if not records:
                records.extend(self._records(block))
            return DataError(problem, path, records[row].line, position + 1)

        table = replace(self.table, bad=met)
        columns = self._parsed(block)
        if columns is None:
            columns, sound = self._read_one_by_one(block, met)
            records.extend(sound)
        found = table.block(columns, error_at)
        for error in sorted(met.errors, key=lambda error: error.line or 0):
            self.table.bad.meet(error if self.table.bad.skips else self._with_others(error, block))
        return found._replace(y=_as_integers(found.y))

    def _records(self, block: Block) -> Iterator[Record]:
        return records_of(block, self.delimiter, self.table.path, self.has_quotes)

    def _has_long_field(self, block: Block) -> bool:
        """Return True if a field of the block runs over lines, which is remarked once."""
        found = first_long_field(block, self.delimiter) if block.has(b'"') else None
        if found is not None and not self.has_long_field:
            self.has_long_field = True
            words = f"found a field in quotes that runs over {found[1]} lines, which are read as "
            words += "one row; if its quote is a stray one, remove or double it"
            self.table.layout.remark(words, self.table.path, found[0])
        return found is not None

    def _with_others(self, error: DataError, block: Block) -> DataError:
        """Return the error; if it is of a number, with all columns of the block that have such.

        They could all be text, and are named together.
        """
        if A_NUMBER not in error.problem:
            return error
        columns: set[int] = set()
        for record in self._records(block):
            if len(record.fields) == self.width and record.line != self.unsure_line:
                columns.update(p for p in self.types if not self._is_sound(p, record.fields[p]))
        others = sorted(columns - {(error.column or 0) - 1})
        if not others:
            return error
        named = listed(others, self.table.places)
        words = f"{error.problem}; such fields stand in {named}, too"
        return DataError(words, error.path, error.line, error.column)

    def _is_sound(self, place: int, field: str) -> bool:
        return self.types[place] == DICTIONARY or is_number(field)

    def _parsed(self, block: Block) -> dict[int, Any] | None:
        """Arrow arrays by position; None where a field is not what its column says."""
        is_long = self.has_quotes and self._has_long_field(block)
        whole = block.stop - block.start + 1  # Arrow changes line ends in quotes where parts meet
        n_bytes = whole if is_long else BYTES_A_THREAD
        ways = list(self.WAYS)
        while ways:
            try:
                columns = self._read_by_arrow(block, n_bytes, is_long, getattr(self, ways[0]))
                for place in self.numbers_only:
                    columns[place] = _numbers_of(columns[place])
                return columns
            except pa.ArrowException as error:
                if n_bytes < whole and "straddl" in str(error):  # a record is longer than a part
                    n_bytes = whole
                else:
                    ways = ways[1:]
            except ValueError:  # of a text that is no number
                return None
        return None

    @functools.cached_property
    def numbers_only(self) -> list[int]:
        """The columns that are read as numbers."""
        return [place for place, kind in self.types.items() if kind != DICTIONARY]

    @functools.cached_property
    def _typed(self) -> dict[str, Any]:
        return {str(place): kind for place, kind in self.types.items()}

    @functools.cached_property
    def _as_texts(self) -> dict[str, Any]:
        return dict.fromkeys(self._typed, DICTIONARY)

    def _read_by_arrow(
        self, block: Block, n_bytes: int, is_long: bool, types: dict[str, Any]
    ) -> dict[int, Any]:
        """Columns of these types, read by several threads, each of which takes so many bytes."""
        text = pa.py_buffer(block.buffer).slice(block.start, block.stop - block.start)
        table = pyarrow.csv.read_csv(
            pa.BufferReader(text),
            pyarrow.csv.ReadOptions(
                column_names=[str(place) for place in range(self.width)],
                block_size=n_bytes,
                use_threads=ENDS_AFTER_ERRORS,
            ),
            pyarrow.csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=is_long,
                quote_char='"' if self.has_quotes else False,
            ),
            pyarrow.csv.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=MISSING_TEXTS
            ),
        )
        table = table.unify_dictionaries().combine_chunks()
        return {int(name): table.column(name).chunk(0) for name in table.column_names}

    def _read_one_by_one(self, block: Block, bad: BadRows) -> tuple[dict[int, Any], list[Record]]:
        """Return columns of the sound records, and these; the others are met by `bad`."""
        sound, values = [], []
        for record in self._records(block):
            try:
                values.append(self._values_of(record))
                sound.append(record)
            except DataError as error:
                bad.meet(error)
        places = sorted(self.types)
        by_column = list(zip(*values, strict=True)) if values else [()] * len(places)
        columns = {
            place: pa.array(
                column, pa.float64() if self.types[place] != DICTIONARY else pa.string()
            )
            for place, column in zip(places, by_column, strict=True)
        }
        return columns, sound

    def _values_of(self, record: Record) -> list[float | str | None]:
        """Numbers and texts of the columns that are read."""
        fields, path = record.fields, self.table.path
        if len(fields) != self.width:
            words = f"found {len(fields)} field{'s' * (len(fields) != 1)}, expected {self.width}"
            raise DataError(words, path, record.line, min(len(fields), self.width) + 1)
        values: list[float | str | None] = []
        for place in sorted(self.types):
            try:
                is_text = self.types[place] == DICTIONARY
                values.append(utf8_of(fields[place]) if is_text else number_of_text(fields[place]))
            except ValueError as error:
                within = self.table.places.within(place)
                words = f"found {fields[place]!r}{within}, expected {error}"
                if record.line == self.unsure_line:
                    words += f"; {STATE_HEADER}"
                raise DataError(words, path, record.line, place + 1) from None
        return values


def _numbers_of(column: Any) -> Any:
    """Return the numbers that the texts of a column write out, NaN where one is missing."""
    if not pa.types.is_dictionary(column.type):
        return column
    texts = pc.ascii_trim(column.dictionary, " \t")
    is_missing = pc.is_in(texts, value_set=pa.array(MISSING_TEXTS))
    try:
        numbers = pc.cast(pc.if_else(is_missing, None, texts), pa.float64())
    except pa.ArrowException:  # such as a sign that Arrow does not know
        numbers = pa.array([number_of_text(text) for text in texts.to_pylist()], pa.float64())
    table = np.append(reals_of(numbers), np.nan)
    return arrow_of(table[codes_of(column.indices)])


def _as_integers(y: Array) -> Array:
    """Labels that are whole numbers as such."""
    is_whole = y.dtype == np.float64 and (np.abs(y) < 1 << 53).all() and (y == y.round()).all()
    return y.astype(np.int64) if is_whole and y.size else y
