"""Partitions on the workers of a Dask cluster: loaded, looked at once, and sampled."""

import contextlib
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.backends.dask_needed import CancelledError, CommClosedError, KilledWorker, dask
from polyplane.backends.dask_partitions import Partition, Survey, survey
from polyplane.data.chunk_sizes import joined
from polyplane.data.chunks import Chunk, DataError
from polyplane.data.table.frames import is_frame
from polyplane.data.table.layout import Layout
from polyplane.estimator.learners.travelling_models import Census

__all__ = [
    "LoadedRows", "Part", "faults_in_words", "holders_of", "layout_of_files", "load_rows", "near",
    "result_of", "result_of_sample", "sampled", "unusable",
]  # fmt: skip

SAMPLED_ROWS = 100_000  # over all partitions, for what looks at all rows before the first step
ROWS_OF_A_CLASS = 100  # that a sample has of each, where there are as many


@contextlib.contextmanager
def faults_in_words(numbers: Mapping[Any, int] | None = None) -> Iterator[None]:
    """Raise errors of the cluster as one sentence; `numbers` are those of partitions, by key."""
    try:
        yield
    except KilledWorker as error:
        raise _lost(error, (numbers or {}).get(error.task)) from error
    except (CancelledError, CommClosedError) as error:
        raise ConnectionError(
            "The scheduler has cancelled the work, or cannot be reached any more: connect again, "
            "and go on with resume=True from the model, which is that of its last round."
        ) from error


def _lost(error: KilledWorker, number: int | None) -> ConnectionError:
    where = "a task" if number is None else f"partition {number}, or one that was beside it"
    return ConnectionError(
        f"Workers were lost {error.allowed_failures + 1} times at {where}, as when memory "
        "runs out: give workers more memory, or rows in smaller partitions."
    )


class Part(NamedTuple):
    """A partition of a learner."""

    chunk: Any  # future
    number: int
    n_rows: int
    n_bytes: int


class LoadedRows(NamedTuple):
    """The partitions that hold rows, on their workers."""

    client: Any
    chunks: list[Any]  # futures
    surveys: list[Survey]
    numbers: list[int]  # of the partitions among all
    layout: Layout | None  # of files that are tables

    @property
    def classes(self) -> Array:
        """All labels, sorted."""
        found: Array = np.unique(np.concatenate([one.labels for one in self.surveys]))
        return found

    def census(self, places: Iterable[int] | None = None) -> Census:
        """Rows of each class, in all partitions or in some."""
        labels = self.classes
        n_rows = np.zeros(labels.size, np.int64)
        for k in range(len(self.surveys)) if places is None else places:
            one = self.surveys[k]
            n_rows[np.searchsorted(labels, one.labels)] += one.label_counts
        return Census(labels, n_rows)

    def part(self, place: int) -> "Part":
        """One of them, for its learner."""
        one = self.surveys[place]
        return Part(self.chunks[place], self.numbers[place], one.n_rows, one.n_bytes)

    @property
    def n_columns(self) -> int:
        """Columns of the widest partition."""
        return max(one.n_columns for one in self.surveys)


def load_rows(client: Any, parts: Sequence[Partition], n_learners: int) -> LoadedRows:
    """Have all partitions loaded where they will stay, and look at each once.

    What workers hold already stays where it is; else a learner's partitions are on one worker.
    """
    workers, held_by = sorted(client.nthreads()), client.who_has()
    homes: dict[Any, list[int]] = {}
    for number, block in enumerate(np.array_split(np.arange(len(parts)), n_learners)):
        for k in block.tolist():
            home = held_by.get(parts[k].key) or [workers[number % len(workers)]]
            homes.setdefault(tuple(home), []).append(k)
    futures: list[Any] = [None] * len(parts)
    for home, places in homes.items():
        loaded = client.compute([parts[k].chunk for k in places], **near(home))
        for k, future in zip(places, loaded, strict=True):
            futures[k] = future
    surveys = [
        result_of(future, number)
        for number, future in enumerate(client.map(survey, futures, pure=False))
    ]
    held = [number for number, one in enumerate(surveys) if one.n_rows > 0]
    if not held:
        raise ValueError(f"X has no rows in any of its {len(parts)} partitions.")
    _check_alike(surveys, held)
    layout = layout_of_files(client, parts)
    return LoadedRows(client, [futures[k] for k in held], [surveys[k] for k in held], held, layout)


def layout_of_files(client: Any, parts: Sequence[Partition]) -> Layout | None:
    """Return the layout of files that are tables, or None."""
    settled: Any = parts[0].settled
    if dask.is_dask_collection(settled):
        settled = client.compute(settled).result()
    plain = None if settled is None else settled.layout
    return None if plain is None else Layout.from_dict(plain, is_frozen=True)


def holders_of(client: Any, chunks: Sequence[Any]) -> dict[Any, Any]:
    """Return the workers that have each chunk now; none for a chunk that was lost."""
    known = client.who_has(chunks)
    return {chunk.key: known.get(chunk.key, ()) for chunk in chunks}


def near(workers: Any) -> dict[str, Any]:
    """Where a task should run, as long as one of these workers lives."""
    return {"workers": list(workers), "allow_other_workers": True} if workers else {}


def result_of(future: Any, number: int) -> Any:
    """Return the result of a task about a partition; what is wrong is said in one sentence."""
    try:
        return future.result()
    except KilledWorker as error:
        raise _lost(error, number) from error
    except (DataError, CommClosedError):
        raise
    except (OSError, TypeError, ValueError) as error:
        raise unusable(number, error) from error


def unusable(number: int, error: Exception) -> ValueError:
    words = (str(error).splitlines() or [type(error).__name__])[0]
    return ValueError(f"Partition {number} cannot be used: {words}")


def _check_alike(surveys: Sequence[Survey], held: Sequence[int]) -> None:
    first = surveys[held[0]]
    for number in held:
        one = surveys[number]
        if one.labels.size == 0:
            raise ValueError(f"Partition {number} has no labels, which training needs.")
        if (one.labels.dtype.kind in "OUS") != (first.labels.dtype.kind in "OUS"):
            raise ValueError(f"Partition {number} has text or numbers as labels, others have not.")
        if one[-2:] != first[-2:]:
            raise ValueError(
                f"Partition {number} is of another kind than partition {held[0]}: give all as "
                "arrays, all as sparse matrices or all as tables."
            )
        if one.n_columns != first.n_columns and not one.is_sparse:
            raise ValueError(
                f"Partition {number} has {one.n_columns} columns, and partition {held[0]} has "
                f"{first.n_columns}."
            )


# ---- a sample ----------------------------------------------------------------------------


def sampled(rows: LoadedRows, n_wanted: int | None = None) -> Any:
    """Rows from all partitions, on one worker; all of them, where there are not more."""
    tasks = rows.client.map(_sample, rows.chunks, shares=_shares(rows, n_wanted), pure=False)
    return rows.client.submit(_joined, tasks, pure=False)


def _shares(rows: LoadedRows, n_wanted: int | None) -> dict[Any, float]:
    """Return for each class the share of its rows that a sample has."""
    labels, n_rows = rows.census()
    share = min(1.0, (n_wanted or SAMPLED_ROWS) / n_rows.sum())
    of_class = np.clip(ROWS_OF_A_CLASS / n_rows, share, 1.0)
    return dict(zip(labels.tolist(), of_class.tolist(), strict=True))


def _sample(chunk: Chunk, shares: Mapping[Any, float]) -> Chunk:
    """Return every so-many-th row of each class."""
    places = []
    for label in np.unique(chunk.y).tolist():
        own = np.flatnonzero(chunk.y == label)
        n_wanted = math.ceil(own.size * shares[label])
        places.append(own[np.linspace(0, own.size - 1, n_wanted).astype(np.int64)])
    chosen = np.sort(np.concatenate(places))
    X = chunk.X.iloc if is_frame(chunk.X) else chunk.X
    return Chunk(X[chosen], chunk.y[chosen])


def _joined(parts: list[Chunk]) -> Chunk:
    """Chunks of any kind as one."""
    if not is_frame(parts[0].X):
        return joined(list(parts))
    pandas: Any = sys.modules["pandas"]  # whose frames these are: it need not be installed else
    return Chunk(pandas.concat([part.X for part in parts]), np.concatenate([p.y for p in parts]))


def result_of_sample(future: Any) -> Any:
    """Return the result of a task about the sample; what is wrong is said in one sentence."""
    try:
        return future.result()
    except (TypeError, ValueError) as error:
        words = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"A sample of all partitions cannot be used: {words}") from error
