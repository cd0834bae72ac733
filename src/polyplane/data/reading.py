"""Sources to rows: `read` all of them, or `stream` them a chunk at a time, as often as wanted.

A source is a path, a pattern with wildcards, "-" for standard input, an open binary file, or a list
of these, whose rows follow each other. The first file settles for the others where indices of
LIBSVM text start, whether labels are text, and which columns tables have.
A thread reads while a chunk is at work, and is never more than two chunks ahead.
"""

import contextlib
import glob
import os
import queue
import threading
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyplane.data.chunk_sizes import joined, mixed, rechunked, widened
from polyplane.data.chunks import Array, BadRows, Chunk, DataError
from polyplane.data.decompress import name_of
from polyplane.data.formats.arrow.cache import cached_chunks, is_cache
from polyplane.data.formats.which import (
    ReadOptions,
    all_of,
    chunks_of,
    files_of,
    is_path,
    read_options,
    settled_by,
)
from polyplane.data.table.layout import Layout

__all__ = ["Stream", "read", "stream"]

CHUNK_ROWS = 8_192
WINDOW_CHUNKS = 4  # shuffled together; as many wait
PIPE_TIMEOUT_SECONDS = 1.0  # seconds that a thread gets to leave a pipe from which nothing comes
OWN_COLUMNS = (
    "X has columns and scales that were learned from this file: for the same ones of another file, "
    "read both with one layout=pp.stream(path).layout"
)


def read(
    source: Any,
    *,
    on_bad: str = "raise",
    cache: bool = False,
    layout: Layout | None = None,
    **options: Any,
) -> tuple[Any, Array | None]:
    r"""Read all rows of files.

    Parameters
    ----------
    source : path, file or list
        File to read, a pattern of files, "-" for standard input, an open file, or a list of these:
        LIBSVM text, CSV, Parquet, Arrow, npy, npz or IDX, plain or compressed.
    on_bad : {"raise", "skip"}, default="raise"
        Rows that cannot be read are an error, or are left out and counted.
    cache : bool, default=False
        Keep parsed rows beside each file, and read them from there in later passes.
    layout : Layout, optional
        Columns of tables, as another stream has learned them.
    **options : dict
        Options of the format: `format`, `n_features`, `base`, `text_labels`, `label`, `drop`,
        `text_columns`, `missing`, `categories`, `n_hash`, `delimiter`, `header`, `labels`, `part`.

    Returns
    -------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Rows: float32 or uint8, sparse of LIBSVM text.
    y : ndarray of shape (n_rows,) or None
        Labels; None where there are none.

    See Also
    --------
    stream : The rows in chunks.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polyplane as pp
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "flowers.csv")
    >>> _ = path.write_text("length,width,label\n1.5,0.5,a\n4.0,1.5,b\n1.0,0.25,a\n")
    >>> X, y = pp.read(path, label="label")
    >>> X.shape, y.tolist()
    ((3, 2), ['a', 'b', 'a'])
    >>> folder.cleanup()
    """
    whole = stream(source, on_bad=on_bad, cache=cache, layout=layout, **options)
    rows = joined(whole.all_chunks())
    known = whole.layout
    has_own = bool(known.categories.numbers) or any(one.is_scaled for one in known.sources)
    if layout is None and has_own:
        whole.layout.remark(OWN_COLUMNS, whole.sources[0])
    return rows.X, rows.y if rows.y.size else None


def stream(
    source: Any,
    *,
    chunk_rows: int = CHUNK_ROWS,
    on_bad: str = "raise",
    cache: bool = False,
    layout: Layout | None = None,
    **options: Any,
) -> "Stream":
    r"""Return rows of files in chunks, one pass over the files for each loop over it.

    Parameters
    ----------
    source : path, file or list
        File to read, a pattern of files, "-" for standard input, an open file, or a list of these:
        LIBSVM text, CSV, Parquet, Arrow, npy, npz or IDX, plain or compressed.
    chunk_rows : int, default=8192
        Rows of a chunk.
    on_bad : {"raise", "skip"}, default="raise"
        Rows that cannot be read are an error, or are left out and counted.
    cache : bool, default=False
        Keep parsed rows beside each file, and read them from there in later passes.
    layout : Layout, optional
        Columns of tables, as another stream has learned them.
    **options : dict
        Options of the format: `format`, `n_features`, `base`, `text_labels`, `label`, `drop`,
        `text_columns`, `missing`, `categories`, `n_hash`, `delimiter`, `header`, `labels`, `part`.

    Returns
    -------
    Stream
        Iterable of chunks with `.X` and `.y`, which `fit` takes as X.

    See Also
    --------
    read : All rows at once.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polyplane as pp
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "flowers.csv")
    >>> _ = path.write_text("length,width,label\n1.5,0.5,a\n4.0,1.5,b\n1.0,0.25,a\n")
    >>> for chunk in pp.stream(path, chunk_rows=2, label="label"):
    ...     print(chunk.X.shape, chunk.y.tolist())
    (2, 2) ['a', 'b']
    (1, 2) ['a']
    >>> folder.cleanup()
    """
    if on_bad not in ("raise", "skip"):
        raise ValueError(f"on_bad is {on_bad!r}, expected 'raise' or 'skip'.")
    if not isinstance(chunk_rows, int | np.integer) or chunk_rows < 1:
        raise ValueError(f"chunk_rows is {chunk_rows!r}, expected a whole number of at least 1.")
    sources, wanted = list(_sources(source)), read_options(options)
    if not sources:
        raise DataError("found no file of that name, expected at least one", source)
    if wanted.labels is not None and len(sources) > 1:
        raise ValueError(
            f"labels names one file, but there are {len(sources)} sources: put a file of labels "
            "beside each."
        )
    return Stream(sources, wanted, int(chunk_rows), on_bad == "skip", cache, layout or Layout())


def _sources(source: Any) -> Iterator[Any]:
    """Single sources; files that match a pattern in the order of their names."""
    if isinstance(source, list | tuple):
        for one in source:
            yield from _sources(one)
    elif is_path(source) and glob.has_magic(os.fspath(source)) and not os.path.exists(source):
        for path in sorted(glob.glob(os.fspath(source), recursive=True)):
            if not is_cache(path) and not os.path.isdir(path):
                yield path
    elif isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        yield source
    else:
        raise TypeError(
            f"A source is {type(source).__name__}, expected a path, '-', an open file or a list."
        )


@dataclass(eq=False)
class Stream:
    """Rows of some sources, a chunk at a time, as often as they can be read."""

    sources: list[Any]
    options: ReadOptions
    chunk_rows: int
    skips_bad: bool
    caches: bool
    layout: Layout  # of tables: learned from the first file, obeyed by the others
    bad: BadRows = field(default_factory=BadRows)  # of the latest pass
    n_passes: int = 0
    n_columns: int = 0  # most that were met; later sparse rows are as wide from the first on
    settled: dict[str, Any] = field(default_factory=dict)  # by the first of several files

    @property
    def is_once(self) -> bool:
        """Return True if a pipe is among the sources, which cannot be read again."""
        return any(_is_pipe(source) for source in self.sources)

    @property
    def _patience(self) -> float | None:
        return PIPE_TIMEOUT_SECONDS if self.is_once else None

    def __iter__(self) -> Generator[Chunk, None, None]:
        """One pass."""
        return ahead(self._new_pass(), patience=self._patience)

    def shuffled(
        self, seed: int | Sequence[int], window_rows: int | None = None
    ) -> Generator[Chunk, None, None]:
        """One pass whose rows are in random order within windows of so many rows."""
        n_chunks = -(-window_rows // self.chunk_rows) if window_rows else WINDOW_CHUNKS
        pieces = ahead(self._new_pass(), n_chunks, self._patience)
        return ahead(mixed(pieces, n_chunks, seed), patience=self._patience)

    def all_chunks(self) -> list[Chunk]:
        """The chunks of one pass, whatever memory they take."""
        if len(self.sources) > 1 or self.caches:
            return list(self._new_pass())
        (source,), bad = self.sources, self._begin()
        if not self.layout.sources:
            self.layout.grows = False  # it can be learned from all rows
        with _as_data_errors(source), _unchanged(source, self.options):
            chunks = all_of(source, self.options, bad, self.layout)
        if not chunks:
            raise _no_rows(bad, source)
        return chunks

    def _begin(self) -> BadRows:
        """Count a pass, and start its counts."""
        if self.n_passes > 0 and self.is_once:
            pipe = next(filter(_is_pipe, self.sources))
            raise DataError("can be read only once: save it to a file first", name_of(pipe))
        self.n_passes += 1
        self.bad, self.layout.n_left_out = BadRows(self.skips_bad), 0
        self.layout.gaps = {}
        return self.bad

    def _new_pass(self) -> Generator[Chunk, None, None]:
        """One pass in this thread."""
        return self._chunks(self._begin())

    def _chunks(self, bad: BadRows) -> Generator[Chunk, None, None]:
        n_chunks, pieces = 0, self._pieces(bad)
        for chunk in pieces if len(self.sources) == 1 else rechunked(pieces, self.chunk_rows):
            n_chunks += 1
            yield chunk
        if n_chunks == 0:
            raise _no_rows(bad, self.sources[0])

    def _pieces(self, bad: BadRows) -> Iterator[Chunk]:
        """The chunks of each source in turn, which must go together."""
        if len(self.sources) > 1 and not self.settled and not _is_pipe(self.sources[0]):
            self.settled = settled_by(self.sources[0], self.chunk_rows, self.options)
        expected = None
        for source in self.sources:
            with _as_data_errors(source):
                for chunk in self._of_source(source, bad):
                    expected = expected or _kind_of(chunk)
                    _check_kind(_kind_of(chunk), expected, name_of(source))
                    yield self._as_wide_as_known(chunk)

    def _as_wide_as_known(self, chunk: Chunk) -> Chunk:
        if isinstance(chunk.X, np.ndarray):
            return chunk
        self.n_columns = max(self.n_columns, chunk.X.shape[1])
        return Chunk(widened(chunk.X, self.n_columns), chunk.y)

    def _of_source(self, source: Any, bad: BadRows) -> Iterator[Chunk]:
        chunks = self._unchanged_chunks(source, bad)
        if not (self.caches and is_path(source) and os.path.isfile(source)):
            return chunks
        files, options = files_of(source, self.options), [asdict(self.options), self.settled]
        kept = cached_chunks(files, chunks, options, bad, self.layout)
        return rechunked(kept, self.chunk_rows)

    def _unchanged_chunks(self, source: Any, bad: BadRows) -> Iterator[Chunk]:
        with _unchanged(source, self.options):
            yield from chunks_of(
                source, self.chunk_rows, self.options, bad, self.layout, self.settled
            )


def _is_pipe(source: Any) -> bool:
    is_file = is_path(source) and (os.path.isfile(source) or os.path.isdir(source))
    return not is_file and (not is_path(source) or os.path.exists(source))


def _no_rows(bad: BadRows, source: Any) -> DataError:
    name = name_of(source)
    if bad.n_skipped == 0:
        return DataError("found no rows, expected at least one", name)
    first = f"the first: {bad.errors[0]}" if bad.errors else "none is left"
    return DataError(f"all of its {bad.n_skipped} rows are bad; {first}", name)


def _check_kind(found: tuple[str, str], expected: tuple[str, str], name: str) -> None:
    for word, other in zip(found, expected, strict=True):
        if word != other:
            raise DataError(f"found {word}, expected {other} as in the file before", name)


def _kind_of(chunk: Chunk) -> tuple[str, str]:
    is_sparse, y = sp.issparse(chunk.X), chunk.y
    rows = "sparse rows" if is_sparse else f"dense rows of {chunk.X.shape[1]} values"
    labels = "labels that are text" if y.dtype.kind == "U" else "labels that are numbers"
    return rows, labels if y.size else "no labels"


@contextlib.contextmanager
def _as_data_errors(source: Any) -> Iterator[None]:
    """A disk or a pipe that fails on the way."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", name_of(source)) from error


@contextlib.contextmanager
def _unchanged(source: Any, options: ReadOptions) -> Iterator[None]:
    """A file that changes while it is read is an error: half of each would be no data set."""
    is_file = is_path(source) and os.path.isfile(source)
    files = files_of(source, options) if is_file else []
    before = [_state_of(file) for file in files]
    yield
    for file, state in zip(files, before, strict=True):
        if _state_of(file) != state:
            raise DataError("changed while it was read: read it again", os.fspath(file))


def _state_of(path: Any) -> Any:
    try:
        facts = os.stat(path)
    except FileNotFoundError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def ahead(
    chunks: Generator[Chunk, None, None], n_ahead: int = 2, patience: float | None = None
) -> Generator[Chunk, None, None]:
    """Yield chunks that a thread makes, which is never more than `n_ahead` chunks ahead.

    The thread ends with the loop, however that ends; one that waits for a pipe gets `patience`
    seconds to do so, and else ends with the pipe.
    """
    made: queue.SimpleQueue[Any] = queue.SimpleQueue()
    room = threading.Semaphore(n_ahead)
    is_over = threading.Event()

    def work() -> None:
        try:
            with contextlib.closing(chunks):
                while room.acquire() and not is_over.is_set():
                    chunk = next(chunks, None)
                    made.put(chunk)
                    if chunk is None:
                        return
                    del chunk
        except BaseException as error:
            made.put(error)

    reader = threading.Thread(target=work, daemon=True, name="polyplane reader")
    reader.start()
    try:
        while (item := made.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            room.release()
            yield item
    finally:
        is_over.set()
        room.release()
        reader.join(patience)
