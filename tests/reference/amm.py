"""AMM with explicit weights and shrinking: Alg. 1 and 2 of Wang, Djuric, Crammer, Vucetic
(KDD 2011), Eq. 4-14.

Works on float64 arrays and on object arrays of `fractions.Fraction`. In floating point the
shrinking breaks exact ties by its rounding noise: compare on rows that tie in Fractions only.
A plane keeps its number for life; pruned planes leave the dictionary.
"""

from dataclasses import dataclass, field

ZERO_PLANE = -1
UNASSIGNED = -2


@dataclass
class Model:
    """Non-zero weights by number, in order of birth, and what happened to them."""

    W: dict = field(default_factory=dict)
    owner: dict = field(default_factory=dict)
    created: int = 0
    pruned: int = 0
    mistakes: int = 0
    t: int = 0  # steps done

    def give_birth(self, label, like):
        """A zero weight that is about to become non-zero."""
        number = self.created
        self.W[number], self.owner[number] = 0 * like, label
        self.created += 1
        return number


def best(scores, numbers):
    """The oldest of the planes with the highest score; the zero plane if all are below zero."""
    top = max(numbers, key=lambda j: (scores[j], -j), default=ZERO_PLANE)
    return top if top != ZERO_PLANE and scores[top] >= 0 else ZERO_PLANE


def step(model, x, label, alpha, n_classes, z, grow_rivals, weight=1):
    """Eq. 11-13 on one row whose plane is z, or the best one if z is UNASSIGNED; returns z."""
    model.t += 1
    eta = 1 / (alpha * model.t)
    scores = {j: w @ x for j, w in model.W.items()}
    own_planes = [j for j in model.W if model.owner[j] == label]
    rival_planes = [j for j in model.W if model.owner[j] != label]
    model.mistakes += not (
        own_planes
        and all(max(scores[j] for j in own_planes) > scores[rival] for rival in rival_planes)
    )
    if z == UNASSIGNED:
        z = best(scores, own_planes)  # Eq. 10
    elif z not in model.W:
        z = ZERO_PLANE  # silence 3: its plane was pruned
    rival = best(scores, rival_planes)
    own_score = 0 if z == ZERO_PLANE else scores[z]
    rival_score = 0 if rival == ZERO_PLANE else scores[rival]
    violates = 1 + rival_score - own_score > 0  # Eq. 4, Eq. 8
    model.W = {j: (1 - eta * alpha) * w for j, w in model.W.items()}  # Eq. 11
    if violates:
        if z == ZERO_PLANE:
            z = model.give_birth(label, x)
        if rival == ZERO_PLANE and grow_rivals:
            rival = model.give_birth(min(c for c in range(n_classes) if c != label), x)
        model.W[z] = model.W[z] + eta * weight * x  # Eq. 13
        if rival != ZERO_PLANE:
            model.W[rival] = model.W[rival] - eta * weight * x
    return z


def prune(model, alpha, c):
    """Eq. 14: smallest first, while the sum of squares stays within (c / (t lambda))^2."""
    spent = 0
    for number in sorted(model.W, key=lambda j: (model.W[j] @ model.W[j], j)):
        spent += model.W[number] @ model.W[number]
        if spent * (model.t * alpha) ** 2 > c**2:
            break
        del model.W[number], model.owner[number]
        model.pruned += 1


def online(X, y, alpha, order, k, c, n_classes, grow_rivals=False, weights=None):
    """Alg. 2."""
    model = Model()
    for i in order:
        weight = 1 if weights is None else weights[i]
        step(model, X[i], y[i], alpha, n_classes, UNASSIGNED, grow_rivals, weight)
        if model.t % k == 0:
            prune(model, alpha, c)
    return model


def batch(X, y, alpha, order, k, c, n_classes, n_passes, grow_rivals=False):
    """Alg. 1 with one epoch per sub-problem; the first pass is the scan, which then sets z(1).

    Returns the model, z and the number of passes made.
    """
    model = Model()
    z = [UNASSIGNED] * len(y)
    n_done = 0
    while n_done < n_passes:
        n_done += 1
        for i in order:
            z[i] = step(model, X[i], y[i], alpha, n_classes, z[i], grow_rivals)
            if model.t % k == 0:
                prune(model, alpha, c)
        before = [number if number in model.W else ZERO_PLANE for number in z]
        z = assignments(model, X, y)  # Eq. 9
        if z == before and n_done > 1:  # silence 5: the scan only sets z
            break
    return model, z, n_done


def assignments(model, X, y):
    """Eq. 10 for every row."""
    return [
        best(
            {j: w @ x for j, w in model.W.items()},
            [j for j in model.W if model.owner[j] == label],
        )
        for x, label in zip(X, y, strict=True)
    ]


def sums(model, alpha):
    """lambda t W: by number, the signed sums of rows."""
    return {j: model.t * alpha * w for j, w in model.W.items()}


def predictions(model, X):
    """Class of the best plane; of equal scores the lowest class."""
    numbers = sorted(model.W, key=lambda j: (model.owner[j], j))
    scores = [[model.W[j] @ x for j in numbers] for x in X]
    return [model.owner[numbers[max(range(len(s)), key=lambda k: (s[k], -k))]] for s in scores]
