"""Parquet and Arrow IPC files to chunks of rows, and chunks of rows to Parquet.

Columns   numbers of any type, truth values, and text or dictionaries of text, which are
          categories; label, missing values and categories are those of `table`.
Matrix    a single column of lists beside the label: all of one length, they are the rows.
Sparse    list columns `indices` and `values` are the non-zeros of the rows: X is CSR.
Errors    name the row, counted from 1, and the position of the column, from 1.
Written   dense rows as float32 or uint8 columns, CSR rows as `indices` and `values`, labels as
          `label`. The file's metadata hold the number of features and whether there are labels.
          The file appears under its name only when it is whole.
"""

import contextlib
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from polyplane.data.careful_reading import as_data_errors, read_up_to
from polyplane.data.chunk_sizes import rechunked
from polyplane.data.chunks import BadRows, Chunk, DataError
from polyplane.data.formats.arrow.batches import HAS_LABELS, N_FEATURES, BatchRows
from polyplane.data.table.blocks import TableBlock
from polyplane.data.table.layout import Layout, TableOptions
from polyplane.data.table.rows import laid_out
from polyplane.whole_files import whole_file

__all__ = ["LABEL", "arrow_chunks", "chunks", "columns_of", "write"]

BATCH_ROWS = 4096  # columns become rows within the cache
READ_BYTES = 1 << 20
LABEL = "label"
ARROW_FILE_MARK = b"ARROW1\0\0"
END_MARK = b"ARROW1"


def chunks(
    path: str | Path,
    chunk_rows: int,
    options: TableOptions | None = None,
    bad: BadRows | None = None,
    layout: Layout | None = None,
    row_groups: Sequence[int] | None = None,
) -> Iterator[Chunk]:
    """Chunks of `chunk_rows` rows of a Parquet file; `layout` is learned or obeyed.

    Without `row_groups`, of all of them.
    """
    rows = _batch_rows(path, options, bad, layout)
    return rechunked(laid_out(_parquet_pieces(rows, row_groups), rows.layout, path), chunk_rows)


def arrow_chunks(
    path: str | Path,
    chunk_rows: int,
    options: TableOptions | None = None,
    bad: BadRows | None = None,
    layout: Layout | None = None,
    file: BinaryIO | None = None,
) -> Iterator[Chunk]:
    """Yield chunks of an Arrow IPC file or stream, at `path` or, if given, read from `file`."""
    rows = _batch_rows(path, options, bad, layout)
    return rechunked(laid_out(_arrow_pieces(rows, file), rows.layout, path), chunk_rows)


def _batch_rows(
    path: Any, options: TableOptions | None, bad: BadRows | None, layout: Layout | None
) -> BatchRows:
    layout = Layout() if layout is None else layout
    return BatchRows(path, options or TableOptions(), bad or BadRows(), layout)


def _parquet_pieces(
    rows: BatchRows, row_groups: Sequence[int] | None
) -> Iterator[Chunk | TableBlock]:
    with as_data_errors(rows.path, "Parquet"):
        file = pyarrow.parquet.ParquetFile(rows.path, page_checksum_verification=True)
    with file:
        with as_data_errors(rows.path, "Parquet"):
            schema, metadata = _schema_of(file.schema_arrow), file.metadata.metadata or {}
        names = rows.names_read(schema, metadata)
        batches = file.iter_batches(BATCH_ROWS, row_groups, columns=names)
        for batch in _checked(batches, rows.path, "Parquet"):
            yield rows.rows(batch)


def _arrow_pieces(rows: BatchRows, file: BinaryIO | None) -> Iterator[Chunk | TableBlock]:
    with contextlib.ExitStack() as stack:
        with as_data_errors(rows.path, "Arrow IPC"):
            source = stack.enter_context(pa.memory_map(str(rows.path))) if file is None else file
            mark = source.read(len(ARROW_FILE_MARK))
            is_file = mark == ARROW_FILE_MARK  # a stream stands between this mark and a footer
            if file is None:
                source.seek(len(mark) if is_file else 0)
            else:
                source = pa.PythonFile(_Rejoined(b"" if is_file else mark, file))
            reader = pa.ipc.open_stream(source)
            schema = _schema_of(reader.schema)
        rows.names_read(schema, schema.metadata or {})
        for batch in _checked(reader, rows.path, "Arrow IPC"):
            yield rows.rows(batch)
        if is_file:
            _check_end(source, rows.path)


def _schema_of(schema: Any) -> Any:
    """Return the schema once its names have been decoded, which fails if they are damaged."""
    assert all(isinstance(name, str) for name in schema.names)
    return schema


def _check_end(source: Any, path: Any) -> None:
    """A file that was cut between two batches lacks its last mark."""
    end = b""
    while part := source.read(READ_BYTES):
        end = (end + part)[-len(END_MARK) :]
    if end != END_MARK:
        raise DataError("found no end of the Arrow file, expected all of it; it has been cut", path)


class _Rejoined(io.RawIOBase):
    """A file whose first bytes have been read already."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self.head, self.rest = head, rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Head first, then the rest."""
        part, self.head = self.head[:size], self.head[size:]
        return part + read_up_to(self.rest, size - len(part))


def _checked(batches: Iterable[Any], path: Any, kind: str) -> Iterator[Any]:
    """Small batches whose offsets, codes and texts are sound."""
    iterator = iter(batches)
    while True:
        with as_data_errors(path, kind):
            batch = next(iterator, None)
            if batch is not None:
                batch.validate(full=True)
        if batch is None:
            return
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)


def write(path: str | Path, chunks: Iterable[Chunk], names: Sequence[str] | None = None) -> int:
    """Write chunks to a Parquet file, `names` being those of dense columns; return its rows."""
    with whole_file(Path(path)) as file:
        return _write_chunks(file, iter(chunks), names)


def _write_chunks(file: BinaryIO, chunks: Iterator[Chunk], names: Sequence[str] | None) -> int:
    first = next(chunks, None)
    if first is None:
        raise ValueError("There are no chunks to write, expected at least one.")
    schema = columns_of(first, names).schema
    n_rows = n_features = 0
    with pyarrow.parquet.ParquetWriter(
        file, schema, compression="zstd", write_page_checksum=True
    ) as writer:
        for chunk in chain([first], chunks):
            table = columns_of(chunk, names)
            if table.schema.names != schema.names:
                raise ValueError(
                    f"A chunk has columns {table.schema.names[:5]}..., unlike the first, which "
                    f"has {schema.names[:5]}...; expected the same in all."
                )
            writer.write_table(table.cast(schema))
            n_rows += table.num_rows
            n_features = max(n_features, chunk.X.shape[1])
        has_labels = LABEL in schema.names
        facts = {N_FEATURES: str(n_features), HAS_LABELS: str(int(has_labels))}
        writer.add_key_value_metadata(facts)
    return n_rows


def columns_of(chunk: Chunk, names: Sequence[str] | None) -> Any:
    """The chunk as an Arrow table."""
    X, y = chunk
    columns: dict[str, Any]
    if not isinstance(X, np.ndarray):
        if names is not None:
            raise ValueError("names are given, but rows are sparse: expected names=None.")
        starts = X.indptr.astype(np.int32)
        columns = {
            "indices": pa.ListArray.from_arrays(starts, X.indices.astype(np.int32, copy=False)),
            "values": pa.ListArray.from_arrays(starts, X.data.astype(np.float32, copy=False)),
        }
    else:
        names = [f"x{k}" for k in range(X.shape[1])] if names is None else list(names)
        if len(names) != X.shape[1] or len({*names, LABEL}) <= len(names):
            raise ValueError(
                f"names are {names[:5]}..., expected {X.shape[1]} different ones, none {LABEL!r}."
            )
        dtype = np.uint8 if X.dtype == np.uint8 else np.float32
        columns = dict(zip(names, map(pa.array, np.ascontiguousarray(X.T, dtype)), strict=True))
    if len(y):
        columns[LABEL] = pa.array(y)
    return pa.table(columns)
