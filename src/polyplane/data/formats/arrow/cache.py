"""Parsed chunks kept as Arrow IPC beside their source, and read from there by later passes.

Content   each batch is a chunk: one row with the bytes of its arrays. The last batch tells what was
          learned on the way, and what was known of columns before.
Origin    a fingerprint names sizes and times of the source and of files of labels beside it, and
          the options.
Safety    the file appears under its name when it is complete. Every batch carries a checksum. A
          file that is cut, damaged, foreign or old is written anew; rows handed on before the
          damage was met are not handed on again. Where nothing can be written, chunks are only
          handed on.
          Batches are read, not mapped: a mapped file that another process cuts short ends this
          one with SIGBUS, and no check beforehand can prevent it.
"""

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from polyplane.data.careful_reading import as_data_errors
from polyplane.data.chunks import ERRORS_KEPT, Array, BadRows, Chunk, DataError
from polyplane.data.table.layout import Layout
from polyplane.whole_files import whole_file

__all__ = ["cache_path_of", "cached_chunks", "is_cache"]

VERSION = 3  # to be raised when a reader reads other rows from the same bytes
SUFFIX = ".polyplane.arrow"
FINGERPRINT, ABOUT, CHECK = b"polyplane.fingerprint", b"polyplane.about", b"polyplane.check"
KINDS = "biufU"  # of arrays
NOTHING = np.empty(0, np.uint8)
_Batch = tuple[Mapping[str, Array], Any]  # arrays, and what is told about them


def cache_path_of(source: Path) -> Path:
    """Return the path of the cache of a source."""
    return source.with_name(source.name + SUFFIX)


def is_cache(path: str) -> bool:
    """Return True if a file is a cache, by its name."""
    return path.endswith(SUFFIX)


def fingerprint_of(files: Sequence[Path], options: Any) -> str:
    """Return a hash that changes with the files and with how they are read."""
    facts = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(json.dumps([VERSION, facts, options], default=str).encode()).hexdigest()


def cached_chunks(
    files: Sequence[Path],
    chunks: Iterator[Chunk],
    options: Any,
    bad: BadRows,
    layout: Layout,
) -> Iterator[Chunk]:
    """Yield the chunks of a source: from its cache, or as they are parsed, which fills it.

    The source is the first of the files; the others are those that belong to it.
    """
    path, fingerprint = cache_path_of(files[0]), fingerprint_of(files, options)
    known, n_done = dict(vars(layout)), 0
    try:
        for chunk in _read(path, fingerprint, bad, layout):
            n_done += chunk.X.shape[0]
            yield chunk
    except DataError:  # of the cache
        vars(layout).update(known)
    else:
        return
    mode = files[0].stat().st_mode
    yield from _without(n_done, _kept(chunks, path, fingerprint, mode, bad, layout))


def _without(n_rows: int, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Yield the chunks after so many rows."""
    for chunk in chunks:
        n_more = min(n_rows, chunk.X.shape[0])
        n_rows -= n_more
        if n_more < chunk.X.shape[0]:
            y = chunk.y[n_more:] if chunk.y.size else chunk.y
            yield Chunk(chunk.X[n_more:], y) if n_more else chunk


# ---- what a pass has learned -------------------------------------------------------------


def _known(layout: Layout) -> Any:
    """Return what is known of columns, as it looks when it has been stored."""
    return json.loads(json.dumps({**layout.to_dict(), "is_frozen": layout.categories.is_frozen}))


def _suits(learned: Any, layout: Layout, bad: BadRows) -> bool:
    """Return True if reading the source again would give the rows that were kept."""
    if learned["n_skipped"] and not bad.skips:
        return False
    before, after, now = learned["before"], learned["after"], _known(layout)
    if after is None or now == before:
        return True
    n_known = len(after["pairs"])
    alike = all(now[key] == after[key] for key in after.keys() - {"pairs", "is_frozen"})
    return alike and now["pairs"][:n_known] == after["pairs"]


def _apply(learned: Any, bad: BadRows, layout: Layout) -> None:
    """Leave counts and layout as if the source had been read."""
    bad.n_skipped += learned["n_skipped"]
    errors = [DataError(problem, *place) for problem, *place in learned["errors"]]
    bad.errors += errors[: ERRORS_KEPT - len(bad.errors)]
    layout.n_left_out += learned["n_left_out"]


class _Lesson:
    """Changes of counts and layout that reading a source makes."""

    def __init__(self, bad: BadRows, layout: Layout) -> None:
        self._bad, self._layout, self._before = bad, layout, _known(layout)
        self._counts = bad.n_skipped, len(bad.errors), layout.n_left_out

    def told(self) -> dict[str, Any]:
        """Return what was added, as plain values."""
        n_skipped, n_errors, n_left_out = self._counts
        errors = self._bad.errors[n_errors:]
        return {
            "before": self._before,
            "after": _known(self._layout) if self._layout.sources else None,
            "n_skipped": self._bad.n_skipped - n_skipped,
            "errors": [(e.problem, str(e.path), e.line, e.column) for e in errors],
            "n_left_out": self._layout.n_left_out - n_left_out,
        }


# ---- reading -----------------------------------------------------------------------------


def _read(path: Path, fingerprint: str, bad: BadRows, layout: Layout) -> Iterator[Chunk]:
    """Yield the chunks of a cache; a DataError where it is not one of this source, or damaged."""
    with contextlib.ExitStack() as stack:
        with as_data_errors(path, "a cache"):
            file = stack.enter_context(pa.OSFile(str(path)))
            reader = stack.enter_context(pa.ipc.open_file(file))
            if (reader.schema.metadata or {})[FINGERPRINT].decode() != fingerprint:
                raise ValueError("another source")
            last = reader.num_record_batches - 1
            _, learned = _batch_in(reader, last)
            if not _suits(learned, layout, bad):
                raise ValueError("read otherwise")
            after = learned["after"]
            if after is not None and len(after["pairs"]) >= len(layout.categories.numbers):
                n_left_out, is_frozen = layout.n_left_out, layout.categories.is_frozen
                remarks = layout.remarks
                vars(layout).update(vars(Layout.from_dict(after, is_frozen)))
                layout.n_left_out, layout.remarks = n_left_out, remarks
        for k in range(last):
            with as_data_errors(path, "a cache"):
                chunk = _chunk_of(*_batch_in(reader, k))
            yield chunk
    _apply(learned, bad, layout)


def _batch_in(reader: Any, k: int) -> tuple[dict[str, Array], Any]:
    """Return the arrays of a batch, and what is told about it."""
    found = reader.get_batch_with_custom_metadata(k)
    metadata = dict(found.custom_metadata)
    told = json.loads(metadata[ABOUT])
    arrays = {}
    for name, column in zip(found.batch.schema.names, found.batch.columns, strict=True):
        if name in told["arrays"]:
            dtype, shape = told["arrays"][name]
            array = np.frombuffer(column.buffers()[2], np.uint8)
            arrays[name] = array.view(np.dtype(dtype)).reshape(shape)
    if _checksum(metadata[ABOUT], arrays) != int(metadata[CHECK]):
        raise ValueError("damaged")
    return arrays, told["about"]


def _chunk_of(arrays: dict[str, Array], about: Any) -> Chunk:
    if "X" in arrays:
        return Chunk(arrays["X"], arrays["y"])
    entries = arrays["data"], arrays["indices"], arrays["indptr"]
    X = sp.csr_matrix(entries, shape=tuple(about["shape"]), copy=False)
    X.has_canonical_format = about["is_canonical"]
    return Chunk(X, arrays["y"])


def _checksum(text: bytes, arrays: Mapping[str, Array]) -> int:
    """Return the exclusive or of all bytes, eight at a time, which any damage changes."""
    found = zlib.crc32(text)
    for array in arrays.values():
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        n_whole = flat.size - flat.size % 8
        found ^= int.from_bytes(flat[n_whole:].tobytes(), "little")
        found ^= int(np.bitwise_xor.reduce(flat[:n_whole].view(np.uint64)))
    return found


# ---- writing -----------------------------------------------------------------------------


def _kept(
    chunks: Iterator[Chunk], path: Path, fingerprint: str, mode: int, bad: BadRows, layout: Layout
) -> Iterator[Chunk]:
    """Hand the chunks on, and keep them as far as that is possible."""
    lesson = _Lesson(bad, layout)
    with _keeping(path, fingerprint, mode) as keep:
        for chunk in chunks:
            keep(_plain_chunk(chunk))
            yield chunk
        keep(({}, lesson.told()))
        keep(None)


def _plain_chunk(chunk: Chunk) -> _Batch:
    """Return the arrays of a chunk, and what else is known of its rows."""
    X, y = chunk
    if isinstance(X, np.ndarray):
        return {"X": X, "y": y}, None
    entries = X.data[: X.nnz], X.indices[: X.nnz], X.indptr
    arrays = dict(zip(("data", "indices", "indptr"), entries, strict=True))
    return arrays | {"y": y}, {"shape": X.shape, "is_canonical": bool(X.has_canonical_format)}


@contextlib.contextmanager
def _keeping(path: Path, fingerprint: str, mode: int) -> Iterator[Callable[[_Batch | None], None]]:
    """Yield a function that writes batches, and does nothing any more after a failure."""
    file = _file_of_batches(path, fingerprint, mode)

    def keep(batch: _Batch | None) -> None:
        with contextlib.suppress(StopIteration, OSError, pa.ArrowException, _CannotBeKept):
            file.send(batch)

    keep(None)  # opens the file
    try:
        yield keep
    finally:
        file.close()


def _file_of_batches(
    path: Path, fingerprint: str, mode: int
) -> Generator[None, _Batch | None, None]:
    """Write the batches that are sent; None ends the file, which else leaves nothing."""
    with whole_file(path) as file:
        os.chmod(file.fileno(), mode & 0o666)  # as private as the source
        batch = yield
        if batch is None or not batch[0]:  # a source without rows
            raise _CannotBeKept
        names = list(batch[0])
        columns = [(name, pa.large_binary()) for name in names]
        with pa.ipc.new_file(file, pa.schema(columns, {FINGERPRINT: fingerprint})) as batches:
            while batch is not None:
                record, metadata = _with_checksum(names, *batch)
                batches.write_batch(record, custom_metadata=metadata)
                batch = yield


def _with_checksum(names: Sequence[str], arrays: Mapping[str, Array], about: Any) -> Any:
    """Return a record batch of arrays, and its metadata."""
    has_others = bool(arrays) and list(arrays) != names
    if has_others or any(array.dtype.kind not in KINDS for array in arrays.values()):
        raise _CannotBeKept
    facts = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
    text = json.dumps({"arrays": facts, "about": about}).encode()
    columns = [_as_column(arrays.get(name, NOTHING)) for name in names]
    return pa.record_batch(columns, names), {ABOUT: text, CHECK: str(_checksum(text, arrays))}


class _CannotBeKept(Exception):
    """A chunk that the file has no place for."""


def _as_column(array: Array) -> Any:
    """Return the bytes of an array as the one value of a column."""
    content = pa.py_buffer(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    ends = pa.py_buffer(np.array([0, content.size], np.int64))
    return pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, content])
