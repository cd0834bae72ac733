"""A fitted classifier of planes as one SELECT over a table of rows.

Sub-selects stand in the order of the work: inputs, columns of X, places of these between the hats
of mapped columns, scores of planes, of groups, of classes. A category chooses one number of a list
for each plane, and so does the hat below a mapped column: nothing is joined. Arithmetic is in
double precision; logarithms of sums of exponentials are taken below the greatest score.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from polyplane import __version__
from polyplane.arrays import Array
from polyplane.engine.rows.mapped import ColumnTable
from polyplane.engine.rows.turned import Turn
from polyplane.model.export.content import Exported, Mapped, Planes, Products, sides_of_problems
from polyplane.model.export.sql_queries.table import Choice, Columns, scaled_values, select_columns
from polyplane.model.export.sql_queries.text import (
    DIALECTS,
    Dialect,
    Query,
    branches,
    number,
    text,
    total,
)
from polyplane.model.export.table_input import NONE
from polyplane.model.format.model_file import ModelError
from polyplane.model.many_classes.decision_rules import rule_of
from polyplane.model.many_classes.decomposition import REST

__all__ = ["as_sql", "sql_query"]

MOST_NUMBERS = 1 << 21  # of planes: beyond it databases take minutes to plan the query
LEAST_LOG = -700.0  # of an exponential that is not zero


def as_sql(
    exported: Exported,
    path: str | os.PathLike[str] | None,
    dialect: str = "duckdb",
    table: str | Sequence[str] = "rows",
    keys: str | Sequence[str] = (),
) -> str:
    """Return the statement; a table in a schema is a sequence of names."""
    if dialect not in DIALECTS:
        raise ModelError(f"dialect is {dialect!r}, expected one of {', '.join(DIALECTS)}")
    parts, handed_on = ([one] if isinstance(one, str) else one for one in (table, keys))
    return sql_query(exported, DIALECTS[dialect], parts, handed_on, __version__)


def sql_query(
    exported: Exported, dialect: Dialect, table: Sequence[str], keys: Sequence[str], version: str
) -> str:
    """Return the statement; `keys` are columns of the table that it hands on."""
    planes = exported.scorer
    if not isinstance(planes, Planes):
        raise ModelError(
            f"{exported.title} scores rows by support vectors, which SQL cannot do: export the "
            "model to ONNX or C, or fit a classifier of planes"
        )
    _check_size(exported, planes)
    query = Query(dialect, keys)
    columns = select_columns(query, exported)
    _select_planes(query, exported, planes, columns)
    _select_classes(query, exported, planes)
    outputs = _outputs(query, exported, keys)
    head = f"-- {exported.summary()}.\n-- Written by polyplane {version}.\n"
    return f"{head}-- For {query.dialect.requires}.\n" + query.statement(table, outputs)


def _check_size(exported: Exported, planes: Planes) -> None:
    n_features = len(planes.sums)
    if isinstance(planes.columns, Products):
        n_features = exported.n_columns * (exported.n_columns + 3) // 2
    if n_features * planes.n_planes > MOST_NUMBERS:
        raise ModelError(
            f"the query would hold {n_features * planes.n_planes:,} numbers, above the "
            f"{MOST_NUMBERS:,} that databases can plan: export the model to ONNX or C"
        )


# ---- columns as planes see them ----------------------------------------------------------


@dataclass(frozen=True)
class Lines:
    """Straight lines from knot to knot, level beyond them."""

    knots: Array
    heights: Array

    def at(self, x: float) -> float:
        """Return the height at x."""
        return float(np.interp(x, self.knots, self.heights))

    def sql(self, own: str) -> str:
        """Return the height at a column, NULL where this is NULL."""
        slopes = np.diff(self.heights) / np.diff(self.knots)
        lines = [
            f"{number(height)} + ({own} - {number(knot)}) * {number(slope)}"
            for knot, height, slope in zip(self.knots[:-1], self.heights[:-1], slopes, strict=True)
        ]
        results = [number(self.heights[0]), *lines, number(self.heights[-1])]
        found = branches(own, [number(knot) for knot in self.knots], results)
        return f"CASE WHEN {own} IS NOT NULL THEN {found} END"


@dataclass(frozen=True)
class Seen:
    """The part of the score of each plane that a column of X, or a direction, adds."""

    ranks: Lines | None  # None: the value itself
    level: Array  # [plane]: at a rank, or value, of 0
    slope: Array  # [plane]
    hats: Array | None  # [hat, plane]: scores at the hats; level and slope are in them

    def effect(self, x: float) -> Array:
        """Return what the value x adds."""
        rank = x if self.ranks is None else self.ranks.at(x)
        if self.hats is None:
            return self.level + self.slope * rank
        place = rank * (len(self.hats) - 1)
        below = min(int(place), len(self.hats) - 2)
        share = place - below
        made: Array = self.hats[below] * (1 - share) + self.hats[below + 1] * share
        return made


def _lines(table: ColumnTable | Turn, j: int) -> Lines | None:
    """Return the ranks of a column, None where it has no knots."""
    start, end = table.knot_starts[j : j + 2]
    if start == end:
        return None
    return Lines(table.knots[start:end].astype(float), table.ranks[start:end].astype(float))


def _seen_columns(planes: Planes, weights: Array) -> list[Seen]:
    """Return what each column adds; `weights` are [feature, plane]."""
    none = np.zeros(planes.n_planes)
    if planes.columns is None:
        return [Seen(None, none, slope, None) for slope in weights]
    assert isinstance(planes.columns, Mapped)
    table = planes.columns.table
    seen = []
    for j, (factor, shift) in enumerate(zip(table.factors, table.shifts, strict=True)):
        n_hats = int(table.n_hats[j])
        first = int(table.first_hat[j])
        slope = float(factor) * weights[j]
        level = -float(shift) * slope
        hats = None
        if n_hats:
            rank = np.linspace(0, 1, n_hats)[:, None]
            hats = float(table.height) * weights[first : first + n_hats] + level + slope * rank
        seen.append(Seen(_lines(table, j), level, slope, hats))
    return seen


# ---- planes ------------------------------------------------------------------------------


def _select_planes(query: Query, exported: Exported, planes: Planes, columns: Columns) -> None:
    """Add the scores of all planes, called plane_0 and so on."""
    if isinstance(planes.columns, Products):
        terms = _terms_of_products(query, exported, planes, columns)
    else:
        if isinstance(planes.columns, Mapped) and planes.columns.turn is not None:
            _select_directions(query, exported, planes.columns.turn, columns)
        terms = _terms_of_columns(query, exported, planes, columns)
    query.select("planes", {f"plane_{k}": total(of_plane) for k, of_plane in enumerate(terms)})


def _select_directions(query: Query, exported: Exported, turn: Turn, columns: Columns) -> None:
    """Add the directions, as numbers behind the columns of X."""
    ranked = np.flatnonzero(np.diff(turn.knot_starts)).tolist()
    none = np.zeros(turn.weights.shape[1])
    seen = [Seen(None, none, none, None)] * exported.n_columns
    for weights, j in zip(turn.weights.astype(float), ranked, strict=True):
        seen[j] = Seen(_lines(turn, j), none, weights, None)
    constants, terms = _of_choices(query.dialect, exported, columns.choices, seen)
    ranks = {}
    for j, own in columns.numbers.items():
        lines = seen[j].ranks
        if lines is not None:
            ranks[f"turned_{j}"] = lines.sql(own)
            _add_products(terms, seen[j].slope, f"turned_{j}")
    query.select("turned", ranks)
    made = {
        f"x_{exported.n_columns + d}": total([number(constant), *one])
        for d, (constant, one) in enumerate(zip(constants, terms, strict=True))
    }
    query.select("directions", made)
    columns.numbers.update({int(own[2:]): own for own in made})


def _of_choices(
    dialect: Dialect, exported: Exported, choices: Sequence[Choice], seen: Sequence[Seen]
) -> tuple[Array, list[list[str]]]:
    """Return what columns of choices add to each plane if all are 0, and terms for those set."""
    ends = {
        j: scaled_values(exported.scalings, j, np.array([0.0, 1.0]))
        for choice in choices
        for j in choice.places
        if j != NONE
    }
    none = np.zeros_like(seen[0].level)
    constants: Array = sum((seen[j].effect(off) for j, (off, _) in ends.items()), none)
    terms: list[list[str]] = [[] for _ in none]
    gains = {j: seen[j].effect(on) - seen[j].effect(off) for j, (off, on) in ends.items()}
    for choice in choices:
        of_choice = np.array([gains.get(j, none) for j in choice.places])
        for of_plane, values in zip(terms, of_choice.T, strict=True):
            if values.any():
                of_plane.append(dialect.pick(choice.name, values))
    return constants, terms


def _add_products(terms: list[list[str]], weights: Array, own: str) -> None:
    """Add a weight times a column to the terms of each plane, if one of them has a weight."""
    if weights.any():
        for of_plane, weight in zip(terms, weights, strict=True):
            of_plane.append(f"{number(weight)} * {own}")


def _terms_of_columns(
    query: Query, exported: Exported, planes: Planes, columns: Columns
) -> list[list[str]]:
    """Return the terms of each plane over columns that are as they are, or mapped."""
    dialect = query.dialect
    scales = planes.scales.astype(float)
    seen = _seen_columns(planes, planes.sums.astype(float) * scales)
    constants, terms = _of_choices(dialect, exported, columns.choices, seen)
    constants = constants + planes.constants * scales
    ranks: dict[str, str] = {}
    places: dict[str, str] = {}
    cells: dict[str, str] = {}
    for j, own in columns.numbers.items():
        one = seen[j]
        if one.hats is not None and one.ranks is not None:
            n_gaps = len(one.hats) - 1
            ranks[f"rank_{j}"] = one.ranks.sql(own)
            rank = dialect.single.format(f"rank_{j}")  # as the engine rounds it, far from 0
            places[f"place_{j}"] = dialect.single.format(f"{rank} * {n_gaps}")
            below = f"{dialect.least}({dialect.floor.format(f'place_{j}')}, {n_gaps - 1})"
            cells[f"hat_{j}"] = below
            cells[f"share_{j}"] = f"place_{j} - {below}"
            for k, heights in enumerate(one.hats.T):
                terms[k].append(dialect.pick(f"hat_{j}", heights[:-1]))
                terms[k].append(f"share_{j} * {dialect.pick(f'hat_{j}', np.diff(heights))}")
            continue
        if one.ranks is not None:
            ranks[f"rank_{j}"] = one.ranks.sql(own)
            own = f"rank_{j}"
        constants = constants + one.level
        _add_products(terms, one.slope, own)
    query.select("ranks", ranks)
    query.select("places", places)
    query.select("cells", cells)
    return [[number(constant), *one] for constant, one in zip(constants, terms, strict=True)]


def _terms_of_products(
    query: Query, exported: Exported, planes: Planes, columns: Columns
) -> list[list[str]]:
    """Return the terms of each plane over columns and products of two columns."""
    n = exported.n_columns
    ones = {}
    for choice in columns.choices:
        for j in choice.places:
            if j != NONE:
                off, on = scaled_values(exported.scalings, j, np.array([0.0, 1.0]))
                values = np.where(np.array(choice.places) == j, on, off)
                ones[f"x_{j}"] = query.dialect.pick(choice.name, values)
                columns.numbers[j] = f"x_{j}"
    query.select("ones", ones)
    weights = planes.of_products(n).astype(float) * planes.scales
    owns = [columns.numbers[j] for j in range(n)]
    terms = []
    for k in range(planes.n_planes):
        of_plane = [number(planes.constants[k] * planes.scales[k])]
        first = n
        for j in range(n):
            inner = [number(weights[j, k])]
            inner += [f"{number(weights[first + i, k])} * {owns[i]}" for i in range(j + 1)]
            of_plane.append(f"{owns[j]} * ({total(inner)})")
            first += j + 1
        terms.append(of_plane)
    return terms


# ---- groups and classes ------------------------------------------------------------------


def _select_classes(query: Query, exported: Exported, planes: Planes) -> None:
    """Add the scores of classes, called score_0 and so on, and the greatest of them, best_0."""
    dialect = query.dialect
    decomposition = exported.decomposition
    groups = _select_groups(query, planes)
    if decomposition.is_joint:
        scores = groups
    else:
        pairs = zip(groups[1::2], groups[::2], strict=True)
        leads = {f"lead_{p}": f"({second}) - ({first})" for p, (second, first) in enumerate(pairs)}
        query.select("leads", leads)
        rule = rule_of(decomposition.kind, decomposition.combine)
        gains: list[list[str]] = [[] for _ in range(decomposition.n_classes)]
        for (first, second), lead in zip(sides_of_problems(decomposition), leads, strict=True):
            for_second, for_first = rule.sql(lead, dialect.bounds, decomposition.n_classes)
            gains[second].append(for_second)
            if first != REST:
                gains[first].append(for_first)
        scores = [total(of_class) for of_class in gains]
    query.select("scores", {f"score_{c}": score for c, score in enumerate(scores)})
    query.select("best", {"best_0": dialect.call(dialect.greatest, _scores(exported))})


def _scores(exported: Exported) -> list[str]:
    return [f"score_{c}" for c in range(exported.classes.size)]


def _select_groups(query: Query, planes: Planes) -> list[str]:
    """Add the scores of groups of planes; return those of classes, or of sides of problems."""
    dialect = query.dialect
    spans = list(pairwise(planes.group_starts.tolist()))
    tops: dict[str, str] = {}
    units: dict[str, str] = {}
    if any(start == end for start, end in spans):
        all_planes = [f"plane_{k}" for k in range(planes.n_planes)]
        lowest = dialect.call(dialect.least, [*all_planes, number(0.0)])
        query.select("depths", {"lowest_0": lowest})
    for g, (start, end) in enumerate(spans):
        names = [f"plane_{k}" for k in range(start, end)]
        tops[f"top_{g}"] = dialect.call(dialect.greatest, names or [_without(dialect, planes)])
        if planes.is_soft and len(names) > 1:
            powers = [_power(dialect, f"{name} - top_{g}") for name in names]
            units[f"unit_{g}"] = f"top_{g} + LN({total(powers)})"
    query.select("tops", tops)
    query.select("units", units)
    names = [f"unit_{g}" if f"unit_{g}" in units else f"top_{g}" for g in range(len(spans))]
    return _sums_of_units(planes, names)


def _without(dialect: Dialect, planes: Planes) -> str:
    """Return the score of a group without planes, as in `engine/planes/scoring.py`."""
    score = f"lowest_0 - {dialect.greatest}({number(1.0)}, {number(-1e-6)} * lowest_0)"
    if planes.empty_score == -np.inf:
        return score
    return f"{dialect.greatest}({number(planes.empty_score)}, {score})"


def _sums_of_units(planes: Planes, names: Sequence[str]) -> list[str]:
    """Return the sums over units, of several learners their mean."""
    weights = planes.group_weights
    units = [
        name if weights is None else f"{number(weights[g])} * {name}"
        for g, name in enumerate(names)
    ]
    sums = [units[first : first + planes.n_units] for first in range(0, len(units), planes.n_units)]
    n_groups = len(sums) // planes.n_estimators
    groups = [[term for one in sums[g::n_groups] for term in one] for g in range(n_groups)]
    if planes.n_estimators == 1:
        return [total(terms) for terms in groups]
    return [f"({total(terms)}) / {number(planes.n_estimators)}" for terms in groups]


def _power(dialect: Dialect, exponent: str) -> str:
    """Return an exponential that neither overflows nor underflows; the exponent is at most 0."""
    return f"EXP({dialect.greatest}({exponent}, {number(LEAST_LOG)}))"


# ---- results -----------------------------------------------------------------------------


def _outputs(query: Query, exported: Exported, keys: Sequence[str]) -> dict[str, str]:
    """Return what the last select says of a row, by names that differ from each other."""
    scores = _scores(exported)
    whens = " ".join(
        f"WHEN {score} = best_0 THEN {_label(label, query.dialect)}"
        for score, label in zip(scores, exported.classes.tolist(), strict=True)
    )
    what, values = "score", scores
    if exported.calibration is not None:
        what = "probability"
        factor = number(exported.calibration)
        powers = {
            f"power_{c}": _power(query.dialect, f"{factor} * ({score} - best_0)")
            for c, score in enumerate(scores)
        }
        query.select("powers", powers)
        query.select("sums", {"sum_0": total(list(powers))})
        values = [f"{power} / sum_0" for power in powers]
    named = [("label", f"CASE {whens} END")]
    labels = exported.classes.tolist()
    named += [(f"{what}_{label}", one) for label, one in zip(labels, values, strict=True)]
    taken = {key.casefold() for key in keys}
    outputs: dict[str, str] = {}
    for name, value in named:
        free = name
        while free.casefold() in taken:
            free += "_"
        taken.add(free.casefold())
        outputs[free] = value
    return outputs


def _label(label: Any, dialect: Dialect) -> str:
    """Return a label as a literal."""
    if isinstance(label, int) and abs(label) >= dialect.whole_below:
        raise ModelError(f"the label {label} is no integer of {dialect.name}: fit with texts")
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    if isinstance(label, int):
        return str(label)
    return number(label) if isinstance(label, float) else text(str(label))
