"""IDX files, the format of MNIST, to chunks of rows.

A file is two zero bytes, the type of its values, the number of dimensions, the dimensions as
big-endian 32-bit numbers, and the values. Each image becomes a row; bytes stay bytes, other types
become float32. Labels stand in a file of their own, with one dimension.
Dimensions are not believed: nothing is allocated for bytes that the file does not have.
"""

import math
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from polyplane.data.careful_reading import read_up_to
from polyplane.data.chunk_sizes import rechunked
from polyplane.data.chunks import Array, BadRows, Chunk, DataError
from polyplane.data.formats.numpy.reader import LARGEST_WIDTH, sound_rows

__all__ = ["chunks", "labels_path_of"]

DTYPES = {
    0x08: np.dtype("u1"),
    0x09: np.dtype("i1"),
    0x0B: np.dtype(">i2"),
    0x0C: np.dtype(">i4"),
    0x0D: np.dtype(">f4"),
    0x0E: np.dtype(">f8"),
}
COMPRESSED = "", ".gz", ".bz2", ".xz", ".zst"


class Header(NamedTuple):
    """What an IDX file says about itself."""

    dtype: Any
    n_rows: int
    width: int


def labels_path_of(images_path: str | Path) -> Path | None:
    """The file of labels that belongs to a file of images by its name, if it exists.

    `train-images-idx3-ubyte.gz` has `train-labels-idx1-ubyte.gz`, compressed in any way or not.
    """
    path = Path(images_path)
    name = re.sub(r"\.(gz|bz2|xz|zst)$", "", path.name).replace("idx3", "idx1")
    if "images" not in name:
        return None
    name = name.replace("images", "labels")
    candidates = [path.with_name(name + suffix) for suffix in (path.suffix, *COMPRESSED)]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def chunks(
    images_file: BinaryIO,
    path: str,
    chunk_rows: int,
    labels_file: BinaryIO | None = None,
    labels_path: str | None = None,
    bad: BadRows | None = None,
) -> Iterator[Chunk]:
    """Chunks of `chunk_rows` rows, the last may be shorter; `y` is empty without labels."""
    pieces = _pieces(images_file, path, chunk_rows, labels_file, labels_path, bad or BadRows())
    return rechunked(pieces, chunk_rows)


def _pieces(
    images_file: BinaryIO,
    path: str,
    chunk_rows: int,
    labels_file: BinaryIO | None,
    labels_path: str | None,
    bad: BadRows,
) -> Iterator[Chunk]:
    header = _header_of(images_file, path)
    if labels_file is not None:
        labels_path = labels_path or f"labels of {path}"
        labels = _header_of(labels_file, labels_path)
        if labels.width != 1:
            raise DataError(f"found {labels.width} values a row, expected one label", labels_path)
        if labels.n_rows != header.n_rows:
            problem = f"found {labels.n_rows} labels, expected {header.n_rows}, one for each image"
            raise DataError(problem, labels_path)
    for start in range(0, header.n_rows, chunk_rows):
        n = min(chunk_rows, header.n_rows - start)
        rows = _values(images_file, header, start, n, path)
        y = np.empty(0)
        if labels_file is not None:
            y = _values(labels_file, labels, start, n, labels_path).reshape(-1)
            y = y.astype(np.float64 if y.dtype.kind == "f" else np.int64)
        yield sound_rows(rows, y, start, bad, path)
    _check_end(images_file, path)
    if labels_file is not None:
        _check_end(labels_file, labels_path)


def _header_of(file: BinaryIO, path: Any) -> Header:
    head = read_up_to(file, 4)
    is_idx = len(head) == 4 and head[:2] == b"\0\0" and head[2] in DTYPES and head[3] > 0
    if not is_idx:
        problem = f"found {head!r} at the beginning, expected an IDX file: 0, 0, type, dimensions"
        raise DataError(problem, path)
    lengths = read_up_to(file, 4 * head[3])
    if len(lengths) < 4 * head[3]:
        raise DataError(f"found the end in the header, expected {head[3]} dimensions", path)
    n_rows, *others = struct.unpack(f">{head[3]}I", lengths)
    width = math.prod(others)
    if not 0 < width <= LARGEST_WIDTH:
        raise DataError(f"found images of {width} values, expected 1 to {LARGEST_WIDTH}", path)
    return Header(DTYPES[head[2]], n_rows, width)


def _values(file: BinaryIO, header: Header, start: int, n: int, path: Any) -> Array:
    """The next n rows."""
    row_bytes = header.width * header.dtype.itemsize
    data = read_up_to(file, n * row_bytes)
    if len(data) < n * row_bytes:
        row = start + len(data) // row_bytes
        raise DataError(f"found the end in row {row + 1}, expected {header.n_rows} rows", path)
    return np.frombuffer(data, header.dtype).reshape(n, header.width)


def _check_end(file: BinaryIO, path: Any) -> None:
    if file.read(1):
        raise DataError("found more bytes than its dimensions say, expected the end", path)
