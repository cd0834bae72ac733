"""Rows on a Dask cluster, whatever they come as, as partitions: delayed chunks of X and y.

Arrays    dask arrays X and y, cut at the same rows; X is not cut between columns.
Frames    a dask dataframe X and a series y with the same partitions.
Chunks    a list of delayed pairs (X, y), or of pairs of delayed X and y.
Files     a path, a pattern with wildcards or a list of these: each file, or range of a large one
          (`data/ranges.py`), is a partition, read by the worker that learns it. The first file
          settles where indices of LIBSVM text start and whether labels are text; the layout of
          tables is learned from the first rows of all partitions.
In rounds rows stay where they are loaded; `mix_rows` is there to move them.
"""

import glob
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyplane.arrays import Array
from polyplane.backends.dask_needed import Delayed, da, dask, delayed, sizeof
from polyplane.data.chunk_sizes import joined
from polyplane.data.chunks import Chunk, DataError
from polyplane.data.formats.which import ReadOptions, is_path, settled_by
from polyplane.data.ranges import Range, exact_ranges, quotes_in, ranges_of, read_range, sample_of
from polyplane.data.reading import CHUNK_ROWS, stream
from polyplane.data.table.frames import is_frame
from polyplane.data.table.layout import Layout

__all__ = [
    "Partition",
    "Settled",
    "Survey",
    "is_array_like",
    "is_dask_frame",
    "mix_rows",
    "partitions_of",
    "survey",
    "told_apart",
]

NO_LABELS = np.empty(0)
RANGE_BYTES, LEAST_RANGE_BYTES = 1 << 26, 1 << 20  # of a file that is cut
SAMPLE_BYTES = 1 << 25  # of all files together, from which the layout of tables is learned


class Partition(NamedTuple):
    """Some rows that stay together."""

    chunk: Any  # delayed
    key: Any  # under which workers hold X, if they do already
    settled: Any = None  # delayed: what is the same for all files
    source: Any = None  # range, perhaps delayed, and options, where it is of a file


class Survey(NamedTuple):
    """Facts about a partition that are needed before the first round."""

    n_rows: int
    n_columns: int
    n_bytes: int
    labels: Array  # that occur, sorted
    label_counts: Array  # rows of each
    is_table: bool
    is_sparse: bool


def survey(chunk: Chunk) -> Survey:
    """Return the facts about a partition."""
    labels, counts = np.unique(np.asarray(chunk.y), return_counts=True)
    (n_rows, n_columns), n_bytes = chunk.X.shape, int(sizeof(chunk.X))
    kind = is_frame(chunk.X), sp.issparse(chunk.X)
    return Survey(n_rows, n_columns, n_bytes, labels, counts, *kind)


def is_array_like(X: Any) -> bool:
    """Return True if X is a dask array or dataframe, so that predictions can be an array, too."""
    return isinstance(X, da.Array) or is_dask_frame(X)


def is_dask_frame(X: Any) -> bool:
    """Return True if X is a dask dataframe."""
    return dask.is_dask_collection(X) and hasattr(X, "npartitions") and hasattr(X, "columns")


def partitions_of(
    X: Any,
    y: Any = None,
    options: Mapping[str, Any] | None = None,
    n_wanted: int = 1,
    layout: Layout | None = None,
) -> list[Partition]:
    """The partitions of all kinds of input; `options` are those of `polyplane.read`, for files.

    Files are cut so that there are `n_wanted`, if they are large enough for that; where they are
    tables, they are laid out as a model knows them, or as they tell themselves.
    """
    if options and not _are_paths(X):
        raise ValueError(f"{', '.join(options)}: options are for files, which X does not name.")
    if is_array_like(X):
        cut = _cut_array if isinstance(X, da.Array) else _cut_frame
        pieces = [(piece, None) for piece in cut(X)] if y is None else _cut_alike(X, y, cut)
        return [Partition(delayed(_chunk)(one, labels), one.key) for one, labels in pieces]
    if y is not None:
        raise ValueError("y goes with a dask array or dataframe; files and chunks bring labels.")
    if _are_paths(X):
        return _file_partitions(X, dict(options or {}), n_wanted, layout)
    if isinstance(X, list | tuple) and len(X) and all(_is_delayed_pair(one) for one in X):
        return [Partition(delayed(_chunk_of_pair)(one), _key_of(one)) for one in X]
    raise TypeError(
        f"X is {type(X).__name__}, expected a dask array or dataframe, a list of delayed (X, y), "
        "or names of files."
    )


# ---- arrays, frames and chunks -----------------------------------------------------------


def _cut_array(X: Any) -> list[Any]:
    if X.ndim == 2 and X.numblocks[1] > 1:
        raise ValueError("X is cut between its columns: give X.rechunk({1: -1}).")
    return list(X.to_delayed().ravel())


def _cut_frame(X: Any) -> list[Any]:
    return list(X.to_delayed())


def _cut_alike(X: Any, y: Any, cut: Any) -> list[tuple[Any, Any]]:
    if not dask.is_dask_collection(y):
        raise ValueError(
            f"y is {type(y).__name__}, expected a dask collection cut as X is, for example "
            "dask.array.from_array(y, chunks=X.chunks[0])."
        )
    pieces, labels = cut(X), list(np.ravel(y.to_delayed()))
    sizes = getattr(X, "chunks", ((np.nan,),))[0], getattr(y, "chunks", ((np.nan,),))[0]
    are_known = not np.isnan(np.array([*sizes[0], *sizes[1]], float)).any()
    if len(pieces) != len(labels) or (are_known and sizes[0] != sizes[1]):
        raise ValueError(
            f"X is cut into {len(pieces)} partitions and y into {len(labels)}, or at other rows: "
            "rechunk or repartition one like the other."
        )
    return list(zip(pieces, labels, strict=True))


def _is_delayed_pair(one: Any) -> bool:
    is_pair = isinstance(one, tuple) and len(one) == 2
    return isinstance(one, Delayed) or (is_pair and all(isinstance(k, Delayed) for k in one))


def _key_of(pair: Any) -> Any:
    return pair.key if isinstance(pair, Delayed) else pair[0].key


def _chunk_of_pair(pair: Any) -> Chunk:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ValueError(f"a chunk is {type(pair).__name__}, expected a pair (X, y)")
    return _chunk(*pair)


def _chunk(X: Any, y: Any) -> Chunk:
    labels = NO_LABELS if y is None else np.asarray(y)
    if getattr(X, "ndim", 0) != 2:
        raise ValueError(f"X is of {getattr(X, 'ndim', 0)} dimensions, expected rows and columns")
    if y is not None and labels.shape != (X.shape[0],):
        raise ValueError(f"X has {X.shape[0]} rows and y the shape {labels.shape}")
    return Chunk(X, labels)


# ---- files -------------------------------------------------------------------------------


def _are_paths(X: Any) -> bool:
    return is_path(X) or (isinstance(X, list | tuple) and len(X) > 0 and all(map(is_path, X)))


def _file_partitions(
    X: Any, options: dict[str, Any], n_wanted: int, layout: Layout | None
) -> list[Partition]:
    """Patterns are looked up and large files cut here, files are read by workers."""
    paths = [path for one in ([X] if is_path(X) else X) for path in _paths(os.fspath(one))]
    wanted = stream(paths, **options).options  # refuses options that there are not
    parts = [part for path in paths for part in _exact_ranges(path, wanted, len(paths), n_wanted)]
    known = None if layout is None else layout.to_dict()
    first = delayed(_settled)(paths[0], options, parts, known)
    return [_of_range(part, options, first) for part in parts]


def _of_range(part: Any, options: Mapping[str, Any], first: Any) -> Partition:
    return Partition(delayed(_read)(part, options, first), None, first, (part, options))


def told_apart(client: Any, parts: Sequence[Partition]) -> list[Partition]:
    """Return the partitions with the rows of files by themselves: what all share is found first."""
    if parts[0].settled is None:
        return list(parts)
    shared = delayed(_together)(parts[0].settled, [part.source[0] for part in parts])
    first, ranges = client.compute(shared).result()
    return [_of_range(one, part.source[1], first) for one, part in zip(ranges, parts, strict=True)]


def _together(*values: Any) -> tuple[Any, ...]:
    return values


def _exact_ranges(path: str, options: ReadOptions, n_files: int, n_wanted: int) -> list[Any]:
    """The ranges of a file, or it as a whole; where records of CSV begin is for workers to see."""
    n_bytes = RANGE_BYTES
    if n_files < n_wanted and os.path.isfile(path):
        of_file = os.path.getsize(path) * n_files // n_wanted
        n_bytes = min(RANGE_BYTES, max(LEAST_RANGE_BYTES, of_file))
    parts = ranges_of(path, options, n_bytes)
    if parts[0].kind != "csv" or len(parts) == 1:
        return list(parts)
    exact = delayed(exact_ranges, nout=len(parts))
    return list(exact(parts, [delayed(quotes_in)(part) for part in parts]))


def _paths(path: str) -> list[str]:
    if not glob.has_magic(path) or os.path.exists(path):
        return [path]
    found = [one for one in sorted(glob.glob(path, recursive=True)) if not os.path.isdir(one)]
    if not found:
        raise DataError("found no file of that name, expected at least one", path)
    return found


class Settled(NamedTuple):
    """Facts that are the same for all files."""

    text: Mapping[str, Any]  # of LIBSVM text
    layout: Any  # of a table, as plain values; None of others


def _settled(path: str, options: Mapping[str, Any], parts: Sequence[Range], known: Any) -> Settled:
    source = stream(path, **options)
    text = settled_by(path, CHUNK_ROWS, source.options)
    if known is not None:
        return Settled(text, known)
    layout = _layout_of(path, options, parts)
    return Settled(text, layout.to_dict() if layout.sources else None)


def _layout_of(path: str, options: Mapping[str, Any], parts: Sequence[Range]) -> Layout:
    """Return the layout learned from the first rows of all ranges, or from the first file."""
    source = stream(path, **options)
    tables = [part for part in parts if part.kind in ("csv", "parquet") and part.start < part.stop]
    if tables:
        return sample_of(tables, source.options, SAMPLE_BYTES)
    next(iter(source))
    if source.layout.sources:
        source = stream(path, **options)
        source.all_chunks()
    return source.layout


def _read(part: Range, options: Mapping[str, Any], first: Settled) -> Chunk:
    """The rows of a file or range, laid out as all are."""
    layout = None if first.layout is None else Layout.from_dict(first.layout, is_frozen=True)
    source = stream(part.path, layout=layout, **options)
    if part.kind is not None:
        layout = layout or Layout()
        return read_range(part, source.options, first.text, layout, source.skips_bad)
    source.settled = dict(first.text)
    return joined(list(source))


# ---- moving rows -------------------------------------------------------------------------


def mix_rows(
    X: Any, y: Any = None, *, n_partitions: int | None = None, seed: int = 0, **options: Any
) -> list[Any]:
    """Return the rows in partitions that each hold a random part of every partition of X.

    This is for data that are sorted, by class or by day, and the one function here that moves rows
    between workers: once, when the chunks returned are first computed.
    """
    parts = [part.chunk for part in partitions_of(X, y, options)]
    n_parts = len(parts) if n_partitions is None else n_partitions
    cut = [
        delayed(_scattered, nout=n_parts)(one, n_parts, [seed, k]) for k, one in enumerate(parts)
    ]
    return [
        delayed(_gathered)([pieces[k] for pieces in cut], [seed, len(parts), k])
        for k in range(n_parts)
    ]


def _scattered(chunk: Chunk, n_parts: int, seed: Sequence[int]) -> list[Chunk]:
    _check_no_frame(chunk)
    order = np.random.default_rng(seed).permutation(chunk.X.shape[0])
    return [Chunk(chunk.X[part], chunk.y[part]) for part in np.array_split(order, n_parts)]


def _gathered(pieces: list[Chunk], seed: Sequence[int]) -> Chunk:
    chunk = joined(list(pieces))
    order = np.random.default_rng(seed).permutation(chunk.X.shape[0])
    return Chunk(chunk.X[order], chunk.y[order])


def _check_no_frame(chunk: Chunk) -> None:
    if is_frame(chunk.X):
        raise ValueError("rows of dataframes are mixed by their own method shuffle")
