"""Chunks of rows to files, which appear under their names only when they are whole."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from polyplane.data.chunks import Chunk, DataError
from polyplane.data.formats.row_format import Columns
from polyplane.data.formats.which import FORMATS, format_by_name
from polyplane.whole_files import whole_file

__all__ = ["NAMED", "PIPED", "WRITTEN", "format_written", "text_file", "write", "write_to"]

WRITTEN = tuple(one.name for one in FORMATS.values() if one.write or one.write_file)
PIPED = tuple(one.name for one in FORMATS.values() if one.write)
NAMED = tuple(one.name for one in FORMATS.values() if one.is_table)  # columns have names
BUFFER = 1 << 20  # bytes of a frame of zstd


class _ZstdFrames(io.RawIOBase):
    """A frame for each piece that is written; frames one after the other are one text."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        self._file.write(pa.compress(piece, "zstd", asbytes=True))
        return len(piece)


COMPRESSORS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda file: gzip.GzipFile("", "wb", 6, file, mtime=0),  # same rows, same bytes
    ".bz2": lambda file: bz2.BZ2File(file, "wb"),
    ".xz": lambda file: lzma.LZMAFile(file, "wb"),  # noqa: SIM115
    ".zst": lambda file: io.BufferedWriter(_ZstdFrames(file), BUFFER),
}


def write(
    path: str | os.PathLike[str],
    chunks: Iterable[Chunk],
    format: str | None = None,
    names: Sequence[str] | None = None,
    n_features: int | None = None,
) -> int:
    """Write chunks in the format that the name of the file says; return how many rows.

    Text is compressed if the name ends with .gz, .bz2, .xz or .zst; indices of LIBSVM text start
    at 1. `names` are those of columns of CSV, and of dense columns of Parquet and Arrow.
    `n_features` is the width of sparse rows, which CSV and Arrow cannot learn on the way.
    npy has its labels in a file beside it.
    """
    path = Path(path)
    kind = format_written(path, format)
    _check_names(kind, names)
    _check_place(path)
    form = FORMATS[kind]
    columns = Columns(names, n_features)
    if form.write_file is not None:
        return form.write_file(path, _checked(chunks), columns)
    assert form.write is not None
    with text_file(path) as file:
        return form.write(file, _checked(chunks), columns)


def write_to(
    file: BinaryIO,
    chunks: Iterable[Chunk],
    format: str,
    names: Sequence[str] | None = None,
    n_features: int | None = None,
) -> int:
    """Write chunks to an open file or a pipe as LIBSVM text, CSV or an Arrow stream."""
    to_pipe = FORMATS[format].write if format in PIPED else None
    if to_pipe is None:
        raise ValueError(f"{format} cannot be written to a pipe, but {', '.join(PIPED)}.")
    _check_names(format, names)
    return to_pipe(file, _checked(chunks), Columns(names, n_features, is_piped=True))


def format_written(path: str | os.PathLike[str], format: str | None = None) -> str:
    """The format in which a file of that name is written."""
    path = Path(path)
    kind = format or format_by_name(path)
    if kind not in WRITTEN:
        found = f"format is {format!r}" if format else f"the name {path.name!r} states no format"
        if kind is not None and not format:
            found = f"the name {path.name!r} states the format {kind}"
        raise ValueError(f"{found}, expected one of {', '.join(WRITTEN)} that can be written.")
    if not FORMATS[kind].is_text and path.suffix.lower() in COMPRESSORS:
        raise ValueError(f"{path.name!r} would be compressed twice: leave {path.suffix} out.")
    return kind


def _check_names(kind: str, names: Sequence[str] | None) -> None:
    if names is not None and kind not in NAMED:
        raise ValueError(
            f"names are given, but {kind} has none: write one of {', '.join(NAMED)}, or leave them."
        )


def _check_place(path: Path) -> None:
    try:
        os.lstat(path)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:  # a long name, or one with a null
        why = getattr(error, "strerror", None) or error
        raise DataError(f"cannot be written ({why}): choose another name", str(path)) from None
    if path.is_dir():
        raise DataError("is a folder: name a file in it", str(path))
    if path.exists() and not path.is_file():  # taking its place would be the end of a device
        raise DataError("is a pipe or a device: name a file", str(path))
    if not path.parent.is_dir():
        raise DataError("cannot be written, for there is no such folder: make it first", str(path))


def _checked(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield chunks after checks: one at least, with a label for each row or none at all."""
    is_labelled = None
    for chunk in chunks:
        n_rows, n_labels = chunk.X.shape[0], len(chunk.y)
        if n_rows == n_labels == 0:
            continue
        if is_labelled is None:
            is_labelled = n_labels > 0
        if n_labels != (n_rows if is_labelled else 0):
            raise ValueError(
                f"A chunk has {n_rows:,} rows, but {n_labels:,} labels: expected one for each, in "
                "all chunks or in none."
            )
        yield chunk
    if is_labelled is None:
        raise ValueError("There are no chunks to write, expected at least one.")


@contextlib.contextmanager
def text_file(path: Path) -> Iterator[BinaryIO]:
    """A file, compressed as its name says, that takes its place when all has been written."""
    _check_place(path)
    compressor = COMPRESSORS.get(path.suffix.lower(), contextlib.nullcontext)
    with whole_file(path) as file, compressor(file) as out:
        yield out
