"""Prediction and evaluation where the rows are: only labels or counts leave the workers."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from polyplane.arrays import Array
from polyplane.backends.dask_needed import Client, da, default_client, delayed
from polyplane.backends.dask_partitions import is_array_like, partitions_of
from polyplane.backends.dask_rows import result_of
from polyplane.data.chunk_sizes import widened
from polyplane.data.chunks import Chunk
from polyplane.estimator.files.saving import PackedModel, packed, unpacked
from polyplane.estimator.input.tables import layout_of, width_of

__all__ = ["Evaluation", "evaluate", "predict", "predicted_by"]


class Evaluation(NamedTuple):
    """Counts of right and wrong predictions on the rows of a cluster."""

    n_rows: int
    error: float  # share of wrong rows
    labels: Array  # of rows and of the model, sorted
    confusions: Array  # rows of label i that were called j


def predict(estimator: Any, X: Any, **options: Any) -> Any:
    """Labels of the rows of X, computed when and where Dask is asked for them.

    Of dask arrays and dataframes it is a dask array; of chunks and files a list of delayed arrays.
    """
    check_is_fitted(estimator)
    parts = partitions_of(X, None, options, layout=layout_of(estimator))
    # a part of the graph: scattered, it could be let go of before the graph has arrived
    model = delayed(packed(estimator, training=False), traverse=False)
    made = [delayed(predicted)(model, part.chunk) for part in parts]
    if not is_array_like(X):
        return made
    sizes = X.chunks[0] if isinstance(X, da.Array) else [np.nan] * len(made)
    dtype = estimator.classes_.dtype
    arrays = [
        da.from_delayed(one, shape=(size,), dtype=dtype)
        for one, size in zip(made, sizes, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def evaluate(
    estimator: Any, X: Any, y: Any = None, *, client: Client | None = None, **options: Any
) -> Evaluation:
    """Compare predictions with labels on the workers; only counts come back."""
    client = client or default_client()
    check_is_fitted(estimator)
    (model,) = client.scatter([packed(estimator, training=False)], broadcast=True, hash=False)
    given = partitions_of(X, y, options, layout=layout_of(estimator))
    tasks = [delayed(_counted)(model, part.chunk) for part in given]
    parts = [result_of(future, k) for k, future in enumerate(client.compute(tasks))]
    labels: Array = np.unique(np.concatenate([known for known, _ in parts]))
    confusions = np.zeros((labels.size, labels.size), np.int64)
    for known, counts in parts:
        places = np.searchsorted(labels, known)
        confusions[np.ix_(places, places)] += counts
    n_rows = int(confusions.sum())
    error = 1 - np.trace(confusions) / n_rows if n_rows else float("nan")
    return Evaluation(n_rows, float(error), labels, confusions)


def predicted(model: PackedModel, chunk: Chunk) -> Array:
    return predicted_by(unpacked(model), chunk)


def predicted_by(estimator: Any, chunk: Chunk) -> Array:
    """The labels of all rows of a partition."""
    if chunk.X.shape[0] == 0:
        return np.empty(0, estimator.classes_.dtype)
    X = widened(chunk.X, width_of(estimator)) if sp.issparse(chunk.X) else chunk.X
    labels: Array = estimator.predict(X)
    return labels


def _counted(model: PackedModel, chunk: Chunk) -> tuple[Array, Array]:
    """Labels, and how many rows of each were called what."""
    called = predicted(model, chunk)
    if chunk.y.shape != called.shape:
        raise ValueError("there are no labels to compare with")
    labels = np.unique(np.concatenate([unpacked(model).classes_, chunk.y]))
    places = np.searchsorted(labels, chunk.y) * labels.size + np.searchsorted(labels, called)
    counts = np.bincount(places, minlength=labels.size**2)
    return labels, counts.reshape(labels.size, labels.size)
