"""Models side by side: each is the model that its problem alone would have given."""

import contextlib
import itertools
import threading
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from polyplane import (
    AMMClassifier,
    CPMClassifier,
    GAMMClassifier,
    MMClassifier,
    PegasosClassifier,
)
from polyplane.estimator import shell
from polyplane.estimator.fitting.pass_watch import PassWatch
from polyplane.hyperplane.amm import AMM
from polyplane.training.planes.algorithm import hinge_steps
from tests.searches import looks_at_held_out_rows, lowest_as_fitted

GENERATOR = np.random.default_rng(0)
X = GENERATOR.integers(0, 4, (90, 5)).astype(np.float32)
Y = (X[:, 0] + X[:, 1] + GENERATOR.integers(0, 2, 90)).astype(int) % 4
CLASSES = [0, 1, 2, 3]
PAIRS = [(a, b) for b in CLASSES for a in range(b)]
KINDS = ["joint", "ovr", "ovo"]

MACHINES = [
    AMMClassifier(prune_interval=20, prune_budget=3.0),
    AMMClassifier(mode="batch"),
    GAMMClassifier(clone_probability=0.5, prune_interval=20),
    MMClassifier(n_planes=3),
    CPMClassifier(n_planes=3),
    CPMClassifier(n_planes=3, max_steps=45),
    PegasosClassifier(),
]


@pytest.fixture(params=MACHINES, ids=repr)
def machine(request):
    """Shuffled, as it is by default."""
    return clone(request.param).set_params(random_state=0, max_iter=3)


@pytest.fixture(params=[m for m in MACHINES if hasattr(m, "partial_fit")], ids=repr)
def streaming(request):
    return clone(request.param).set_params(random_state=0, max_iter=3)


def several(machine, kind, **parameters):
    return clone(machine).set_params(multi_class=kind, **parameters)


def weights(model):
    """Planes with their intercepts."""
    return np.column_stack([model.intercepts_, model.planes_])


def assert_same_model(model, other):
    for name in ("planes_", "intercepts_", "plane_classes_", "plane_signs_", "history_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name), name)
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))


def state_of_generator(estimator, k):
    """Whether models shuffle alike from here on, too."""
    return estimator._training.models[k].generator.bit_generator.state


# ---- each model alone ------------------------------------------------------------------------


def test_one_against_one_is_every_pair_trained_alone(machine):
    """By class, in the order of pairs: those of a younger class come later."""
    together = several(machine, "ovo").fit(X, Y)
    alone = []
    for pair in PAIRS:
        rows = np.isin(Y, pair)
        alone.append(clone(machine).fit(X[rows], Y[rows]))
    np.testing.assert_array_equal(weights(together), np.concatenate([weights(m) for m in alone]))
    classes = np.concatenate([model.plane_classes_ for model in alone])
    np.testing.assert_array_equal(together.plane_classes_, classes)
    assert (together.plane_signs_ == 1).all()
    assert together.n_steps_ == sum(model.n_steps_ for model in alone)
    for k, model in enumerate(alone):
        assert state_of_generator(together, k) == state_of_generator(model, 0)
        history = together.history_[together.history_["model"] == k]
        assert history[HISTORY].tolist() == model.history_[HISTORY].tolist()


HISTORY = ["step", "planes", "created", "pruned", "error"]


def test_one_against_the_rest_is_every_class_trained_alone(machine):
    """In the order in which problems came up: the second class makes the first problem."""
    together = several(machine, "ovr").fit(X, Y)
    order = [1, 0, 2, 3]
    alone = {c: clone(machine).fit(X, np.equal(Y, c)) for c in CLASSES}
    found = np.concatenate([weights(alone[c]) for c in order])
    np.testing.assert_array_equal(weights(together), found)
    classes = np.concatenate([np.full(alone[c].n_planes_, c) for c in order])
    np.testing.assert_array_equal(together.plane_classes_, classes)
    speaks_for = np.concatenate([alone[c].plane_classes_ for c in order])
    np.testing.assert_array_equal(together.plane_signs_ == 1, speaks_for)
    decisions = np.column_stack([alone[c].decision_function(X) for c in CLASSES])
    np.testing.assert_array_equal(together.decision_function(X), decisions)


def test_pairs_decide_by_their_margins_or_by_votes(machine):
    margins, votes = np.zeros((len(X), 4), np.float32), np.zeros((len(X), 4))
    for a, b in PAIRS:
        rows = np.isin(Y, (a, b))
        lead = clone(machine).fit(X[rows], Y[rows]).decision_function(X)
        margins[:, b] += np.clip(lead, -1, 1)
        margins[:, a] -= np.clip(lead, -1, 1)
        votes[np.arange(len(X)), np.where(lead > 0, b, a)] += lead != 0
        votes[:, [a, b]] += (lead == 0)[:, None] / 2
    by_margin = several(machine, "ovo", combine="margin").fit(X, Y)
    np.testing.assert_array_equal(by_margin.decision_function(X), margins)
    by_vote = several(machine, "ovo", combine="vote").fit(X, Y)
    winners = by_vote.predict(X)
    is_ahead = votes[np.arange(len(X)), winners] - votes.max(axis=1)
    assert (is_ahead == 0).all()
    np.testing.assert_array_equal(by_vote.decision_function(X).argmax(axis=1), winners)


def test_combine_is_read_by_prediction():
    model = AMMClassifier(multi_class="ovo", combine="margin", random_state=0).fit(X, Y)
    by_margin = model.decision_function(X)
    by_vote = clone(model).set_params(combine="vote").fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(model.set_params(combine="vote").decision_function(X), by_vote)
    assert (by_margin != by_vote).any()


def test_two_classes_are_one_model_of_any_kind(machine):
    rows = Y < 2
    kinds = ["ovr", "ovo"] if isinstance(machine, CPMClassifier) else KINDS
    models = [several(machine, kind).fit(X[rows], Y[rows]) for kind in kinds]
    for model in models[1:]:
        assert_same_model(model, models[0])


# ---- ensembles -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_of_an_ensemble_is_the_single_model(kind):
    single = MMClassifier(multi_class=kind, random_state=0, max_iter=2).fit(X, Y)
    ensemble = clone(single).set_params(n_estimators=3).fit(X, Y)
    assert ensemble.n_planes_ == 3 * single.n_planes_
    assert ensemble.n_steps_ == 3 * single.n_steps_
    members = np.split(weights(ensemble), 3)
    np.testing.assert_array_equal(members[0], weights(single))
    assert (members[1] != members[0]).any()
    assert (members[2] != members[1]).any()


@pytest.mark.parametrize("kind", KINDS)
def test_models_added_to_an_ensemble_learn_from_the_next_chunk(kind):
    """`n_estimators` may grow between chunks: models that are new know the classes of the rows."""
    half = len(X) // 2
    model = MMClassifier(multi_class=kind, random_state=0).partial_fit(X[:half], Y[:half])
    single = MMClassifier(multi_class=kind, random_state=0).partial_fit(X[:half], Y[:half])
    single.partial_fit(X[half:], Y[half:])
    model.set_params(n_estimators=3).partial_fit(X[half:], Y[half:])
    members = np.split(weights(model), 3)
    np.testing.assert_array_equal(members[0], weights(single))
    for added in members[1:]:
        assert added.any()


def members_of(ensemble):
    """Each model of an ensemble trained alone, by its seed."""
    out = []
    for e in range(ensemble.n_estimators):
        [seed] = {model.seed for model in ensemble._training.models if model.estimator == e}
        alone = clone(ensemble).set_params(n_estimators=1)
        alone._draw_seed = lambda seed=seed: seed
        out.append(alone.fit(X, Y))
    return out


@pytest.mark.parametrize("kind", ["joint", "ovr"])
def test_the_decision_of_an_ensemble_is_the_mean_of_its_members(machine, kind):
    if isinstance(machine, CPMClassifier):
        kind = "ovr"
    ensemble = several(machine, kind, n_estimators=3, max_iter=1).fit(X, Y)
    members = members_of(ensemble)
    np.testing.assert_array_equal(weights(ensemble), np.concatenate([weights(m) for m in members]))
    mean = np.mean([member.decision_function(X) for member in members], axis=0)
    np.testing.assert_allclose(ensemble.decision_function(X), mean, rtol=1e-5, atol=1e-4)


def test_pairs_of_an_ensemble_decide_by_mean_scores():
    """Leads are averaged before they are cut: an ensemble of pairs is made of ensembles."""
    machine = MMClassifier(n_estimators=3, max_iter=1, random_state=0)
    ensemble = several(machine, "ovo", combine="margin").fit(X, Y)
    margins = np.zeros((len(X), 4))
    for a, b in PAIRS:
        rows = np.isin(Y, (a, b))
        lead = clone(ensemble).fit(X[rows], Y[rows]).decision_function(X)
        margins[:, b] += np.clip(lead, -1, 1)
        margins[:, a] -= np.clip(lead, -1, 1)
    np.testing.assert_allclose(ensemble.decision_function(X), margins, rtol=1e-5, atol=1e-5)


# ---- threads ---------------------------------------------------------------------------------


@pytest.mark.compiled  # rounding is the same, if slow, without the JIT
def test_threads_change_no_bit_of_many_rows_and_classes():
    rows = np.random.default_rng(1).normal(size=(20_000, 4)).astype(np.float32)
    labels = np.arange(20_000) % 12
    model = PegasosClassifier(multi_class="ovo", max_iter=1, random_state=0).fit(rows, labels)
    alone = model.decision_function(rows)
    np.testing.assert_array_equal(model.set_params(n_jobs=2).decision_function(rows), alone)
    np.testing.assert_array_equal(model.decision_function(rows[:1]), alone[:1])


# ---- streams ---------------------------------------------------------------------------------


def stream(model, cuts, **given):
    for start, stop in itertools.pairwise([0, *cuts, len(Y)]):
        model.partial_fit(X[start:stop], Y[start:stop], **given)
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cuts", [[1, 2, 9, 40], [30, 60], list(range(1, 90))])
def test_chunks_of_announced_classes_are_one_unshuffled_epoch(streaming, kind, cuts):
    if isinstance(streaming, CPMClassifier):
        streaming.set_params(max_steps=None)
        kind = "ovr" if kind == "joint" else kind
    streaming = several(streaming, kind)
    whole = clone(streaming).set_params(max_iter=1, shuffle=False).fit(X, Y)
    assert_same_model(stream(streaming, cuts, classes=CLASSES), whole)


@pytest.mark.parametrize("kind", KINDS)
def test_announced_classes_may_come_in_any_order(streaming, kind):
    """Codes follow the order of announcement, labels do not."""
    kind = "ovr" if isinstance(streaming, CPMClassifier) and kind == "joint" else kind
    model = several(streaming, kind)
    model.partial_fit(X[:30], Y[:30], classes=[3, 1]).partial_fit(X[30:], Y[30:], classes=[0, 2])
    assert model.classes_.tolist() == CLASSES
    predicted = model.predict(X)
    np.testing.assert_array_equal(predicted, model.decision_function(X).argmax(axis=1))
    names = np.array(["a", "b", "c", "d"])
    named = several(streaming, kind)
    named.partial_fit(X[:30], names[Y[:30]], classes=["d", "b"])
    named.partial_fit(X[30:], names[Y[30:]], classes=["a", "c"])
    np.testing.assert_array_equal(named.predict(X), names[predicted])


def test_pairs_with_a_class_first_met_later_are_those_pairs_alone_from_there_on(streaming):
    """Classes 0 and 1 in the first chunk; 2 and 3 after it, and rows of 0 and 1 with them."""
    first = np.flatnonzero(Y < 2)[:20]
    later = np.setdiff1d(np.arange(len(Y)), first)
    model = several(streaming, "ovo").partial_fit(X[first], Y[first])
    assert len(model._training.models) == 1
    model.partial_fit(X[later], Y[later])
    planes = []
    for pair in PAIRS:
        alone = clone(streaming)
        if pair == (0, 1):
            alone.partial_fit(X[first], Y[first])
        rows = later[np.isin(Y[later], pair)]
        planes.append(weights(alone.partial_fit(X[rows], Y[rows], classes=pair)))
    np.testing.assert_array_equal(weights(model), np.concatenate(planes))


def test_a_class_first_met_later_belongs_to_the_rest_of_the_others(streaming):
    first = np.flatnonzero(Y < 2)[:20]
    later = np.setdiff1d(np.arange(len(Y)), first)
    model = several(streaming, "ovr").partial_fit(X[first], Y[first])
    model.partial_fit(X[later], Y[later])
    planes = []
    for c in (1, 0, 2, 3):
        alone = clone(streaming)
        if c == 1:  # the one problem there is between two classes
            alone.partial_fit(X[first], Y[first] == 1)
        planes.append(weights(alone.partial_fit(X[later], Y[later] == c)))
    np.testing.assert_array_equal(weights(model), np.concatenate(planes))


def test_a_pair_that_was_never_seen_has_no_say(streaming):
    """Classes 8 and 9 are announced only: their pair has no planes and decides nothing."""
    model = several(streaming, "ovo", combine="vote")
    model.partial_fit(X, Y, classes=[*CLASSES, 8, 9])
    scores = model.decision_function(X)
    seen = clone(streaming).set_params(multi_class="ovo", combine="vote").partial_fit(X, Y)
    assert model.n_steps_ > seen.n_steps_  # those of pairs with one class seen
    assert (scores[:, 4] == scores[:, 5]).all()


# ---- early stopping, the search for alpha, going on ------------------------------------------


def test_early_stopping_returns_to_the_best_of_all_models(monkeypatch):
    model = AMMClassifier(multi_class="ovo", max_iter=9, early_stopping=True, random_state=0)
    best = clone(model).set_params(early_stopping=False, max_iter=2).fit(X, Y)
    script = iter([0.5, 0.2, 0.3, 0.2, 0.4, 0.0])
    monkeypatch.setattr(PassWatch, "error", lambda *_: next(script))
    model.fit(X, Y, eval_set=(X, Y))
    assert model.n_iter_ == 5
    assert_same_model(model, best)


def test_early_stopping_watches_the_error_of_the_whole_classifier(monkeypatch):
    model = CPMClassifier(n_planes=2, early_stopping=True, max_iter=2, random_state=0)
    seen, true_error = [], shell.error_of

    def error(estimator, data, order):
        labels = estimator._training.labels
        seen.append((data.rows.values[order], labels[data.labels[order]]))
        seen[-1] += (true_error(estimator, data, order), estimator.predict(seen[-1][0]))
        return seen[-1][2]

    monkeypatch.setattr(shell, "error_of", error)
    model.fit(X, Y)
    assert len(seen) == 2
    for rows, labels, found, predicted in seen:
        assert len(rows) == 9
        assert found == np.mean(predicted != labels)


def test_automatic_alpha_is_that_of_the_whole_classifier():
    model = AMMClassifier(multi_class="ovo", alpha="auto", random_state=0, max_iter=2)
    with looks_at_held_out_rows() as seen:
        model.fit(X, Y)
    for look in seen:
        assert {part.alpha for part in look.training.models} == {look.settings.alpha}
    assert model.alpha_ == lowest_as_fitted(seen, "alpha", Y.size)
    given = clone(model).set_params(alpha=model.alpha_).fit(X, Y)
    np.testing.assert_array_equal(model.planes_, given.planes_)
    assert {part.alpha for part in model._training.models} == {model.alpha_}


def test_pairs_met_after_the_search_have_the_alpha_found():
    model = AMMClassifier(multi_class="ovo", alpha="auto", random_state=0).fit(X[Y < 3], Y[Y < 3])
    model.partial_fit(X, Y)
    assert {part.alpha for part in model._training.models} == {model.alpha_}


@pytest.mark.parametrize("kind", KINDS)
def test_warm_start_goes_on_where_fit_ended(streaming, kind):
    if isinstance(streaming, CPMClassifier):
        streaming.set_params(entropy=0.0, max_steps=None)  # rows are counted anew in each fit
        kind = "ovr" if kind == "joint" else kind
    streaming = several(streaming, kind, shuffle=False)
    at_once = clone(streaming).set_params(max_iter=5).fit(X, Y)
    in_parts = streaming.set_params(warm_start=True, max_iter=2).fit(X, Y)
    assert_same_model(in_parts.set_params(max_iter=3).fit(X, Y), at_once)


def test_warm_start_adds_the_pairs_of_new_classes():
    model = AMMClassifier(multi_class="ovo", warm_start=True, random_state=0, max_iter=1)
    model.fit(X[Y < 3], Y[Y < 3]).fit(X, Y)
    assert model.classes_.tolist() == CLASSES
    steps = {part.problem.classes: part.n_steps for part in model._training.models}
    for pair in PAIRS:
        n_rows = int(np.isin(Y, pair).sum())
        assert steps[pair] == (n_rows if 3 in pair else 2 * n_rows)


# ---- an end before the end -------------------------------------------------------------------


class Interruption:
    """A progress report that stands for a user who presses Ctrl-C after so many parts."""

    def __init__(self, n_parts):
        self.parts, self.n_parts = itertools.count(1), n_parts

    @contextlib.contextmanager
    def __call__(self, title, n_rows, shown, unit):
        yield self.report

    def report(self, n_visited, n_planes, error):
        if next(self.parts) >= self.n_parts:
            raise KeyboardInterrupt


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_an_interruption_leaves_usable_models_and_no_threads(
    streaming, n_jobs, method, monkeypatch
):
    before = threading.active_count()
    model = several(streaming, "ovo", n_jobs=n_jobs, max_iter=50)
    with monkeypatch.context() as patch:
        patch.setattr("polyplane.estimator.shell.progress", Interruption(12))
        with pytest.raises(KeyboardInterrupt):
            getattr(model, method)(X, Y)
    assert threading.active_count() == before
    steps = model.n_steps_
    assert 0 < steps < 50 * 3 * len(X)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.partial_fit(X, Y).n_steps_ == steps + 3 * len(X)


def test_models_are_left_between_two_steps_when_threads_are_stopped(monkeypatch):
    """Each reached the planes of as many steps of its pair alone."""
    model = AMMClassifier(multi_class="ovo", n_jobs=2, shuffle=False, max_iter=50, random_state=0)
    with monkeypatch.context() as patch:
        patch.setattr("polyplane.estimator.shell.progress", Interruption(15))
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
    planes = []
    for part, pair in zip(model._training.models, PAIRS, strict=True):
        rows = np.resize(np.flatnonzero(np.isin(Y, pair)), part.n_steps)
        if rows.size:
            alone = AMMClassifier().partial_fit(X[rows], Y[rows], classes=pair)
            planes.append(weights(alone))
    np.testing.assert_array_equal(weights(model), np.concatenate(planes))


def test_an_error_in_one_thread_ends_the_others(monkeypatch):
    """One pair fails after a few steps, the others would go on for long."""
    model = AMMClassifier(multi_class="ovo", n_jobs=2, max_iter=10**6)

    def steps(part, data, order, chosen):
        if part.problem.classes == (1, 2) and part.n_steps > 8:
            raise MemoryError
        return hinge_steps(part, data, order, chosen)

    monkeypatch.setattr(AMMClassifier, "algorithm", replace(AMM, steps=steps))
    n_threads = threading.active_count()
    with pytest.raises(MemoryError):
        model.fit(X, Y)
    assert threading.active_count() == n_threads
    assert not hasattr(model, "classes_")  # what began anew is undone by an error


def test_an_interruption_under_early_stopping_leaves_the_planes_reached(monkeypatch):
    """Not those of the last time that the error was taken."""
    model = AMMClassifier(early_stopping=True, shuffle=False, max_iter=50)
    with monkeypatch.context() as patch:
        patch.setattr("polyplane.estimator.shell.progress", Interruption(12))
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y, eval_set=(X, Y))
    assert model.n_steps_ > len(X)
    rows = np.resize(np.arange(len(X)), model.n_steps_)
    alone = AMMClassifier().partial_fit(X[rows], Y[rows], classes=CLASSES)
    np.testing.assert_array_equal(model.plane_scores(X), alone.plane_scores(X))


# ---- what is kept and told -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ovr", "ovo"])
@pytest.mark.parametrize("n_estimators", [1, 2])
def test_the_deciding_plane_speaks_for_the_predicted_class(machine, kind, n_estimators):
    model = several(machine, kind, n_estimators=n_estimators).fit(X, Y)
    predicted, deciding, scores = model.predict(X), model.assign(X), model.plane_scores(X)
    for label, plane, of_planes in zip(predicted, deciding, scores, strict=True):
        speak = (model.plane_classes_ == label) & (model.plane_signs_ == 1)
        assert speak[plane]
        assert of_planes[plane] == of_planes[speak].max()


def test_planes_of_the_rest_have_the_sign_of_speaking_against():
    model = PegasosClassifier(multi_class="ovr", random_state=0).fit(X, Y)
    assert model.plane_classes_.tolist() == [1, 1, 0, 0, 2, 2, 3, 3]
    assert model.plane_signs_.tolist() == [-1, 1] * 4


def test_history_numbers_the_models_and_errors_are_their_own():
    model = AMMClassifier(multi_class="ovo", random_state=0, max_iter=2).fit(X, Y)
    history = model.history_
    assert np.unique(history["model"]).tolist() == list(range(6))
    for k, pair in enumerate(PAIRS):
        n_rows = int(np.isin(Y, pair).sum())
        steps = history["step"][history["model"] == k]
        assert steps.tolist() == [2**j for j in range(20) if 2**j <= 2 * n_rows]


# ---- progress --------------------------------------------------------------------------------


@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("many_rows", [10, 30_000])
@pytest.mark.parametrize("kind", KINDS)
def test_progress_ends_at_its_end(kind, many_rows, drops, monkeypatch):
    """The steps announced are those made; a search that leaves some behind makes fewer."""
    announced, made = [], []

    @contextlib.contextmanager
    def progress(title, n_rows, shown, *_, **__):
        announced.append(n_rows)
        made.append(0)

        def report(n_visited, n_planes, error):
            made[-1] += n_visited

        yield report

    monkeypatch.setattr("polyplane.estimator.shell.progress", progress)
    monkeypatch.setattr("polyplane.training.search.best_value.progress", progress)
    monkeypatch.setattr(
        "polyplane.training.search.contest.clearly_behind",
        lambda is_wrong, errors: drops & (np.arange(len(is_wrong)) > 0),
    )
    monkeypatch.setattr("polyplane.training.search.contest.Contender.equals", lambda *_: False)
    monkeypatch.setattr(
        "polyplane.training.search.contest._has_hope",
        lambda behind, differences: behind == 0 or not drops,
    )
    monkeypatch.setattr("polyplane.training.search.best_value.MANY_ROWS", many_rows)
    AMMClassifier(alpha="auto", multi_class=kind, n_estimators=2, max_iter=2, random_state=0).fit(
        X, Y
    )
    if drops and many_rows == 10:  # after the first of two passes one of six is left, or two
        announced[0] = announced[0] * 6 // (6 + 2)
    if drops and many_rows > X.shape[0]:  # all rows, and three times two thirds of them
        assert made[0] < announced[0]
    else:
        assert made[0] == announced[0]
    assert made[1] == announced[1]
    assert len(made) == 2
