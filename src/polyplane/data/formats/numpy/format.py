"""Files of NumPy, and IDX, among the formats of rows."""

from collections.abc import Iterator

from polyplane.data.chunks import Chunk
from polyplane.data.decompress import name_of, open_bytes
from polyplane.data.formats.numpy import idx, reader, writer
from polyplane.data.formats.row_format import Reading, RowFormat

__all__ = ["IDX", "NPY", "NPZ"]


def _read(one: Reading, chunk_rows: int) -> Iterator[Chunk]:
    return reader.chunks(one.name, chunk_rows, one.bad, one.options.labels, one.options.part)


def _read_idx(one: Reading, chunk_rows: int) -> Iterator[Chunk]:
    beside = None if one.path is None else idx.labels_path_of(one.path)
    labels = one.options.labels or beside
    if labels is None:
        yield from idx.chunks(one.file, one.name, chunk_rows, bad=one.bad)
        return
    with open_bytes(labels) as file:
        yield from idx.chunks(one.file, one.name, chunk_rows, file, name_of(labels), one.bad)


NPY = RowFormat(
    name="npy",
    suffixes=(".npy",),
    options=frozenset(["labels"]),
    magic=(b"\x93NUMPY",),
    needs_file=True,
    labels_beside=reader.labels_path_of,
    read=_read,
    write_file=lambda path, chunks, _: writer.write_npy(path, chunks),
)
NPZ = RowFormat(
    name="npz",
    suffixes=(".npz",),
    options=frozenset(["labels", "part"]),
    magic=(b"PK\x03\x04",),
    needs_file=True,
    read=_read,
    write_file=lambda path, chunks, _: writer.write_npz(path, chunks),
)
IDX = RowFormat(
    name="idx",
    suffixes=(".idx",),
    options=frozenset(["labels"]),
    looks_like=lambda head: len(head) > 3 and head[:2] == b"\0\0" and head[2] in idx.DTYPES,
    labels_beside=idx.labels_path_of,
    read=_read_idx,
)
