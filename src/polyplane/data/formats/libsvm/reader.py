"""LIBSVM text: one row a line, `label [qid:n] index:value ... [# comment]`.

Blanks, tabs and carriage returns part the words; blank lines, comments and `qid` are passed over,
and the last line needs no newline. What the format leaves open is settled like this:

Values   are finite float32, the same as `np.float32(float(text))`; `nan`, `inf`, hexadecimal
         numbers and values too large for float32 are errors.
Indices  may stand in any order and are sorted; the same index twice in a row is an error. Without
         `base` they start at 1, unless an index 0 is met, even in a row that is left out: then
         at 0. An index 0 after rows that start at 1 have been yielded is an error.
Labels   are numbers if that of the first row is one, and then a label that is not is an error;
         otherwise all are text, as written; `text_labels` states it. Numbers are int64 while all
         so far were whole and below 2^53, and float64 from the first chunk on where one is not.
Width    without `n_features` is the largest index met so far; with it, a larger one is an error.
         Where an index 0 comes so late that rows read before it become too wide, the whole file
         is at fault.

A row that cannot be read goes to `bad`, which raises the error or skips the row.
"""

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import scipy.sparse as sp

from polyplane.data.chunks import Array, BadRows, Chunk
from polyplane.data.formats.libsvm.block_reader import Part, RowReader
from polyplane.data.formats.libsvm.blocks import TextBlock, TextBlocks
from polyplane.data.formats.libsvm.writer import write

__all__ = ["chunks", "write"]

BLOCK = 1 << 18  # bytes: what has just been read stays in the second cache
WHOLE_BELOW = 2.0**53


class _Labels:
    """Settles whether numbers are int64 or float64, chunk after chunk."""

    def __init__(self) -> None:
        self._are_whole = True

    def of(self, labels: Array) -> Array:
        """The labels of a chunk as users get them."""
        if labels.dtype.kind == "U":
            return labels
        with np.errstate(invalid="ignore"):
            whole = labels.astype(np.int64)
        is_small = labels.size == 0 or max(labels.max(), -labels.min()) < WHOLE_BELOW
        self._are_whole = self._are_whole and is_small and bool((whole == labels).all())
        return whole if self._are_whole else labels


def _matrix(part: Part, n_features: int | None) -> sp.csr_matrix:
    is_long = part.columns.size > np.iinfo(np.int32).max
    starts = part.starts if is_long else part.starts.astype(np.int32)
    entries = part.values, part.columns, starts
    shape = part.starts.size - 1, part.n_columns if n_features is None else n_features
    matrix = sp.csr_matrix(entries, shape=shape, copy=False)
    matrix.has_canonical_format = True
    return matrix


def chunks(
    file: BinaryIO,
    path: str,
    chunk_rows: int,
    *,
    n_features: int | None = None,
    base: int | None = None,
    text_labels: bool | None = None,
    bad: BadRows,
) -> Iterator[Chunk]:
    """The rows of a file, so many at a time; only the last chunk may have fewer."""
    text, block, labels = TextBlocks(file, path), TextBlock(BLOCK), _Labels()
    reader = RowReader(path, n_features, base, text_labels, bad)
    while block.position < block.end or text.fill(block):
        reader.read(block, chunk_rows)
        if reader.n_rows == chunk_rows:
            yield _chunk(reader, n_features, labels)
    if reader.n_rows:
        yield _chunk(reader, n_features, labels)


def _chunk(reader: RowReader, n_features: int | None, labels: _Labels) -> Chunk:
    part = reader.take()
    reader.is_base_settled |= part.columns.size > 0
    return Chunk(_matrix(part, n_features), labels.of(part.labels))
