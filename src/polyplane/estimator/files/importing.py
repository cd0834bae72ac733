"""`import_model`: text models of LIBSVM, LIBLINEAR and BudgetedSVM as fitted estimators.

LIBSVM       LaSVMClassifier: the same pairs of classes, with the same votes. Its steps want the
             gradients of all support vectors, so that importing costs as much as scoring them.
LIBLINEAR    PegasosClassifier: a plane of each class.
BudgetedSVM  PegasosClassifier and AMMClassifier: the same planes; KernelPegasosClassifier of BSGD.

What the files do not tell is settled so that training can go on. Pegasos steps want alpha and the
count t of rows so far: they are taken for 1e-4 and 10,000, which is one pass with LIBLINEAR's
default C = 1 / (alpha t) = 1, unless the degradations of BudgetedSVM tell. C of LIBSVM is the
largest coefficient, and that of a class the bound of its vectors.
"""

import io
from typing import Any

import numpy as np
from joblib import effective_n_jobs

import polyplane
from polyplane.data.chunks import BadRows, DataError
from polyplane.data.formats.libsvm.block_reader import RowReader
from polyplane.data.formats.libsvm.blocks import TextBlock, TextBlocks
from polyplane.engine.inspection import LARGEST, largest_magnitude
from polyplane.engine.order import in_place
from polyplane.engine.planes.planes import Array
from polyplane.engine.rows.storage import CsrRows, csr_rows_of, matrix_of
from polyplane.engine.support.support_set import (
    ACTIVE,
    INSERTED,
    NOT_THERE,
    OF_SIDE,
    SLOTS,
    SupportSet,
    with_room,
)
from polyplane.engine.tiles import LANES
from polyplane.estimator.kernels.kernel_classifier import empty_set_of, give_vectors
from polyplane.estimator.kernels.kernel_training import KernelModel, KernelTraining
from polyplane.estimator.online_classifier import record_of
from polyplane.estimator.planes.hyperplane_classifier import give_planes
from polyplane.model.foreign.budgeted_model import BudgetText, SparsePlanesText, budgeted_model
from polyplane.model.foreign.liblinear_model import PlanesText, liblinear_model
from polyplane.model.foreign.libsvm_model import SvmText, libsvm_model
from polyplane.model.foreign.model_text import SparseText, TextModel, is_text_model, read_text_model
from polyplane.model.format.model_file import ModelError
from polyplane.model.kernels.kernel_values import kernel_block, no_rows

__all__ = ["import_model", "is_text_model"]

ALPHA, N_STEPS = 1e-4, 10_000  # of a linear model that does not tell
LEAST_DEGRADATION = 1e-10  # BudgetedSVM writes ten decimals
SEED = 0  # the same file gives the same model
BLOCK = 1 << 18  # bytes
MOST_COLUMNS = 1 << 24  # that a single large index may ask for
MOST_NUMBERS = 1 << 26  # of planes, whose file may be short
NUMBERS_OF_A_BYTE = 64  # of planes: one in a thousand of a sparse one's is not zero
ROWS_AT_ONCE, LEADS_AT_ONCE = 256, 1 << 22
PASSED_OVER = b"#", b"qid"  # in data, of which these rows are none


def import_model(path: Any, n_features: int | None = None) -> Any:
    """The model of a text file of LIBSVM, LIBLINEAR or BudgetedSVM, as a fitted estimator.

    n_features   columns of X, if there are more than the file shows: that of LIBSVM names only
                 those which a support vector uses.
    """
    text = read_text_model(path)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            if text.program == "LIBSVM":
                return _of_libsvm(text, libsvm_model(text), n_features)
            if text.program == "LIBLINEAR":
                made = polyplane.PegasosClassifier(alpha=ALPHA)
                return _of_planes(text, liblinear_model(text), made, N_STEPS, n_features)
            found = budgeted_model(text)
            if isinstance(found, BudgetText):
                return _of_budget(text, found, n_features)
            return _of_sparse_planes(text, found, n_features)
    except ModelError:
        raise
    except ValueError as error:  # of kernels, which float32 may not hold
        raise ModelError(f"does not fit into float32: {error}", path) from error


# ---- sparse rows -------------------------------------------------------------------------


class RisingRows(RowReader):
    """Rows as programs write them: an index that does not rise is an error."""

    def _put_in_order(self) -> None:
        previous = 0
        for position, index in self._entries():
            if index < previous:
                self._refuse(position, f"the index {index} follows {previous}; indices must rise")
            previous = index


def _rows(text: SparseText, n_columns: int | None) -> tuple[CsrRows, int]:
    """The rows, and how many columns they have, which is at least 1."""
    lines = b"0 " + b"\n0 ".join(text.rows) + b"\n"  # a label, which data would have
    for odd in PASSED_OVER:
        if odd in lines:
            line = text.first_line + lines.count(b"\n", 0, lines.index(odd))
            problem = f"found '{odd.decode()}', expected index:value"
            raise ModelError(f"line {line}: {problem}", text.path)
    blocks, block = TextBlocks(io.BytesIO(lines), text.path), TextBlock(BLOCK)
    reader = RisingRows(text.path, n_columns, 1, False, BadRows())
    reader.skip_lines(text.first_line - 1)
    try:
        while blocks.fill(block):
            reader.read(block, len(text.rows))
    except DataError as error:
        raise ModelError(f"line {error.line}: {error.problem}", text.path) from None
    part = reader.take()
    _check_entries(text, part.values, part.columns, part.starts, n_columns is not None)
    rows = csr_rows_of(part.values, part.columns, part.starts, 0.0)
    return rows, max(1, n_columns or part.n_columns)


def _check_entries(
    text: SparseText, values: Array, columns: Array, starts: Array, is_wide: bool
) -> None:
    """Values whose products are finite, and columns for which there is memory."""

    def refuse(entry: int, problem: str) -> None:
        line = text.first_line + int(np.searchsorted(starts, entry, "right")) - 1
        raise ModelError(f"line {line}: {problem}", text.path)

    if largest_magnitude(values) > LARGEST:
        entry = int(np.abs(values).argmax())
        problem = f"the value {values[entry]:g} is beyond {LARGEST:g}, whose products overflow"
        refuse(entry, f"{problem}: scale the columns first")
    if columns.size and columns.max() >= MOST_COLUMNS and not is_wide:
        entry = int(columns.argmax())
        problem = f"the index {columns[entry] + 1:,} is above {MOST_COLUMNS:,}"
        refuse(entry, f"{problem}: state n_features if there are as many columns")


def _width(text: TextModel, found: int, stated: int | None) -> int:
    """How many columns X has, if the file has so many."""
    if stated is not None and stated < found:
        text.refuse(f"has {found:,} features, but n_features={stated:,} was stated")
    return stated or found


# ---- planes ------------------------------------------------------------------------------


def _of_planes(
    text: TextModel, found: PlanesText, made: Any, n_steps: int, n_features: int | None
) -> Any:
    """A hyperplane machine with these planes, W = Theta / (alpha t)."""
    made.fit_intercept = found.has_intercept
    made.n_features_in_ = _width(text, found.weights.shape[1], n_features)
    sums = give_planes(made, found.labels, found.owner, found.intercepts, found.weights, n_steps)
    bad = np.argwhere(~np.isfinite(sums))
    if bad.size:
        text.refuse(f"the weight of feature {bad[0, 1]} does not fit into float32")
    return made


def _of_sparse_planes(text: TextModel, found: SparsePlanesText, n_features: int | None) -> Any:
    n_planes, n_columns = found.owner.size, found.n_features - (found.bias != 0)
    width = _width(text, n_columns, n_features)
    n_numbers = (width + 1) * -(-n_planes // LANES) * LANES
    if n_numbers > max(MOST_NUMBERS, NUMBERS_OF_A_BYTE * text.size) and n_features is None:
        problem = f"DIMENSION is {found.n_features:,}, too much for a file of {text.size:,} bytes"
        text.refuse(f"{problem}: state n_features if that is right", text.keys["DIMENSION"][0])
    rows, _ = _rows(found.rows, found.n_features)
    factors = np.repeat(found.degradations, np.diff(rows.starts))
    weights = matrix_of(rows._replace(values=rows.values * factors), found.n_features)
    has_bias = found.bias != 0
    biases = weights[:, n_columns:].toarray().sum(axis=1) * found.bias
    dense = weights[:, :n_columns].astype(np.float32).toarray()
    planes = PlanesText(found.labels, found.owner, dense, biases, has_bias)
    alpha, n_steps = _pace(found)
    machine = polyplane.PegasosClassifier if found.is_pegasos else polyplane.AMMClassifier
    return _of_planes(text, planes, machine(alpha=alpha), n_steps, n_features)


def _pace(found: SparsePlanesText) -> tuple[float, int]:
    """alpha and t, as far as degradations tell.

    Weights that were there at the beginning end at 1 / (t + 1), those born on the way at
    1 / (lambda (t + 1)).
    """
    low, high = float(found.degradations.min()), float(found.degradations.max())
    if low < LEAST_DEGRADATION or high > 1 / LEAST_DEGRADATION:
        return ALPHA, N_STEPS
    has_both, n_steps = low < 0.99 * high, max(1, round(1 / low) - 1)
    if has_both:
        return float(f"{low / high:.4g}"), n_steps
    return (ALPHA, n_steps) if found.is_pegasos else (ALPHA, N_STEPS)


# ---- kernels -----------------------------------------------------------------------------


def _own_values(training: KernelTraining) -> Array:
    """K(x, x) of all support rows, to the bit as in training."""
    support, own = training.support, np.empty(training.support.size)
    for start in range(0, own.size, LANES):
        some = np.arange(start, min(start + LANES, own.size))
        block = kernel_block(training.kernel, no_rows(), support.chosen(some), 1, True)
        own[some] = block[np.arange(some.size), np.arange(some.size)]
    return own


def _set_of(empty: SupportSet, place: Array, side: Array, coefs: Array, own: Array) -> SupportSet:
    """Vectors that stand at these places of the support rows, in as many slots."""
    n = place.size
    held = with_room(empty, n, 0)
    held.place[:], held.row[:], held.side[:], held.own[:] = place, place, side, own[place]
    held.coef[0] = coefs
    held.active[:] = held.position[:] = np.arange(n)
    held.counts[[ACTIVE, SLOTS, INSERTED]] = n
    held.counts[OF_SIDE : OF_SIDE + 2] = np.bincount(side, minlength=2)
    return held


def _of_libsvm(text: TextModel, found: SvmText, n_features: int | None) -> Any:
    rows, n_columns = _rows(found.vectors, n_features)
    C = float(np.abs(found.coefs).max()) or 1.0
    made = polyplane.LaSVMClassifier(C=C, multi_class="ovo", **found.kernel)
    made.n_features_in_ = n_columns
    training = give_vectors(made, rows, found.labels, found.codes)
    bounds = np.zeros(found.labels.size)
    np.maximum.at(bounds, found.codes, np.abs(found.coefs).max(axis=1))
    own = _own_values(training)
    for model in training.models:
        model.held = _pair(made, found, model, bounds, own)
    _set_gradients(made, training)
    if not all(np.isfinite(model.held.scores).all() for model in training.models):
        text.refuse("its coefficients add up to more than numbers can hold")
    return made


def _pair(made: Any, found: SvmText, model: KernelModel, bounds: Array, own: Array) -> SupportSet:
    """The set of one pair: for LIBSVM the first class is positive, for us the second.

    LaSVM has no bias of its own: it is the mean of the gradients at the top and at the bottom. So
    that it is rho exactly, both are at first a vector of no weight that is just on the margin,
    whose gradient is the bias. It is there once for each side that has no other.
    """
    i, j = model.problem.classes
    vectors, is_second, coefs, rho = found.pair(i, j)
    place, side = vectors[coefs != 0], is_second[coefs != 0].astype(np.int32)
    missing = np.setdiff1d([0, 1], side).astype(np.int32)
    guards = missing if missing.size else np.zeros(1, np.int32)
    n = guards.size
    places = np.concatenate([np.full(n, place[0] if place.size else 0), place])
    signed = np.concatenate([np.zeros(n), -coefs[coefs != 0]])
    held = _set_of(empty_set_of(made), places, np.concatenate([guards, side]), signed, own)
    bound = np.where(side, bounds[j], -bounds[i])
    held.low[n:] = np.minimum(np.minimum(bound, 0), signed[n:])
    held.high[n:] = np.maximum(np.maximum(bound, 0), signed[n:])
    held.scores[0, :n] = rho
    held.totals[held.totals == NOT_THERE] = 0  # top and bottom: the slot of the first guard
    return held


def _set_gradients(made: Any, training: KernelTraining) -> None:
    """y - sum_j coef_j K(x_j, x) of all vectors, of which LaSVM keeps track."""
    record, n_rows = record_of(made), training.support.size
    step = max(ROWS_AT_ONCE, LEADS_AT_ONCE // len(training.models))
    place_of = {problem: p for p, problem in enumerate(record.decomposition.problems())}
    order = in_place(n_rows)
    for start in range(0, n_rows, step):
        part = order[start : start + step]
        leads = record.leads(training.support.entries, part, effective_n_jobs(-1))
        for model in training.models:
            held, p = model.held, place_of[model.problem]
            is_here = (held.place >= start) & (held.place < start + step) & (held.low < held.high)
            sums = leads[held.place[is_here] - start, p] - record.expansions[p].intercept
            held.scores[0, is_here] = 2.0 * held.side[is_here] - 1.0 - sums


def _of_budget(text: TextModel, found: BudgetText, n_features: int | None) -> Any:
    alphas, _ = _rows(found.alphas, found.labels.size)
    rows, _ = _rows(found.vectors, found.n_features)
    by_class = matrix_of(alphas, found.labels.size).astype(np.float64)
    made = polyplane.KernelPegasosClassifier(
        alpha=ALPHA, multi_class="ovr", fit_intercept=False, **found.kernel
    )
    made.n_features_in_ = _width(text, found.n_features, n_features)
    if found.n_features > MOST_COLUMNS and n_features is None:
        problem = f"DIMENSION is above {MOST_COLUMNS:,}: state n_features if that is right"
        text.refuse(problem, text.keys["DIMENSION"][0])
    codes = np.asarray(by_class.argmax(axis=1)).ravel().astype(np.int32)
    training = give_vectors(made, rows, found.labels, codes)
    own, columns = _own_values(training), by_class.tocsc()
    for model in training.models:
        _, label = model.problem.classes
        column = columns[:, label]
        if found.labels.size == 2:
            column = column - columns[:, 1 - label]
        place = column.nonzero()[0]
        coefs = np.asarray(column[place].todense()).ravel()
        side = (coefs > 0).astype(np.int32)
        model.held = _set_of(empty_set_of(made), place, side, coefs * (ALPHA * N_STEPS), own)
        model.n_steps = N_STEPS
    return made
