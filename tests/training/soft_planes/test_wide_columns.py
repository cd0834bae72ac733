"""Wide sparse data of which few columns are in use: as if there were no others."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from polyplane import SoftPlanesClassifier, load, save, to_c
from polyplane.engine.rows.storage import csr_rows, dense_rows, matrix_of
from polyplane.model.input.column_maps import column_map, compact_rows

WIDTH = 1 << 18
GENERATOR = np.random.default_rng(0)
USED = np.sort(GENERATOR.permutation(WIDTH)[:400]).astype(np.int32)
Y = GENERATOR.integers(0, 3, 300)


def narrow_rows():
    """Rows of few non-zeros that tell their class, in all of their columns."""
    rows = sp.random_array(
        (300, 400), density=0.02, random_state=GENERATOR, format="lil", dtype=np.float32
    )
    rows[np.arange(300), Y] = 1
    rows[np.arange(300), GENERATOR.integers(3, 400, 300)] = 1
    rows[np.arange(400) % 300, np.arange(400)] = 0.5  # every column is in use
    return sp.csr_array(rows)


NARROW = narrow_rows()


def at_columns(rows, columns, width):
    """The same rows, their columns moved apart."""
    parts = rows.data, columns[rows.indices], rows.indptr
    return sp.csr_array(parts, shape=(rows.shape[0], width))


WIDE = at_columns(NARROW, USED, WIDTH)
SMALL = {"n_planes": 3, "start_scale": 3.0, "step_size": 0.3, "max_iter": 2, "random_state": 0,
         }  # fmt: skip


@pytest.mark.parametrize("settings_", [SMALL, SMALL | {"multi_class": "ovo"}], ids=str)
def test_columns_not_in_use_change_no_bit(settings_):
    narrow = SoftPlanesClassifier(**settings_).fit(NARROW, Y)
    wide = SoftPlanesClassifier(**settings_).fit(WIDE, Y)
    np.testing.assert_array_equal(wide.decision_function(WIDE), narrow.decision_function(NARROW))
    np.testing.assert_array_equal(wide.predict(WIDE), narrow.predict(NARROW))
    assert wide.planes_.shape == (narrow.n_planes_, WIDTH)
    np.testing.assert_array_equal(wide.planes_[:, USED], narrow.planes_)
    assert np.count_nonzero(wide.planes_) == np.count_nonzero(narrow.planes_)


@pytest.mark.compiled
def test_what_is_auto_is_found_alike():
    narrow = SoftPlanesClassifier(random_state=0, max_iter=2).fit(NARROW, Y)
    wide = SoftPlanesClassifier(random_state=0, max_iter=2).fit(WIDE, Y)
    np.testing.assert_array_equal(wide.predict_proba(WIDE), narrow.predict_proba(NARROW))


def test_memory_follows_the_columns_in_use():
    model = SoftPlanesClassifier(**SMALL).fit(WIDE, Y)
    tracemalloc.start()
    model.fit(WIDE, Y).predict(WIDE)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 * WIDTH  # planes of all columns would take 64 bytes for each


def test_columns_met_only_in_prediction_score_nothing():
    model = SoftPlanesClassifier(**SMALL).fit(WIDE, Y)
    expected = model.decision_function(WIDE)
    other = np.setdiff1d(np.arange(500, dtype=np.int32), USED)[:5]
    more = sp.csr_array(
        (np.ones(5, np.float32), other, np.r_[0, 5, np.full(299, 5)]), shape=WIDE.shape
    )
    np.testing.assert_array_equal(model.decision_function(sp.csr_array(WIDE + more)), expected)


def test_a_file_keeps_them_and_training_goes_on_with_all_columns(tmp_path):
    model = SoftPlanesClassifier(**SMALL).fit(WIDE, Y)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < WIDTH
    np.testing.assert_array_equal(loaded.decision_function(WIDE), model.decision_function(WIDE))
    before = model.planes_
    twin = at_columns(NARROW, (USED + 1) % WIDTH, WIDTH + 7)
    for one in (model, loaded):
        one.partial_fit(twin[:0:-1][:9], Y[:0:-1][:9])
        assert one.n_features_in_ == WIDTH + 7
        assert one._training.columns.map.used is None
    assert not np.array_equal(model.planes_[:, :WIDTH], before)
    np.testing.assert_array_equal(loaded.decision_function(twin), model.decision_function(twin))


def test_an_export_has_all_columns():
    width = 1_000
    rows = at_columns(NARROW, np.arange(0, 2 * 400, 2, dtype=np.int32), width)
    model = SoftPlanesClassifier(**SMALL).fit(rows, Y)
    assert model._training.columns.map.used.size == 400
    assert f"{width}" in to_c(model, name="wide")


def test_compact_rows_are_those_columns():
    used = USED[10:50]
    for rows in (csr_rows(WIDE, 1.0), csr_rows(WIDE.astype(np.float64), 0.0)):
        found = compact_rows(rows, used)
        np.testing.assert_array_equal(matrix_of(found, 40).toarray(), NARROW.toarray()[:, 10:50])
    dense = NARROW.toarray()
    found = compact_rows(dense_rows(dense, 1.0), np.arange(3, 9, dtype=np.int32))
    np.testing.assert_array_equal(matrix_of(found, 6).toarray(), dense[:, 3:9])


def test_columns_are_left_out_only_where_they_are_most():
    order = np.arange(300)
    for width, is_left_out in ((799, False), (800, True)):
        rows = csr_rows(at_columns(NARROW, np.arange(400, dtype=np.int32), width), 1.0)
        found = column_map(rows, order, width, "plain", may_leave_out=True)
        assert (found.used is not None) == is_left_out
        assert column_map(rows, order, width, "plain").used is None
