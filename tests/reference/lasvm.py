"""LaSVM on a Gram matrix: section 3.2 of Bordes, Ertekin, Weston, Bottou (JMLR 6, 2005).

`side` is 1 for positive and 0 for negative rows. Departures are numbered as in
`polyplane/kernel/lasvm.py`. After a step two gradients are equal but for rounding, and rounding
then decides which is the larger: so vectors keep places, of which freed ones are used again, and a
fresh gradient is added up over places in four parts, as in the library.
"""

import numpy as np

FLAT = 1e-10


class LaSVM:
    """Coefficients a and gradients g of the vectors in S."""

    def __init__(self, K, side, C, tol, n_reprocess=1, budget=None, weights=None):
        n = len(side)
        self.K, self.y = K, 2.0 * side - 1
        self.tol, self.n_reprocess, self.budget = tol, n_reprocess, budget
        bounds = C * (np.ones(n) if weights is None else weights) * self.y  # departure 3
        self.A, self.B = np.minimum(0, bounds), np.maximum(0, bounds)
        self.a, self.g = np.zeros(n), np.zeros(n)
        self.places, self.free, self.active = [], [], []
        self.removed = 0

    @property
    def S(self):
        """Vectors by place."""
        return [s for s in self.places if s is not None]

    def enter(self, k):
        """S <- S + {k}."""
        if self.free:
            self.places[self.free.pop()] = k
        else:
            self.places.append(k)
        self.active.append(k)

    def leave(self, k):
        """S <- S - {k}."""
        place, hole, last = self.places.index(k), self.active.index(k), self.active.pop()
        if last != k:
            self.active[hole] = last
        self.places[place] = None
        self.free.append(place)
        self.a[k] = 0
        self.removed += 1

    def top(self):
        """arg max of g over vectors that may rise."""
        return max((s for s in self.S if self.a[s] < self.B[s]), key=self.g.item, default=None)

    def bottom(self):
        """arg min of g over vectors that may fall."""
        return min((s for s in self.S if self.a[s] > self.A[s]), key=self.g.item, default=None)

    def score(self, k):
        """sum_s a_s K_ks."""
        terms = [0.0 if s is None else self.a[s] * self.K[s, k] for s in self.places]
        parts, whole = [0.0] * 4, len(terms) // 4 * 4
        for place, term in enumerate(terms):
            parts[place % 4 if place < whole else 0] += term
        return (parts[0] + parts[1]) + (parts[2] + parts[3])

    def shift(self, i, j, step):
        """Step 4 of PROCESS and step 3 of REPROCESS."""
        self.a[i] = min(self.a[i] + step, self.B[i])
        self.a[j] = max(self.a[j] - step, self.A[j])
        for s in self.S:
            self.g[s] -= step * (self.K[i, s] - self.K[j, s])

    def direction_step(self, i, j):
        """lambda of step 3 of PROCESS and step 2 of REPROCESS."""
        curvature = self.K[i, i] + self.K[j, j] - 2 * self.K[i, j]
        step = min(self.B[i] - self.a[i], self.a[j] - self.A[j])
        if curvature > FLAT * self.K[i, i]:
            step = min(step, (self.g[i] - self.g[j]) / curvature)
        self.shift(i, j, step)

    def violates(self, i, j):
        """Whether (i, j) is a tau-violating pair."""
        return i is not None and j is not None and self.g[i] - self.g[j] > self.tol

    def process(self, k):
        """PROCESS(k)."""
        if k in self.active:
            return
        is_positive = self.y[k] > 0
        partner = self.bottom() if is_positive else self.top()
        is_seed = all(self.y[s] != self.y[k] for s in self.active)  # departure 2
        gradient = self.y[k] - self.score(k)
        if not is_seed:
            if partner is None:
                return
            if self.y[k] * (gradient - self.g[partner]) <= self.tol:
                return  # departure 1
        self.enter(k)
        self.g[k] = gradient
        i, j = (k, partner) if is_positive else (partner, k)
        if self.violates(i, j):
            self.direction_step(i, j)

    def reprocess(self):
        """REPROCESS."""
        i, j = self.top(), self.bottom()
        if not self.violates(i, j):
            return
        self.direction_step(i, j)
        i, j = self.top(), self.bottom()
        if i is None or j is None:
            return
        most, least = self.g[i], self.g[j]
        for s in self.S:
            is_beyond = self.g[s] >= most if self.y[s] < 0 else self.g[s] <= least
            if self.a[s] == 0 and is_beyond:
                self.leave(s)

    def keep_budget(self):
        """Departure 4."""
        k = min(self.active, key=lambda s: abs(self.a[s]))
        amount = self.a[k]
        heirs = [s for s in self.active if s != k and self.A[s] <= self.a[s] + amount <= self.B[s]]
        if heirs:
            heir = max(heirs, key=lambda s: self.g[s] if amount > 0 else -self.g[s])
            self.shift(heir, k, amount)
        else:
            for s in self.S:
                self.g[s] += amount * self.K[k, s]
        self.leave(k)

    def visit(self, order):
        """The online iterations."""
        for k in order:
            self.process(k)
            if self.budget and len(self.active) > self.budget:
                self.keep_budget()
            for _ in range(self.n_reprocess):
                self.reprocess()
        return self

    def finish(self):
        """REPROCESS until there is no violating pair."""
        while self.violates(self.top(), self.bottom()):
            self.reprocess()
        return self

    def bias(self):
        """(g_i + g_j) / 2 of the extremes."""
        ends = [s for s in (self.top(), self.bottom()) if s is not None]
        return np.mean(self.g[ends])
