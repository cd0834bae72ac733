"""SoftPlanesClassifier: its steps, its scaling, its probabilities and its streams."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from polyplane import MMClassifier, SoftPlanesClassifier
from polyplane.engine.order import in_place, shuffle
from polyplane.engine.planes.planes import live_lanes
from polyplane.engine.rows.storage import matrix_of
from polyplane.engine.steps.resting import AWAKE
from polyplane.engine.steps.softmax import planes_scale
from polyplane.estimator.fitting.restoring import training_of
from polyplane.hyperplane import soft_planes
from polyplane.hyperplane.soft_planes import SOFT_PLANES
from polyplane.model.input.column_maps import KINDS
from tests.definition import class_scores
from tests.exact import only_model
from tests.reference import polyplane as reference

pytestmark = pytest.mark.loops

SET = {"n_planes": 3, "start_scale": 3.0, "step_size": 0.3, "columns": "plain", "init": "subset",
       "units": 1, "shrinkage": 0.05, "learn_from": "unsure", "directions": "none",
       "relevance": 0.0, "loss": "cross-entropy"}  # fmt: skip
needs_compilation = pytest.mark.compiled


def classifier(**changes):
    """Return a classifier with few planes."""
    return SoftPlanesClassifier(random_state=0, **SET | changes)


def two_moons(n=300, seed=0):
    """Two classes around each other's centres, in columns of different scales."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 2, n)
    angle = np.pi * (generator.random(n) + y)
    X = np.column_stack([np.cos(angle) + y, np.sin(angle) + y / 2])
    X += generator.normal(0, 0.1, X.shape)
    return (X * [1, 50] + [3, 1000]).astype(np.float32), y


def board(n=600, seed=0):
    """Fields of a board of 3 x 3: three classes that no plane parts."""
    X = np.random.default_rng(seed).random((n, 2)).astype(np.float32)
    return X, (3 * X).astype(int).sum(axis=1) % 3


# ---- steps -------------------------------------------------------------------------------------


def test_a_fit_is_the_reference_on_standardised_columns():
    """Its start is taken from the estimator; steps, rates and order of rows are worked out here."""
    X, y = two_moons(120)
    settings = {"max_iter": 3, "compress": False, "alpha": 0.01, "relevance": 0.0}
    started = classifier(**settings)
    starts = {}

    def begin(model, settings, n_steps):
        starts["planes"] = model.planes.sums.copy()
        starts["lanes"], starts["owner"] = live_lanes(model.planes), model.planes.owner.copy()
        starts["step"] = 0.3 / model.own.wide_margin
        soft_planes.begin(model, settings, n_steps)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SoftPlanesClassifier, "algorithm", replace(SOFT_PLANES, begin=begin))
        started.fit(X, y)
    model, lanes = only_model(started), starts["lanes"]
    Z = (X - X.mean(axis=0, dtype=np.float64)) / X.std(axis=0, dtype=np.float64)
    Z = np.column_stack([np.ones(len(Z)), Z / np.sqrt(np.square(Z).sum(axis=1).mean())])
    generator, order = np.random.default_rng(model.seed), []
    for _ in range(3):
        order.append(in_place(len(y)))
        shuffle(order[-1], generator)
    W, _ = reference.train(
        starts["planes"][:3, lanes].T, starts["owner"][lanes], Z, y, np.concatenate(order),
        step=starts["step"], alpha=0.01, n_steps=3 * len(y),
        enough=soft_planes.LEADS_LEFT_ALONE["unsure"],
        floor=soft_planes.MIN_SHARE_OF_MOVING_PLANE, to_rest=np.zeros(len(y), int),
    )  # fmt: skip
    found = planes_scale(model.rule, model.n_steps) * model.planes.sums[:3, lanes].T
    np.testing.assert_allclose(found, W, atol=1e-4 * np.abs(W).max())
    by_plane = started.plane_scores(X)
    in_order = np.argsort(starts["owner"][lanes], kind="stable")
    np.testing.assert_allclose(by_plane, (Z @ W.T)[:, in_order], atol=2e-3 * np.abs(W).max())


@needs_compilation
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_plane_per_class_is_logistic_regression(n_classes):
    """On rows that need no scaling beyond one factor, which scikit-learn is given, too."""
    generator = np.random.default_rng(0)
    X = generator.integers(0, 2, (400, 5)).astype(np.float64)
    y = (
        X @ generator.normal(size=(5, n_classes)) + generator.gumbel(size=(400, n_classes))
    ).argmax(1)
    length = np.sqrt(X.sum(axis=1).mean())
    alpha = 0.01  # of two planes w / 2 and - w / 2: alpha / 4 |w|^2
    ours = SoftPlanesClassifier(
        random_state=0, n_planes=1, start_scale=0.01, step_size=0.3, columns="plain", alpha=alpha,
        units=1, max_iter=4_000, compress=False,
    ).fit(X, y)  # fmt: skip
    Z = np.column_stack([X / length, np.ones(len(X))])
    theirs = LogisticRegression(
        C=(2 if n_classes == 2 else 1) / (alpha * len(y)), fit_intercept=False, tol=1e-8,
        max_iter=10_000,
    ).fit(Z, y)  # fmt: skip
    found, expected = ours.decision_function(X), theirs.decision_function(Z)
    if n_classes > 2:
        found, expected = (s - s.mean(axis=1, keepdims=True) for s in (found, expected))
    np.testing.assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())


@needs_compilation
def test_planes_without_rows_are_dropped_only_if_asked_for():
    X, y = two_moons(1_000)
    options = {"n_planes": 20, "step_size": 1.0, "shrinkage": 0.2, "max_iter": 14}
    kept = classifier(**options, compress=False).fit(X, y)
    fewer = classifier(**options).fit(X, y)
    assert kept.n_planes_ == 40
    assert 2 <= fewer.n_planes_ < 20
    assert abs(np.mean(fewer.predict(X) != y) - np.mean(kept.predict(X) != y)) < 0.02


@needs_compilation
def test_temperature_below_one_makes_planes_share_less():
    X, y = two_moons()

    def shared(temperature):
        model = classifier(temperature=temperature, n_planes=8, compress=False).fit(X, y)
        scores = model.plane_scores(X)
        scores = np.where(model.plane_classes_ == y[:, None], scores, -np.inf)
        return 1 - softmax(scores, axis=1).max(axis=1).mean()

    assert shared(0.25) < 0.8 * shared(1.0)


# ---- scaling -----------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", KINDS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_finished_planes_predict_what_training_saw(columns, fit_intercept):
    X, y = two_moons()
    model = classifier(columns=columns, fit_intercept=fit_intercept, max_iter=5).fit(X, y)
    inner = only_model(model)
    data = model._read_training(X, y, None, None, model._training)[0]
    seen = model._training.columns.for_training(data).rows
    lanes = live_lanes(inner.planes)
    planes = inner.planes.sums[: inner.n_features + 1, lanes]
    planes = planes * planes_scale(inner.rule, inner.n_steps)
    scores = matrix_of(seen, inner.n_features) @ planes[1:] + seen.constant * planes[0]
    in_order = np.argsort(inner.planes.owner[lanes], kind="stable")
    found = model.plane_scores(X)
    np.testing.assert_allclose(found, scores[:, in_order], atol=1e-3 * np.abs(scores).max())


@pytest.mark.parametrize("columns", KINDS)
def test_units_of_columns_do_not_matter(columns):
    X, y = two_moons()
    model, other = (classifier(columns=columns, max_iter=5) for _ in range(2))
    scores = model.fit(X, y).decision_function(X)
    stretched = X * np.float32([64, 1 / 1024])
    np.testing.assert_allclose(
        other.fit(stretched, y).decision_function(stretched), scores, rtol=1e-3, atol=1e-3
    )


def test_wide_sparse_rows_are_left_alone():
    X = sp.random_array(
        (200, 500), density=0.02, random_state=np.random.default_rng(0), format="csr"
    )
    y = np.asarray(X.sum(axis=1) > X.sum(axis=1).mean()).astype(int)
    model = classifier(max_iter=5, columns="auto").fit(X, y)
    assert model._training.columns.map.table is None
    assert model.planes_.shape[1] == 500


@pytest.mark.parametrize("columns", KINDS)
def test_columns_that_are_set_are_never_ignored(columns):
    X = sp.random_array((60, 300), density=0.1, random_state=np.random.default_rng(0), format="csr")
    y = np.asarray(X.sum(axis=1) > X.sum(axis=1).mean()).astype(int)
    model = classifier(max_iter=2, columns=columns).fit(X, y)
    assert model._training.columns.map.table is not None


@pytest.mark.compiled
@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_the_unit_of_weights_does_not_matter(factor):
    X, y = board(200)
    weights = np.random.default_rng(0).integers(1, 9, len(y)) / 4
    options = {"columns": "knots", "max_iter": 3, "relevance": 1.0}
    one, other = (
        classifier(**options).fit(X, y, sample_weight=weights * unit) for unit in (1, factor)
    )
    np.testing.assert_allclose(
        one.decision_function(X), other.decision_function(X), rtol=1e-3, atol=1e-3
    )
    same = classifier(**options).fit(X, y, sample_weight=weights * 1024)
    np.testing.assert_array_equal(one.decision_function(X), same.decision_function(X))


# ---- probabilities -----------------------------------------------------------------------------


@needs_compilation
@pytest.mark.parametrize("multi_class", ["joint", "ovr", "ovo"])
def test_probabilities_agree_with_labels(multi_class):
    X, y = board()
    model = classifier(multi_class=multi_class, n_planes=6).fit(X, y)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(np.log(shares), model.predict_log_proba(X), rtol=1e-9, atol=1e-15)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))
    assert log_loss(y, shares) < 0.5


@pytest.mark.parametrize("columns", KINDS)
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e9])
def test_probabilities_of_extreme_rows_are_finite(columns, scale):
    X, y = board(200)
    model = classifier(columns=columns, max_iter=3).fit(X * np.float32(scale), y)
    far = np.float32([[0, 0], [1e10, -1e10], [-1e10, 1e-30], [1e-30, 1e-38]])
    for rows in (far, sp.csr_array(far)):
        shares = model.predict_proba(rows)
        assert np.isfinite(shares).all()
        assert np.isfinite(model.predict_log_proba(rows)).all()
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)


# ---- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("learn_from", ["most", "unsure"])
def test_rows_that_rest_still_keep_their_planes(learn_from):
    """Two heaps a class, far apart: soon all rows are right, and what rests is not forgotten."""
    generator = np.random.default_rng(0)
    centres = np.array([[0, 0], [9, 9], [0, 9], [9, 0]])
    places = generator.integers(0, 4, 400)
    X, y = centres[places] + generator.normal(0, 0.5, (400, 2)), places // 2
    settings = SET | {"learn_from": learn_from, "n_planes": 6, "max_iter": 13}
    model = SoftPlanesClassifier(random_state=0, **settings).fit(X, y)
    assert (model.predict(X) == y).all()
    assert len(np.unique(model.assign(X))) >= 4
    assert training_of(model).courses == []


def test_rows_rest_where_those_that_are_right_are_left_alone(monkeypatch):
    X, y = pixels(np.random.default_rng(0))
    shares = []
    original = soft_planes.softmax_epoch

    def counted(rows, targets, order, planes, rule, resting, t):
        shares.append(np.mean(resting[order] >= AWAKE) if resting.size else 1.0)
        return original(rows, targets, order, planes, rule, resting, t)

    monkeypatch.setattr(soft_planes, "softmax_epoch", counted)
    settings = SET | {"max_iter": 12, "columns": "as-is", "multi_class": "ovr"}
    for learn_from, is_less in (("unsure", True), ("most", False)):
        shares.clear()
        SoftPlanesClassifier(random_state=0, **settings | {"learn_from": learn_from}).fit(X, y)
        assert (min(shares) < 0.5) == is_less
        assert (np.mean(shares) < 1) == is_less


@pytest.mark.parametrize(("learn_from", "most"), [("most", 0.99), ("unsure", 0.9), ("all", 1.0)])
def test_rows_that_are_sure_enough_move_nothing(learn_from, most):
    """The lead at which a row is left as it is belongs to this probability."""
    X, y = board(60)
    model = classifier(learn_from=learn_from, max_iter=1).fit(X, y)
    [one] = model._training.models
    assert 1 / (1 + np.exp(-one.rule.enough)) == pytest.approx(most)


def test_rows_of_one_class_by_weight_are_refused():
    X, y = two_moons(20)
    with pytest.raises(ValueError, match="at least 2 classes"):
        classifier().fit(X, y, sample_weight=(y == 1).astype(float))


def test_warm_start_goes_on():
    X, y = board(300)
    model = classifier(warm_start=True, max_iter=2, n_planes=6, alpha=0.0).fit(X, y)
    before = model.predict_proba(X)
    model.set_params(step_size=1e-9).fit(X, y)
    assert model.n_steps_ == 4 * len(y)
    np.testing.assert_allclose(model.predict_proba(X), before, atol=1e-5)


@pytest.mark.parametrize("multi_class", ["joint", "ovo"])
def test_an_ensemble_averages_class_scores(multi_class):
    X, y = board(200)
    model = classifier(n_estimators=3, max_iter=3, multi_class=multi_class).fit(X, y)
    expected = [class_scores(model, by_plane) for by_plane in model.plane_scores(X)]
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-5, atol=1e-4)
    seeds = {inner.seed for inner in model._training.models}
    assert len(seeds) == 3


# ---- streams -----------------------------------------------------------------------------------


@pytest.fixture
def short_start(monkeypatch):
    monkeypatch.setattr(soft_planes, "FIRST_ROWS", 40)


@pytest.mark.parametrize("cuts", [[], [1, 2, 3], [40], [39, 41], [5, 100, 101, 150]])
@pytest.mark.parametrize("multi_class", ["joint", "ovo"])
def test_chunks_change_no_bit(short_start, cuts, multi_class):
    X, y = board(200)
    y[:60] %= 2  # the third class is met after the start
    weights = np.random.default_rng(0).random(200)
    whole, parts = (classifier(multi_class=multi_class, alpha=1e-3) for _ in range(2))
    whole.partial_fit(X, y, [0, 1, 2], weights)
    for rows in np.split(np.arange(200), cuts):
        parts.partial_fit(X[rows], y[rows], [0, 1, 2], weights[rows])
    np.testing.assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))


@pytest.mark.parametrize("n_rows", [1, 2, 3, 7, 8, 9, 31, 33, 39, 40, 41, 70])
def test_the_first_rows_one_by_one_change_no_bit(short_start, n_rows):
    """A model is a function of the rows it has seen, before it has enough of them as well."""
    X, y = board(n_rows)
    whole = classifier(alpha=1e-3).partial_fit(X, y, [0, 1, 2])
    parts = classifier(alpha=1e-3)
    for i in range(n_rows):
        parts.partial_fit(X[i : i + 1], y[i : i + 1], [0, 1, 2])
    np.testing.assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))
    np.testing.assert_array_equal(whole.planes_, parts.planes_)
    assert whole.n_steps_ == parts.n_steps_ == n_rows


def test_a_stream_starts_anew_when_its_first_rows_have_doubled(short_start, monkeypatch):
    starts, started = [], soft_planes._started_anew

    def noted(job, rows, first):
        starts.append(rows.data.labels.size)
        return started(job, rows, first)

    monkeypatch.setattr(soft_planes, "_started_anew", noted)
    X, y = board(100)
    model = classifier()
    for i in range(100):
        model.partial_fit(X[i : i + 1], y[i : i + 1], [0, 1, 2])
    assert starts == [1, 2, 4, 8, 16, 32, 40]
    assert model._training.first_rows.is_full
    assert not model._training.first_rows.parts
    starts.clear()
    classifier().partial_fit(X, y)
    assert starts == [40]


def test_a_chunk_cut_off_leaves_the_first_rows_as_they_were(short_start, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    X, y = board(60)
    model = classifier().partial_fit(X[:20], y[:20], [0, 1, 2])
    with monkeypatch.context() as patch:
        patch.setattr(soft_planes, "prototypes_of", stop)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[20:], y[20:])
    expected = classifier().partial_fit(X, y, [0, 1, 2])
    np.testing.assert_array_equal(
        model.partial_fit(X[20:], y[20:]).predict_proba(X), expected.predict_proba(X)
    )


def test_a_class_met_late_starts_at_its_first_row(short_start):
    X, y = board(400)
    is_late = y == 2
    model = classifier(n_planes=4).partial_fit(X[~is_late], y[~is_late])
    assert model.planes_per_class_.tolist() == [4, 4]
    model.partial_fit(X[is_late][:1], y[is_late][:1])
    assert model.planes_per_class_.tolist() == [4, 4, 4]
    for _ in range(20):
        model.partial_fit(X, y)
    assert np.mean(model.predict(X)[is_late] == 2) > 0.5


def test_new_columns_widen_the_planes(short_start):
    X, y = two_moons(200)
    model = classifier().partial_fit(X[:100], y[:100])
    wide = np.column_stack([X, 10 * y]).astype(np.float32)
    for _ in range(20):
        model.partial_fit(wide[100:], y[100:])
    assert model.planes_.shape[1] == 3
    assert model._training.columns.map.n_columns == 3
    assert np.mean(model.predict(wide) == y) > 0.95


@needs_compilation
def test_a_stream_goes_on_from_a_fit_without_a_leap():
    X, y = board()
    model = classifier(n_planes=8, max_iter=20).fit(X, y)
    before = model.predict_proba(X)
    model.partial_fit(X[:1], y[:1])
    assert np.abs(model.predict_proba(X) - before).max() < 0.3
    assert np.abs(model.predict_proba(X) - before).mean() < 0.02


@needs_compilation
def test_a_long_stream_learns(short_start):
    X, y = board(20_000)
    model = classifier(n_planes=16)
    for rows in np.split(np.arange(20_000), 40):
        model.partial_fit(X[rows], y[rows])
    assert np.mean(model.predict(X) != y) < 0.12


# ---- MM ----------------------------------------------------------------------------------------


@needs_compilation
@pytest.mark.parametrize("init", ["kmeans", "subset"])
def test_prototypes_are_a_better_start_for_mm(init):
    X, y = board(3_000)
    X, X_test, y, y_test = X[:2_000], X[2_000:], y[:2_000], y[2_000:]
    machine = MMClassifier(n_planes=8, alpha=1e-4, random_state=0)
    at_random = np.mean(clone(machine).fit(X, y).predict(X_test) != y_test)
    model = machine.set_params(init=init).fit(X, y)
    assert np.mean(model.predict(X_test) != y_test) < 0.5 * at_random


def test_mm_with_prototypes_needs_fit():
    X, y = board(50)
    with pytest.raises(ValueError, match="needs all rows"):
        MMClassifier(init="subset").partial_fit(X, y)


# ---- maps ---------------------------------------------------------------------------------------


@needs_compilation
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_as_steps_see_them_score_what_folded_planes_score(kind, is_sparse):
    """Recipes are judged on rows as steps see them, and models predict by folded planes."""
    X, y = board()
    X = sp.csr_matrix(X) if is_sparse else X
    model = classifier(
        columns=kind, units=2, n_planes=4, n_estimators=2, directions="principal"
    ).fit(X, y)
    data = model._read_training(X, y, None, None, model._training)[0]
    seen = training_of(model).columns.map.for_training(data.rows)
    folded = model.decision_function(X)
    np.testing.assert_allclose(soft_planes.scores_as_seen(model, seen), folded, atol=1e-4)


@needs_compilation
@pytest.mark.parametrize("scores", ["values", "normal"])
@pytest.mark.parametrize("columns", KINDS)
def test_a_monotone_change_of_a_column_does_not_change_normal_scores(columns, scores):
    X, y = two_moons(120)  # with a knot at each value
    fits = [
        classifier(columns=columns, scores=scores, max_iter=3).fit(rows, y).decision_function(rows)
        for rows in (X, np.exp((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32))
    ]
    is_same = np.allclose(*fits, atol=1e-3)
    assert is_same == (scores == "normal" and columns != "plain")


def words(generator, n_rows=300):
    """Counts of 300 words in texts of two kinds."""
    y = generator.integers(0, 2, n_rows)
    often = np.where(np.arange(300) % 7 == 0, 0.3, 0.03)
    X = generator.poisson(np.where(y[:, None] == 1, often, often[::-1]))
    return sp.csr_array(X.astype(np.float32)), y


def pixels(generator, n_rows=300):
    """Images of 81 points: blots at places that depend on the class."""
    y = generator.integers(0, 3, n_rows)
    places = np.stack(np.divmod(np.arange(81), 9), axis=1)
    centres = np.array([[2, 2], [6, 5], [3, 7]])[y] + generator.normal(0, 0.7, (n_rows, 2))
    squared = np.square(places[None] - centres[:, None]).sum(axis=2)
    return (255 * np.exp(-squared / 4)).astype(np.uint8), y


def measures(generator, n_rows=300):
    """A table of three numbers."""
    X = generator.normal(0, 1, (n_rows, 3)) * [1, 50, 3_000] + [0, 7, 1e4]
    return X, (np.abs(X[:, 0]) + generator.normal(0, 0.2, n_rows) > 0.6).astype(int)


@needs_compilation
def test_images_that_are_to_be_standardised_are():
    X, y = pixels(np.random.default_rng(0))
    fits = [
        SoftPlanesClassifier(random_state=0, **(SET | {"columns": columns})).fit(X, y)
        for columns in ("as-is", "plain")
    ]
    assert [training_of(model).columns.map.is_as_is for model in fits] == [True, False]
    assert not np.array_equal(fits[0].decision_function(X), fits[1].decision_function(X))
