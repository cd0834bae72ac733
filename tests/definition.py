"""What a fitted estimator says, worked out from its planes in plain loops over the definition.

`visits` holds for kernel machines too.
"""

import numpy as np
from scipy.special import expit

from polyplane import Poly2Classifier
from polyplane.engine.rows.storage import dense_rows, matrix_of, packed
from polyplane.engine.targets import LEFT_OUT
from polyplane.model.many_classes.decomposition import REST
from tests.reference.poly2 import poly2_map

ONE = np.float32(1)


def is_one_model(estimator):
    """Whether the best plane of all decides: one model of all classes, each with planes."""
    is_alone = len(estimator._training.models) == 1 and estimator._record().empty_score == -np.inf
    return is_alone and not estimator._record().is_soft


def rows_of_planes(estimator, X):
    """The rows as the planes see them: as they are, with products of columns, or ranked."""
    if multiplies(estimator):
        return poly2_map(X, estimator.gamma, estimator.coef0)
    columns = getattr(estimator._training.columns, "map", None)
    if columns is None or not columns.has_knots:
        return X
    rows = dense_rows(np.ascontiguousarray(X), 1.0)
    seen = packed(columns.for_prediction(rows), np.arange(len(X)))
    return matrix_of(seen, columns.n_folded).toarray()


def multiplies(estimator):
    """Whether planes lie in a space of products of columns."""
    return isinstance(estimator, Poly2Classifier)


def visits(estimator, y):
    """How many steps one pass over rows with these labels takes, of all models together."""
    training = estimator._training
    by_label = np.argsort(training.labels)
    codes = by_label[np.searchsorted(training.labels, y, sorter=by_label)]
    of_models = (model.problem.codes(training.labels.size) for model in training.models)
    return sum(int((of_model[codes] != LEFT_OUT).sum()) for of_model in of_models)


def sides(estimator):
    """In the order of `planes_`: estimator, problem, classes by rank, and planes of each side.

    A side is (rank of its class, 1 or -1 where it speaks against it, indices of its planes).
    """
    training = estimator._training
    ranks, n_classes, first = training.ranks.tolist(), len(training.labels), 0
    in_order = sorted(training.models, key=lambda model: model.estimator)
    for model in in_order:
        finished = estimator.algorithm.planes_of(model)
        owner = finished.owner // finished.n_units
        problem = model.problem.classes
        if n_classes <= 2 or not problem:
            meanings = sorted((ranks[code], 1, code) for code in range(n_classes))
        else:
            label = max(problem)
            meanings = [
                (ranks[label], -1, code) if c == REST else (ranks[c], 1, code)
                for code, c in enumerate(problem)
            ]
        out = []
        for rank, sign, code in meanings:
            n_planes = int((owner == code).sum())
            out.append((rank, sign, list(range(first, first + n_planes))))
            first += n_planes
        yield model, out


def side_scores(estimator, by_plane):
    """By model, the score of each side on one row: of its best plane, or of all together.

    A side without planes scores as agreed.
    """
    lowest = min([np.float32(0), *by_plane])
    below_all = lowest - max(ONE, np.float32(-1e-6) * lowest)
    without = max(np.float32(estimator._record().empty_score), below_all)
    return [
        (model, [(r, s, side_score(estimator, model, by_plane, p, without)) for r, s, p in of])
        for model, of in sides(estimator)
    ]


def side_score(estimator, model, by_plane, planes, without):
    """Of one side: its units are added up."""
    if not planes:
        return without
    if not estimator._record().is_soft:
        return max(by_plane[planes])
    units = np.array_split(
        np.array(planes), np.flatnonzero(np.diff(unit_of(estimator)[planes])) + 1
    )
    return sum(np.logaddexp.reduce(by_plane[unit]) for unit in units)


def unit_of(estimator):
    """The group of each plane, in the order of `planes_`."""
    return estimator._record().group


def class_scores(estimator, by_plane):
    """By rank, on one row, in float32: as `model/many_classes/decomposition.py` has it."""
    training = estimator._training
    n_classes, n_estimators = len(training.labels), estimator.n_estimators
    means = {}
    for model, of_sides in side_scores(estimator, by_plane):
        total = means.setdefault(
            model.problem.classes, [[r, s, np.float32(0)] for r, s, _ in of_sides]
        )
        for mean, (_, _, score) in zip(total, of_sides, strict=True):
            mean[2] += score
    for of_sides in means.values():
        for mean in of_sides:
            mean[2] /= np.float32(n_estimators)
    if len(means) == 1:
        [of_sides] = means.values()
        return [score for _, _, score in of_sides]
    scores, votes = [np.float32(0)] * n_classes, [np.float32(0)] * n_classes
    soft = [np.float64(0)] * n_classes
    for _, ((first, first_sign, low), (second, _, high)) in sorted(means.items(), key=_by_age):
        lead = high - low
        if first_sign == -1:  # one against the rest
            scores[second] = lead
            continue
        soft[second] += np.log(0.05 + expit(np.float64(lead)))
        soft[first] += np.log(0.05 + expit(-np.float64(lead)))
        cut = min(ONE, max(-ONE, lead))
        scores[second] += cut
        scores[first] -= cut
        votes[second] += np.sign(lead) / 2
        votes[first] -= np.sign(lead) / 2
    if training.kind == "ovr" or estimator.combine == "margin":
        return scores
    if estimator.combine == "soft":
        return soft
    tie_break = np.float32(0.2 / n_classes)
    return [vote + tie_break * score for vote, score in zip(votes, scores, strict=True)]


def _by_age(item):
    """Pairs in the order in which their younger class was met."""
    return max(item[0]), min(item[0])
