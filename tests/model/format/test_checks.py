"""What is demanded of numbers that come from a file, whose dtype has an end of its own."""

import numpy as np
import pytest

from polyplane.model.format.checks import Unsound, need_ranges_within, need_starts

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def is_within(first, count, low, high):
    try:
        need_ranges_within(np.array(first), np.array(count), low, high, "beyond")
    except Unsound:
        return False
    return True


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_range_that_begins_at_the_end_of_its_dtype_is_beyond_any_array(dtype):
    end = np.iinfo(dtype).max
    for count in (1, 2, 100):
        first, counts = np.array([3, end], dtype), np.array([2, count], dtype)
        assert not is_within(first, counts, 0, 120)
    assert not is_within(np.array([3, 5], dtype), np.array([2, end], dtype), 0, 120)
    assert not is_within(np.array([end], dtype), np.array([end], dtype), 0, 120)


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name.startswith("int")])
def test_a_range_before_the_first_element_or_of_less_than_none_is_beyond(dtype):
    least = np.iinfo(dtype).min
    for low in (-1, least):
        assert not is_within(np.array([low], dtype), np.array([1], dtype), 0, 120)
        assert not is_within(np.array([5], dtype), np.array([low], dtype), 0, 120)
        assert not is_within(np.array([low], dtype), np.array([low], dtype), 0, 120)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ranges_up_to_both_ends_are_within(dtype):
    first, count = np.array([10, 10, 19], dtype), np.array([10, 1, 1], dtype)
    assert is_within(first, count, 10, 20)
    assert not is_within(first, count, 11, 20)
    assert not is_within(first, count, 10, 19)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_empty_range_may_begin_anywhere(dtype):
    ends = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    assert is_within(ends, np.zeros(2, dtype), 10, 20)


@pytest.mark.parametrize("dtype", DTYPES)
def test_starts_rise_from_zero_to_the_size(dtype):
    end = np.iinfo(dtype).max
    need_starts(np.array([0, 0, 3, 5], dtype), 5, "cut nowhere")
    need_starts(np.array([0], dtype), 0, "cut nowhere")
    for wrong in ([], [1, 5], [0, 4], [0, 3, 2, 5], [0, end, 5], [0, end, 0, 5]):
        with pytest.raises(Unsound, match="cut nowhere"):
            need_starts(np.array(wrong, dtype), 5, "cut nowhere")
