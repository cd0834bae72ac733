"""Nyström: a linear algorithm on features that stand for a kernel, around a few landmark rows.

Problem     that of the linear machine, Pegasos or Passive-Aggressive, with z(x) in place of x,
            where z(x) = K_mm^(-1/2) k(x), k(x) = [K(l_1, x) ... K(l_m, x)] and K_mm holds kernel
            values among the m landmarks: z(x) z(x') = k(x) K_mm^-1 k(x') is close to K(x, x')
Algorithm   Eq. 2-4 of Williams and Seeger for z; landmarks of fit by k-means, as Zhang, Tsang and
            Kwok propose, or rows drawn at random. Features are formed as rows are visited and
            never stored.
Symbols     f(x) = <w, z(x)> = sum_i coef_i K(l_i, x) with coef = K_mm^(-1/2) w. So a step
            w += s z(x) is coef += s K_mm^-1 k(x), and |z(x)|^2 = k(x) K_mm^-1 k(x): the loop keeps
            coef, one sum of kernels around the landmarks, whatever machine is on top. With
            `average` the sums are averaged over all steps, step t weighing t.
            Pegasos: coef = sums / (alpha t). Passive-Aggressive: coef = sums, and the step is
            tau = min(most, l / (|z|^2 + slack)), `most` C or infinity, `slack` 0 or 1 / (2 C).
Silences    Eigenvalues of K_mm below 1e-6 of the largest are rounding, and left out of K_mm^-1;
            so are negative ones of kernels that are none.
            Landmarks of a stream are its first rows. Until there are all of them, the features are
            those of the first 1, 2, 4, 8 ... rows, so that where the stream is cut changes nothing.
Departures  (1) k-means looks at some rows only, and the row nearest to a centre is the landmark,
            so that sparse rows stay sparse;
            (2) rows follow an order instead of independent draws; Pegasos without projection.
Papers      Williams, Seeger (NIPS 2000),
            https://papers.nips.cc/paper/1866-using-the-nystrom-method-to-speed-up-kernel-machines;
            Zhang, Tsang, Kwok (ICML 2008), doi:10.1145/1390156.1390311; the papers of
            `hyperplane/pegasos.py` and `hyperplane/passive_aggressive.py`
"""

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin
from threadpoolctl import threadpool_limits

from polyplane.arrays import Array
from polyplane.engine.jit import chosen_by_type, jit
from polyplane.engine.planes.averaging import time_of
from polyplane.engine.rows.storage import Rows, matrix_of, packed
from polyplane.engine.support.gram import padded
from polyplane.engine.support.support_set import (
    ACTIVE,
    INSERTED,
    MISTAKES,
    OF_SIDE,
    SLOTS,
    count,
    gathered_sum,
    spans_of_set,
    spans_of_visit,
    weighted_sum,
    with_room,
)
from polyplane.engine.tiles import at, put, span
from polyplane.estimator.kernel_classifier import (
    KernelClassifier,
    constant_in_kernel,
    mean_of_all_steps,
)
from polyplane.estimator.parameters import at_least, one_of, parameter, positive, register
from polyplane.model.kernels.kernel_values import KernelRows, kernel_block, rows_at_hand
from polyplane.training.job import Settings
from polyplane.training.kernels.algorithm import KernelAlgorithm, Stretch
from polyplane.training.kernels.chunks import learn_chunk
from polyplane.training.kernels.family import KernelJob, learn_in_chunks
from polyplane.training.kernels.state import KernelModel, KernelTraining
from polyplane.training.kernels.sums import NOW, sum_algorithm
from polyplane.training.rows import TrainingData, weighty
from polyplane.training.work.progress import Report

__all__ = ["NYSTROM", "NystromClassifier", "inverse_of", "nystrom_walk"]

LEAST_EIGENVALUE = 1e-6  # of the largest: kernel values are float32
ROWS_PER_LANDMARK, LEAST_ROWS = 40, 3_000  # that k-means looks at
LIMIT = 0  # in the totals of a problem: how many landmarks there are to be
KMEANS_BATCH_ROWS = 1_024  # rows of a batch of k-means


class PegasosSteps(NamedTuple):
    """Settings of sub-gradient steps on the hinge loss."""

    alpha: Any
    averages: Any
    offset: Any  # of the kernel


class PassiveAggressiveSteps(NamedTuple):
    """Settings of steps that are just as long as the margin asks for."""

    most: Any
    slack: Any
    averages: Any
    offset: Any


def _pegasos_violates(rule: Any, margin: Any, t: Any) -> Any:
    return t == 0 or margin < rule.alpha * t  # y f(x) < 1, both sides times alpha t


def _aggressive_violates(rule: Any, margin: Any, t: Any) -> Any:
    return margin < 1


def _pegasos_step(rule: Any, margin: Any, squared_length: Any, weight: Any) -> Any:
    return weight


def _aggressive_step(rule: Any, margin: Any, squared_length: Any, weight: Any) -> Any:
    softened = squared_length + rule.slack / weight
    return min(rule.most * weight, (1.0 - margin) / softened) if softened > 0 else 0.0


_BODIES: dict[str, dict[type, Any]] = {
    "violates": {PegasosSteps: _pegasos_violates, PassiveAggressiveSteps: _aggressive_violates},
    "step_of": {PegasosSteps: _pegasos_step, PassiveAggressiveSteps: _aggressive_step},
}


def violates(rule: Any, margin: Any, t: Any) -> Any:
    """Return True if a row with this margin, of the sums as they are kept, makes a step."""
    return _BODIES["violates"][type(rule)](rule, margin, t)


def step_of(rule: Any, margin: Any, squared_length: Any, weight: Any) -> Any:
    """Return the factor of z(x) that a step adds."""
    return _BODIES["step_of"][type(rule)](rule, margin, squared_length, weight)


for _word in (violates, step_of):
    chosen_by_type(_word, _BODIES[_word.__name__])


@jit
def nystrom_walk(
    visit: Any, order: Any, held: Any, inverse: Any, rule: Any, first: Any, t: Any
) -> Any:
    """Visit rows of a chunk from `order[first]` on, t rows having been visited before.

    `inverse` is K_mm^-1 of the first landmarks. Return how far it came: to the end.
    """
    rows, vectors, inverses = spans_of_visit(visit), spans_of_set(held), span(inverse)
    n = inverse.shape[0]
    solved = np.empty(n)
    for q in range(first, order.size):
        j = order[q]
        y = 2.0 * at(rows.side, j) - 1.0
        margin = y * weighted_sum(vectors, NOW, rows, j)
        count(vectors, MISTAKES, np.int64(margin <= 0))
        if violates(rule, margin, t):
            line, squared_length = j * rows.stride, 0.0
            for i in range(n):  # K_mm^-1 k(x)
                solved[i] = gathered_sum(inverses, i * n, vectors.place, 0, n, rows.values, line)
                squared_length += solved[i] * at(rows.values, line + at(vectors.place, i))
            step = y * step_of(rule, margin, squared_length, at(rows.weight, j))
            for i in range(n):
                now, timed = i, vectors.room + i
                change = step * solved[i]
                put(vectors.coef, now, at(vectors.coef, now) + change)
                put(vectors.coef, timed, at(vectors.coef, timed) + change * time_of(t))
        t += 1
    return order.size


# ---- landmarks ---------------------------------------------------------------------------


def start(job: KernelJob, training: KernelTraining, data: TrainingData) -> None:
    """Choose the landmarks of a fit, from all rows."""
    if training.support.size == 0 and training.course is not None:
        members = weighty(np.arange(data.labels.size), data.weights)
        chosen = _chosen_rows(job.settings, data.rows, members, training)
        rows = _rows(data, chosen, training.course.first_number)
        kernel_block(training.kernel, rows, rows, 1, False)  # which looks at its values
        _append(training, rows)
        _hold(training, rows.size)


def _chosen_rows(settings: Settings, rows: Rows, members: Array, training: KernelTraining) -> Array:
    """Return the numbers of the rows that become landmarks."""
    generator = np.random.default_rng([training.seed, 0])
    drawn, n_landmarks = generator.permutation(members), settings.n_landmarks
    if settings.landmarks == "uniform" or drawn.size <= n_landmarks:
        return np.sort(drawn[:n_landmarks])
    some = drawn[: max(LEAST_ROWS, ROWS_PER_LANDMARK * n_landmarks)]
    points = matrix_of(packed(rows, some), training.n_columns)
    seed = int(generator.integers(2**31))
    search = MiniBatchKMeans(
        n_landmarks, n_init=1, batch_size=KMEANS_BATCH_ROWS, max_iter=30, random_state=seed
    )
    with threadpool_limits(1):  # sums are always made in one order
        centres = search.fit(points).cluster_centers_
        nearest = np.unique(pairwise_distances_argmin(centres, points))
    others = np.setdiff1d(np.arange(some.size), nearest)  # where centres share a row
    return np.sort(some[np.append(nearest, others[: n_landmarks - nearest.size])])


def learn(
    job: KernelJob,
    training: KernelTraining,
    data: TrainingData,
    order: Array,
    first_number: int,
    report: Report,
) -> None:
    """Visit rows; the first of a stream become landmarks, one by one."""
    n_landmarks, n_first = job.settings.n_landmarks, 0
    _hold(training, n_landmarks)  # problems that are new
    if training.course is None:
        n_first = min(order.size, _limit(training) - training.support.size)
    for k in range(n_first):
        rows = _rows(data, order[k : k + 1], first_number)
        kernel_block(training.kernel, training.support, rows, 1, True)
        _append(training, rows)
        _hold(training, n_landmarks)
        learn_chunk(training, data, order[k : k + 1], first_number, job.algorithm, 1, report)
    if order.size > n_first:
        inverse_of(training)  # once, before threads ask for it
        learn_in_chunks(job, training, data, order[n_first:], first_number, report)


def _rows(data: TrainingData, which: Array, first_number: int) -> KernelRows:
    return rows_at_hand(data.rows, which, first_number + which.astype(np.int64), data.labels[which])


def _append(training: KernelTraining, rows: KernelRows) -> None:
    """More landmarks, after those there are."""
    first = training.support.size
    training.pool.append(rows)
    training.places.update({number: first + k for k, number in enumerate(rows.numbers.tolist())})


def _limit(training: KernelTraining) -> int:
    """Return the number of landmarks that are wanted."""
    return int(training.models[0].held.totals[LIMIT])


def _hold(training: KernelTraining, n_landmarks: int) -> None:
    """Every problem has all landmarks, new ones with the coefficient 0: slot k is landmark k."""
    support = training.support
    known = max(int(model.held.totals[LIMIT]) for model in training.models)
    for model in training.models:
        held, n = model.held, int(model.held.counts[ACTIVE])
        held.totals[LIMIT] = known or n_landmarks
        if n == support.size:
            continue
        if support.size > held.place.size:
            held = model.held = with_room(held, max(padded(support.size), 2 * held.place.size), 0)
        new = np.arange(n, support.size, dtype=np.int32)
        codes = model.problem.codes(training.labels.size)[support.labels[n:]]
        for array in (held.place, held.active, held.position):
            array[new] = new
        held.row[new], held.side[new] = support.numbers[n:], np.maximum(codes, 0)
        held.counts[[SLOTS, ACTIVE, INSERTED]] += new.size
        held.counts[OF_SIDE : OF_SIDE + 2] += np.bincount(held.side[new], minlength=2)


def inverse_of(training: KernelTraining) -> Array:
    """K_mm^-1 of all landmarks or, until they are complete, of the first 2^k of them."""
    n = training.support.size
    n_used = n if n == _limit(training) else 1 << (n.bit_length() - 1)
    known: tuple[int, Array] | None = training.derived
    if known is None or known[0] != n_used:
        first = training.support.chosen(np.arange(n_used))
        values = kernel_block(training.kernel, first, first, 1, False)[:, :n_used]
        known = training.derived = n_used, _inverse(values.astype(np.float64))
    return known[1]


def _inverse(gram: Array) -> Array:
    """The inverse where the matrix stands out of its rounding, and 0 elsewhere."""
    with threadpool_limits(1):
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        kept = values > LEAST_EIGENVALUE * max(values[-1], 0)
        inverse: Array = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return np.ascontiguousarray(inverse)


# ---- steps -------------------------------------------------------------------------------


def rule(settings: Settings) -> PegasosSteps | PassiveAggressiveSteps:
    """Return what the steps follow."""
    averages, offset = bool(settings.average), float(settings.fit_intercept)
    if settings.machine == "pegasos":
        return PegasosSteps(float(settings.alpha), averages, offset)
    if settings.machine == "PA-I":
        return PassiveAggressiveSteps(float(settings.C), 0.0, averages, offset)
    return PassiveAggressiveSteps(math.inf, 1 / (2 * float(settings.C)), averages, offset)


def walk(rows: Stretch) -> int:
    """Visit rows of a chunk."""
    held, rule, t = rows.model.held, rows.model.rule, rows.model.n_steps
    inverse = inverse_of(rows.training)
    reached: int = nystrom_walk(rows.visit, rows.order, held, inverse, rule, rows.first, t)
    return reached


def scale(model: KernelModel) -> float:
    """Return what the sums are divided by."""
    is_sum = isinstance(model.rule, PassiveAggressiveSteps)
    return 1.0 if is_sum else float(model.rule.alpha * max(model.n_steps, 1))


NYSTROM = sum_algorithm(
    walk=walk,
    rule=rule,
    start=start,
    learn=learn,
    weight_of_all=lambda n_steps: n_steps * (n_steps + 1.0),
    scale=scale,
)


@register
class NystromClassifier(KernelClassifier):
    """Linear classifier on Nyström features of a kernel, which is as large as its landmarks.

    `fit` draws the landmarks from all rows; in a stream they are the first rows.

    See Also
    --------
    KernelPegasosClassifier : The exact kernel, with a model that grows with the rows.
    PegasosClassifier : The linear algorithm by itself.

    Notes
    -----
    With landmarks l_1 ... l_m and their kernel matrix K_mm, features and scores are::

        z(x) = K_mm^(-1/2) [K(l_1, x) ... K(l_m, x)]
        f(x) = w z(x) = sum_i a_i K(l_i, x)

    w is trained by Pegasos or by Passive-Aggressive steps (`machine`). Landmarks are rows near the
    centres of k-means [2]_ or drawn at random [1]_.

    References
    ----------
    .. [1] C. Williams and M. Seeger, "Using the Nyström method to speed up kernel machines",
       NIPS 2000.
       https://papers.nips.cc/paper/1866-using-the-nystrom-method-to-speed-up-kernel-machines
    .. [2] K. Zhang, I. W. Tsang and J. T. Kwok, "Improved Nyström low-rank approximation and error
       analysis", ICML 2008. doi:10.1145/1390156.1390311

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> X_train, y_train, X_test, y_test = X[:400], y[:400], X[400:], y[400:]
    >>> from polyplane import NystromClassifier
    >>> model = NystromClassifier(n_landmarks=32, gamma=2, random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.9
    True
    """

    algorithm: ClassVar[KernelAlgorithm] = NYSTROM
    budget: ClassVar[None] = None  # type: ignore[misc]  # landmarks are as many as they are
    n_landmarks: int = parameter(
        default=256,
        allowed=at_least(1),
        meaning=(
            "Rows around which the kernel is taken: more come closer to the exact kernel, in "
            "time that grows with their square where a row makes a step."
        ),
    )
    landmarks: str = parameter(
        default="kmeans",
        allowed=one_of("kmeans", "uniform"),
        meaning=(
            "How `fit` finds them: rows nearest to centres of k-means, or rows drawn at random. In "
            "a stream they are its first rows."
        ),
    )
    machine: str = parameter(
        default="pegasos",
        allowed=one_of("pegasos", "PA-I", "PA-II"),
        meaning="The linear algorithm on the features: Pegasos, or Passive-Aggressive.",
    )
    alpha: float = parameter(
        default=1e-4,
        allowed=positive(),
        meaning="Regularisation of 'pegasos', lambda of the papers. Larger is smoother.",
    )
    C: float = parameter(
        default=1.0,
        allowed=positive(),
        meaning="Aggressiveness of 'PA-I' and 'PA-II': smaller is less misled by noise.",
    )
    max_iter: int = parameter(default=5, allowed=at_least(1), meaning="Passes over the rows.")
    fit_intercept: bool = constant_in_kernel()
    average: bool = mean_of_all_steps()
