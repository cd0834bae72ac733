"""Draw what models see with matplotlib, for notebooks and papers.

Each function draws on given axes, or on new ones, and returns them. Nothing is trained. matplotlib
is an extra: `pip install polyplane[plots]`.

See Also
--------
polyplane.explore : A page of pictures and words about data.

Examples
--------
>>> import polyplane as pp
>>> ax = pp.plots.plot_path([1e-2, 1e-3], [0.12, 0.10])
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyplane.arrays import Array
from polyplane.report.columns import Columns, Table, dense, is_sparse
from polyplane.report.findings import curves_of, last_step, text_of

try:
    from matplotlib import pyplot
    from matplotlib.colors import ListedColormap
except ImportError:  # an extra
    pyplot = None  # type: ignore[assignment]

__all__ = [
    "plot_calibration", "plot_history", "plot_path", "plot_planes", "plot_regions", "plot_splines",
]  # fmt: skip

ACCENT, QUIET, WARM = "#0a6a70", "#8a949b", "#a8481a"
BINS = 10
MAX_BARS = 12  # columns of a bar chart
MAX_LEGEND_CLASSES = 20  # classes beside regions


def _plots() -> Any:
    if pyplot is None:
        raise ImportError("matplotlib is not installed: pip install polyplane[plots].")
    return pyplot


def _axes(ax: Any, n_axes: int = 1, across: int = 4, side: float = 2.4) -> Any:
    """The axes given, or a grid of new ones."""
    if ax is not None:
        return [ax] if n_axes == 1 else list(np.ravel(ax))
    if n_axes == 1:
        return [_plots().subplots(figsize=(5, 4), layout="constrained")[1]]
    n_lines = -(-n_axes // across)
    size = (side * min(n_axes, across), side * n_lines)
    grid = (
        _plots()
        .subplots(n_lines, min(n_axes, across), figsize=size, squeeze=False, layout="constrained")[
            1
        ]
        .ravel()
    )
    for spare in grid[n_axes:]:
        spare.set_axis_off()
    return list(grid[:n_axes])


def _names(model: Any, width: int, given: Sequence[str] | None) -> list[str]:
    known = given if given is not None else getattr(model, "feature_names_in_", None)
    if known is None or len(known) != width:
        return [f"column {k + 1}" for k in range(width)]
    return [str(name) for name in known]


def plot_planes(
    model: Any,
    *,
    shape: tuple[int, int] | None = None,
    names: Sequence[str] | None = None,
    most: int = 12,
    ax: Any = None,
) -> list[Any]:
    """Draw the planes of a model: as pictures of a shape, or the largest weights as bars.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted polyplane classifier, or a pipeline that ends with one.
    shape : tuple of int, optional
        Height and width of the pictures; bars without it.
    names : sequence of str, optional
        Names of the columns; by default those that `model` was fitted with.
    most : int, default=12
        Number of planes to draw at most.
    ax : Axes or sequence of Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    list of Axes
        The axes.

    See Also
    --------
    plot_regions : Labels along two columns.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import polyplane as pp
    >>> X, y = load_digits(return_X_y=True)
    >>> model = pp.AMMClassifier(random_state=0).fit(X, y)
    >>> axes = pp.plots.plot_planes(model, shape=(8, 8))
    """
    estimator = last_step(model)[1]
    planes, labels = estimator.planes_[:most], estimator.plane_classes_
    axes = _axes(ax, len(planes))
    known = _names(estimator, planes.shape[1], names)
    for k, (plane, one) in enumerate(zip(planes, axes, strict=False)):
        one.set_title(f"for {text_of(labels.tolist()[k])}", fontsize=9)
        if shape is not None:
            limit = float(np.abs(plane).max()) or 1.0
            one.imshow(plane.reshape(shape), cmap="PuOr_r", vmin=-limit, vmax=limit)
            one.set_xticks([])
            one.set_yticks([])
            continue
        order = np.argsort(-np.abs(plane))[:MAX_BARS][::-1]
        colours = [ACCENT if weight > 0 else WARM for weight in plane[order]]
        one.barh([known[j] for j in order], plane[order], color=colours)
        one.tick_params(labelsize=7)
    return list(axes)


def plot_regions(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    columns: tuple[int, int] = (0, 1),
    names: Sequence[str] | None = None,
    n_points: int = 200,
    ax: Any = None,
) -> Any:
    """Draw the label predicted along two columns, with all others at their medians.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted polyplane classifier, or a pipeline that ends with one.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Rows, which give ranges and medians.
    y : array-like of shape (n_rows,), optional
        Labels; with them the rows are drawn as well.
    columns : tuple of int, default=(0, 1)
        Numbers of the two columns.
    names : sequence of str, optional
        Names of the columns; by default those that `model` was fitted with.
    n_points : int, default=200
        Number of values along each column.
    ax : Axes or sequence of Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    Axes
        The axes.

    See Also
    --------
    plot_splines : Scores along single columns.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> import polyplane as pp
    >>> X, y = make_moons(2000, noise=0.2, random_state=0)
    >>> model = pp.PolyplaneClassifier(quality=1, random_state=0).fit(X, y)
    >>> ax = pp.plots.plot_regions(model, X, y)
    """
    (one,) = _axes(ax)
    rows = dense(X)
    i, j = columns
    typical = np.median(rows, axis=0)
    sides = [np.linspace(rows[:, k].min(), rows[:, k].max(), n_points) for k in (i, j)]
    cells = np.repeat(typical[None], n_points * n_points, axis=0)
    cells[:, i] = np.tile(sides[0], n_points)
    cells[:, j] = np.repeat(sides[1], n_points)
    classes = np.asarray(last_step(model)[1].classes_)
    said = np.searchsorted(classes, model.predict(cells.astype(rows.dtype)))
    several = _plots().get_cmap("tab20" if classes.size > 10 else "tab10").colors
    colours = [ACCENT, WARM] if classes.size == 2 else (several * classes.size)[: classes.size]
    limits = {"cmap": ListedColormap(colours), "vmin": -0.5, "vmax": classes.size - 0.5}
    one.pcolormesh(
        *sides, said.reshape(n_points, n_points), alpha=0.35, shading="nearest", **limits
    )
    if y is not None:
        codes = np.searchsorted(classes, np.asarray(y))
        one.scatter(
            rows[:, i], rows[:, j], c=codes, s=12, edgecolors="white", linewidths=0.4, **limits
        )
    if classes.size <= MAX_LEGEND_CLASSES:
        for colour, label in zip(colours, classes.tolist(), strict=True):
            one.scatter([], [], color=colour, marker="s", label=text_of(label))
        one.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    known = _names(last_step(model)[1], rows.shape[1], names)
    one.set_xlabel(known[i])
    one.set_ylabel(known[j])
    return one


def plot_history(model: Any, *, ax: Any = None) -> list[Any]:
    """Draw error and number of planes by step, as in Figure 2 of the AMM paper.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted polyplane classifier, or a pipeline that ends with one.
    ax : Axes or sequence of Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    list of Axes
        The axes.

    See Also
    --------
    plot_path : Errors along the regularisation.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import polyplane as pp
    >>> X, y = load_digits(return_X_y=True)
    >>> axes = pp.plots.plot_history(pp.AMMClassifier(random_state=0).fit(X, y))
    """
    axes = _axes(ax, 2, 2, 3.6)
    notes = last_step(model)[1].history_
    notes = notes[notes["model"] == 0]
    axes[0].plot(notes["step"], notes["error"], color=ACCENT)
    axes[0].set_ylabel("error since the point before")
    for name, style in (("planes", "-"), ("created", "--"), ("pruned", ":")):
        label = "now" if name == "planes" else name
        colour = ACCENT if name == "planes" else QUIET
        axes[1].plot(notes["step"], notes[name], style, color=colour, label=label)
    axes[1].set_ylabel("planes")
    axes[1].legend(frameon=False)
    for one in axes:
        one.set_xscale("log")
        one.set_xlabel("steps")
    return list(axes)


def plot_path(
    alphas: Sequence[float], errors: Any, *, chosen: float | None = None, ax: Any = None
) -> Any:
    """Draw errors along a path of the regularisation; of several folds, their mean and spread.

    Parameters
    ----------
    alphas : sequence of float
        Values of alpha.
    errors : array-like of shape (n_alphas,) or (n_alphas, n_folds)
        Errors, of each fold if there are several.
    chosen : float, optional
        Value of alpha to mark.
    ax : Axes or sequence of Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    Axes
        The axes.

    See Also
    --------
    polyplane.alpha_path : Errors of models along a path.

    Examples
    --------
    >>> import polyplane as pp
    >>> alphas = [1e-2, 1e-3, 1e-4]
    >>> errors = [[0.12, 0.10], [0.08, 0.09], [0.11, 0.10]]
    >>> ax = pp.plots.plot_path(alphas, errors, chosen=1e-3)
    """
    (one,) = _axes(ax)
    values = np.asarray(errors, np.float64)
    if values.shape[0] != len(alphas):
        raise ValueError(f"There are {len(alphas)} alphas, but errors of {values.shape[0]}.")
    order = np.argsort(alphas)
    x, folds = np.asarray(alphas, np.float64)[order], values[order].reshape(len(alphas), -1)
    means, spread = folds.mean(axis=1), folds.std(axis=1) / np.sqrt(folds.shape[1])
    one.plot(x, means, "o-", color=ACCENT)
    if folds.shape[1] > 1:
        one.fill_between(x, means - spread, means + spread, color=ACCENT, alpha=0.15)
    if chosen is not None:
        one.axvline(chosen, color=QUIET, linestyle="--")
    one.set_xscale("log")
    one.set_xlabel("alpha")
    one.set_ylabel("error")
    return one


def plot_splines(
    model: Any,
    X: Any,
    *,
    columns: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    ax: Any = None,
) -> list[Any]:
    """Draw the change of scores along columns, with all others at their medians.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted polyplane classifier, or a pipeline that ends with one.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Rows, which give ranges and medians.
    columns : sequence of int, optional
        Numbers of columns; the first nine by default.
    names : sequence of str, optional
        Names of the columns; by default those that `model` was fitted with.
    ax : Axes or sequence of Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    list of Axes
        The axes.

    See Also
    --------
    plot_regions : Labels along two columns.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> import polyplane as pp
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = pp.SoftPlanesClassifier(n_planes=1, columns="fine").fit(X, y)
    >>> axes = pp.plots.plot_splines(model, X, columns=[0, 1, 7])
    """
    rows = sp.csr_matrix(X) if is_sparse(X) else np.asarray(X, np.float32)
    known = _names(last_step(model)[1], rows.shape[1], names)
    labels: Array = np.asarray(model.predict(rows))
    chosen = list(range(min(9, rows.shape[1]))) if columns is None else list(columns)
    found = curves_of(model, Table(rows, labels, Columns(known)), chosen)
    axes = _axes(ax, len(found), 3, 2.8)
    for one, curve in zip(axes, found, strict=True):
        for label, line in zip(curve["labels"], curve["y"], strict=True):
            one.plot(curve["x"], line, label=label)
        one.axhline(0, color=QUIET, linewidth=0.7)
        one.set_xlabel(curve["name"])
    axes[0].set_ylabel("change of the score")
    axes[0].legend(frameon=False, fontsize=8)
    return list(axes)


def plot_calibration(model: Any, X: Any, y: Any, *, ax: Any = None) -> Any:
    """Draw the share of rows for which a probability came true, against the probability.

    Of two classes it is the probability of the second, else that of the most probable class.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted polyplane classifier, or a pipeline that ends with one.
    X : array-like, sparse matrix or table of shape (n_rows, n_features)
        Rows that `model` was not fitted to.
    y : array-like of shape (n_rows,)
        Labels.
    ax : Axes or sequence of Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    Axes
        The axes.

    See Also
    --------
    plot_regions : Labels along two columns.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> import polyplane as pp
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = pp.PolyplaneClassifier(quality=1, random_state=0).fit(X[:400], y[:400])
    >>> ax = pp.plots.plot_calibration(model, X[400:], y[400:])
    """
    (one,) = _axes(ax)
    probabilities, classes = np.asarray(model.predict_proba(X)), np.asarray(model.classes_)
    codes = np.searchsorted(classes, np.asarray(y))
    told = np.ones(codes.size, int) if classes.size == 2 else probabilities.argmax(axis=1)
    chance = probabilities[np.arange(codes.size), told]
    places = np.minimum((chance * BINS).astype(int), BINS - 1)
    counts = np.bincount(places, minlength=BINS)
    has_rows = counts > 0
    said = np.bincount(places, chance, BINS)[has_rows] / counts[has_rows]
    true = np.bincount(places, codes == told, BINS)[has_rows] / counts[has_rows]
    one.plot([0, 1], [0, 1], "--", color=QUIET)
    one.plot(said, true, "o-", color=ACCENT)
    one.set_xlabel("probability")
    one.set_ylabel("came true")
    return one
