"""MM with explicit weights: Eq. 4-5 and 10-13 of Wang, Djuric, Crammer, Vucetic (KDD 2011).

Works on float64 arrays and on object arrays of `fractions.Fraction`. With one plane per class
this is the multi-class SVM of Eq. 1-4.
"""


def first_best(scores, candidates):
    """Of the candidates the first with the highest score."""
    return max(candidates, key=lambda j: (scores[j], -j))


def multi_hyperplane(X, y, start, owner, alpha, order):
    """Planes after one step per entry of `order`.

    `start` holds lambda t W of the first step, so that a start that is not zero has a meaning at
    t = 1, where W itself is forgotten: the shrinking factor is 1 - 1/t.
    """
    T = [plane.copy() for plane in start]  # lambda (t - 1) W before step t
    for t, i in enumerate(order, start=1):
        x, label = X[i], y[i]
        scores = [plane @ x for plane in T]
        own = first_best(scores, [j for j, c in enumerate(owner) if c == label])  # Eq. 10
        rival = first_best(scores, [j for j, c in enumerate(owner) if c != label])
        if t == 1 or alpha * (t - 1) + scores[rival] - scores[own] > 0:  # Eq. 4
            T[own] = T[own] + x  # Eq. 13
            T[rival] = T[rival] - x
    return T


def multi_class_svm(X, y, n_classes, alpha, order):
    """W of Eq. 1-4, by Eq. 11 with explicit shrinking."""
    W = [0 * X[0] for _ in range(n_classes)]
    for t, i in enumerate(order, start=1):
        x, label = X[i], y[i]
        scores = [w @ x for w in W]
        rival = first_best(scores, [c for c in range(n_classes) if c != label])
        violates = 1 + scores[rival] - scores[label] > 0  # Eq. 4
        eta = 1 / (alpha * t)
        W = [(1 - eta * alpha) * w for w in W]  # Eq. 11
        if violates:
            W[label] = W[label] + eta * x  # Eq. 13
            W[rival] = W[rival] - eta * x
    return W
