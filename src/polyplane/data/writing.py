"""Chunks of rows to files, which appear under their names only when they are whole."""

import bz2
import contextlib
import gzip
import lzma
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from polyplane.data import libsvm_text, parquet
from polyplane.data.chunks import Chunk, DataError
from polyplane.data.formats import format_by_name

try:
    import zstandard
except ImportError:  # an extra
    zstandard = None  # type: ignore[assignment]

__all__ = ["write"]

WRITTEN = ("libsvm", "parquet")


def _zstd(file: BinaryIO) -> Any:
    if zstandard is None:
        raise DataError("cannot be written: `pip install polyplane[zstd]` compresses with zstd")
    return zstandard.ZstdCompressor().stream_writer(file, closefd=False)


COMPRESSORS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda file: gzip.GzipFile("", "wb", 6, file, mtime=0),  # same rows, same bytes
    ".bz2": lambda file: bz2.BZ2File(file, "wb"),
    ".xz": lambda file: lzma.LZMAFile(file, "wb"),  # noqa: SIM115
    ".zst": _zstd,
}


def write(
    path: str | os.PathLike[str],
    chunks: Iterable[Chunk],
    format: str | None = None,
    names: Sequence[str] | None = None,
) -> int:
    """Write chunks as LIBSVM text or Parquet, by the name of the file; return how many rows.

    Text is compressed if the name ends with .gz, .bz2, .xz or .zst; its indices start at 1.
    `names` are those of dense columns of Parquet.
    """
    path = Path(path)
    kind = format or format_by_name(path)
    if kind not in WRITTEN:
        found = f"format is {format!r}" if format else f"the name {path.name!r} states no format"
        raise ValueError(f"{found}, expected one of {', '.join(WRITTEN)} that can be written.")
    _check_place(path)
    if kind == "parquet":
        if path.suffix.lower() in COMPRESSORS:
            raise ValueError(f"{path.name!r} would be compressed twice: leave {path.suffix} out.")
        return parquet.write(path, chunks, names)
    if names is not None:
        raise ValueError("names are given, but LIBSVM text has none: write Parquet, or leave them.")
    with _new_file(path) as file:
        return _write_text(file, chunks)


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise DataError("is a folder: name a file in it", str(path))
    if not path.parent.is_dir():
        raise DataError("cannot be written, for there is no such folder: make it first", str(path))


def _write_text(file: BinaryIO, chunks: Iterable[Chunk]) -> int:
    n_rows = n_chunks = 0
    for chunk in chunks:
        if not chunk.y.size:
            raise ValueError("Rows have no labels, which LIBSVM text needs: write Parquet.")
        libsvm_text.write(file, chunk.X, chunk.y)
        n_rows, n_chunks = n_rows + chunk.X.shape[0], n_chunks + 1
    if n_chunks == 0:
        raise ValueError("There are no chunks to write, expected at least one.")
    return n_rows


@contextlib.contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    """A file, compressed as its name says, that takes its place when all has been written."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    compressor = COMPRESSORS.get(path.suffix.lower(), contextlib.nullcontext)
    try:
        with open(unfinished, "wb") as file:
            try:
                compressed = compressor(file)
            except DataError as error:
                raise DataError(error.problem, str(path)) from None
            with compressed as out:
                yield out
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
