"""Records are made, resized and seen by loops as their tables say."""

from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

from polyplane.engine.jit import jit
from polyplane.engine.planes.planes import zero_planes
from polyplane.engine.records import array, fields_of, filled, moved_along, spans_function
from polyplane.engine.support.support_set import empty_set, with_room
from polyplane.engine.tiles import at, put


class Herd(NamedTuple):
    """Something with animals in it."""

    weights: Annotated[Any, array(np.float32, "meal", "animal")]
    names: Annotated[Any, array(np.int32, "animal", fill=-1)]
    hunger: Annotated[Any, array(np.float64, "animal", is_passing=True)]
    total: Annotated[Any, array(np.int64, "one")]


_, spans_of_herd = spans_function(Herd, n_animals="record.names.size")


@jit
def feed(herd, animal):
    """Count a meal; return how many animals there are."""
    spans = spans_of_herd(herd)
    put(spans.total, 0, at(spans.total, 0) + at(spans.names, animal))
    return spans.n_animals


@pytest.fixture
def herd():
    made = filled(Herd, meal=2, animal=3, one=1)
    made.names[:], made.hunger[:] = [7, 8, 9], 1
    made.weights[:] = [[1, 2, 3], [4, 5, 6]]
    return made


def test_what_is_new_holds_what_its_table_says():
    made = filled(Herd, meal=2, animal=3, one=1)
    for name, field in fields_of(Herd).items():
        assert getattr(made, name).dtype == field.dtype
        assert (getattr(made, name) == field.fill).all()
    assert made.weights.shape == (2, 3)
    assert made.weights.ctypes.data % 64 == 0


def test_moving_keeps_what_lasts_and_fills_the_rest(herd):
    moved = moved_along(herd, "animal", np.array([2, 0]), animal=5, meal=3)
    assert moved.names.tolist() == [9, 7, -1, -1, -1]
    assert moved.weights.tolist() == [[3, 1, 0, 0, 0], [6, 4, 0, 0, 0], [0] * 5]
    assert moved.hunger.tolist() == [0] * 5
    assert moved.total is herd.total
    assert herd.names.tolist() == [7, 8, 9]


def test_a_matrix_without_rows_stays_without():
    nothing = filled(Herd, meal=0, animal=3, one=1)
    assert moved_along(nothing, "animal", np.arange(3), animal=16, meal=4).weights.shape == (0, 16)


def test_loops_see_spans_and_what_is_derived(herd):
    assert feed(herd, 1) == 3
    assert herd.total.tolist() == [8]


@pytest.mark.parametrize("made", [zero_planes(3, True), with_room(empty_set(2, 1), 16, 4)])
def test_every_field_of_the_engines_records_has_its_dtype_and_axes(made):
    sizes = {}
    assert fields_of(type(made)).keys() == set(made._fields)
    for name, field in fields_of(type(made)).items():
        there = getattr(made, name)
        assert there.dtype == field.dtype, name
        assert there.ndim == len(field.axes), name
        for axis, size in zip(field.axes, there.shape, strict=True):
            assert sizes.setdefault(axis, size) == size, (name, axis)
