"""The algorithms that an exploration tries, each with its defaults, and what each can express.

They stand on a ladder: `majority`, which looks at no column, `linear`, `additive` (a curve along
each column, added up), `piecewise-linear` and `kernel`. An algorithm of a higher step costs more
and must earn it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier

from polyplane.engine.rows.products import n_mapped
from polyplane.hyperplane.amm import AMMClassifier
from polyplane.hyperplane.convex_polytope import CPMClassifier
from polyplane.hyperplane.pegasos import PegasosClassifier
from polyplane.hyperplane.poly2 import Poly2Classifier
from polyplane.hyperplane.soft_planes import SoftPlanesClassifier
from polyplane.kernel.huller import HullerClassifier
from polyplane.portfolio.polyplane_classifier import PolyplaneClassifier
from polyplane.report.columns import dense, is_sparse

__all__ = ["CANDIDATES", "LADDER", "Candidate", "Setting", "candidates_for"]

MAJORITY, LINEAR, ADDITIVE, PLANES, KERNEL = LADDER = (
    "majority", "linear", "additive", "piecewise-linear", "kernel",
)  # fmt: skip
MAX_CURVED_COLUMNS = 300  # more take long, and images and texts have none
MAX_MULTIPLIED_COLUMNS = 3_000
MAX_PRODUCTS = 1 << 20  # more are hashed
ROWS_LOOKED_AT = 5_000
HULLER_C = 10.0  # price of quadratic slack: a hard margin learns noise by heart
ONE_PLANE = {  # a class is one plane: logistic regression over hats along the columns
    "n_planes": 1, "units": 1, "learn_from": "all", "columns": "knots", "step_size": 0.1,
    "shrinkage": 0.1, "max_iter": 40,
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """A class of estimators with parameters, and the scaling of columns before it."""

    kind: Any
    parameters: Mapping[str, Any] = field(default_factory=dict)
    scale: str = "none"

    def estimator(self, seed: int, n_jobs: int | None) -> Any:
        """Return the estimator, not fitted."""
        if self.kind is DummyClassifier:
            return DummyClassifier(strategy="most_frequent")
        return self.kind(**self.parameters, random_state=seed, n_jobs=n_jobs)


@dataclass(frozen=True)
class Candidate:
    """An algorithm on the ladder."""

    name: str
    step: str
    algorithm: str  # its name on the command line
    meaning: str  # a few words
    setting: Callable[[Any], Setting]  # for given rows
    growth: float = 0.7  # seconds grow with this power of the rows, until that has been measured
    unit: str = "planes"

    def why_not(self, X: Any) -> str:
        """Return why it is not tried on such rows; an empty text if it is."""
        if self.step == ADDITIVE and X.shape[1] > MAX_CURVED_COLUMNS:
            is_wide = X.shape[1] > MAX_MULTIPLIED_COLUMNS
            n_curved = X.shape[1] if is_wide else _count_curved(X)
            if n_curved > MAX_CURVED_COLUMNS:
                return f"{n_curved:,} columns are too many to draw a curve along each"
        if self.algorithm == "poly2" and X.shape[1] > MAX_MULTIPLIED_COLUMNS:
            return f"{X.shape[1]:,} columns have too many products"
        return ""


def _count_curved(X: Any) -> int:
    """Count columns of more than one value beside zero: 0 and 1 leave nothing to bend."""
    some = X[:ROWS_LOOKED_AT].copy()
    values = some.data if is_sparse(some) else some
    values[np.isnan(values)] = 0  # gaps
    if is_sparse(some):
        counts, sums, squares = (
            np.asarray(one.sum(axis=0), np.float64).ravel()
            for one in ((some != 0), some, some.multiply(some))
        )
    else:
        counts, sums = np.count_nonzero(some, axis=0), some.sum(axis=0, dtype=np.float64)
        squares = np.square(some, dtype=np.float64).sum(axis=0)
    return int(np.sum(counts * squares - sums**2 > 1e-5 * counts * squares))  # Cauchy, Schwarz


def _tuned(kind: Any) -> Callable[[Any], Setting]:
    return lambda X: Setting(kind, {"alpha": "auto"}, "maxabs")


def _poly2(X: Any) -> Setting:
    hashed = {"n_hash": MAX_PRODUCTS} if n_mapped(X.shape[1]) > MAX_PRODUCTS else {}
    return Setting(Poly2Classifier, {"alpha": "auto", **hashed}, "maxabs")


def _huller(X: Any) -> Setting:
    gamma = float(f"{_kernel_scale(X):.2g}")
    return Setting(HullerClassifier, {"C": HULLER_C, "gamma": gamma}, "maxabs")


def _kernel_scale(X: Any) -> float:
    """Return 1 / (columns * variance) of rows divided by the largest value of each column."""
    largest = dense(abs(X).max(axis=0)).ravel()
    scale = 1 / np.where(largest > 0, largest, 1)
    n = X.shape[0]
    if is_sparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel() * scale
        square = np.asarray(X.multiply(X).mean(axis=0)).ravel() * scale**2
    else:
        scaled = X[: min(n, 2_000)].astype(np.float64) * scale
        mean, square = scaled.mean(axis=0), np.square(scaled).mean(axis=0)
    variance = float(square.mean() - mean.mean() ** 2)
    return 1 / (X.shape[1] * variance) if variance > 0 else 1.0


# In the order in which they are tried: AMM takes seconds where others take minutes, as with a
# hundred classes, and its loops are those of the linear algorithm.
CANDIDATES: Mapping[str, Candidate] = {
    candidate.name: candidate
    for candidate in (
        Candidate(
            "majority",
            MAJORITY,
            "",
            "always the most frequent label",
            lambda X: Setting(DummyClassifier),
            unit="labels",
        ),
        Candidate("linear", LINEAR, "pegasos", "one plane a class", _tuned(PegasosClassifier)),
        Candidate(
            "amm", PLANES, "amm", "planes born and pruned as the rows ask", _tuned(AMMClassifier)
        ),
        Candidate(
            "polyplane",
            PLANES,
            "polyplane",
            "soft maxima of planes over bent columns",
            lambda X: Setting(PolyplaneClassifier),
        ),
        Candidate(
            "additive",
            ADDITIVE,
            "soft-planes",
            "one curve a column, added up",
            lambda X: Setting(SoftPlanesClassifier, ONE_PLANE),
        ),
        Candidate(
            "huller",
            KERNEL,
            "huller",
            "an online SVM with the RBF kernel",
            _huller,
            growth=1.7,
            unit="vectors",
        ),
        Candidate(
            "cpm", PLANES, "cpm", "a convex polytope around each class", _tuned(CPMClassifier)
        ),
        Candidate("poly2", KERNEL, "poly2", "a linear SVM over products of two columns", _poly2),
    )
}


def candidates_for(X: Any) -> tuple[list[Candidate], dict[str, str]]:
    """Return those worth trying on such rows, in their order, and why others are not."""
    left_out = {name: candidate.why_not(X) for name, candidate in CANDIDATES.items()}
    tried = [candidate for name, candidate in CANDIDATES.items() if not left_out[name]]
    return tried, {name: why for name, why in left_out.items() if why}
