"""Prediction and fitted attributes of kernel machines: all that only looks at what is left."""

from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from polyplane.engine.order import in_place
from polyplane.engine.planes.planes import Array
from polyplane.engine.rows.storage import count_rows, matrix_of
from polyplane.engine.support.support_set import OF_SIDE
from polyplane.estimator.kernels.kernel_settings import KernelSettings
from polyplane.estimator.kernels.kernel_training import KernelModel, KernelTraining
from polyplane.estimator.parameters import with_parameters
from polyplane.estimator.thread_safety import reads, reads_alone
from polyplane.estimator.validation import read_matrix
from polyplane.model.input_rows import check_scores
from polyplane.model.kernel_record import KernelRecord

__all__ = ["KernelPredictor", "one_sided"]


class Trained:
    """What the first fit leaves."""

    _training: KernelTraining
    classes_: Array
    n_features_in_: int
    n_iter_: int
    gamma_: float


@with_parameters
class KernelPredictor(KernelSettings, Trained, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A kernel machine once it is fitted."""

    def _expand(self, model: KernelModel) -> tuple[Array, float]:
        """Coefficients by slot, and the intercept: what a machine has reached in a problem."""
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_training")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _record(self) -> KernelRecord:
        check_is_fitted(self)
        return self._training.record(self._expand, self.combine)

    def _class_scores(self, X: Any) -> Array:
        record = self._record()
        rows = read_matrix(self, X, False, 0.0)
        order = in_place(count_rows(rows))
        return record.class_scores(rows, order, effective_n_jobs(self.n_jobs))

    @reads
    def predict(self, X: Any) -> Array:
        """Label of the class that scores highest on each row."""
        winners = self._class_scores(X).argmax(axis=1)
        labels: Array = self._training.classes[winners]
        return labels

    @reads
    def decision_function(self, X: Any) -> Array:
        """Score of each class, or with two classes the second one's lead over the first."""
        scores = self._class_scores(X)
        check_scores(type(self).__name__, scores)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    # ---- fitted attributes ---------------------------------------------------------------

    @property
    @reads
    def support_(self) -> Array:
        """Numbers of the rows that are support vectors: rows of X, or of the stream so far."""
        return self._record().support.numbers

    @property
    @reads
    def support_vectors_(self) -> Any:
        """The support vectors, as X was handed in: an array, or a CSR matrix."""
        record = self._record()
        matrix = matrix_of(record.support.entries, self.n_features_in_)
        return matrix.toarray() if self._training.is_dense else matrix

    @property
    @reads
    def n_support_(self) -> Array:
        """How many support vectors each of `classes_` has."""
        ranks = self._training.ranks[self._record().support.labels]
        return np.bincount(ranks, minlength=self._training.classes.size)

    @property
    @reads
    def problems_(self) -> list[tuple[Any, Any]]:
        """The labels of both sides of each problem, None being the rest; f > 0 is the second."""
        training, order = self._training, self._problem_order()
        problems = self._record().decomposition.problems()
        labels = [*training.labels.tolist(), None]  # the last is that of REST, -1
        pairs = [tuple(labels[side] for side in problem.classes) for problem in problems]
        return [pairs[k] for k in order]

    def _problem_order(self) -> Array:
        """One-vs-rest in the order of `classes_`; pairs as they are."""
        decomposition = self._record().decomposition
        problems = decomposition.problems()
        if decomposition.kind == "ovo" or decomposition.is_joint:
            return np.arange(len(problems))
        return np.argsort([decomposition.ranks[problem.classes[1]] for problem in problems])

    @property
    @reads
    def dual_coef_(self) -> Array:
        """Problems by support vectors: f(x) = sum_i dual_coef_i K(x_i, x) + intercept."""
        return self._record().dual_coefs()[self._problem_order()]

    @property
    @reads
    def intercept_(self) -> Array:
        """The constant of each problem."""
        return self._record().intercepts[self._problem_order()]

    @property
    @reads_alone
    def n_steps_(self) -> int:
        """Rows visited since training began, by all problems together."""
        check_is_fitted(self)
        return sum(model.n_steps for model in self._training.models)


def one_sided(model: KernelModel) -> float | None:
    """The score of a problem that has met only one side, or none; None once it has met both."""
    n_first, n_second = model.held.counts[OF_SIDE : OF_SIDE + 2]
    if n_first > 0 and n_second > 0:
        return None
    return float(n_second > 0) - float(n_first > 0)
