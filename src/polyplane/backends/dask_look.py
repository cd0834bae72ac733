"""A look at rows on a Dask cluster: some of all partitions, brought here and explored.

Everything else stays where it is. An exploration works here, on the sample: so Ctrl-C ends it with
what it has found, and its page is a file of whoever asks.
"""

from dataclasses import replace
from typing import Any

import scipy.sparse as sp

from polyplane.backends.dask_needed import Client, default_client
from polyplane.backends.dask_partitions import partitions_of
from polyplane.backends.dask_rows import (
    LoadedRows,
    faults_in_words,
    load_rows,
    places_sampled,
    result_of_sample,
    sampled,
)
from polyplane.data.chunk_sizes import widened
from polyplane.data.chunks import Chunk
from polyplane.engine.planes.planes import Array
from polyplane.tuning.budget import budget_of
from polyplane.tuning.exploration import FOLDS, Exploration, explore_sample
from polyplane.tuning.samples import MOST_CELLS, MOST_ROWS, Sample, columns_of, sample_of_rows

__all__ = ["explore", "sample"]


def sample(
    X: Any,
    y: Any = None,
    *,
    n_rows: int = 20_000,
    client: Client | None = None,
    **options: Any,
) -> tuple[Any, Array]:
    """About so many rows of all partitions, brought here: X and y for a search.

    Of each class it has 100 rows at least, where there are as many; else the share of all rows.
    """
    if n_rows < 1:
        raise ValueError("n_rows must be a whole number of at least 1.")
    with faults_in_words():
        rows = _loaded(X, y, client, options)
        found: Chunk = result_of_sample(sampled(rows, n_rows))
    return found.X, found.y


def explore(
    X: Any,
    y: Any = None,
    *,
    client: Client | None = None,
    budget: Any = 60,
    report: Any = None,
    image_shape: tuple[int, int] | None = None,
    n_folds: int = FOLDS,
    random_state: int = 0,
    n_jobs: int | None = -1,
    **options: Any,
) -> Exploration:
    """`polyplane.explore` of the rows of a cluster, by a sample drawn over all partitions.

    X and y are those of `fit`, `options` those of `polyplane.read`, where X names files; the rest
    is as in `polyplane.explore`. Loading the rows is part of the budget.
    """
    limit = budget_of(budget)
    with faults_in_words():
        rows = _loaded(X, y, client, options)
        found = _sample_of(rows, random_state)
    return explore_sample(
        found, limit, n_folds, random_state, n_jobs, report=report, image_shape=image_shape
    )


def _loaded(X: Any, y: Any, client: Client | None, options: dict[str, Any]) -> LoadedRows:
    client = client or default_client()
    n_threads = max(1, sum(client.nthreads().values()))
    return load_rows(client, partitions_of(X, y, options, n_threads), n_threads)


def _sample_of(rows: LoadedRows, seed: int) -> Sample:
    """As an exploration wants it: in random order, with names of columns and places of rows."""
    is_wide = not (rows.surveys[0].is_sparse or rows.surveys[0].is_table)
    n_wanted = min(MOST_ROWS, MOST_CELLS // max(1, rows.n_columns)) if is_wide else MOST_ROWS
    places = places_sampled(rows, n_wanted)
    X, y = result_of_sample(sampled(rows, n_wanted))
    width = rows.n_columns if rows.layout is None else rows.layout.width
    found = sample_of_rows(widened(X, width) if sp.issparse(X) else X, y, seed)
    if rows.layout is not None:
        found = replace(found, layout=rows.layout, columns=columns_of(rows.layout))
    n_met = int(rows.census().n_rows.sum())
    return replace(found, places=places[found.places], n_met=n_met, is_all=True)
