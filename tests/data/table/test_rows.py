"""Short cuts from tables to rows, beside the plain ways."""

import io

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import polyplane as pp
from polyplane.data.table.categories import VALUE, Facet
from polyplane.data.table.learning import _medians
from polyplane.data.table.rows import MOST_MARKS, _marked_entries, _sorted_entries
from polyplane.data.table.texts import NONE, Texts, merged, strings_of, tally_together

pytestmark = pytest.mark.loops


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 6), st.sampled_from([8, 63, 64, 130, MOST_MARKS]))
def test_marked_rows_are_sorted_rows(seed, n_facets, width):
    random = np.random.default_rng(seed)
    n_rows, n_numbers = int(random.integers(0, 30)), int(random.integers(0, 4))
    numbers = random.integers(0, 3, (n_rows, n_numbers)).astype(np.float32)
    columns = random.permutation(width)
    shares = np.array_split(columns, n_facets)
    facets, tables = [], []
    for share in shares:
        table = np.append(share, NONE).astype(np.int32)
        table[random.random(table.size) < 0.2] = NONE
        codes = random.integers(-1, share.size, n_rows).astype(np.int32)
        facets.append(Facet("", VALUE, Texts(strings_of([""] * share.size), codes)))
        tables.append(table)
    numbers = np.asfortranarray(numbers) if seed % 2 else numbers
    found = _marked_entries(numbers, facets, tables, width)
    for own, other in zip(found, _sorted_entries(numbers, facets, tables), strict=True):
        assert own.dtype == other.dtype
        np.testing.assert_array_equal(own, other)


def test_columns_of_one_name_share_pairs_that_add_up():
    """They are no rows for marks, which a pair sets once."""
    text = b"a,a,y\n" + b"red,red,1\nblue,red,0\n" * 30
    X, _ = pp.read(io.BytesIO(text), format="csv")
    assert X.toarray()[:2].tolist() == [[2, 0], [1, 1]]


NUMBERS = st.one_of(
    st.floats(width=32, allow_nan=True, allow_infinity=False), st.sampled_from([0.0, -0.0, 1.0])
)


@settings(deadline=None)
@given(hnp.arrays(np.float32, st.tuples(st.integers(0, 30), st.just(2)), elements=NUMBERS))
@example(np.full((1, 2), 1.7014118e38, np.float32))
@example(np.full((2, 2), 1.7014118e38, np.float32))
@example(np.float32([[1, -1e-45], [3, -0.0], [1.5, 3e38], [2, -3e38]]))
def test_medians_are_those_of_numpy(numbers):
    """But of two equal numbers, whose sum may be too large for NumPy: they are the median."""
    found = _medians(numbers, np.array([1, 3]))
    for k, step in enumerate([1, 3]):
        present = np.sort(numbers[::step, k][~np.isnan(numbers[::step, k])])
        middle = present[(present.size - 1) // 2 : present.size // 2 + 1]
        with np.errstate(over="ignore"):
            expected = np.median(present) if present.size else 0.0
        expected = middle[0] if present.size and middle[0] == middle[-1] else expected
        assert found[k] == expected


@settings(deadline=None)
@given(st.lists(st.integers(-1, 9), max_size=50))
def test_counts_and_first_rows_of_texts(codes):
    texts = Texts(strings_of([str(k) for k in range(10)]), np.array(codes, np.int32))
    assert texts.counts.tolist() == [codes.count(k) for k in range(10)]
    assert texts.n_missing == codes.count(NONE)
    where = [codes.index(k) if k in codes else len(codes) for k in [*range(10), NONE]]
    assert texts.first_rows.tolist() == where
    assert texts.present().to_pylist() == [str(k) for k in range(10) if k in codes]
    assert texts.tally.n_used == len(set(codes) - {NONE})
    assert texts.tally.most == max(texts.counts)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5), st.sampled_from([0, 5, 100]))
def test_columns_are_tallied_together_as_each_alone(seed, n_columns, n_rows):
    random = np.random.default_rng(seed)
    together, alone = [], []
    for _ in range(n_columns):
        values = strings_of([str(k) for k in range(random.integers(0, 9))])
        codes = random.integers(NONE, len(values), n_rows).astype(
            random.choice([np.int32, np.int64])
        )
        together.append(Texts(values, codes))
        alone.append(Texts(values, codes))
    tally_together(together[:1])
    tally_together(together)
    for own, other in zip(together, alone, strict=True):
        for part, expected in zip(own.tally, other.tally, strict=True):
            np.testing.assert_array_equal(part, expected)


@settings(deadline=None)
@given(
    st.lists(st.lists(st.sampled_from("abcde"), min_size=1), min_size=1, max_size=4), st.booleans()
)
def test_merged_texts_are_those_of_all_parts(parts, is_shared):
    """Whether later parts go on with the values of earlier ones or have their own."""
    known, columns = {}, []
    for part in parts:
        known = known if is_shared else {}
        codes = [known.setdefault(text, len(known)) for text in part]
        columns.append(Texts(strings_of(list(known)), np.array(codes, np.int32)))
    found = merged(columns)
    values = found.values.to_pylist()
    assert [values[code] for code in found.codes] == [text for part in parts for text in part]
    assert len(set(values)) == len(values)
