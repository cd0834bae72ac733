"""Rounds: a learner alone is `fit`; learners side by side give one sound model that learns on."""

import numpy as np
import pytest
import scipy.sparse as sp

import polyplane as pp
from polyplane.estimator.files.saving import packed, unpacked
from polyplane.estimator.fitting.restoring import training_of
from polyplane.estimator.learners.travelling_models import (
    Census,
    Journey,
    Moment,
    Piece,
    Task,
    become_round,
    begun,
    begun_by_sample,
    completed,
    mixed_shares,
    next_model,
)

MACHINES = [
    pp.AMMClassifier(random_state=1, max_iter=3, prune_interval=100),
    pp.AMMClassifier(random_state=1, max_iter=3, max_planes=2, n_estimators=2),
    pp.MMClassifier(random_state=1, max_iter=3),
    pp.PegasosClassifier(random_state=1, max_iter=3, multi_class="ovo"),
    pp.PassiveAggressiveClassifier(random_state=1, max_iter=3),
    pp.Poly2Classifier(random_state=1, max_iter=3, gamma=0.1),
    pp.CPMClassifier(random_state=1, max_iter=3, entropy=0.0, n_planes=4),
]
NAMES = [f"{type(machine).__name__}-{k}" for k, machine in enumerate(MACHINES)]
CPM = pp.CPMClassifier(random_state=1, max_iter=3, n_planes=4)


def rows(n=301, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.integers(0, 5, (n, 6)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] + X[:, 2]).astype(int) // 4 % 3


def clone(machine):
    return type(machine)(**machine.get_params())


POLYPLANES = [
    {},
    {"columns": "fine", "n_estimators": 1, "multi_class": "ovo", "shrinkage": 3.0},
    {"n_planes": 4, "units": 2, "temperature": 0.5, "learn_from": "all"},
    {"n_planes": 1, "loss": "squared-hinge"},
]  # first guesses, but for what is set; seconds go to searches elsewhere
POLYPLANES = [pp.SoftPlanesClassifier(random_state=1, max_iter=3, **k) for k in POLYPLANES]
BY_SAMPLE = [
    *POLYPLANES,
    pp.SoftPlanesClassifier(random_state=1, max_iter=3, learn_from="most"),
    pp.AMMClassifier(random_state=1, max_iter=3, alpha="auto", prune_interval=100),
    pp.MMClassifier(random_state=1, max_iter=3, init="kmeans"),
]


def census_of(parts):
    labels, n_rows = np.unique(np.concatenate([y for _, y in parts]), return_counts=True)
    return Census(labels, n_rows)


def first_model(machine, parts):
    if any(machine is one for one in BY_SAMPLE):
        machine, X = clone(machine), np.concatenate([X for X, _ in parts])
        y = np.concatenate([y for _, y in parts])
        begun_by_sample(machine, X, y, X.shape[1], census_of(parts))
        return packed(machine)
    machine, classes = clone(machine), np.unique(np.concatenate([y for _, y in parts]))
    n_columns = max(X.shape[1] for X, _ in parts)
    for X, y in parts:
        if begun(machine, X, y, classes, n_columns):
            break
    return packed(machine)


def after(start, X, y, *words):
    """A learner after one partition."""
    journey = Journey(start)
    journey.visit(X, y, *words)
    return journey


def one_round(model, learners, alike=0.9, n_rounds=3, n_passes=1):
    """`learners` are lists of partitions."""
    ends, moment = [], Moment(int(unpacked(model).n_iter_), n_rounds, n_passes)
    for number, parts in enumerate(learners):
        journey, task = Journey(model), Task(number, census_of(parts), moment)
        for k, (X, y) in enumerate(parts * n_passes):
            journey.visit(X, y, task if k == 0 else None)
        ends.append(journey)
    if len(ends) == 1:
        return ends[0].alone(moment)
    reached = ends[0].shares()
    for end in ends[1:]:
        reached = mixed_shares(reached, end.shares(), alike)
    return next_model(model, reached, moment)


def trained(machine, learners, rounds):
    model = first_model(machine, [part for parts in learners for part in parts])
    for _ in range(rounds):
        model = one_round(model, learners)
    if rounds == 3:
        parts = [part for parts in learners for part in parts]
        model = completed(model, *(np.concatenate(one) for one in zip(*parts, strict=True)))
    return model


@pytest.mark.parametrize("machine", [*MACHINES, *BY_SAMPLE], ids=lambda one: type(one).__name__)
def test_one_learner_with_one_partition_is_fit_bit_for_bit(machine):
    X, y = rows()
    made, expected = unpacked(trained(machine, [[(X, y)]], 3)), clone(machine).fit(X, y)
    np.testing.assert_array_equal(made.planes_, expected.planes_)
    np.testing.assert_array_equal(made.history_, expected.history_)
    np.testing.assert_array_equal(made.decision_function(X), expected.decision_function(X))
    assert (made.n_steps_, made.n_iter_) == (expected.n_steps_, expected.n_iter_)


@pytest.mark.parametrize("machine", [*MACHINES, CPM], ids=[*NAMES, "CPM"])
def test_one_learner_with_several_partitions_is_partial_fit(machine):
    X, y = rows()
    machine = clone(machine).set_params(shuffle=False)
    parts = [(X[:100], y[:100]), (X[100:250], y[100:250]), (X[250:], y[250:])]
    made, expected = unpacked(trained(machine, [parts], 2)), clone(machine)
    for _ in range(2):
        expected.partial_fit(X, y)
    np.testing.assert_array_equal(made.planes_, expected.planes_)
    assert made.n_steps_ == expected.n_steps_


@pytest.mark.parametrize(
    "machine", [*MACHINES, *POLYPLANES, CPM], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("n_rounds", [2, 3])
def test_a_mixture_is_a_sound_model_that_learns_on(machine, n_rounds, tmp_path):
    X, y = rows()
    learners = [[(X[:90], y[:90])], [(X[90:200], y[90:200]), (X[200:220], y[200:220])]]
    learners.append([(X[220:], y[220:])])
    made = unpacked(trained(machine, learners, n_rounds))
    pp.save(made, tmp_path / "model")
    again = pp.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), made.predict(X))
    again.partial_fit(X, y)
    assert np.isfinite(again.decision_function(X)).all()
    assert made.n_iter_ == n_rounds
    if getattr(machine, "max_planes", None):
        assert np.bincount(made.plane_classes_).max() <= 2 * machine.n_estimators


@pytest.mark.parametrize("machine", MACHINES[:1], ids=["AMM"])
def test_a_round_changes_nothing_that_it_is_given(machine):
    X, y = rows()
    model = first_model(machine, [(X, y)])
    halves = [[(X[:150], y[:150])], [(X[150:], y[150:])]]
    model = one_round(model, halves)
    before = {name: array.tobytes() for name, array in model.arrays.items()}
    one, other = one_round(model, halves), one_round(model, halves)
    assert before == {name: array.tobytes() for name, array in model.arrays.items()}
    assert one.values == other.values
    assert all(np.array_equal(one.arrays[name], other.arrays[name]) for name in one.arrays)


def test_learners_over_the_same_rows_have_orders_of_their_own():
    X, y = rows()
    model = first_model(MACHINES[3], [(X, y)])
    first, second = (
        after(model, X, y, Task(learner, census_of([(X, y)]), Moment(0, 3))).along().model
        for learner in (0, 1)
    )
    assert any(not np.array_equal(first.arrays[k], second.arrays[k]) for k in first.arrays)


def test_a_pair_of_classes_begins_with_the_partition_that_has_one():
    X, y = rows()
    order = np.argsort(y, kind="stable")
    parts = [(X[part], y[part]) for part in np.array_split(order, 3)]
    made = unpacked(trained(CPM, [[part] for part in parts], 2))
    assert made.predict(X).shape == y.shape


def test_sparse_rows_may_use_fewer_columns():
    X, y = rows()
    narrow = sp.csr_matrix(X[:100, :4]), y[:100]
    wide = sp.csr_matrix(X[100:]), y[100:]
    made = unpacked(trained(MACHINES[0], [[narrow], [wide]], 1))
    assert made.n_features_in_ == 6


def test_numbers_that_are_not_finite_are_refused_on_arrival():
    X, y = rows()
    model = first_model(MACHINES[0], [(X, y)])
    reached = after(model, X, y).shares()
    reached.shares[0].sums[0] = np.nan
    with pytest.raises(ValueError, match="not sound"):
        next_model(model, reached, Moment(0, 3))


def test_an_estimator_becomes_what_a_round_reached():
    X, y = rows()
    model = trained(MACHINES[2], [[(X, y)]], 1)
    estimator = clone(MACHINES[2])
    become_round(estimator, model)
    np.testing.assert_array_equal(estimator.predict(X), unpacked(model).predict(X))
    estimator.partial_fit(X, y)
    assert estimator.n_steps_ == 2 * len(y)


@pytest.mark.parametrize("machine", POLYPLANES[1:3], ids=["pairs", "units"])
def test_learners_with_the_same_rows_in_the_same_order_are_one_learner(machine):
    """Schedules, shrinkage and largest shares survive a mixture of equals, up to rounding."""
    X, y = rows()
    machine, ends = clone(machine).set_params(shuffle=False), []
    begun_by_sample(machine, X, y, X.shape[1], census_of([(X, y)]))
    for n_learners in (1, 3):
        model = packed(machine)
        for _ in range(3):
            model = one_round(model, [[(X, y)]] * n_learners)
        ends.append(unpacked(model))
    one, three = ends
    assert (one.n_steps_, one.n_planes_) == (three.n_steps_, three.n_planes_)
    np.testing.assert_allclose(one.planes_, three.planes_, rtol=1e-4, atol=1e-5)


def test_learners_of_different_depth_reach_the_end_of_their_schedule():
    X, y = rows()
    model = first_model(POLYPLANES[0], [(X, y)])
    learners = [[(X[:50], y[:50])], [(X[50:100], y[50:100]), (X[100:], y[100:])]]
    for done in (1, 2, 3):
        model = one_round(model, learners)
        for one in training_of(unpacked(model)).models:
            part = (one.n_steps - one.rule.start) / one.rule.n_steps
            assert part == pytest.approx(done / 3)


def test_a_round_of_several_passes_goes_as_far_as_rounds_of_one():
    X, y = rows()
    model = first_model(POLYPLANES[0], [(X, y)])
    learners = [[(X[:50], y[:50])], [(X[50:100], y[50:100]), (X[100:], y[100:])]]
    for n_passes, done in ((2, 2), (2, 4), (1, 5)):
        model = one_round(model, learners, n_rounds=5, n_passes=n_passes)
        made = unpacked(model)
        assert made.n_iter_ == done
        for one in training_of(made).models:
            assert one.n_steps == pytest.approx(done * 201, rel=0.1)  # as deep as the learners
            part = (one.n_steps - one.rule.start) / one.rule.n_steps
            assert part == pytest.approx(done / 5, abs=0.01)


@pytest.mark.parametrize("machine", [MACHINES[1], POLYPLANES[2]], ids=["AMM", "Polyplane"])
def test_a_learner_that_travels_is_the_one_that_stays(machine):
    """In the middle of a round, from one task to another."""
    X, y = rows()
    model, shares = first_model(machine, [(X, y)]), []
    task = Task(1, census_of([(X, y)]), Moment(0, 3))
    for travels in (False, True):
        journey = after(model, X[:120], y[:120], task)
        if travels:
            journey = Journey(journey.along())
        journey.visit(X[120:], y[120:])
        shares.append(journey.shares())
    stayed, travelled = shares
    assert stayed.n_created == travelled.n_created
    assert stayed.generators == travelled.generators
    for one, other in zip(stayed.shares, travelled.shares, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_sample_of_sparse_rows_leaves_room_for_all_columns():
    X, y = rows()
    wide = sp.csr_matrix((X.shape[0], 500), dtype=np.float32).tolil()
    wide[:, :6] = X
    wide[200:, 6:12] = X[200:]
    wide = wide.tocsr()
    labels, n_rows = np.unique(y, return_counts=True)
    machine = clone(POLYPLANES[0])
    begun_by_sample(machine, wide[:200], y[:200], 500, Census(labels, n_rows))
    halves = [[(wide[:200], y[:200])], [(wide[200:], y[200:])]]
    made = unpacked(one_round(packed(machine), halves))
    assert np.abs(made.planes_[:, 6:12]).sum() > 0


def test_pieces_of_a_pass_one_after_the_other_are_the_pass():
    X, y = rows()
    model, task = first_model(MACHINES[0], [(X, y)]), Task(2, census_of([(X, y)]), Moment(0, 3))
    whole, pieces = after(model, X, y, task).along().model, model
    for k in range(4):
        pieces = after(pieces, X, y, task, Piece(k, 4)).along().model
    one, other = (training_of(unpacked(end)).models[0] for end in (whole, pieces))
    assert one.n_steps == other.n_steps == len(y)
    np.testing.assert_array_equal(one.planes.sums, other.planes.sums)
    assert one.generator.bit_generator.state == other.generator.bit_generator.state
