"""What weights of rows and of classes mean."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

from polyplane import HullerClassifier
from tests.contract.sameness import assert_same_model, assert_same_scores, scores_of

WEIGHT_OF_CLASS = {0: 0.25, 1: 3.0, 2: 1.5}


@pytest.fixture(params=[slice(0, 9), slice(5, None, 4)], ids=["first rows", "other rows"])
def weights(request, y):
    """Ones, and zeros for some rows of each class."""
    values = np.ones(y.size)
    values[request.param] = 0
    return values


@pytest.mark.loops
def test_weight_0_leaves_the_row_out_of_fit(loop, X, y, weights):
    loop.set_params(shuffle=False)
    kept = weights > 0
    left_out = clone(loop).fit(X[kept], y[kept])
    model = loop.fit(X, y, sample_weight=weights)
    assert_same_model(model, left_out)
    assert model.n_steps_ == left_out.n_steps_


def test_weight_0_leaves_the_row_out_of_partial_fit(streaming_machine, X, y, weights):
    kept = weights > 0
    left_out = clone(streaming_machine).partial_fit(X[kept], y[kept], classes=[0, 1, 2])
    model = streaming_machine.partial_fit(X, y, classes=[0, 1, 2], sample_weight=weights)
    assert_same_model(model, left_out)


@pytest.mark.loops
def test_weight_1_is_no_weight(loop, X, y):
    unweighted = clone(loop).fit(X, y)
    assert_same_model(loop.fit(X, y, sample_weight=np.ones(y.size)), unweighted)


@pytest.mark.loops
def test_weights_matter(loop, X, y):
    unweighted = clone(loop).fit(X, y)
    model = loop.fit(X, y, sample_weight=np.arange(1, y.size + 1))
    if isinstance(model, HullerClassifier) and model.C is None:
        assert_same_scores(model, unweighted, X)  # by design: a hard margin has no slack to weigh
    else:
        assert scores_of(model, X)[0].tolist() != scores_of(unweighted, X)[0].tolist()


@pytest.mark.parametrize("names", [np.array([0, 1, 2]), np.array(["ant", "bee", "cow"])])
def test_a_dict_of_class_weights_is_the_same_weight_on_each_row(machine, X, y, names):
    by_name = {name: WEIGHT_OF_CLASS[k] for k, name in enumerate(names.tolist())}
    by_row = clone(machine).fit(X, names[y], sample_weight=[WEIGHT_OF_CLASS[k] for k in y])
    assert_same_model(machine.set_params(class_weight=by_name).fit(X, names[y]), by_row)


def test_a_dict_of_class_weights_works_chunk_by_chunk(streaming_machine, X, y):
    by_row = clone(streaming_machine)
    streaming_machine.set_params(class_weight=WEIGHT_OF_CLASS)
    for chunk in np.array_split(np.arange(y.size), 5):
        sample_weight = [WEIGHT_OF_CLASS[k] for k in y[chunk]]
        by_row.partial_fit(X[chunk], y[chunk], sample_weight=sample_weight)
        streaming_machine.partial_fit(X[chunk], y[chunk])
    assert_same_model(streaming_machine, by_row)


def test_classes_missing_from_the_dict_have_weight_1(machine, X, y):
    complete = clone(machine).set_params(class_weight={0: 1.0, 1: 2.0, 2: 1.0}).fit(X, y)
    assert_same_model(machine.set_params(class_weight={1: 2.0}).fit(X, y), complete)


@pytest.mark.parametrize("misspelt", [{"0": 1.0, "1": 2.0, "2": 1.0}, {1: 2.0, 7: 3.0}])
def test_weights_of_labels_that_no_row_has_are_refused(machine, X, y, misspelt):
    with pytest.raises(ValueError, match=r"class_weight names .* as they stand in y\.$"):
        machine.set_params(class_weight=misspelt).fit(X, y)


def test_weights_of_more_labels_than_there_are_change_nothing(machine, X, y):
    exact = clone(machine).set_params(class_weight=WEIGHT_OF_CLASS).fit(X, y)
    machine.set_params(class_weight=WEIGHT_OF_CLASS | {7: 3.0})
    assert_same_model(machine.fit(X, y), exact)


def test_balanced_is_inverse_to_the_number_of_rows(machine, X, y):
    X, y = X[10:], np.minimum(y[10:], 1)
    by_row = clone(machine).fit(X, y, sample_weight=y.size / (2 * np.bincount(y)[y]))
    assert_same_model(machine.set_params(class_weight="balanced").fit(X, y), by_row)


def test_weights_of_rows_and_classes_multiply(machine, X, y):
    by_row = np.linspace(0.5, 2, y.size)
    product = by_row * compute_sample_weight(WEIGHT_OF_CLASS, y)
    multiplied = clone(machine).fit(X, y, sample_weight=product)
    model = machine.set_params(class_weight=WEIGHT_OF_CLASS).fit(X, y, sample_weight=by_row)
    assert_same_model(model, multiplied)


def test_balanced_is_refused_chunk_by_chunk(streaming_machine, X, y):
    with pytest.raises(ValueError, match=r'class_weight="balanced" needs all rows.*\.$'):
        streaming_machine.set_params(class_weight="balanced").partial_fit(X, y)


@pytest.mark.loops
def test_large_weights_keep_scores_finite(loop, X, y):
    model = loop.fit(X, y, sample_weight=np.full(y.size, 1e6))
    assert np.isfinite(model.decision_function(X)).all()
