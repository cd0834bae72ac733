"""Held-out rows are held out once, and errors compared on the same rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyplane.tuning.held_out import Trial, folds_of, new_scaler

Y = np.repeat(["a", "b", "c"], [50, 30, 20])


def test_folds_hold_out_each_row_once_and_all_classes_alike():
    splits = folds_of(Y, 5, seed=0)
    assert sorted(np.concatenate([held for _, held in splits]).tolist()) == list(range(100))
    for training, held_out in splits:
        assert np.intersect1d(training, held_out).size == 0
        assert training.size + held_out.size == 100
        _, counts = np.unique(Y[held_out], return_counts=True)
        assert counts.tolist() == [10, 6, 4]


def test_other_seeds_are_other_splits():
    assert folds_of(Y, 2, 0)[0][1].tolist() != folds_of(Y, 2, 1)[0][1].tolist()
    assert folds_of(Y, 2, 0)[0][1].tolist() == folds_of(Y, 2, 0)[0][1].tolist()


def test_an_error_is_the_share_of_held_out_rows():
    trial = Trial(np.arange(100), np.arange(100) % 2 == 0, [2, 4], [3.0, 1.0, 2.0])
    assert trial.error == 0.5
    assert trial.standard_error == pytest.approx(0.05)
    assert (trial.size, trial.median_seconds) == (3, 2.0)


def test_sparse_rows_stay_sparse():
    X = sp.csr_matrix(np.eye(20, dtype=np.float32) * 7)
    assert new_scaler("standard", True).fit_transform(X).nnz == 20
    assert new_scaler("none", True) is None
