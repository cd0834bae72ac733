"""SAMM by dual averaging: Sparse Adaptive Multi-hyperplane Machine (PAKDD 2016), section 4.

Step t + 1 minimises  <G / t, W> + alpha/2 |W|^2 + mu sum_j |w_j| + l1 |W|_1,  where G is the sum
of all t subgradients; W is formed from G at every step. On Fractions all is exact but the lengths
of planes, which are rounded to float64: equal planes have equal scores.
Silences    (1) a plane shrunk to zero is a zero plane. An update of the own class's zero plane
            goes to the shrunk plane with the largest -g x, if that is positive, else to a new
            plane; a rival's zero plane gets none, or becomes a new plane with `grow_rivals`;
            (2) where mu > 0 the zero plane wins ties, else it loses them, as in AMM;
            (3) planes shrunk to zero are dropped every k steps, where mu > 0;
            (4) of equal planes the oldest wins.
Departure   (1) with both terms the length of a plane is that of G, not that of the thresholded G.
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from tests.reference.amm import ZERO_PLANE


@dataclass
class Model:
    """Sums of subgradients by number, in order of birth, and what happened to them."""

    G: dict = field(default_factory=dict)
    owner: dict = field(default_factory=dict)
    created: int = 0
    dropped: int = 0
    woken: int = 0
    mistakes: int = 0
    t: int = 0

    def give_birth(self, label, like):
        """A plane without subgradients."""
        number = self.created
        self.G[number], self.owner[number] = 0 * like, label
        self.created += 1
        return number


def group_factor(g, t, mu):
    """max(0, 1 - mu / |g / t|)."""
    if mu == 0:
        return 1
    length = sqrt(g @ g)
    return type(mu)(max(0.0, 1 - float(mu) * t / length) if length else 0.0)


def weights(model, alpha, mu, l1):
    """The minimiser: soft-thresholded components, then groups."""
    out = {}
    for j, g in model.G.items():
        mean = -g / max(model.t, 1)
        soft = mean - np.clip(mean, -l1, l1)
        out[j] = soft / alpha * group_factor(g, model.t, mu)  # departure 1
    return out


def step(model, x, label, alpha, mu, l1, n_classes, grow_rivals):
    """One row: its loss at W, and the subgradient."""
    scores = {j: w @ x for j, w in weights(model, alpha, mu, l1).items()}

    def best(numbers):
        top = max(numbers, key=lambda j: (scores[j], -j), default=ZERO_PLANE)
        is_above = top != ZERO_PLANE and (scores[top] > 0 or (mu == 0 and scores[top] == 0))
        return top if is_above else ZERO_PLANE

    own_planes = [j for j in model.G if model.owner[j] == label]
    rival_planes = [j for j in model.G if model.owner[j] != label]
    model.mistakes += not any(
        all(scores[own] > scores[rival] for rival in rival_planes) for own in own_planes
    )
    own, rival = best(own_planes), best(rival_planes)
    scores[ZERO_PLANE] = 0
    if 1 + scores[rival] - scores[own] > 0:
        if own == ZERO_PLANE:
            own = zero_plane_to_update(model, x, own_planes, mu)
        if own == ZERO_PLANE:
            own = model.give_birth(label, x)
        if rival == ZERO_PLANE and grow_rivals:
            rival = model.give_birth(min(c for c in range(n_classes) if c != label), x)
        model.G[own] = model.G[own] - x
        if rival != ZERO_PLANE:
            model.G[rival] = model.G[rival] + x
    model.t += 1


def zero_plane_to_update(model, x, own_planes, mu):
    """Silence 1."""
    if mu == 0:
        return ZERO_PLANE
    rise = {j: -(model.G[j] @ x) for j in own_planes if group_factor(model.G[j], model.t, mu) == 0}
    top = max(rise, key=lambda j: (rise[j], -j), default=ZERO_PLANE)
    if top == ZERO_PLANE or rise[top] <= 0:
        return ZERO_PLANE
    model.woken += 1
    return top


def online(X, y, alpha, mu, l1, order, k, grow_rivals=False):
    """All steps."""
    model = Model()
    for i in order:
        step(model, X[i], y[i], alpha, mu, l1, max(y) + 1, grow_rivals)
        if model.t % k == 0 and mu > 0:
            for j in list(model.G):
                if group_factor(model.G[j], model.t, mu) == 0:
                    del model.G[j], model.owner[j]
                    model.dropped += 1
    return model
