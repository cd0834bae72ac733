"""The machines that an exploration tries: what each can see, and the settings it is tried with.

They stand on a ladder: `majority`, which looks at no column, `linear`, `additive` (a curve along
each column, added up), `piecewise-linear` and `kernel`. A machine of a higher step costs more and
must earn it. Settings are few: an exploration asks which step pays, not for the last tenth.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier

from polyplane.engine.order import in_place
from polyplane.engine.rows.products import n_mapped
from polyplane.engine.rows.storage import csr_rows, dense_rows
from polyplane.hyperplane.amm import AMMClassifier
from polyplane.hyperplane.convex_polytope import CPMClassifier
from polyplane.hyperplane.pegasos import PegasosClassifier
from polyplane.hyperplane.poly2 import Poly2Classifier
from polyplane.hyperplane.polyplane import PolyplaneClassifier
from polyplane.kernel.huller import HullerClassifier
from polyplane.model.input.column_maps import AS_IS, column_map
from polyplane.report.columns import dense, is_sparse

__all__ = ["LADDER", "MACHINES", "Machine", "Setting", "machines_for"]

MAJORITY, LINEAR, ADDITIVE, PLANES, KERNEL = LADDER = (
    "majority", "linear", "additive", "piecewise-linear", "kernel",
)  # fmt: skip
ALPHAS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
MOST_CURVED = 300  # columns with curves: more take long, and images and texts have none
MOST_MULTIPLIED = 3_000  # columns
MOST_PRODUCTS = 1 << 20  # beyond, they are hashed
ROWS_LOOKED_AT = 5_000  # to tell images and texts from tables
SLACK = 10.0  # price of the Huller's quadratic slack: a hard margin learns noise by heart
ONE_PLANE: dict[str, Any] = {  # a class is one plane: logistic regression of what columns become
    "n_planes": 1, "units": 1, "directions": "none", "learn_from": "all", "loss": "cross-entropy",
    "relevance": 0.0, "init": "subset", "multi_class": "joint", "start_scale": 3.0,
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """A classifier with its parameters."""

    kind: Any
    parameters: Mapping[str, Any] = field(default_factory=dict)
    scale: str = "none"
    alpha: float | None = None  # on the path of the regularisation

    @property
    def is_open(self) -> bool:
        """Whether a fit finds the rest by itself."""
        return self.kind is PolyplaneClassifier and not self.parameters

    def made(self, seed: int, n_jobs: int | None) -> Any:
        """The classifier, not fitted."""
        if self.kind is DummyClassifier:
            return DummyClassifier(strategy="most_frequent")
        is_set = self.kind is PolyplaneClassifier and not self.is_open
        given = {"search": False} if is_set else {}  # nor a trial to calibrate: errors are asked
        return self.kind(**{**given, **self.parameters}, random_state=seed, n_jobs=n_jobs)


@dataclass(frozen=True)
class Machine:
    """A kind of classifier on the ladder."""

    name: str
    step: str
    algorithm: str  # as the command line calls it
    says: str  # what it is, in a few words
    settings: Callable[[Any], Sequence[Setting]]  # to try on such rows, neighbours side by side
    growth: float = 0.7  # seconds grow with this power of the rows, until that has been seen
    unit: str = "planes"
    searches: bool = False  # whether a fit finds its own settings, which folds then keep
    n_early: int | None = None  # settings to begin with; the others have loops of their own

    def why_not(self, X: Any) -> str:
        """Why it is not tried on such rows; empty if it is."""
        if self.step == ADDITIVE and X.shape[1] > MOST_CURVED:
            n_curved = X.shape[1] if X.shape[1] > MOST_MULTIPLIED else _count_curved(X)
            if n_curved > MOST_CURVED:
                return f"{n_curved:,} columns are too many to draw a curve along each"
        if self.algorithm == "poly2" and X.shape[1] > MOST_MULTIPLIED:
            return f"{X.shape[1]:,} columns have too many products"
        return ""


def _count_curved(X: Any) -> int:
    """Columns of more than one value beside zero: along 0 and 1 there is nothing to bend."""
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


def _path(kind: Any, **parameters: Any) -> list[Setting]:
    return [Setting(kind, {"alpha": a, **parameters}, "maxabs", a) for a in ALPHAS]


def _linear(X: Any) -> list[Setting]:
    columns = AS_IS if _is_as_is(X) else "plain"
    softmax = [
        Setting(
            PolyplaneClassifier,
            ONE_PLANE | {"columns": columns, "step_size": 0.03, "shrinkage": shrinkage},
        )
        for shrinkage in (0.01, 0.1)
    ]
    return _path(PegasosClassifier) + softmax


def _is_as_is(X: Any) -> bool:
    """Whether these are images or texts, which would be other data if they were standardised."""
    some = X[:ROWS_LOOKED_AT]
    if np.isnan(some.data if is_sparse(some) else some).any():
        return False  # a table with gaps
    rows = csr_rows(some, 1.0) if is_sparse(some) else dense_rows(some, 1.0)
    order = in_place(some.shape[0])
    return column_map(rows, order, X.shape[1], "plain", may_leave_out=True).is_as_is


def _additive(X: Any) -> list[Setting]:
    tried = [("knots", 0.03), ("knots", 0.1), ("fine", 0.1), ("fine", 0.3)]
    return [
        Setting(
            PolyplaneClassifier,
            ONE_PLANE | {"columns": columns, "step_size": 0.1, "shrinkage": shrinkage},
        )
        for columns, shrinkage in tried
    ]


def _poly2(X: Any) -> list[Setting]:
    hashed = {"n_hash": MOST_PRODUCTS} if n_mapped(X.shape[1]) > MOST_PRODUCTS else {}
    return _path(Poly2Classifier, **hashed)[1:4]


def _huller(X: Any) -> list[Setting]:
    scale = _kernel_scale(X)
    tried = [(SLACK, 5 * scale), (SLACK, scale), (SLACK / 10, scale)]
    return [
        Setting(HullerClassifier, {"C": C, "gamma": float(f"{gamma:.2g}")}, "maxabs")
        for C, gamma in tried
    ]


def _kernel_scale(X: Any) -> float:
    """1 / (columns * variance) of rows divided by the largest value of each column."""
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


def _only(*settings: Setting) -> Callable[[Any], Sequence[Setting]]:
    return lambda X: settings


# In the order in which they are tried. AMM is early: it takes seconds where others take minutes, as
# with a hundred classes, and its loops are those of the linear machine.
MACHINES: Mapping[str, Machine] = {
    machine.name: machine
    for machine in (
        Machine("majority", MAJORITY, "", "always the most frequent label",
                _only(Setting(DummyClassifier)), unit="labels"),
        Machine("linear", LINEAR, "pegasos", "one plane a class", _linear, n_early=len(ALPHAS)),
        Machine("amm", PLANES, "amm", "planes born and pruned as the rows ask",
                lambda X: _path(AMMClassifier)),
        Machine("polyplane", PLANES, "polyplane", "soft maxima of planes over bent columns",
                _only(Setting(PolyplaneClassifier)), searches=True),
        Machine("additive", ADDITIVE, "polyplane", "one curve a column, added up", _additive),
        Machine("huller", KERNEL, "huller", "an online SVM with the RBF kernel", _huller,
                growth=1.7, unit="vectors"),
        Machine("cpm", PLANES, "cpm", "a convex polytope around each class",
                lambda X: _path(CPMClassifier)[1:4]),
        Machine("poly2", KERNEL, "poly2", "a linear SVM over products of two columns", _poly2),
    )
}  # fmt: skip


def machines_for(X: Any) -> tuple[list[Machine], dict[str, str]]:
    """Those worth trying on such rows, in the order in which they are; of the others why not."""
    left_out = {name: machine.why_not(X) for name, machine in MACHINES.items()}
    tried = [machine for name, machine in MACHINES.items() if not left_out[name]]
    return tried, {name: why for name, why in left_out.items() if why}
