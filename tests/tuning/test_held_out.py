"""Held-out rows are held out once, and errors compared on the same rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from polyplane.tuning.held_out import Trial, folds_of, new_scaler, share_of, tried

Y = np.repeat(["a", "b", "c"], [50, 30, 20])


@pytest.fixture(autouse=True)
def sizes(monkeypatch):
    """Machines of scikit-learn have no planes to count."""
    monkeypatch.setattr("polyplane.tuning.held_out.size_of", lambda machine: 1)


def test_folds_hold_out_each_row_once_and_all_classes_alike():
    splits = folds_of(Y, 5, seed=0)
    assert sorted(np.concatenate([held for _, held in splits]).tolist()) == list(range(100))
    for training, held_out in splits:
        assert np.intersect1d(training, held_out).size == 0
        assert training.size + held_out.size == 100
        _, counts = np.unique(Y[held_out], return_counts=True)
        assert counts.tolist() == [10, 6, 4]


def test_a_share_is_taken_of_each_class():
    ((training, held_out),) = share_of(Y, 0.2, seed=0)
    assert sorted([*training, *held_out]) == list(range(100))
    _, counts = np.unique(Y[held_out], return_counts=True)
    assert np.abs(counts - [10, 6, 4]).max() <= 1


def test_other_seeds_are_other_splits():
    assert folds_of(Y, 2, 0)[0][1].tolist() != folds_of(Y, 2, 1)[0][1].tolist()
    assert folds_of(Y, 2, 0)[0][1].tolist() == folds_of(Y, 2, 0)[0][1].tolist()


def test_an_error_is_the_share_of_held_out_rows():
    X = np.zeros((100, 1), np.float32)
    *_, trial = tried(lambda: DummyClassifier(strategy="most_frequent"), X, Y, folds_of(Y, 4, 0))
    assert trial.error == 0.5
    assert trial.standard_error == pytest.approx(0.05)
    assert len(trial.seconds) == 4
    assert sorted(trial.rows.tolist()) == list(range(100))


def test_scaling_is_learned_from_training_rows_only():
    X = np.zeros((4, 1), np.float32)
    X[:, 0] = [1, 2, 4, 100]
    splits = [(np.arange(3), np.array([3]))]
    seen = []

    class Spy(DummyClassifier):
        def fit(self, X, y):
            seen.append(X.ravel().tolist())
            return super().fit(X, y)

        def predict(self, X):
            seen.append(X.ravel().tolist())
            return super().predict(X)

    list(tried(Spy, X, np.array([0, 1, 0, 1]), splits, "maxabs"))
    assert seen == [[0.25, 0.5, 1.0], [25.0]]


def test_sparse_rows_stay_sparse():
    X = sp.csr_matrix(np.eye(20, dtype=np.float32) * 7)
    assert new_scaler("standard", True).fit_transform(X).nnz == 20
    assert new_scaler("none", True) is None
    *_, trial = tried(
        LogisticRegression, X, np.arange(20) % 2, folds_of(np.arange(20) % 2, 2, 0), "maxabs"
    )
    assert trial.is_wrong.size == 20


def test_leads_are_measured_row_by_row():
    generator = np.random.default_rng(0)
    wrong = generator.random(400) < 0.3
    better = wrong & (generator.random(400) < 0.5)
    order = generator.permutation(400)
    first = Trial(rows=np.arange(400), is_wrong=wrong)
    second = Trial(rows=order, is_wrong=better[order])
    lead, spread = second.lead_over(first)
    assert lead == pytest.approx(first.error - second.error)
    difference = wrong.astype(float) - better
    assert spread == pytest.approx(difference.std() / 20)
    back, _ = first.lead_over(second)
    assert back == pytest.approx(-lead)
