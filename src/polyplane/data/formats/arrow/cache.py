"""Parsed chunks kept as Arrow IPC beside their source, and read from there by later passes.

Content   each batch is a chunk. Rows are lists of columns and of values, or where they are dense,
          lists of one length; labels are 64 bits each: numbers, or places in a list of texts.
Origin    a fingerprint names the source, files of labels beside it and the options. The last,
          empty batch tells what was learned on the way, and what was known of columns before.
Safety    it is written under another name, which only one process can hold, and renamed when it
          is complete. Every batch carries the exclusive or of its bytes. A file that is cut,
          damaged, foreign or old is written anew; rows handed on before the damage was met are
          not handed on again. Where nothing can be written, chunks are only handed on.
          Batches are read, not mapped: a mapped file that another process cuts short ends this
          one with SIGBUS, and no check beforehand can prevent it.
"""

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from polyplane.data.careful_reading import as_data_errors
from polyplane.data.chunks import ERRORS_KEPT, Array, BadRows, Chunk, DataError
from polyplane.data.table.layout import Layout

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["cache_path_of", "cached_chunks", "is_cache"]

VERSION = 2  # to be raised when a reader reads other rows from the same bytes
SUFFIX, UNFINISHED = ".polyplane.arrow", ".part"
LOOKED_AT = 1 << 20  # bytes at either end of the source that the fingerprint knows
FINGERPRINT, ABOUT, CHECK = b"polyplane.fingerprint", b"polyplane.about", b"polyplane.check"
MOST_ENTRIES = np.iinfo(np.int32).max


def cache_path_of(source: Path) -> Path:
    """Where the cache of a source is kept."""
    return source.with_name(source.name + SUFFIX)


def is_cache(path: str) -> bool:
    """Whether a file is a cache, finished or not, by its name."""
    return path.endswith((SUFFIX, SUFFIX + UNFINISHED))


def fingerprint_of(files: Sequence[Path], options: Any) -> str:
    """Changes with the files and with how they are read."""
    facts = [(file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    told = [VERSION, [file.name for file in files], facts, options]
    digest = hashlib.sha256(json.dumps(told, default=str).encode())
    for path, (size, _) in zip(files, facts, strict=True):
        with open(path, "rb") as file:
            digest.update(file.read(LOOKED_AT))
            file.seek(max(0, size - LOOKED_AT))
            digest.update(file.read(LOOKED_AT))
    return digest.hexdigest()


def cached_chunks(
    files: Sequence[Path],
    chunks: Iterator[Chunk],
    options: Any,
    bad: BadRows,
    layout: Layout,
) -> Iterator[Chunk]:
    """The chunks of a source: from its cache, or as they are parsed, which fills it.

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
    """The chunks after so many rows."""
    for chunk in chunks:
        n_more = min(n_rows, chunk.X.shape[0])
        n_rows -= n_more
        if n_more < chunk.X.shape[0]:
            y = chunk.y[n_more:] if chunk.y.size else chunk.y
            yield Chunk(chunk.X[n_more:], y) if n_more else chunk


# ---- what a pass has learned -------------------------------------------------------------


def _known(layout: Layout) -> Any:
    """What is known of columns, as it looks when it has been stored."""
    return json.loads(json.dumps({**layout.to_dict(), "is_frozen": layout.categories.is_frozen}))


def _suits(learned: Any, layout: Layout, bad: BadRows) -> bool:
    """Whether reading the source again would give the rows that were kept."""
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
    """What reading a source adds to counts and layout."""

    def __init__(self, bad: BadRows, layout: Layout) -> None:
        self._bad, self._layout, self._before = bad, layout, _known(layout)
        self._counts = bad.n_skipped, len(bad.errors), layout.n_left_out

    def told(self) -> dict[str, Any]:
        """The same in plain values."""
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
    """The chunks of a cache; a DataError where it is not one of this source, or damaged."""
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


def _batch_in(reader: Any, k: int) -> tuple[Any, Any]:
    """A batch whose lists are sound, and what is told about it."""
    found = reader.get_batch_with_custom_metadata(k)
    batch, metadata = found.batch, dict(found.custom_metadata)
    batch.validate(full=True)
    if zlib.crc32(metadata[ABOUT]) != int(metadata[CHECK]):
        raise ValueError("damaged")
    return batch, json.loads(metadata[ABOUT])


def _chunk_of(batch: Any, about: Any) -> Chunk:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    width, y, arrays = about["width"], np.empty(0), []
    if "label" in columns:
        words = columns["label"].to_numpy(zero_copy_only=True)
        arrays.append(words)
        y = _labels_of(words, about["label"], about["texts"])
    if "rows" in columns:
        flat = columns["rows"].flatten().to_numpy(zero_copy_only=True)
        arrays.append(flat)
        X: Any = flat.reshape(batch.num_rows, width)
    else:
        starts, others = (columns[name].offsets.to_numpy() for name in ("columns", "values"))
        indices, values = (columns[name].values.to_numpy() for name in ("columns", "values"))
        arrays += [starts, others, indices, values]
        X = sp.csr_matrix((values, indices, starts), shape=(batch.num_rows, width), copy=False)
        X.has_canonical_format = about["is_canonical"]
    if [_parity(array) for array in arrays] != about["parities"]:
        raise ValueError("damaged")
    return Chunk(X, y)


def _parity(array: Array) -> int:
    """The exclusive or of its bytes, eight at a time: any damage to one of them changes it."""
    flat = array.reshape(-1).view(np.uint8)
    n_whole = flat.size - flat.size % 8
    rest = int.from_bytes(flat[n_whole:].tobytes(), "little")
    return int(np.bitwise_xor.reduce(flat[:n_whole].view(np.uint64))) ^ rest


def _labels_of(words: Array, dtype: str, texts: list[str]) -> Array:
    kind = np.dtype(dtype)
    if kind.kind == "U":
        return np.array(texts, kind)[words]
    return (words.view(np.float64) if kind.kind == "f" else words).astype(kind, copy=False)


# ---- writing -----------------------------------------------------------------------------


def _kept(
    chunks: Iterator[Chunk], path: Path, fingerprint: str, mode: int, bad: BadRows, layout: Layout
) -> Iterator[Chunk]:
    """Hand the chunks on, and keep them as far as that is possible."""
    lesson = _Lesson(bad, layout)
    with _Writer(path, fingerprint, mode) as writer:
        for chunk in chunks:
            writer.keep(chunk)
            yield chunk
        writer.finish(lesson.told())


class _Writer:
    """Writes a cache; after the first failure it does nothing any more, and leaves nothing."""

    def __init__(self, path: Path, fingerprint: str, mode: int) -> None:
        self._path, self._unfinished = path, path.with_name(path.name + UNFINISHED)
        self._fingerprint = fingerprint
        self._batches: Any = None
        self._schema: Any = None
        self._file: Any = None
        with contextlib.suppress(OSError):
            self._file = self._locked(mode)

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self._give_up()

    def _locked(self, mode: int) -> Any:
        """The unfinished file, empty and ours alone; what a crash has left of it is overwritten."""
        descriptor = os.open(self._unfinished, os.O_WRONLY | os.O_CREAT, mode & 0o666)
        file = os.fdopen(descriptor, "wb")
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_ino != os.stat(self._unfinished).st_ino:
                raise OSError("Another process has finished it meanwhile.")
            os.chmod(self._unfinished, mode & 0o666)
            file.truncate(0)
        except OSError:
            file.close()
            raise
        return file

    def _give_up(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._unfinished.unlink()
            with contextlib.suppress(OSError):
                self._file.close()
        self._file = None

    def keep(self, chunk: Chunk) -> None:
        """Write a chunk, unless that fails."""
        if self._file is None:
            return
        try:
            batch, about = _batch_of(chunk)
            if self._batches is None:
                self._schema = batch.schema
                marked = self._schema.with_metadata({FINGERPRINT: self._fingerprint})
                self._batches = pa.ipc.new_file(self._file, marked)
            self._write(batch, about)
        except (OSError, pa.ArrowException, _CannotBeKept):
            self._give_up()

    def _write(self, batch: Any, about: Any) -> None:
        if batch.schema != self._schema:
            raise _CannotBeKept
        text = json.dumps(about).encode()
        told = {ABOUT: text, CHECK: str(zlib.crc32(text))}
        self._batches.write_batch(batch, custom_metadata=told)

    def finish(self, learned: dict[str, Any]) -> None:
        """Write what was learned, and give the file its name."""
        if self._file is None or self._batches is None:
            return
        try:
            nothing = [pa.array([], field.type) for field in self._schema]
            self._write(pa.RecordBatch.from_arrays(nothing, schema=self._schema), learned)
            self._batches.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            os.replace(self._unfinished, self._path)
            self._file.close()
            self._file = None
        except (OSError, pa.ArrowException):
            self._give_up()


class _CannotBeKept(Exception):
    """A chunk that the file has no place for."""


def _batch_of(chunk: Chunk) -> tuple[Any, dict[str, Any]]:
    """The chunk as a batch, and what is told about it."""
    X, y = chunk
    columns: dict[str, Any] = {}
    about: dict[str, Any] = {"width": int(X.shape[1])}
    arrays = []
    if y.size:
        words, about["label"], about["texts"] = _words_of(y)
        columns["label"] = pa.array(words)
        arrays.append(words)
    if not isinstance(X, np.ndarray):
        if X.nnz > MOST_ENTRIES:
            raise _CannotBeKept
        about["is_canonical"] = bool(X.has_canonical_format)
        starts = X.indptr.astype(np.int32, copy=False)
        indices, values = X.indices[: X.nnz].astype(np.int32, copy=False), X.data[: X.nnz]
        for name, array in (("columns", indices), ("values", values)):
            columns[name] = pa.ListArray.from_arrays(pa.array(starts), pa.array(array))
        arrays += [starts, starts, indices, values]
    else:
        flat = np.ascontiguousarray(X).reshape(-1)
        columns["rows"] = pa.FixedSizeListArray.from_arrays(pa.array(flat), X.shape[1])
        arrays.append(flat)
    about["parities"] = [_parity(array) for array in arrays]
    return pa.RecordBatch.from_pydict(columns), about


def _words_of(y: Array) -> tuple[Array, str, list[str]]:
    """Labels as 64 bits each, the type that they had, and their texts."""
    kind = y.dtype.kind
    if kind == "U":
        texts, codes = np.unique(y, return_inverse=True)
        return codes.astype(np.int64), y.dtype.str, texts.tolist()
    if kind == "f" and y.dtype.itemsize <= 8:
        return y.astype(np.float64).view(np.int64), y.dtype.str, []
    if kind in "biu":
        return y.astype(np.int64), y.dtype.str, []
    raise _CannotBeKept
