"""Changes that are said to give a row the runner-up's label do so, and no smaller one does."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import polyplane as pp
from polyplane.estimator.answers import what_if

MACHINES = [
    pp.SoftPlanesClassifier(n_planes=2, max_iter=3, random_state=0),
    pp.AMMClassifier(max_iter=3, random_state=0),
    pp.PegasosClassifier(max_iter=3, multi_class="ovo", random_state=0),
]
EACH_MACHINE = pytest.mark.parametrize("machine", MACHINES, ids=lambda one: type(one).__name__)


def people(n=150):
    """Numbers with gaps, categories, a flag and a date."""
    generator = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": np.where(generator.random(n) < 0.1, np.nan, generator.integers(0, 6, n)),
            "town": generator.choice(np.array(["Ulm", "Bonn", "Köln", None, "?"], object), n),
            "size": pd.Categorical(generator.choice([1, 2, 3], n)),
            "member": generator.random(n) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(generator.integers(0, 5, n), "D"),
        }
    )
    points = frame["age"].fillna(3) / 2 + (frame["town"] == "Ulm") + frame["member"]
    return frame, np.array(["low", "middle", "high"])[np.digitize(points, [2, 3.2])]


def fitted(machine, X, y):
    return type(machine)(**machine.get_params()).fit(X, y)


@EACH_MACHINE
def test_changes_of_tables_make_the_runner_up_win(machine):
    frame, y = people()
    model = fitted(machine, frame, y)
    found = model.explain(frame)
    changes = found.changes()
    assert {change.name for change in changes if change is not None} >= {"age", "town"}
    for row, change in enumerate(changes):
        if change is None:
            continue
        assert change.name == frame.columns[change.column]
        assert 0 <= change.size <= 1
        changed = frame.iloc[[row]].copy()
        old = changed[change.name].iloc[0]
        assert change.old == old or (change.old is None and pd.isna(old))
        changed[change.name] = pd.Series([change.new], changed.index).astype(
            frame[change.name].dtype
        )
        assert model.predict(changed)[0] == found.runner_up[row] != found.winner[row]


@EACH_MACHINE
def test_no_smaller_change_of_a_number_would_do(machine):
    generator = np.random.default_rng(0)
    X = generator.integers(0, 12, (80, 3)).astype(float)
    y = (X[:, 0] + X[:, 1] > 11).astype(int)
    model = fitted(machine, X, y)
    found = model.explain(X)
    for row, change in enumerate(found.changes()):
        best = np.inf
        for j in range(3):
            for value in np.unique(X[:, j]):
                changed = X[[row]].copy()
                changed[0, j] = value
                if value != X[row, j] and model.predict(changed)[0] == found.runner_up[row]:
                    low, high = sorted([value, X[row, j]])
                    best = min(best, np.mean((X[:, j] >= low) & (X[:, j] < high)))
        assert (change is None) == np.isinf(best)
        if change is not None:
            assert change.size == pytest.approx(best)
            assert change.old == X[row, change.column]
            assert change.name is None


def test_values_come_from_the_reference_and_are_limited(monkeypatch):
    monkeypatch.setattr(what_if, "MOST_VALUES", 8)
    monkeypatch.setattr(what_if, "MOST_ROWS", 20)
    generator = np.random.default_rng(0)
    X = generator.standard_normal((60, 2))
    y = (X[:, 0] > 0).astype(int)
    model = pp.PegasosClassifier(random_state=0).fit(X, y)
    reference = np.column_stack([np.linspace(-3, 3, 100), np.zeros(100)])
    changes = [one for one in model.explain(X, reference=reference).changes() if one is not None]
    assert {change.new for change in changes if change.column == 0} <= set(reference[:, 0])
    assert all(change.new == 0 for change in changes if change.column == 1)
    assert 1 <= len({change.new for change in changes}) <= 8 + 1


def test_sparse_rows_change_like_dense_ones_and_wide_ones_are_refused(monkeypatch):
    generator = np.random.default_rng(0)
    X = generator.integers(0, 3, (50, 4)).astype(np.float32)
    y = (X[:, 0] > X[:, 1]).astype(int)
    model = pp.AMMClassifier(random_state=0).fit(X, y)
    assert model.explain(sp.csr_matrix(X)).changes() == model.explain(X).changes()
    monkeypatch.setattr(what_if, "MOST_COLUMNS", 3)
    with pytest.raises(ValueError, match="too many to try changes"):
        model.explain(sp.csr_matrix(X)).changes()


def test_rows_without_a_way_have_none():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), [0, 0, 1, 1]
    model = pp.PegasosClassifier(random_state=0, max_iter=20).fit(X, y)
    assert model.explain(X[:1]).changes() == [None]  # no other value has been seen
