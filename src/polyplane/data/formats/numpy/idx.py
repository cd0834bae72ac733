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
from typing import BinaryIO

import numpy as np

from polyplane.data.careful_reading import read_up_to
from polyplane.data.chunk_sizes import rechunked
from polyplane.data.chunks import Array, BadRows, Chunk, DataError
from polyplane.data.formats.numpy.reader import LARGEST_WIDTH, sound_rows

__all__ = ["chunks", "labels_path_of"]

DTYPES: dict[int, np.dtype[np.generic]] = {
    0x08: np.dtype("u1"),
    0x09: np.dtype("i1"),
    0x0B: np.dtype(">i2"),
    0x0C: np.dtype(">i4"),
    0x0D: np.dtype(">f4"),
    0x0E: np.dtype(">f8"),
}
COMPRESSED = "", ".gz", ".bz2", ".xz", ".zst"


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
    images = _Values(images_file, path)
    labels = (
        None if labels_file is None else _Values(labels_file, labels_path or f"labels of {path}")
    )
    return rechunked(_pieces(images, labels, chunk_rows, bad or BadRows()), chunk_rows)


def _pieces(
    images: "_Values", labels: "_Values | None", chunk_rows: int, bad: BadRows
) -> Iterator[Chunk]:
    if labels is not None:
        if labels.width != 1:
            problem = f"found {labels.width} values a row, expected one label"
            raise DataError(problem, labels.path)
        if labels.n_rows != images.n_rows:
            problem = f"found {labels.n_rows} labels, expected {images.n_rows}, one for each image"
            raise DataError(problem, labels.path)
    for start in range(0, images.n_rows, chunk_rows):
        rows, y = images.take(chunk_rows), np.empty(0)
        if labels is not None:
            y = labels.take(chunk_rows).reshape(-1)
            y = y.astype(np.float64 if y.dtype.kind == "f" else np.int64)
        yield sound_rows(rows, y, start, bad, images.path)


class _Values:
    """The rows of a file, which are taken in turn."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.file, self.path, self.n_taken = file, path, 0
        head = read_up_to(file, 4)
        is_idx = len(head) == 4 and head[:2] == b"\0\0" and head[2] in DTYPES and head[3] > 0
        if not is_idx:
            problem = (
                f"found {head!r} at the beginning, expected an IDX file: 0, 0, type, dimensions"
            )
            raise DataError(problem, path)
        lengths = read_up_to(file, 4 * head[3])
        if len(lengths) < 4 * head[3]:
            raise DataError(f"found the end in the header, expected {head[3]} dimensions", path)
        self.dtype = DTYPES[head[2]]
        self.n_rows, *others = struct.unpack(f">{head[3]}I", lengths)
        self.width = math.prod(others)
        if not 0 < self.width <= LARGEST_WIDTH:
            problem = f"found images of {self.width} values, expected 1 to {LARGEST_WIDTH}"
            raise DataError(problem, path)

    def take(self, n: int) -> Array:
        """The next n rows, or as many as are left; nothing may follow the last."""
        n, row_bytes = min(n, self.n_rows - self.n_taken), self.width * self.dtype.itemsize
        data = read_up_to(self.file, n * row_bytes)
        if len(data) < n * row_bytes:
            row = self.n_taken + len(data) // row_bytes + 1
            problem = f"found the end in row {row}, expected {self.n_rows} rows"
            raise DataError(problem, self.path)
        self.n_taken += n
        if self.n_taken == self.n_rows and self.file.read(1):
            problem = "found more bytes than its dimensions say, expected the end"
            raise DataError(problem, self.path)
        return np.frombuffer(data, self.dtype).reshape(n, self.width)
