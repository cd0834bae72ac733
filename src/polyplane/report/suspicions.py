"""Suspicions about rows before any model is believed: leaks, ids, contradictions, drift.

Nothing is trained. Each is a sentence for a person to look into, not a proof: a column that decides
alone may be the answer written down afterwards, or just a very good column.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyplane.arrays import Array
from polyplane.report.columns import Table, is_sparse

__all__ = ["Suspicion", "quoted", "suspicions"]

MAX_ROWS_COMPARED, MAX_WIDE_ROWS_COMPARED = 6_000, 1_500  # rows, and those of wide tables
MAX_CELLS_OF_NARROW_ROWS = 500_000  # that decide which
MAX_CELLS_COMPARED = 20_000_000  # cells of rows that are compared with each other
MAX_COLUMNS = 1_000
MAX_COLUMNS_NAMED = 3
BINS = 32
MIN_ROWS_TO_JUDGE_COLUMNS = 100  # below, columns are not judged
# Errors left with a column that leaks, as a share of those of the most frequent label.
MAX_ERROR_RATIO_OF_LEAK = 0.1
MIN_UNIQUE_SHARE_OF_ID = 0.99  # of the values of an id
MIN_DRIFT_DISTANCE = 0.2  # between distributions of the first and the last third of the rows
# Times the square root of 2 / rows: KS distances of one column in ten thousand by chance.
CHANCE_DISTANCE_FACTOR = 2.2
MIN_SHARE_OF_COPIES = 0.05  # of the rows


class Suspicion(NamedTuple):
    """Something to look into."""

    kind: str  # leak, contradiction, copies, id or drift
    sentence: str
    columns: tuple[str, ...] = ()


def suspicions(
    table: Table, places: Array, n_met: int, set_aside: tuple[str, ...] = ()
) -> list[Suspicion]:
    """All that is suspicious about rows, which stood at `places` among those that were met."""
    found = _contradictions(table)
    if set_aside:
        names = ", ".join(map(quoted, set_aside[:MAX_COLUMNS_NAMED]))
        found.append(
            Suspicion(
                "id",
                f"Ignored as almost unique per row (likely an identifier): {names}.",
                set_aside,
            )
        )
    if table.y.size < MIN_ROWS_TO_JUDGE_COLUMNS:
        return found
    n_looked_at = int(
        np.clip(
            MAX_CELLS_OF_NARROW_ROWS // len(table.columns.names),
            MAX_WIDE_ROWS_COMPARED,
            MAX_ROWS_COMPARED,
        )
    )
    some = np.sort(np.random.default_rng(0).permutation(table.y.size)[:n_looked_at])
    part, at = table.part(some), places[some]
    leaks, ids, drifting = [], [], []
    for source in range(min(MAX_COLUMNS, len(table.columns.names))):
        codes = part.codes(source)
        if np.all(codes == codes[0]):
            continue
        is_number = table.columns.number(source) is not None
        if is_number and _is_id(codes, at, n_met):
            ids.append(source)
            continue
        error, usual = _error_alone(codes, part.y)
        if usual > 0.01 and error <= MAX_ERROR_RATIO_OF_LEAK * usual:
            leaks.append((error, source))
        distance = _distance(codes, at) if is_number else _distance_of_kinds(codes, at)
        if distance > MIN_DRIFT_DISTANCE:
            drifting.append((distance, source))
    return [
        *_of_leaks(table, leaks),
        *found,
        *_of_ids(table, ids),
        *_of_drift(table, part.y, at, drifting),
    ]


def _of_leaks(table: Table, leaks: list[tuple[float, int]]) -> list[Suspicion]:
    if not leaks:
        return []
    names = tuple(table.columns.names[source] for _, source in sorted(leaks))
    each = ", ".join(
        f"{quoted(table.columns.names[source])} ({error:.1%} wrong)"
        for error, source in sorted(leaks)[:MAX_COLUMNS_NAMED]
    )
    more = f" and {len(leaks) - MAX_COLUMNS_NAMED} more" if len(leaks) > MAX_COLUMNS_NAMED else ""
    return [
        Suspicion(
            "leak",
            f"A single column nearly decides alone: {each}{more}. Is it known before the label "
            "is? One that is written down afterwards is of no use.",
            names,
        )
    ]


def _of_ids(table: Table, ids: list[int]) -> list[Suspicion]:
    if not ids:
        return []
    names = tuple(table.columns.names[source] for source in ids[:MAX_COLUMNS_NAMED])
    return [
        Suspicion(
            "id",
            f"{', '.join(map(quoted, names))} is a running number of the rows (likely an "
            "identifier) and does not help on new rows. Leave it out.",
            names,
        )
    ]


def _of_drift(
    table: Table, y: Array, places: Array, drifting: list[tuple[float, int]]
) -> list[Suspicion]:
    found = []
    distance = _distance_of_kinds(y, places)
    if distance > MIN_DRIFT_DISTANCE / 2:
        found.append(
            Suspicion(
                "drift",
                f"Labels are not the same in the first and the last third of the "
                f"rows: {distance:.0%} of them would have to change. If rows come in time, "
                "test on the latest; if they are sorted by label, ignore this.",
            )
        )
    elif drifting:
        largest = sorted(drifting, reverse=True)[:MAX_COLUMNS_NAMED]
        names = tuple(table.columns.names[source] for _, source in largest)
        more = (
            f" and {len(drifting) - MAX_COLUMNS_NAMED} more"
            if len(drifting) > MAX_COLUMNS_NAMED
            else ""
        )
        found.append(
            Suspicion(
                "drift",
                f"{', '.join(map(quoted, names))}{more} drifted from the first to "
                f"the last third of the rows (by {largest[0][0]:.0%} of the rows): folds at "
                "random flatter every algorithm; test on the latest rows.",
                names,
            )
        )
    return found


def quoted(name: str) -> str:
    """A name in a sentence."""
    return f"“{name if len(name) <= 40 else name[:39] + '…'}”"


# ---- single columns ----------------------------------------------------------------------


def _error_alone(codes: Array, y: Array) -> tuple[float, float]:
    """Errors of the most frequent label by value of a column, and without it, on other rows."""
    labels, marks = np.unique(y, return_inverse=True)
    cells = _binned(codes)
    is_test = np.arange(y.size) % 2 == 1
    counts = np.zeros((int(cells.max()) + 1, labels.size))
    np.add.at(counts, (cells[~is_test], marks[~is_test]), 1)
    usual = int(counts.sum(axis=0).argmax())
    counts[:, usual] += 0.5  # what was not met is the most frequent
    said = counts.argmax(axis=1)[cells[is_test]]
    wrong = float(np.mean(said != marks[is_test]))
    return wrong, float(np.mean(usual != marks[is_test]))


def _binned(codes: Array) -> Array:
    kinds, places = np.unique(codes, return_inverse=True)
    if kinds.size <= BINS:
        return places
    edges = np.unique(np.quantile(codes, np.linspace(0, 1, BINS + 1)[1:-1]))
    cells: Array = np.searchsorted(edges, codes, side="right")
    return cells


def _is_id(codes: Array, places: Array, n_met: int) -> bool:
    """Whole numbers that are nearly all different, and number the rows."""
    if (
        not np.all(codes == np.rint(codes))
        or np.unique(codes).size < MIN_UNIQUE_SHARE_OF_ID * codes.size
    ):
        return False
    in_order = codes[np.argsort(places)]
    steps = np.diff(in_order)
    is_in_order = bool(
        (steps > 0).mean() > MIN_UNIQUE_SHARE_OF_ID or (steps < 0).mean() > MIN_UNIQUE_SHARE_OF_ID
    )
    return is_in_order or float(np.ptp(codes)) < 1.1 * n_met


def _distance(codes: Array, places: Array) -> float:
    """Return Kolmogorov's distance of the first and last third of the rows; 0 if it may be luck."""
    first, last, n = _outer_thirds(codes, places)
    every = np.concatenate([first, last])
    below = [np.searchsorted(np.sort(side), every, side="right") / n for side in (first, last)]
    distance = float(np.abs(below[0] - below[1]).max())
    return distance if distance > CHANCE_DISTANCE_FACTOR * np.sqrt(2 / n) else 0.0


def _distance_of_kinds(kinds: Array, places: Array) -> float:
    """Return the distance of values without an order: a share of the rows, less what is luck.

    Of many values few rows each have other shares in any two parts; how much that is, two parts
    of the same rows at random tell.
    """
    _, codes = np.unique(kinds, return_inverse=True)
    first, last, n = _outer_thirds(codes, places)
    mixed = np.random.default_rng(0).permutation(np.concatenate([first, last]))
    size = int(codes.max()) + 1
    shares = [np.bincount(part, minlength=size) / n for part in (first, last, mixed[:n], mixed[n:])]
    distance, by_luck = (
        float(np.abs(one - other).sum() / 2) for one, other in (shares[:2], shares[2:])
    )
    return (
        max(0.0, distance - by_luck) if distance > CHANCE_DISTANCE_FACTOR * np.sqrt(2 / n) else 0.0
    )


def _outer_thirds(values: Array, places: Array) -> tuple[Array, Array, int]:
    """The first and the last third of the rows as they stood, and how many each has."""
    in_order = values[np.argsort(places)]
    n = in_order.size // 3
    return in_order[:n], in_order[-n:], n


# ---- equal rows --------------------------------------------------------------------------


def _contradictions(table: Table) -> list[Suspicion]:
    """Rows that are equal in all columns."""
    n_compared = max(5_000, MAX_CELLS_COMPARED // max(1, table.X.shape[1]))
    if n_compared < table.y.size:
        table = table.part(np.arange(n_compared))
    groups = _groups_of_equals(table.X)
    _, marks = np.unique(table.y, return_inverse=True)
    pairs, counts = np.unique(np.stack([groups, marks], axis=1), axis=0, return_counts=True)
    sizes = np.bincount(pairs[:, 0], counts)
    most = np.zeros(sizes.size)
    np.maximum.at(most, pairs[:, 0], counts)
    n_rows, n_lost = table.y.size, int((sizes - most).sum())
    n_in_conflict = int(sizes[sizes > most].sum())
    found = []
    if n_lost > max(1, n_rows // 1000):
        found.append(
            Suspicion(
                "contradiction",
                f"{n_in_conflict:,} rows ({n_in_conflict / n_rows:.1%}) "
                "equal another one in every column, but not in the label: no algorithm can "
                f"have less than {n_lost / n_rows:.1%} wrong on all of them.",
            )
        )
    n_copies = int((sizes - 1)[sizes == most].sum())
    if n_copies > MIN_SHARE_OF_COPIES * n_rows:
        found.append(
            Suspicion(
                "copies",
                f"{n_copies:,} rows ({n_copies / n_rows:.1%}) are copies of "
                "another with the same label: where one is held out and the other is "
                "trained on, errors look lower than they are.",
            )
        )
    return found


def _groups_of_equals(X: Any) -> Array:
    """A number for each row, the same for equal ones."""
    if is_sparse(X):
        rows = sp.csr_matrix(X, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        starts = rows.indptr
        keys = [rows.indices[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in pairwise(starts)]
    else:
        dense = np.ascontiguousarray(np.asarray(X) + 0)  # -0 is 0
        keys = [row.tobytes() for row in dense]
    known: dict[bytes, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in keys])
