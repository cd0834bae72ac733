"""SAMM, the sparse adaptive multi-hyperplane machine: a norm instead of pruning.

Problem     minimise  alpha/2 |W|^2 + mu sum_planes |w| + l1 sum |w_f| + mean_i loss_i,
            the loss being that of AMM (`amm.py`)
Algorithm   Alg. 1, dual averaging: with Theta the signed sum of rows that AMM has, too,
              w = Theta / (alpha t) * max(0, 1 - mu t / |Theta|)
            A plane lives while its sum grows by more than mu a step: mu takes the place of the
            pruning budget. With l1 each component of Theta is first drawn to zero by t l1.
            With mu = l1 = 0 this is AMM without pruning.
Symbols     lambda = alpha; group norm L2,1 = mu
Silences    (1) a plane whose factor is 0 is dormant, that is a zero plane. An update that goes
            to the zero plane of its class goes to the dormant plane with the largest Theta x if
            that is positive, else to a new plane; a rival's dormant plane wins comparisons with
            score 0 and is not updated. Every `prune_interval` steps dormant planes are dropped.
            (2) The average (`average=True`) is that of Theta and, in the thresholds, of t; the
            formula above then makes W. Theta alone would fall below a threshold of the last t:
            as training settles, |Theta| is hardly more than mu t.
Departures  (1) the l1 term is ours: planes as groups give sparse components only on sparse rows,
            where the paper claims them;
            (2) with l1 the factor uses |Theta|, not the length of what l1 leaves of it, which
            would change in all components with every step;
            (3) as in AMM: rows follow an order, rivals' zero planes do not become planes.
Paper       Sparse Adaptive Multi-hyperplane Machine (PAKDD 2016)
"""

from typing import Any, ClassVar

import numpy as np

from polyplane.engine.planes.pruning import drop_dormant
from polyplane.engine.rows.storage import count_rows, length_of_row
from polyplane.engine.steps.hinge import SparseRule
from polyplane.estimator.parameters import closed, either, one_of, parameter, register
from polyplane.estimator.plane_classifier import (
    PlaneClassifier,
    grown_rivals,
    interval_of_pruning,
    most_planes,
)
from polyplane.model.plane_record import FinishedPlanes
from polyplane.training.job import NewRows, Settings
from polyplane.training.planes.algorithm import PlaneAlgorithm, PlaneJob, hinge_planes, nothing
from polyplane.training.planes.state import PlaneModel
from polyplane.training.search.best_value import ALPHAS, best_alpha, best_value

__all__ = ["SAMM", "SAMMClassifier"]

SHARES = 1e-2, 1e-3, 1e-4, 1e-5  # of the steps, by which a plane must gain the length of a row
ROWS_MEASURED = 100  # whose median length mu='auto' takes


def rule(model: PlaneModel, settings: Settings) -> SparseRule:
    """Return what the steps follow."""
    return SparseRule(model.alpha, settings.grow_rivals, float(settings.mu), float(settings.l1))


def drop_dormant_planes(model: PlaneModel, settings: Settings) -> None:
    """Drop planes whose factor is 0 (silence 1)."""
    if model.rule.mu > 0:
        drop_dormant(model.planes, model.rule.mu * model.n_steps)


def search(job: PlaneJob, rows: NewRows) -> dict[str, Any]:
    """Find alpha first, with the smallest mu where that is open, too; then mu with that alpha."""
    settings, data = job.settings, rows.data
    if not settings.is_open("mu"):
        return best_alpha(job, rows)
    n_rows = count_rows(data.rows)
    some = np.linspace(0, n_rows - 1, min(n_rows, ROWS_MEASURED)).astype(int)
    length = float(np.median([length_of_row(data.rows, i) for i in some])) or 1.0
    penalties = [share * length for share in SHARES]
    found: dict[str, Any] = {}
    if settings.is_open("alpha"):
        found["alpha"] = best_value(job, rows, "alpha", ALPHAS, {"mu": penalties[-1]})
    fixed = {"alpha": found.get("alpha", settings.alpha)}
    return found | {"mu": best_value(job, rows, "mu", penalties, fixed)}


def finish(model: PlaneModel) -> FinishedPlanes:
    """Draw what the sums have reached to zero, by groups; dormant planes are left out."""
    sums, owner, scales, _ = hinge_planes(model, model.alpha)
    if model.rule.mu > 0:
        lengths = np.maximum(np.linalg.norm(sums, axis=0), np.finfo(np.float32).tiny)
        factors = 1 - model.rule.mu * model.mean_step / lengths
        lives = factors > 0
        scales = (scales * factors).astype(np.float32)[lives]
        sums, owner = sums[:, lives], owner[lives]
    if model.rule.l1 > 0:
        limit = np.float32(model.rule.l1 * model.mean_step)
        sums = sums - np.clip(sums, -limit, limit)
    return FinishedPlanes(sums, owner, scales)


SAMM = PlaneAlgorithm(
    rule=rule,
    between=drop_dormant_planes,
    search=search,
    searched=("alpha", "mu"),
    start=nothing,  # a class starts with its zero plane, which is no plane yet
    finish=finish,
)


@register
class SAMMClassifier(PlaneClassifier):
    """Sparse adaptive multi-hyperplane machine, which removes planes by a penalty on their lengths.

    A plane lives while its sum of rows grows by more than `mu` a step, which takes the place of the
    pruning budget. With `l1`, components of planes become zero as well.

    Attributes
    ----------
    mu_ : float
    nonzero_share_ : float

    See Also
    --------
    AMMClassifier : Prunes planes instead.

    Notes
    -----
    The scores are those of `AMMClassifier`, g_c(x) = max_j w_cj x, and the problem is::

        minimise  alpha/2 |W|^2 + mu sum_cj |w_cj| + l1 sum_cjf |w_cjf|
                  + mean_i max(0, 1 + max_{c != y_i} g_c(x_i) - g_{y_i}(x_i))

    Steps are those of dual averaging, Algorithm 1 of [1]_. The term `l1` is an addition of
    polyplane.

    References
    ----------
    .. [1] "Sparse adaptive multi-hyperplane machine", PAKDD 2016.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> X_train, y_train, X_test, y_test = X[:400], y[:400], X[400:], y[400:]
    >>> from polyplane import SAMMClassifier
    >>> model = SAMMClassifier(mu=1e-3, random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.8
    True
    >>> 0 <= model.nonzero_share_ <= 1
    True
    """

    algorithm: ClassVar[PlaneAlgorithm] = SAMM

    prune_interval: int = interval_of_pruning()
    max_planes: int | None = most_planes()
    grow_rivals: bool = grown_rivals()
    mu: float | str = parameter(
        default=1e-4,
        allowed=either(closed(0, 1e15), one_of("auto")),
        meaning=(
            "Penalty on the length of each plane: the net updates a step that keep it alive. "
            "'auto' tries four powers of ten of the length of a row on held-out rows."
        ),
    )
    l1: float = parameter(
        default=0.0,
        allowed=closed(0, 1e15),
        meaning="Penalty on the absolute value of each component of a plane.",
    )

    @property
    def mu_(self) -> float:
        """Penalty in use: the one given, or the one found by mu='auto'."""
        return float(self._setting_in_use("mu"))

    @property
    def nonzero_share_(self) -> float:
        """Share of the components of all planes that are not zero."""
        planes = self.planes_
        return float(np.count_nonzero(planes)) / max(1, planes.size)
