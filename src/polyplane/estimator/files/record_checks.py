"""Whether each record of a model file is sound by itself: sizes agree, indices have a target."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from polyplane.engine.inspection import column_facts, starts_are_sound
from polyplane.engine.planes.assignment import Tally
from polyplane.engine.planes.planes import (
    CREATED,
    GROWING,
    LANES_USED,
    N_COUNTS,
    NO_PLANE,
    PRUNED,
    Planes,
)
from polyplane.engine.rows.mapped import ColumnTable
from polyplane.engine.rows.storage import CsrRows
from polyplane.engine.support.support_set import (
    ACTIVE,
    FREE,
    N_TOTALS,
    NOT_THERE,
    SLOTS,
    SupportSet,
)
from polyplane.engine.support.support_set import N_COUNTS as N_SET_COUNTS
from polyplane.engine.tiles import LANES
from polyplane.estimator.files.array_checks import (
    LARGEST_COUNT,
    need,
    need_array,
    need_count,
    need_finite,
    need_numbers,
    need_within,
)
from polyplane.estimator.kernels.kernel_training import KernelModel, SupportRows
from polyplane.estimator.planes.stream_start import FirstRows
from polyplane.estimator.planes.training import Course, Model, Snapshot, Watch
from polyplane.estimator.resuming import SeenRows
from polyplane.estimator.streams import StreamCourse
from polyplane.estimator.validation import TrainingData
from polyplane.model.column_maps import ColumnMap
from polyplane.model.decomposition import Problem
from polyplane.model.kernels import FormulaKernel, GivenKernel, Kernel

__all__ = ["check_record"]


# ---- hyperplane machines -----------------------------------------------------------------


def _check_planes(planes: Planes) -> None:
    need_array(planes.owner, np.int32, None)
    room = planes.owner.size
    need(room > 0 and room % LANES == 0, f"there is room for {room} planes, no multiple of {LANES}")
    need_array(planes.sums, np.float32, None, room)
    n_features = len(planes.sums)
    n_timed = len(planes.timed_sums) if isinstance(planes.timed_sums, np.ndarray) else -1
    need(n_timed in (0, n_features), "means have another size than their planes")
    need_array(planes.timed_sums, np.float32, n_timed, room)
    need_array(planes.squared_norms, np.float64, room)
    need_array(planes.inverse_lengths, np.float32, room)
    need_array(planes.largest_shares, np.float32, room)
    need_array(planes.room_left, np.int64, None)
    need_array(planes.counts, np.int64, N_COUNTS)
    need_finite(planes.sums, planes.timed_sums, planes.squared_norms, planes.inverse_lengths)
    need_finite(planes.largest_shares)
    _check_lanes(planes)


def _check_lanes(planes: Planes) -> None:
    """Who lives where."""
    room, is_live = planes.owner.size, planes.owner != NO_PLANE
    need_within(planes.counts, 0, LARGEST_COUNT, "counts are")
    need((planes.room_left >= 0).all(), "a class has less than no room")
    need_within(planes.owner, NO_PLANE, planes.room_left.size, "a plane's class is")
    need(planes.counts[LANES_USED] <= room, "more lanes are used than there are")
    need(not is_live[planes.counts[LANES_USED] :].any(), "a plane lives beyond the used lanes")
    n_planes = planes.counts[CREATED] - planes.counts[PRUNED]
    need(is_live.sum() == n_planes, "planes are counted wrongly")
    need((planes.room_left > 0).sum() == planes.counts[GROWING], "classes are counted wrongly")


def _check_problem(problem: Problem) -> None:
    classes = problem.classes
    is_tuple = isinstance(classes, tuple) and len(classes) in (0, 2)
    need(is_tuple and all(type(k) is int for k in classes), "a problem is none")


def _check_model(model: Model) -> None:
    need_count(model.estimator, model.n_features, model.n_steps, model.mistakes_noted, model.seed)
    numbers = (model.alpha, model.constant, model.start_length, model.margin, model.wide_margin)
    need_numbers(*numbers)
    need(min(model.start_length, model.margin, model.wide_margin) > 0, "a length is none")
    need(isinstance(model.planes, Planes) and isinstance(model.problem, Problem), "a model is none")
    need(len(model.planes.sums) > model.n_features, "planes have fewer features than their model")
    need(isinstance(model.generator, np.random.Generator), "a model has no generator")
    if model.tally is not None:
        need(isinstance(model.tally, Tally), "a tally is none")
        need(model.tally.of_plane.size == model.planes.owner.size, "a tally is of other planes")
    need(isinstance(model.history, list), "a history is none")
    last = 0
    for note in model.history:
        need(isinstance(note, tuple) and len(note) == 5, "a point of the history is none")
        need_count(*note[:4])
        need_numbers(note[4])
        need(last < note[0] <= model.n_steps, "the history does not rise")
        last = note[0]


def _check_tally(tally: Tally) -> None:
    need_array(tally.of_plane, np.int64, None)
    need_array(tally.of_class, np.int64, 2)
    need_array(tally.n_log_n, np.float64, 2)
    need_within(tally.of_plane, 0, LARGEST_COUNT, "a tally is")
    need_finite(tally.n_log_n)


def _check_snapshot(snapshot: Snapshot) -> None:
    need(isinstance(snapshot.planes, Planes), "a snapshot is none")
    need_count(snapshot.n_steps, snapshot.mistakes_noted, snapshot.n_notes)


def _check_course(course: Course) -> None:
    need_count(course.n_rows, course.n_passes, course.first_step)
    need_array(course.chosen, np.int32, None)
    need(isinstance(course.mixed_by, dict | None), "a course is none")


def _check_watch(watch: Watch) -> None:
    need(isinstance(watch.best, float), "an error is none")
    need_count(watch.since_best)


def _check_table(table: ColumnTable) -> None:
    need_array(table.shifts, np.float32, None)
    n = table.shifts.size
    need_array(table.factors, np.float32, n)
    need_array(table.knot_starts, np.int32, n + 1)
    need_array(table.knots, np.float32, None)
    need_array(table.ranks, np.float32, table.knots.size)
    need_array(table.n_hats, np.int32, n)
    need_array(table.first_hat, np.int32, n)
    need_finite(table.shifts, table.factors, table.knots, table.ranks)
    need_numbers(table.height)
    n_knots = np.diff(table.knot_starts)
    ends_well = table.knot_starts[0] == 0 and table.knot_starts[-1] == table.knots.size
    need(ends_well and (n_knots >= 0).all() and not (n_knots == 1).any(), "knots begin nowhere")
    need_within(table.ranks, 0, 2, "ranks are")
    need((table.ranks <= 1).all() and _rises(table.ranks, table.knot_starts), "ranks do not rise")
    need_within(table.n_hats, 0, 1 << 16, "hats are")
    need(not ((table.n_hats > 0) & (n_knots < 2)).any(), "there are hats without knots")
    last = n + int(table.n_hats.sum())
    need_within(table.first_hat, n, last + 1, "a first hat is")
    need((table.first_hat + table.n_hats <= last).all(), "hats end nowhere")


def _rises(values: Any, starts: Any) -> bool:
    falls = np.diff(values) < 0
    inner = np.setdiff1d(np.arange(falls.size), starts[1:-1] - 1)
    return not falls[inner].any()


def _check_columns(columns: ColumnMap) -> None:
    need_count(columns.n_columns, columns.n_features)
    need_numbers(columns.constant)
    n_hats = 0
    if columns.table is not None:
        need(isinstance(columns.table, ColumnTable), "a map of columns is none")
        need(columns.table.shifts.size == columns.n_columns, "a map is of other columns")
        n_hats = int(columns.table.n_hats.sum())
    if columns.used is not None:
        need_array(columns.used, np.int32, columns.n_features)
        need_within(columns.used, 0, columns.n_columns, "a column is")
        is_rising = bool((np.diff(columns.used) > 0).all())
        need(columns.table is None and columns.n_features > 0 and is_rising, "columns do not rise")
        return
    need(columns.n_features == columns.n_columns + n_hats, "a map makes other features")


# ---- rows --------------------------------------------------------------------------------


def _check_rows(rows: CsrRows) -> None:
    need_array(rows.values, np.float32, None)
    need_array(rows.columns, np.int32, rows.values.size)
    need_array(rows.starts, np.int64, None)
    need_numbers(rows.constant)
    is_sound = rows.starts.size > 0 and starts_are_sound(rows.starts, rows.values.size)
    need(is_sound and rows.starts[-1] == rows.values.size, "rows begin nowhere")
    _, _, is_canonical = column_facts(rows.columns, rows.starts)
    need(is_canonical, "columns of a row do not rise")
    need_within(rows.columns, 0, 1 << 31, "columns are")
    need_finite(rows.values)


def _check_part(data: TrainingData) -> None:
    rows: Any = data.rows
    need(isinstance(rows, CsrRows), "rows are none")
    n_rows = rows.starts.size - 1
    need_array(data.labels, np.int32, n_rows)
    need_array(data.weights, np.float32, n_rows)
    need_finite(data.weights)


def _check_first_rows(first: FirstRows) -> None:
    need_count(first.room, first.n_rows)
    need(isinstance(first.parts, list), "first rows are none")
    need(all(isinstance(part, TrainingData) for part in first.parts), "first rows are none")


def _check_support_rows(pool: SupportRows) -> None:
    n_rows = pool.starts.size - 1
    _, numbers, labels = (grown.array for grown in pool.by_row)
    need_array(numbers, np.int64, n_rows)
    need_array(labels, np.int32, n_rows)
    need(np.unique(numbers).size == n_rows, "a support vector is there twice")
    need_within(numbers, 0, LARGEST_COUNT, "numbers of rows are")


# ---- kernel machines ---------------------------------------------------------------------


def _check_support_set(held: SupportSet) -> None:
    need_array(held.place, np.int32, None)
    slots = held.place.size
    for name in ("side", "active", "position", "free"):
        need_array(getattr(held, name), np.int32, slots)
    need_array(held.row, np.int64, slots)
    for name in ("own", "low", "high"):
        need_array(getattr(held, name), np.float64, slots)
    for name in ("coef", "scores"):
        need_array(getattr(held, name), np.float64, None, slots)
    need_array(held.counts, np.int64, N_SET_COUNTS)
    need_array(held.totals, np.float64, N_TOTALS)
    need_finite(held.own, held.coef, held.low, held.high, held.scores, held.totals)
    _check_slots(held, slots)


def _check_slots(held: SupportSet, slots: int) -> None:
    """Who lives where."""
    n_active, n_slots, n_free = (int(held.counts[k]) for k in (ACTIVE, SLOTS, FREE))
    is_right = min(n_active, n_slots, n_free) >= 0 and n_active + n_free == n_slots <= slots
    need(is_right, "support vectors are counted wrongly")
    active, free = held.active[:n_active], held.free[:n_free]
    used = np.sort(np.concatenate([active, free]))
    need(np.array_equal(used, np.arange(n_slots)), "a slot is used twice, or not at all")
    position = np.full(slots, NOT_THERE, np.int32)
    position[active] = np.arange(n_active)
    need(np.array_equal(held.position, position), "slots do not stand where they should")
    need_within(held.side, 0, 2, "a side is")
    need_within(held.place, 0, 1 << 31, "a place is")


def _check_kernel(kernel: Kernel) -> None:
    need_count(kernel.n_columns)
    if isinstance(kernel, FormulaKernel):
        is_formula = type(kernel.formula).__module__ == "polyplane.engine.support.gram"
        need(is_formula, "a kernel has no formula")
        _check_rule(kernel.formula)
    elif isinstance(kernel, GivenKernel):
        need_numbers(kernel.offset)


def _check_kernel_model(model: KernelModel) -> None:
    need(isinstance(model.held, SupportSet) and isinstance(model.problem, Problem), "no model")
    need_count(model.seed, model.n_steps)
    need(isinstance(model.generator, np.random.Generator), "a model has no generator")


def _check_rule(rule: Any) -> None:
    """Rules, kernels' formulas and courses: numbers, of which some may be endless."""
    for value in rule if isinstance(rule, tuple) else dataclasses.astuple(rule):
        is_number = isinstance(value, bool | int | float | np.float32)
        is_small = is_number and (not isinstance(value, int) or abs(value) < LARGEST_COUNT)
        need(is_small and not np.isnan(value), f"a number of a rule is {value!r}"[:80])


CHECKS: dict[type, Callable[[Any], None]] = {
    Planes: _check_planes, Problem: _check_problem, Model: _check_model, Tally: _check_tally,
    Snapshot: _check_snapshot, Course: _check_course, Watch: _check_watch,
    ColumnTable: _check_table, ColumnMap: _check_columns, CsrRows: _check_rows,
    TrainingData: _check_part, FirstRows: _check_first_rows, SupportRows: _check_support_rows,
    SupportSet: _check_support_set, KernelModel: _check_kernel_model,
    FormulaKernel: _check_kernel, GivenKernel: _check_kernel,
    SeenRows: _check_rule, StreamCourse: lambda course: need_count(*vars(course).values()),
}  # fmt: skip


def check_record(record: Any) -> None:
    """Refuse a record that is not sound by itself."""
    check = CHECKS.get(type(record))
    if check is not None:
        check(record)
    elif isinstance(record, tuple):
        _check_rule(record)
