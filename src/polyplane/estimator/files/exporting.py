"""Fitted classifiers for programs without Python: as ONNX, as C, or as SQL."""

import os
from collections.abc import Sequence
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from polyplane.data.table.layout import Layout
from polyplane.estimator.answers.plane_answers import PlanePrediction
from polyplane.estimator.files.exported_tables import exported_table
from polyplane.estimator.files.fitted import fitted_of, scaler_of, sklearn_scalers, steps_of
from polyplane.estimator.fitting.thread_safety import view_of
from polyplane.estimator.input.tables import TableRows, layout_of, width_of
from polyplane.estimator.kernel_classifier import KernelClassifier
from polyplane.model.export.content import Exported
from polyplane.model.export.export_formats import EXPORT_FORMATS
from polyplane.model.export.exporting import export, exported_of
from polyplane.model.format.model_file import ModelError
from polyplane.model.input.scaling import Scaler

__all__ = ["to_c", "to_onnx", "to_sql"]


def to_onnx(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    column_names: Sequence[str] | None = None,
) -> Any:
    """Return a fitted model as an ONNX graph, and write it to a file.

    It needs the extra `polyplane[onnx]`. Outputs are `label`, `scores` by class and, where the
    classifier has them, `probabilities`.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted polyplane classifier, or a pipeline that ends with one and scales columns before it
        (MaxAbsScaler, MinMaxScaler or StandardScaler).
    path : path, optional
        File to write.
    column_names : sequence of str, optional
        Names of columns for the metadata; by default those that `model` was fitted with.

    Returns
    -------
    onnx.ModelProto
        The graph. Its input `X` is float32, rows by columns; of a table in which there is more than
        numbers, each column is an input of its own, under its name.

    See Also
    --------
    to_c : The model as a header of C.
    to_sql : The model as a statement of SQL.
    save : The model for this library.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> import polyplane as pp
    >>> X, y = make_moons(300, noise=0.1, random_state=0)
    >>> model = pp.AMMClassifier(random_state=0).fit(X, y)
    >>> graph = pp.to_onnx(model)
    >>> [output.name for output in graph.graph.output]
    ['label', 'scores']
    """
    return export(_exported(model, column_names), EXPORT_FORMATS["onnx"], path)


def to_c(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    name: str | None = None,
    column_names: Sequence[str] | None = None,
) -> str:
    """Return a fitted model as a header of C99 and C++, and write it to a file.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted polyplane classifier, or a pipeline that ends with one and scales columns before it
        (MaxAbsScaler, MinMaxScaler or StandardScaler).
    path : path, optional
        File to write.
    name : str, optional
        Prefix of the functions; by default the name of the file.
    column_names : sequence of str, optional
        Names of columns, NAME_COLUMNS; by default those that `model` was fitted with.

    Returns
    -------
    str
        Text of the header. `int NAME_predict(const float *x)` returns the number of a class, of
        which NAME_CLASSES has the label, and `void NAME_scores(const float *x, float *scores)`
        fills in the scores. Of a table in which there is more than numbers they take a `const
        NAME_row *`, a struct with a field for each column.

    See Also
    --------
    to_onnx : The model as an ONNX graph.
    to_sql : The model as a statement of SQL.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> import polyplane as pp
    >>> X, y = make_moons(300, noise=0.1, random_state=0)
    >>> model = pp.AMMClassifier(random_state=0).fit(X, y)
    >>> header = pp.to_c(model, name="moons")
    >>> "int moons_predict(const float *x)" in header
    True
    """
    text: str = export(_exported(model, column_names), EXPORT_FORMATS["c"], path, name=name)
    return text


def to_sql(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    dialect: str = "duckdb",
    table: str | Sequence[str] = "rows",
    keys: str | Sequence[str] = (),
    column_names: Sequence[str] | None = None,
) -> str:
    """Return a fitted model as one SELECT statement, and write it to a file.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted classifier of planes, or a pipeline, as in `to_onnx`.
    path : path, optional
        File to write.
    dialect : {"duckdb", "sqlite", "postgres"}, default="duckdb"
        Database that is to run the statement.
    table : str or sequence of str, default="rows"
        Table of the rows; with a schema, ("schema", "table").
    keys : str or sequence of str, optional
        Columns of the table that the statement hands on, such as an identifier.
    column_names : sequence of str, optional
        Names of the columns in the table. Without them those that `model` was fitted with, or
        x0, x1, ...

    Returns
    -------
    str
        Text of the statement. For each row of the table it gives the keys, `label`, and
        `probability_<class>` for each class; `score_<class>` where the model has no probabilities.

    See Also
    --------
    to_onnx : The model as an ONNX graph.
    to_c : The model as a header of C.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> import polyplane as pp
    >>> X, y = make_moons(300, noise=0.1, random_state=0)
    >>> model = pp.AMMClassifier(random_state=0).fit(X, y)
    >>> statement = pp.to_sql(model, table="moons")
    >>> "FROM" in statement and "label" in statement
    True
    """
    options = {"dialect": dialect, "table": table, "keys": keys}
    text: str = export(_exported(model, column_names), EXPORT_FORMATS["sql"], path, **options)
    return text


def _exported(model: Any, column_names: Sequence[str] | None) -> Exported:
    """Return the content of an export of a classifier or pipeline."""
    *scalers, classifier = _steps(model)
    layout, width = layout_of(classifier), width_of(classifier)
    if scalers and isinstance(scalers[0], TableRows):
        layout = scalers.pop(0).layout
    elif scalers and layout is not None:
        _check_only_numbers(layout)
        layout = None
    names = getattr(model, "feature_names_in_", ()) if column_names is None else column_names
    known = [_scaler(scaler, width) for scaler in scalers]
    table = exported_table(layout, width, column_names)
    return exported_of(fitted_of(view_of(classifier)), known, names, table)


def _check_only_numbers(layout: Layout) -> None:
    """Refuse scalers before a classifier that takes tables, unless all columns are numbers."""
    if not layout.is_dense or layout.categories.width or layout.set_aside:
        raise ModelError(
            "scalers before a classifier that takes tables can be exported if all columns are "
            "numbers without gaps: leave them out, or fill the gaps first"
        )


def _steps(model: Any) -> Sequence[Any]:
    """The steps that do something, of which the last is a classifier of ours, all fitted."""
    steps = steps_of(model)
    steps = [step for step in steps if step is not None and not isinstance(step, str)]
    if not steps or not isinstance(steps[-1], PlanePrediction | KernelClassifier):
        found = type(steps[-1] if steps else model).__name__
        raise ModelError(
            f"{found} cannot be exported: give a fitted polyplane classifier, or a pipeline of "
            "scalers that ends with one"
        )
    for step in steps:
        try:
            check_is_fitted(step)
        except NotFittedError:
            name = type(step).__name__
            raise NotFittedError(f"{name} is not fitted: call `fit` before exporting") from None
    return steps


def _scaler(scaler: Any, n_columns: int) -> Scaler:
    """Return the map of a fitted scaler."""
    name, known = type(scaler).__name__, tuple(sklearn_scalers().values())
    if type(scaler) not in known:
        kinds = ", ".join(kind.__name__ for kind in known)
        raise ModelError(f"{name} cannot be exported: before the classifier, only {kinds} can")
    if scaler.n_features_in_ != n_columns:
        raise ModelError(
            f"{name} was fitted on {scaler.n_features_in_} columns, the classifier on {n_columns}: "
            "fit the pipeline as a whole"
        )
    return scaler_of(scaler)
