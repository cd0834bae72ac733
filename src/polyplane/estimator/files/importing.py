"""`import_model`: text models of LIBSVM and LIBLINEAR as fitted estimators.

LIBSVM       LaSVMClassifier: the same support vectors, pairs of classes and votes.
LIBLINEAR    PegasosClassifier: a plane of each class.

An imported model predicts, is explained, saved and exported. It cannot learn on, since the files do
not tell the state of a training. C of LIBSVM is taken for the largest coefficient.
"""

import io
from typing import Any

import numpy as np

import polyplane
from polyplane.arrays import Array
from polyplane.data.chunks import BadRows, DataError
from polyplane.data.formats.libsvm import reader as libsvm_text
from polyplane.engine.inspection import LARGEST, largest_magnitude
from polyplane.engine.rows.storage import CsrRows, csr_rows_of
from polyplane.engine.support.gram import squared_lengths
from polyplane.estimator.files.saving import checked_estimator
from polyplane.model.foreign.liblinear_model import liblinear_model
from polyplane.model.foreign.libsvm_model import libsvm_model
from polyplane.model.foreign.model_text import SparseText, TextModel, is_text_model, read_text_model
from polyplane.model.format.algorithm_names import short_name
from polyplane.model.format.model_file import ModelError
from polyplane.model.kernels.kernel_formulas import FORMULAS
from polyplane.model.kernels.kernel_record import Expansion, KernelRecord
from polyplane.model.kernels.kernel_values import FormulaKernel, KernelRows
from polyplane.model.many_classes.decomposition import Decomposition
from polyplane.model.plane_record import FinishedPlanes, record_of
from polyplane.model.prediction import HISTORY, Features, FittedModel
from polyplane.training.state import known_classes

__all__ = ["import_model", "is_text_model"]

MOST_COLUMNS = 1 << 24  # that a single large index may ask for
PASSED_OVER = b"#", b"qid"  # in data, of which these rows are none


def import_model(path: Any, n_features: int | None = None) -> Any:
    r"""Return the model of a text file of LIBSVM or LIBLINEAR, as a fitted estimator.

    Parameters
    ----------
    path : path
        File that `svm-train` or `train` wrote.
    n_features : int, optional
        Columns of X, if there are more than the file shows: that of LIBSVM names only those which a
        support vector uses.

    Returns
    -------
    LaSVMClassifier or PegasosClassifier
        The fitted estimator: of LIBSVM the first, of LIBLINEAR the second.

    See Also
    --------
    load : The model of a file of this library.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polyplane as pp
    >>> head = "solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\n"
    >>> weights = "w\n0.5\n-0.25\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "linear.model")
    ...     _ = path.write_text(head + weights)
    ...     model = pp.import_model(path)
    >>> model.predict([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [1, -1]
    """
    text = read_text_model(path)
    read = _of_libsvm if text.program == "LIBSVM" else _of_liblinear
    with np.errstate(over="ignore", invalid="ignore"):
        return checked_estimator(read(text, n_features), path)


def _fitted(made: Any, labels: Array, n_columns: int, record: Any, **fields: Any) -> FittedModel:
    """An estimator with this record; no step of its training is known."""
    return FittedModel(
        algorithm=short_name(type(made).__name__),
        labels=labels,
        n_columns=n_columns,
        names=None,
        record=record,
        has_probabilities=hasattr(made, "predict_proba"),
        parameters=made.get_params(deep=False),
        found={},
        n_steps=0,
        n_passes=1,
        history=np.empty(0, HISTORY),
        version=polyplane.__version__,
        **fields,
    )


def _of_liblinear(text: TextModel, n_features: int | None) -> FittedModel:
    found = liblinear_model(text)
    n_classes, n_columns = found.weights.shape
    if n_features is not None and n_features < n_columns:
        text.refuse(f"has {n_columns:,} features, but n_features={n_features:,} was stated")
    sums = np.zeros((1 + (n_features or n_columns), n_classes), np.float32)
    sums[0], sums[1 : n_columns + 1] = found.intercepts, found.weights.T
    bad = np.argwhere(~np.isfinite(sums))
    if bad.size:
        text.refuse(f"the weight of feature {bad[0, 0]} does not fit into float32")
    known, ones = known_classes(found.labels), np.ones(n_classes, np.float32)
    planes = FinishedPlanes(sums, np.arange(n_classes, dtype=np.int32), ones)
    record = record_of([[planes]], Decomposition("joint", "vote", known.ranks), -np.inf)
    made = polyplane.PegasosClassifier(fit_intercept=found.has_intercept)
    features = Features(1.0 if found.has_intercept else 0.0)
    return _fitted(
        made,
        known.classes,
        len(sums) - 1,
        record,
        features=features,
        is_dense=True,
        alpha=made.alpha,
        gamma=None,
    )


def _of_libsvm(text: TextModel, n_features: int | None) -> FittedModel:
    """For LIBSVM the first class of a pair is the positive one, for polyplane the second."""
    found = libsvm_model(text)
    rows, n_columns = _rows(found.vectors, n_features)
    numbers = np.arange(found.codes.size, dtype=np.int64)
    support = KernelRows(rows, squared_lengths(rows), numbers, found.codes)
    made = polyplane.LaSVMClassifier(
        C=float(np.abs(found.coefs).max()) or 1.0, multi_class="ovo", **found.kernel
    )
    gamma = 1.0 / n_columns if made.kernel == "linear" else made.gamma
    formula = FORMULAS[made.kernel].made(
        np.float32(gamma), np.float32(made.coef0), made.degree, np.float32(0)
    )
    known = known_classes(found.labels)
    decomposition = Decomposition("ovo", made.combine, known.ranks)
    expansions = []
    for problem in decomposition.problems():
        vectors, coefs, rho = found.pair(*problem.classes)
        is_used = coefs != 0
        place = vectors[is_used].astype(np.int32)
        expansions.append(Expansion(place, -coefs[is_used], rho))
    kernel = FormulaKernel(formula=formula, n_columns=n_columns)
    record = KernelRecord(kernel, support, expansions, decomposition)
    return _fitted(
        made,
        known.classes,
        n_columns,
        record,
        features=None,
        is_dense=False,
        alpha=None,
        gamma=float(gamma),
    )


def _rows(text: SparseText, n_columns: int | None) -> tuple[CsrRows, int]:
    """The rows, and how many columns they have, which is at least 1."""
    lines = b"0 " + b"\n0 ".join(text.rows) + b"\n"  # a label, which data would have
    for odd in PASSED_OVER:
        if odd in lines:
            line = text.first_line + lines.count(b"\n", 0, lines.index(odd))
            problem = f"found '{odd.decode()}', expected index:value"
            raise ModelError(f"line {line}: {problem}", text.path)
    try:
        (chunk,) = libsvm_text.chunks(
            io.BytesIO(lines),
            text.path,
            len(text.rows),
            n_features=n_columns,
            base=1,
            text_labels=False,
            bad=BadRows(),
        )
    except DataError as error:
        line = text.first_line + (error.line or 1) - 1
        raise ModelError(f"line {line}: {error.problem}", text.path) from None
    X = chunk.X
    _check_entries(text, X, n_columns is not None)
    return csr_rows_of(X.data, X.indices, X.indptr, 0.0), max(1, X.shape[1])


def _check_entries(text: SparseText, X: Any, is_wide: bool) -> None:
    """Values whose products are finite, and columns for which there is memory."""

    def refuse(entry: int, problem: str) -> None:
        line = text.first_line + int(np.searchsorted(X.indptr, entry, "right")) - 1
        raise ModelError(f"line {line}: {problem}", text.path)

    if largest_magnitude(X.data) > LARGEST:
        entry = int(np.abs(X.data).argmax())
        problem = f"the value {X.data[entry]:g} is beyond {LARGEST:g}, whose products overflow"
        refuse(entry, f"{problem}: scale the columns first")
    if X.nnz and X.indices.max() >= MOST_COLUMNS and not is_wide:
        entry = int(X.indices.argmax())
        problem = f"the index {X.indices[entry] + 1:,} is above {MOST_COLUMNS:,}"
        refuse(entry, f"{problem}: state n_features if there are as many columns")
