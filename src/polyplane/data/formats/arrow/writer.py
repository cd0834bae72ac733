"""Rows as Arrow IPC: dense rows as columns, sparse ones as lists of their non-zeros."""

from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

import pyarrow as pa

from polyplane.data.chunks import Chunk
from polyplane.data.formats.arrow.batches import HAS_LABELS, N_FEATURES
from polyplane.data.formats.arrow.parquet import LABEL, columns_of

__all__ = ["write"]


def write(
    file: BinaryIO,
    chunks: Iterable[Chunk],
    names: Sequence[str] | None = None,
    n_features: int | None = None,
    is_stream: bool = False,
) -> int:
    """Write chunks, of which there is one at least, as a file or a stream; return how many rows.

    Sparse rows may grow wider on the way; a reader knows their width if `n_features` states it.
    """
    writer: Any = None
    n_rows = 0
    try:
        for chunk in chunks:
            table = columns_of(chunk, names)
            if writer is None:
                width = chunk.X.shape[1] if "values" not in table.schema.names else n_features
                schema = table.schema.with_metadata(_facts(table, width))
                writer = (pa.ipc.new_stream if is_stream else pa.ipc.new_file)(file, schema)
            _check_names(table.schema.names, schema.names)
            writer.write_table(table.cast(schema))
            n_rows += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    return n_rows


def _facts(table: Any, width: int | None) -> dict[bytes, bytes]:
    has_labels = LABEL in table.schema.names
    facts = {HAS_LABELS: b"1" if has_labels else b"0"}
    return facts if width is None else {**facts, N_FEATURES: str(width).encode()}


def _check_names(found: Sequence[str], expected: Sequence[str]) -> None:
    if found != expected:
        raise ValueError(
            f"A chunk has columns {found[:5]}..., unlike the first, which has {expected[:5]}...; "
            "expected the same in all."
        )
