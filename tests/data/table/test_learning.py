"""What a layout learns from rows: medians to the last bit, and how many words texts have."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.data.table.kinds import _mean_words
from polyplane.data.table.learning import _medians
from polyplane.data.table.texts import strings_of
from tests.examples import examples

pytestmark = pytest.mark.loops

numbers = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, np.nan, 3e38, -3e38, 1e-45]),
    st.floats(width=32, allow_nan=True, allow_infinity=False),
)


@given(column=st.lists(numbers, min_size=1, max_size=40), step=st.integers(1, 3))
@settings(deadline=None, max_examples=examples(200))
def test_medians_are_the_middle_of_sorted_numbers(column, step):
    some = np.array(column, np.float32)
    present = np.sort(some[::step][~np.isnan(some[::step])])
    middle = present[(present.size - 1) // 2 : present.size // 2 + 1]
    with np.errstate(over="ignore"):
        wanted = (middle[:1].sum() + middle[-1:].sum()) / np.float32(2) + np.float32(0)
        found = _medians(np.stack([some, some], axis=1), np.array([step, step]))
    assert found.tobytes() == np.array([wanted, wanted], np.float32).tobytes()


@given(texts=st.lists(st.text("ab  \t\n\f\r\x0b\xa0\x1c"), min_size=1, max_size=8))
@settings(deadline=None, max_examples=examples(200))
def test_words_are_what_white_space_of_ascii_parts(texts):
    n_between = sum(len(re.findall(r"[\t\n\f\r ]+", text)) for text in texts)
    assert _mean_words(strings_of(texts)) == 1 + n_between / len(texts)
