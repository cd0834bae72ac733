"""PolyplaneClassifier on a Dask cluster: recipes chosen on a sample, each trained by rounds.

A sample of all partitions is fitted as on one machine, which tries the recipes and blends them.
Each recipe of the blend is then trained on all rows by rounds of learners, and gets the factor
that makes it as sure of rows of the sample as it was when it was trained on the sample alone.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from polyplane.backends.dask_rows import LoadedRows, result_of_sample, sampled
from polyplane.data.chunks import Chunk
from polyplane.estimator.files.saving import PackedModel, packed, unpacked
from polyplane.estimator.input.tables import take_layout
from polyplane.estimator.online_classifier import weights_of_classes
from polyplane.portfolio.polyplane_classifier import PolyplaneClassifier, with_member
from polyplane.portfolio.recipes import settings_of

__all__ = ["fit_portfolio", "is_portfolio"]

ROWS_TO_MATCH = 4_000


def is_portfolio(estimator: Any) -> bool:
    """Return whether an estimator is a blend of recipes."""
    return isinstance(estimator, PolyplaneClassifier)


def fit_portfolio(
    estimator: Any,
    rows: LoadedRows,
    rounds: int | None,
    train: Callable[[Any], PackedModel],
    after: Callable[[PackedModel], None],
) -> None:
    """Choose recipes on a sample, and `train` each on all rows; tell `after` of each."""
    travelling = clone(estimator).set_params(
        class_weight=weights_of_classes(estimator, *rows.census())
    )
    sample = sampled(rows)
    submit = rows.client.submit
    model: PackedModel = result_of_sample(submit(_fitted, travelling, sample, pure=False))
    after(model)
    recipes = unpacked(model).recipes_
    for name, recipe in recipes.items():
        settings = settings_of({key: one for key, one in recipe.items() if key != "weight"})
        if rounds is not None:
            settings["max_iter"] = int(rounds)
        given = {
            key: getattr(travelling, key) for key in ("class_weight", "random_state", "verbose")
        }
        member = train(unpacked(model).member_of(settings | given))
        model = submit(_with_member, model, name, member, sample, pure=False).result()
        after(model)


def _fitted(estimator: Any, sample: Chunk) -> PackedModel:
    """Return the classifier fitted to the sample, without target statistics.

    Rounds would give training rows statistics in which their own labels are counted.
    """
    classifier = clone(estimator)
    classifier.KEEPS_KEYS = False
    return packed(classifier.fit(sample.X, sample.y))


def _with_member(model: PackedModel, name: str, member: PackedModel, sample: Chunk) -> PackedModel:
    """Return the classifier with one recipe trained on all rows."""
    classifier, estimator = unpacked(model), unpacked(member)
    take_layout(estimator)
    some = np.linspace(0, len(sample.y) - 1, min(len(sample.y), ROWS_TO_MATCH)).astype(np.int64)
    X = sample.X.iloc[some] if hasattr(sample.X, "iloc") else sample.X[some]
    return packed(with_member(classifier, name, estimator, X))
