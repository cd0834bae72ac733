"""Importance of each plane of a finished model: how probabilities change without it.

Score   of class c  sum over its units u of log T_u, where T_u is the sum of exp(score) over planes
Without plane k of unit u the sum is (T_u - e_k), a share `left` of T_u; so the odds of the row's
        class, exp(own) : R, with R the sum over all others of exp(score), become
        left exp(own) : R                   for a plane of the row's class, and
        exp(own) : R - r_c + left r_c       for one of class c
        (no exponential for each plane, only a division).
Parts   exp(score - best) are taken once. When planes go, `best` need no longer be the best; parts
        of a unit are taken anew where their sum has become very small or very large.
Layout  rows follow each other in memory, so that loops over some rows become vector code.
Limits  planes of a unit whose scores differ by more than 700 leave nothing of each other: what
        changes is then overestimated, and sums of units are right all the same.
"""

from typing import Any

import numpy as np

from polyplane.engine.jit import inlined, jit

__all__ = ["changes_without_each", "sums_of_units"]

SMALL, LARGE = 1e-200, 1e200  # sums of parts beyond which these are taken anew
MAX_EXPONENT = 700.0  # exp of 710 is infinite in float64
ROWS_AT_ONCE = 256  # whose sums stay in the cache
N_PARALLEL_SUMS = 8  # side by side, which vector code needs


@jit
def sums_of_units(
    scores: Any, is_kept: Any, starts: Any, parts: Any, best: Any, top: Any, rest: Any
) -> None:
    """`top`, the largest part of each unit and row, by its plane, and `rest`, the sum of others.

    All are [plane or unit, row]. Planes are in the order of their units, of which each keeps one;
    `parts` are relative to `best` and kept up to date.
    """
    largest = np.empty(ROWS_AT_ONCE)
    for first in range(0, scores.shape[1], ROWS_AT_ONCE):
        end = min(first + ROWS_AT_ONCE, scores.shape[1])
        for u in range(starts.size - 1):
            add_up(is_kept, starts[u], starts[u + 1], parts, first, end, top[u], rest[u], largest)
            for i in range(first, end):
                if not SMALL < largest[i - first] + rest[u, i] < LARGE:
                    k = best_score(scores, is_kept, starts[u], starts[u + 1], i)
                    best[u, i] = scores[k, i]
                    for j in range(starts[u], starts[u + 1]):
                        parts[j, i] = np.exp(min(scores[j, i] - best[u, i], MAX_EXPONENT))
                    add_up(
                        is_kept, starts[u], starts[u + 1], parts, i, i + 1, top[u], rest[u], largest
                    )


@inlined
def add_up(
    is_kept: Any,
    start: Any,
    stop: Any,
    parts: Any,
    first: Any,
    end: Any,
    top: Any,
    rest: Any,
    largest: Any,
) -> None:
    """The largest part of one unit in rows `first` to `end`, and the sum of its others."""
    is_new = True
    for j in range(start, stop):
        if not is_kept[j]:
            continue
        part = parts[j, first:end]
        tops, rests = top[first:end], rest[first:end]
        if is_new:
            for i in range(end - first):
                largest[i], tops[i], rests[i] = part[i], j, 0.0
        else:
            for i in range(end - first):
                is_larger = part[i] > largest[i]
                rests[i] += min(part[i], largest[i])
                tops[i] = j if is_larger else tops[i]
                largest[i] = max(part[i], largest[i])
        is_new = False


@inlined
def best_score(scores: Any, is_kept: Any, start: Any, stop: Any, i: Any) -> Any:
    """The plane of a unit that scores highest on row i."""
    k = -1
    for j in range(start, stop):
        if is_kept[j] and (k < 0 or scores[j, i] > scores[k, i]):
            k = j
    return k


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

    `odds` are exp(score), [class, row], of others than the row's relative to the best of these, of
    which none is above 1. What the largest part leaves is summed, not taken off.
    """
    n_rows = parts.shape[1]
    total, own, others, rival, found = np.empty((5, ROWS_AT_ONCE))
    is_own = np.empty(ROWS_AT_ONCE, np.bool_)
    changes[:] = 0
    for first in range(0, n_rows, ROWS_AT_ONCE):
        end = min(first + ROWS_AT_ONCE, n_rows)
        for u in range(starts.size - 1):
            c, tops, rests = class_of[u], top[u, first:end], rest[u, first:end]
            for i in range(end - first):
                row, label = first + i, labels[first + i]
                is_own[i] = c == label
                own[i], others[i] = odds[label, row], 0.0
                rival[i] = 0.0 if is_own[i] else odds[c, row]
                for other in range(odds.shape[0]):  # summed: one rival may be nearly all of them
                    if other != c and other != label:
                        others[i] += odds[other, row]
                total[i] = parts[tops[i], row] + rests[i]
            for j in range(starts[u], starts[u + 1]):
                if is_kept[j]:
                    part, was = parts[j, first:end], before[first:end]
                    for i in range(end - first):
                        left = (rests[i] if tops[i] == j else total[i] - part[i]) / total[i]
                        for_own = own[i] * (left if is_own[i] else 1.0)
                        against = others[i] + left * rival[i]
                        found[i] = abs(for_own / (for_own + against) - was[i])
                    changes[j] += sum_of(found, end - first)
    changes /= n_rows


@inlined
def sum_of(numbers: Any, n: Any) -> Any:
    """Return the sum of the first n numbers, in sums side by side."""
    sums = np.zeros(N_PARALLEL_SUMS)
    whole = n - n % N_PARALLEL_SUMS
    for i in range(0, whole, N_PARALLEL_SUMS):
        for k in range(N_PARALLEL_SUMS):
            sums[k] += numbers[i + k]
    for i in range(whole, n):
        sums[0] += numbers[i]
    total = 0.0
    for k in range(N_PARALLEL_SUMS):
        total += sums[k]
    return total
