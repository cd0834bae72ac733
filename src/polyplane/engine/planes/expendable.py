"""What each plane of a finished model is worth: how probabilities change without it.

Score   of class c  sum over its units u of log T_u, where T_u is the sum of exp(score) over planes
Without plane k of unit u the sum is (T_u - e_k), a share `left` of T_u; so the odds of the row's
        class, exp(own) : R, with R the sum over all others of exp(score), become
        left exp(own) : R                   for a plane of the row's class, and
        exp(own) : R - r_c + left r_c       for one of class c
        (no exponential for each plane, only a division).
Parts   exp(score - best) are taken once. When planes go, `best` need no longer be the best; parts
        of a unit are taken anew where their sum has become very small or very large.
Limits  planes of a unit whose scores differ by more than 700 leave nothing of each other: what
        changes is then overestimated, and sums of units are right all the same.
"""

from typing import Any

import numpy as np

from polyplane.engine.jit import jit

__all__ = ["changes_without_each", "sums_of_units"]

SMALL, LARGE = 1e-200, 1e200  # sums of parts beyond which these are taken anew
MOST = 700.0  # of an exponent


@jit
def sums_of_units(
    scores: Any, is_kept: Any, starts: Any, parts: Any, best: Any, top: Any, rest: Any
) -> None:
    """`top`, the largest part of each row and unit, by its plane, and `rest`, the sum of others.

    Planes are in the order of their units; `parts` are relative to `best` and kept up to date.
    """
    for i in range(scores.shape[0]):
        for u in range(starts.size - 1):
            for attempt in range(2):
                total, k = 0.0, -1
                for j in range(starts[u], starts[u + 1]):
                    if is_kept[j]:
                        total += parts[i, j]
                        if k < 0 or scores[i, j] > scores[i, k]:
                            k = j
                if attempt == 1 or SMALL < total < LARGE:
                    break
                best[i, u] = scores[i, k]
                for j in range(starts[u], starts[u + 1]):
                    parts[i, j] = np.exp(min(scores[i, j] - best[i, u], MOST))
            top[i, u] = k
            others = 0.0
            for j in range(starts[u], starts[u + 1]):
                if is_kept[j] and j != k:
                    others += parts[i, j]
            rest[i, u] = others


@jit
def changes_without_each(
    parts: Any,
    is_kept: Any,
    starts: Any,
    top: Any,
    rest: Any,
    class_of: Any,
    labels: Any,
    odds: Any,
    before: Any,
    changes: Any,
) -> None:
    """Mean change of the probability of a row's class without each plane alone.

    `odds` are exp(score) by class, of others than the row's relative to the best of these, of
    which none is above 1. What the largest part leaves is summed, not taken off.
    """
    changes[:] = 0
    for i in range(parts.shape[0]):
        own, rivals = odds[i, labels[i]], 0.0
        for c in range(odds.shape[1]):
            if c != labels[i]:
                rivals += odds[i, c]
        for u in range(starts.size - 1):
            c = class_of[u]
            others = 0.0  # of all rivals but this one, summed: it may be nearly all of them
            if c != labels[i]:
                for other in range(odds.shape[1]):
                    if other != c and other != labels[i]:
                        others += odds[i, other]
            total = parts[i, top[i, u]] + rest[i, u]
            for j in range(starts[u], starts[u + 1]):
                if is_kept[j]:
                    left = (rest[i, u] if j == top[i, u] else total - parts[i, j]) / total
                    for_own = left * own if c == labels[i] else own
                    against = rivals if c == labels[i] else others + left * odds[i, c]
                    changes[j] += abs(for_own / (for_own + against) - before[i])
    changes /= parts.shape[0]
