"""Parquet and Arrow IPC among the formats of rows. Parquet is cut between row groups."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from polyplane.data.careful_reading import as_data_errors
from polyplane.data.chunk_sizes import joined
from polyplane.data.chunks import BadRows, Chunk
from polyplane.data.formats.arrow import parquet, writer
from polyplane.data.formats.row_format import (
    ALL_ROWS,
    TABLE,
    Range,
    Ranges,
    ReadOptions,
    RowFormat,
)
from polyplane.data.table.layout import Layout

__all__ = ["ARROW", "PARQUET"]


def _cut(path: str, options: ReadOptions, size: int, n_bytes: int) -> list[Range]:
    with as_data_errors(path, "Parquet"), pyarrow.parquet.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(k).total_byte_size for k in range(file.num_row_groups)]
    if not sizes:
        return [Range(path)]
    of_group = (np.cumsum(sizes) - np.array(sizes)) // n_bytes
    starts = np.flatnonzero(np.diff(of_group, prepend=-1)).tolist()
    stops = [*starts[1:], len(sizes)]
    return [Range(path, PARQUET.name, a, b) for a, b in zip(starts, stops, strict=True)]


def _read_range(part: Range, options: ReadOptions, bad: BadRows, layout: Layout) -> Chunk:
    groups = range(part.start, part.stop)
    chunks = parquet.chunks(part.path, ALL_ROWS, options.of_table(), bad, layout, groups)
    return joined(list(chunks))


def _learn(
    parts: Sequence[Range], options: ReadOptions, bad: BadRows, layout: Layout, n_bytes: int
) -> None:
    """Learn a layout; files whose columns have other names than the first take no part."""
    table = _first_groups(parts, n_bytes)
    text = io.BytesIO()
    with pa.ipc.new_stream(text, table.schema) as stream:
        stream.write_table(table)
    text.seek(0)
    of_table = options.of_table()
    list(parquet.arrow_chunks(parts[0].path, ALL_ROWS, of_table, bad, layout, text))


def _first_groups(parts: Sequence[Range], n_bytes: int) -> Any:
    """The first row group of each range, or the beginning of it, as one table."""
    tables = []
    for part in parts:
        with as_data_errors(part.path, "Parquet"), pyarrow.parquet.ParquetFile(part.path) as file:
            table = file.read_row_group(part.start)
            facts = file.metadata.metadata or {}
        n_rows = max(1, n_bytes * table.num_rows // max(table.nbytes, 1))
        facts = {name: facts[name] for name in facts if name != b"ARROW:schema"}
        tables.append(table.slice(0, n_rows).replace_schema_metadata(facts))
    alike = [table for table in tables if table.schema.equals(tables[0].schema)]
    return pa.concat_tables(alike)


PARQUET = RowFormat(
    name="parquet",
    suffixes=(".parquet", ".pq"),
    options=TABLE,
    magic=(b"PAR1",),
    needs_file=True,
    read=lambda one, n: parquet.chunks(one.name, n, one.options.of_table(), one.bad, one.layout),
    write_file=lambda path, chunks, columns: parquet.write(path, chunks, columns.names),
    ranges=Ranges(_cut, _read_range, _learn),
)
ARROW = RowFormat(
    name="arrow",
    suffixes=(".arrow", ".ipc", ".feather"),
    options=TABLE,
    magic=(b"ARROW1", b"\xff\xff\xff\xff"),
    read=lambda one, n: parquet.arrow_chunks(
        one.name, n, one.options.of_table(), one.bad, one.layout, one.file
    ),
    write=lambda file, chunks, columns: writer.write(file, chunks, *columns),
)
