"""What a search does with a sample that is too small to speak for all rows."""

import numpy as np
import pytest

from polyplane import PolyplaneClassifier
from polyplane.engine.rows.storage import is_map_of_maps
from polyplane.estimator.search import candidates, trials
from polyplane.model.plane_record import PlaneRecord


def waves(n=5_000, seed=2):
    """A column of many waves, which few rows cannot tell from noise, and two that go together."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1, 1, (n, 4)).astype(np.float32)
    odds = 6 * X[:, 0] * X[:, 1] + 1.5 * np.sin(40 * X[:, 2])
    return X, (generator.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


@pytest.fixture
def small_samples(monkeypatch):
    monkeypatch.setattr(trials, "MOST_ROWS", 400)
    monkeypatch.setattr(trials, "SHARE_OF_MANY", 50)


@pytest.mark.compiled
def test_all_rows_may_take_finer_columns_than_a_small_sample_of_them(small_samples, monkeypatch):
    X, y = waves()
    found = PolyplaneClassifier(random_state=2).fit(X, y).settings_
    assert (found["columns"], found["relevance"]) == ("fine", 1)
    monkeypatch.setattr(candidates, "MOST_CONTESTED", 0)
    assert PolyplaneClassifier(random_state=2).fit(X, y).settings_["columns"] == "knots"


@pytest.mark.compiled
def test_they_need_not(small_samples):
    """Smooth columns stay coarse."""
    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, (4_000, 4)).astype(np.float32)
    y = (generator.random(4_000) < 1 / (1 + np.exp(-6 * X[:, 0] * X[:, 1]))).astype(int)
    assert PolyplaneClassifier(random_state=0).fit(X, y).settings_["columns"] != "fine"


@pytest.mark.compiled
@pytest.mark.parametrize(
    "given",
    [{"columns": "knots"}, {"relevance": 0.0}, {"directions": "none"}, {"max_iter": 12}],
    ids=repr,
)
def test_what_is_set_is_not_contested(small_samples, monkeypatch, given):
    def contested(*_):
        raise AssertionError("nothing is left to contest")

    monkeypatch.setattr(candidates.Candidates, "better_of", contested)
    X, y = waves(1_500)
    found = PolyplaneClassifier(random_state=2, **given).fit(X, y).settings_
    assert given.items() <= found.items()


@pytest.mark.compiled
def test_trials_with_directions_are_judged_by_the_loop_of_all_others(monkeypatch):
    """A loop for rows that are mapped twice would be compiled for a fit alone."""
    seen, class_scores = set(), PlaneRecord.class_scores

    def noted(record, rows, *rest):
        seen.add(is_map_of_maps(rows))
        return class_scores(record, rows, *rest)

    monkeypatch.setattr(PlaneRecord, "class_scores", noted)
    X, y = waves(600)
    PolyplaneClassifier(random_state=2, directions="principal").fit(X, y)
    assert seen == {False}


def kinds_tried(monkeypatch, X, y, **given):
    """What problems of several classes the settings tried were taken for."""
    tried, judge = set(), trials.Trials.judge

    def noted(self, setting, *rest, **options):
        tried.add((setting["multi_class"], setting["n_planes"] > 1))
        return judge(self, setting, *rest, **options)

    monkeypatch.setattr(trials.Trials, "judge", noted)
    PolyplaneClassifier(random_state=0, max_iter=12, **given).fit(X, y)
    return {kind for kind, has_several in tried if has_several}


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("n_classes", "given", "expected"),
    [
        (3, {}, {"joint", "ovr"}),
        (2, {}, {"joint"}),
        (21, {}, {"joint"}),
        (3, {"multi_class": "joint"}, {"joint"}),
        (3, {"multi_class": "ovo"}, {"ovo"}),
        (3, {"columns": "plain"}, {"joint", "ovr"}),
        (3, {"columns": "as-is"}, {"ovr"}),
        (21, {"columns": "as-is"}, {"joint"}),
    ],
)
def test_each_of_a_few_classes_is_tried_against_the_rest(monkeypatch, n_classes, given, expected):
    generator = np.random.default_rng(0)
    y = np.arange(420) % n_classes
    X = generator.normal(y[:, None], 0.5, (420, 3)).astype(np.float32)
    assert kinds_tried(monkeypatch, X, y, **given) == expected


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("given", "n_columns", "expected"),
    [
        ({}, 3, ("ovr", 1, 2, 32)),
        ({"multi_class": "ovr"}, 3, ("ovr", 1, 2, 32)),
        ({"multi_class": "ovo"}, 3, ("ovo", 1, 1, 16)),
        ({"multi_class": "joint"}, 3, ("joint", 2, 1, 32)),
        ({}, 2_001, ("ovr", 1, 2, 16)),
    ],
)
def test_what_images_and_texts_start_from(given, n_columns, expected):
    y = np.arange(60) % 3
    X = np.random.default_rng(0).normal(y[:, None], 0.5, (60, n_columns)).astype(np.float32)
    model = PolyplaneClassifier(random_state=0, search=False, columns="as-is", max_iter=1, **given)
    found = model.fit(X, y).settings_
    names = "multi_class", "n_estimators", "units", "n_planes"
    assert tuple(found[name] for name in names) == expected
