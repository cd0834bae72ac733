"""The Huller on a Gram matrix: Fig. 3 and 4 of Bordes, Bottou (ECML 2005), Eq. 3-8.

`side` is 1 for positive and 0 for negative rows. Departures are numbered as in
`polyplane/kernel/huller.py`. Support vectors are picked at random off a list to which new ones are
appended; one that leaves has its place taken by the last.
"""

import numpy as np

TOO_NEAR = 1e-10


def picked(coin, n):
    """A number below n: the first that the binary digits of the coin spell."""
    n_digits = (n - 1).bit_length()
    while True:
        coin *= 2**n_digits
        number = int(coin)
        coin -= number
        if number < n:
            return number


class Huller:
    """alpha of every row, the list of those that are not 0, and the three products."""

    def __init__(self, K, side, n_init=5, n_removal=1, budget=None):
        self.K, self.side = K, side
        self.n_init, self.n_removal, self.budget = n_init, n_removal, budget
        self.alpha = np.zeros(len(side))
        self.active = []
        self.products = np.zeros((2, 2))  # X_N X_N, X_N X_P, X_P X_P
        self.n_averaged = [0, 0]
        self.mistakes = self.replaced = self.removed = 0

    def point_times(self, which, k):
        """X_P x_k or X_N x_k."""
        members = [i for i in self.active if self.side[i] == which]
        return sum(self.alpha[i] * self.K[i, k] for i in members)

    def best_lambda(self, k):
        """Eq. 4 and 5."""
        own, other = self.side[k], 1 - self.side[k]
        XX, X_x, xx = self.products[own, own], self.point_times(own, k), self.K[k, k]
        distance = XX + xx - 2 * X_x
        if distance <= TOO_NEAR * xx:
            return 0.0
        return (XX - self.products[own, other] - X_x + self.point_times(other, k)) / distance

    def update(self, k, step):
        """The last three lines of Fig. 3."""
        own, other = self.side[k], 1 - self.side[k]
        X_x, other_x, xx = self.point_times(own, k), self.point_times(other, k), self.K[k, k]
        XX = self.products[own, own]
        self.alpha[self.side == own] *= 1 - step
        self.alpha[k] += step
        self.products[own, own] = (  # Eq. 7 and 8
            (1 - step) ** 2 * XX + 2 * step * (1 - step) * X_x + step**2 * xx
        )
        crossed = (1 - step) * self.products[own, other] + step * other_x
        self.products[own, other] = self.products[other, own] = crossed

    def leave(self, k):
        """k is no support vector any longer."""
        hole, last = self.active.index(k), self.active.pop()
        if last != k:
            self.active[hole] = last
        self.alpha[k] = 0
        self.removed += 1

    def insert(self, k):
        """UPDATE(p) of a row that is no support vector; whether removals follow."""
        own, other = self.side[k], 1 - self.side[k]
        met = {self.side[i] for i in self.active}
        starts = self.n_averaged[own] < self.n_init
        if k in self.active or (other not in met and not starts):
            return False  # departures 4 and 1
        if met == {0, 1}:
            self.mistakes += (2 * own - 1) * self.discriminant(self.K[:, k]) <= 0
        step = min(1, self.best_lambda(k))  # Eq. 6 of alpha 0
        if starts:  # departure 1
            self.n_averaged[own] += 1
            step = 1 / self.n_averaged[own]
        if step > 0:
            self.active.append(k)
            self.update(k, step)
            if step == 1:
                for i in self.active[::-1]:
                    if self.side[i] == own and i != k:
                        self.leave(i)
                        self.replaced += 1
        return other in met

    def remove(self, k, is_forced=False):
        """UPDATE(r) of a support vector."""
        if self.alpha[k] >= 1:
            return
        lowest = -self.alpha[k] / (1 - self.alpha[k])
        step = lowest if is_forced else min(1, max(lowest, self.best_lambda(k)))  # Eq. 6
        self.update(k, step)
        if step == lowest:
            self.leave(k)

    def visit(self, order, coins):
        """Fig. 4, with one line of coins for each visited row."""
        for k, line in zip(order, coins, strict=True):
            if not self.insert(k):
                continue
            if self.budget and len(self.active) > self.budget:  # departure 3
                self.remove(min(self.active, key=lambda i: self.alpha[i]), is_forced=True)
            for coin in line:  # departure 2
                self.remove(self.active[picked(coin, len(self.active))])
        return self

    def sweep(self, generator):
        """Departure 5: every support vector in a random order."""
        rows = np.array(self.active)
        generator.shuffle(rows)
        for k in rows.tolist():
            if k in self.active:
                self.remove(k)

    def discriminant(self, K):
        """Eq. 3; K holds kernel values by training row."""
        signs = 2 * self.side - 1
        NN, PP = self.products[0, 0], self.products[1, 1]
        return (signs * self.alpha) @ K + (NN - PP) / 2

    def coefs_and_intercept(self):
        """Of the discriminant, scaled so that it is 1 and -1 at the margins."""
        gap = self.products[0, 0] + self.products[1, 1] - 2 * self.products[0, 1]
        signs = 2 * self.side - 1
        difference = self.products[0, 0] - self.products[1, 1]
        return 2 / gap * signs * self.alpha, difference / gap
