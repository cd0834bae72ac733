"""All models of a path are, to the bit, what each setting alone makes of the same rows in order."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification

import polyplane as pp
from polyplane.engine.order import in_place, shuffle
from polyplane.training.planes.algorithm import hinge_planes
from polyplane.training.search import trials as search_trials
from polyplane.tuning.held_out import parts_of
from tests.examples import examples

pytestmark = pytest.mark.compiled


@pytest.fixture(autouse=True, scope="module")
def _threads_are_always_worth_it():
    """Rows of tests are few, which threads would leave alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_trials, "MIN_BYTES_FOR_THREADS", 0)
        yield


MACHINES = {
    "amm": pp.AMMClassifier(prune_interval=37, prune_budget=2.0),
    "amm, batch": pp.AMMClassifier(mode="batch"),
    "pairs": pp.AMMClassifier(multi_class="ovo"),
    "samm": pp.SAMMClassifier(),
    "gamm": pp.GAMMClassifier(),
    "polytopes": pp.CPMClassifier(multi_class="ovr", n_planes=4),
}


def rows_of(seed, n_rows=160, n_classes=3, is_sparse=False):
    X, y = make_classification(
        n_rows, 7, n_informative=5, n_redundant=0, n_classes=n_classes, random_state=seed
    )
    X = np.round(X, 2).astype(np.float32)
    X[np.abs(X) < 0.4] = 0
    return (sp.csr_matrix(X) if is_sparse else X), y


def assert_same_planes(one, other):
    assert len(one._training.models) == len(other._training.models)
    for a, b in zip(one._training.models, other._training.models, strict=True):
        assert a.n_steps == b.n_steps
        assert a.history == b.history
        finished = zip(hinge_planes(a, 1.0)[:3], hinge_planes(b, 1.0)[:3], strict=True)
        assert all(np.array_equal(x, z) for x, z in finished)
        assert np.array_equal(a.planes.room_left, b.planes.room_left)


@pytest.mark.parametrize(
    ("name", "is_sparse"), [*((name, False) for name in MACHINES), ("amm", True)]
)
def test_models_of_all_rows_are_those_of_fit(name, is_sparse):
    X, y = rows_of(0, is_sparse=is_sparse)
    alphas = [1e-1, 1e-3, 1e-4]
    machine = clone(MACHINES[name]).set_params(max_iter=3, random_state=5)
    path = pp.alpha_path(machine, X, y, alphas=alphas, cv=3)
    for alpha, model in zip(alphas, path.models, strict=True):
        alone = clone(machine).set_params(alpha=alpha).fit(X, y)
        assert_same_planes(model, alone)
        assert np.array_equal(model.predict(X), alone.predict(X))
        assert model.n_iter_ == alone.n_iter_


def test_threads_make_the_models_that_one_after_the_other_makes():
    X, y = rows_of(4, n_rows=200)
    alphas = [1e-1, 1e-2, 1e-12, 1e-13]
    paths = [
        pp.alpha_path(clone(MACHINES["pairs"]).set_params(n_jobs=n_jobs, random_state=0), X, y,
                      alphas=alphas, cv=2)
        for n_jobs in (1, 3)
    ]  # fmt: skip
    for one, other in zip(*(path.models for path in paths), strict=True):
        assert_same_planes(one, other)
    np.testing.assert_array_equal(paths[0].fold_errors, paths[1].fold_errors)


@settings(deadline=None, max_examples=examples(25))
@given(
    st.integers(0, 10**6), st.lists(st.sampled_from([1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-9]),
    min_size=1, max_size=5, unique=True), st.integers(2, 4), st.integers(1, 2), st.integers(1, 3),
    st.booleans(), st.sampled_from([1, 2]),
)  # fmt: skip
def test_models_of_folds_are_those_of_their_rows_in_the_same_order(
    seed, alphas, cv, n_seeds, max_iter, is_weighted, n_jobs
):
    X, y = rows_of(seed, n_rows=90)
    weights = np.random.default_rng(seed).integers(0, 3, y.size) / 2 if is_weighted else None
    machine = pp.AMMClassifier(
        max_iter=max_iter, prune_interval=23, random_state=seed, n_jobs=n_jobs
    )
    seen = []
    original = search_trials.pass_side_by_side

    def noting(trials, *rest):
        original(trials, *rest)
        seen.append(copy.deepcopy(trials))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyplane.tuning.alpha_path.pass_side_by_side", noting)
        pp.alpha_path(machine, X, y, alphas=alphas, cv=cv, n_seeds=n_seeds, sample_weight=weights)
    drawn = clone(machine)._draw_seed()
    parts = parts_of(np.unique(y, return_inverse=True)[1], cv, drawn)
    for trial in [trial for trials in seen[-n_seeds:] for trial in trials]:
        alone = clone(machine).set_params(alpha=trial.job.settings.alpha, random_state=0)
        alone._draw_seed = lambda trial=trial: trial.training.seed
        generator = np.random.default_rng(trial.training.seed)
        order = in_place(y.size) if weights is None else in_place(y.size)[weights > 0]
        for _ in range(max_iter):
            mixed = order.copy()
            shuffle(mixed, generator)
            rest = mixed[parts[mixed] != trial.left_out]
            own = None if weights is None else weights[rest]
            alone.partial_fit(X[rest], y[rest], classes=np.unique(y), sample_weight=own)
        assert_same_planes(SimpleNamespace(_training=trial.training), alone)


def test_errors_are_those_of_rows_that_a_model_has_not_seen():
    X, y = rows_of(3, n_rows=300)
    machine = pp.AMMClassifier(max_iter=2, random_state=1)
    path = pp.alpha_path(machine, X, y, alphas=[1e-2, 1e-4], cv=4, n_seeds=2)
    assert path.fold_errors.shape == (2, 4, 2)
    assert path.passes.tolist() == [1, 2]
    assert np.array_equal(path.curves[-1], path.errors)
    counts = np.bincount(parts_of(y, 4, clone(machine)._draw_seed()))
    wanted = (path.fold_errors.mean(axis=2) * counts).sum(axis=1) / y.size
    assert np.allclose(path.errors, wanted)
    assert path.best_alpha == path.alphas[np.argmin(path.errors)]
    assert path.best_model is path.models[np.argmin(path.errors)]
    assert f"{path.errors.min():.2%}" in str(path)


def test_a_path_is_drawn_with_its_lowest_error_marked():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X, y = rows_of(3)
    path = pp.alpha_path(pp.AMMClassifier(max_iter=1, random_state=1), X, y, alphas=[1e-2, 1e-4])
    axes = path.plot()
    curve, mark = axes.get_lines()
    assert curve.get_xdata().tolist() == [1e-4, 1e-2]
    assert np.allclose(curve.get_ydata(), path.fold_errors.mean(axis=(1, 2))[::-1])
    assert list(mark.get_xdata()) == [path.best_alpha] * 2
    pyplot.close("all")


def test_what_is_clearly_behind_goes_no_further():
    X, y = make_classification(2_000, 10, n_informative=6, random_state=0)
    machine = pp.AMMClassifier(max_iter=8, random_state=0)
    alphas = [1e3, 1e-2, 1e-3]
    path = pp.alpha_path(machine, X, y, alphas=alphas, cv=5, halving=True)
    assert path.models[0] is None
    assert np.isnan(path.errors[0])
    assert not np.isnan(path.curves[0]).any()  # all were tried after the first pass
    assert np.isnan(path.curves[-1, 0])
    alone = clone(machine).set_params(alpha=path.best_alpha).fit(X, y)
    assert_same_planes(path.best_model, alone)


def test_a_model_of_the_path_is_a_fitted_estimator(tmp_path):
    X, y = rows_of(1)
    labels = np.array(["a", "b", "c"])[y]
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abcdefg"))
    path = pp.alpha_path(pp.AMMClassifier(random_state=0), frame, labels, alphas=[1e-3], cv=2)
    model = path.best_model
    assert model.feature_names_in_.tolist() == list("abcdefg")
    pp.save(model, tmp_path / "m.model")
    loaded = pp.load(tmp_path / "m.model")
    assert np.array_equal(loaded.predict(frame), model.predict(frame))
    assert model.feature_importances_.shape == (7,)
    model.partial_fit(frame, labels)


@pytest.mark.parametrize(
    ("estimator", "options", "error", "words"),
    [
        (pp.SoftPlanesClassifier(), {}, TypeError, "take an alpha"),
        (pp.HullerClassifier(), {}, TypeError, "take an alpha"),
        (pp.PassiveAggressiveClassifier(), {}, TypeError, "take an alpha"),
        (pp.AMMClassifier(early_stopping=True), {}, ValueError, "early_stopping"),
        (pp.AMMClassifier(), {"alphas": [0.0]}, ValueError, "above 0"),
        (pp.AMMClassifier(), {"alphas": []}, ValueError, "above 0"),
        (pp.AMMClassifier(), {"alphas": [1.0, 1.0]}, ValueError, "twice"),
        (pp.AMMClassifier(), {"cv": 1}, ValueError, "2 folds"),
    ],
)
def test_what_cannot_be_tried_is_refused(estimator, options, error, words):
    X, y = rows_of(0)
    with pytest.raises(error, match=words):
        pp.alpha_path(estimator, X, y, **options)
