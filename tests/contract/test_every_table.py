"""What every estimator owes to people who have tables: text, categories, dates and gaps."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

import polyplane as pp
from polyplane.data.table.frames import frame_of, rows_of
from polyplane.data.table.layout import Layout
from tests.contract.sameness import assert_same_scores, lasting_state, scores_of

N_ROWS = 60
RANDOM = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {
        "age": np.where(RANDOM.random(N_ROWS) < 0.2, np.nan, RANDOM.normal(size=N_ROWS)),
        "town": RANDOM.choice(["Ulm", "Bonn", None], N_ROWS),
        "colour": pd.Categorical(RANDOM.choice(["red", "blue"], N_ROWS)),
        "since": pd.Timestamp("2024-01-30") + pd.to_timedelta(RANDOM.integers(0, 9, N_ROWS), "D"),
        "paid": RANDOM.random(N_ROWS) < 0.5,
        "count": pd.array(RANDOM.integers(0, 5, N_ROWS), dtype="Int16"),
    }
)
LABELS = RANDOM.choice(["no", "yes", "maybe"], N_ROWS)


def rows():
    """The table as rows of numbers, and its layout."""
    layout = Layout(grows=False)
    return rows_of(frame_of(FRAME), layout), layout


def test_a_table_is_learned_as_its_rows_are(machine):
    X, layout = rows()
    model, expected = clone(machine).fit(FRAME, LABELS), machine.fit(X, LABELS)
    for ours, theirs in zip(scores_of(model, FRAME), scores_of(expected, X), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert model.n_features_in_ == 6
    assert model.feature_names_in_.tolist() == list(FRAME)
    assert model.layout_ == layout
    assert_same_scores(model, model, X)  # rows that have been laid out are taken as they are


def test_prediction_of_tables_changes_nothing(machine):
    model = machine.fit(FRAME, LABELS)
    before, layout = lasting_state(model), pickle.dumps(model.layout_)
    scores_of(model, FRAME.assign(town="Rome", age=np.nan, colour=None))
    assert lasting_state(model) == before
    assert pickle.dumps(model.layout_) == layout


def test_any_library_and_any_order_of_columns_will_do(machine):
    model = machine.fit(FRAME, LABELS)
    expected = scores_of(model, FRAME)
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    others = [FRAME[FRAME.columns[::-1]].assign(new="x"), table, table.to_batches()[0]]
    polars = pytest.importorskip("polars")
    for frame in [*others, polars.from_pandas(FRAME)]:
        for ours, theirs in zip(scores_of(model, frame), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_the_layout_travels_with_the_model(machine, tmp_path):
    model = machine.fit(FRAME, LABELS)
    pp.save(model, tmp_path / "model")
    loaded = pp.load(tmp_path / "model")
    assert loaded.n_features_in_ == 6
    assert loaded.feature_names_in_.tolist() == list(FRAME)
    assert loaded.layout_ == model.layout_
    unseen = FRAME.assign(town="Rome", age=np.nan)
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        assert_same_scores(model, other, FRAME)
        assert_same_scores(model, other, unseen)


def test_chunks_of_a_table_grow_the_layout_and_a_saved_one_goes_on(streaming_machine, tmp_path):
    model = streaming_machine
    model.partial_fit(FRAME[:20], LABELS[:20], classes=np.unique(LABELS))
    n_known = model.layout_.width
    pp.save(model, tmp_path / "model")
    loaded = pp.load(tmp_path / "model")
    new = FRAME[20:].assign(town=["Rome"] * 40)
    for one in (model, loaded):
        one.partial_fit(new, LABELS[20:])
        assert one.layout_.width == n_known + 1
        assert "town=Rome" in one.layout_.feature_names
    assert_same_scores(model, loaded, FRAME)


def test_a_chunk_that_is_refused_changes_nothing(streaming_machine):
    model = streaming_machine.partial_fit(FRAME[:20], LABELS[:20], classes=np.unique(LABELS))
    before = model.layout_.to_dict()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.partial_fit(FRAME[20:].assign(town="Rome"), LABELS[:3])
    assert model.layout_.to_dict() == before


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"age": "old"}, "found text such as 'old' in column 'age', expected numbers"),
        ({"since": "soon"}, "found text such as 'soon' in column 'since', expected dates"),
        ({"town": 1}, "found int64 in column 'town', expected texts such as '.*' as in training"),
        ({"colour": True}, "found bool in column 'colour', expected texts such as"),
        ({"age": np.inf}, "infinite value in column 'age'"),
    ],
)
def test_errors_name_the_column(machine, changes, words):
    model = machine.fit(FRAME, LABELS)
    with pytest.raises(ValueError, match=words):
        model.predict(FRAME.assign(**changes))
    with pytest.raises(ValueError, match="found no columns 'age', 'town'"):
        model.predict(FRAME.drop(columns=["age", "town"]))


def test_a_number_far_outside_is_read_as_the_largest_that_products_bear(machine):
    if isinstance(machine, pp.Poly2Classifier):
        pytest.skip("products of two columns bear less, which it says itself")
    model = machine.fit(FRAME, LABELS)
    far = [model.decision_function(FRAME.assign(age=age)) for age in (1e10, 1e30, 1e300)]
    np.testing.assert_array_equal(far[1], far[0])
    np.testing.assert_array_equal(far[2], far[0])


def test_text_is_never_said_to_be_no_float(machine):
    model = clone(machine).fit(FRAME[["count"]], LABELS)
    model.predict(pd.DataFrame({"count": ["1", "2"]}))  # they are numbers all the same
    plain = machine.fit(np.ones((3, 1)) * [[1], [2], [3]], [0, 1, 1])
    with pytest.raises(ValueError, match=r"column 'sex' holds .*, but .* was fitted on numbers"):
        plain.predict(pd.DataFrame({"sex": ["male"]}))


def test_an_array_with_text_in_it_is_a_table(machine):
    rows = np.array([["male", 1.5], ["female", None], ["male", 2.5]], object)
    model = machine.fit(rows, [0, 1, 0])
    assert model.n_features_in_ == 2
    assert model.layout_.feature_names == ["2", "1=male", "1=female", "2 missing"]
    np.testing.assert_array_equal(model.predict(rows.tolist()), model.predict(rows))


def test_fitting_numbers_forgets_the_layout(machine):
    model = machine.fit(FRAME, LABELS)
    X = np.arange(2.0 * N_ROWS).reshape(N_ROWS, 2)
    model.fit(X, LABELS)
    assert model.n_features_in_ == 2
    assert not hasattr(model, "layout_")
    assert not hasattr(model, "feature_names_in_")
    model.predict(X)


@pytest.mark.parametrize("given", [["count"], [5], [False] * 5 + [True]], ids=str)
def test_categorical_features_are_names_positions_or_a_mask(machine, given, tmp_path):
    model = machine.set_params(categorical_features=given).fit(FRAME, LABELS)
    kinds = {source.name: source.kind for source in model.layout_.sources}
    assert kinds["count"] == "category"
    pp.save(model, tmp_path / "model")
    assert pp.load(tmp_path / "model").categorical_features == given


def test_categorical_features_that_are_not_there_are_named(machine):
    machine.set_params(categorical_features=["size"])
    with pytest.raises(ValueError, match="'size'"):
        machine.fit(FRAME, LABELS)
    machine.set_params(categorical_features=[True])
    with pytest.raises(ValueError, match="mask of 1 columns; X has 6"):
        machine.fit(FRAME, LABELS)


def test_ids_are_set_aside_with_a_warning_that_names_them(machine):
    frame = FRAME.assign(id=[f"C-{k:04d}" for k in range(N_ROWS)])
    with pytest.warns(UserWarning, match="'id' is almost unique"):
        model = clone(machine).fit(frame, LABELS)
    assert_same_scores(model, clone(machine).fit(FRAME, LABELS), FRAME)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        insisted = machine.set_params(categorical_features=["id"]).fit(frame, LABELS)
    assert insisted.layout_.set_aside == []


def test_a_file_and_a_frame_of_it_are_one_model(machine, tmp_path):
    path = tmp_path / "rows.csv"
    FRAME.assign(label=LABELS).to_csv(path, index=False)
    layout = Layout()
    X, y = pp.read(path, layout=layout)
    model = machine.fit(FRAME, LABELS)
    assert [source.kind for source in layout.sources] == [
        source.kind if source.name != "count" else "number" for source in model.layout_.sources
    ]
    np.testing.assert_array_equal(model.predict(X), model.predict(FRAME))
    assert y.tolist() == LABELS.tolist()


# ---- arrays with gaps ------------------------------------------------------------------------

NUMBERS = FRAME[["age", "paid", "count"]].astype(float).to_numpy()


def test_an_array_with_gaps_is_a_table_without_names(machine, tmp_path):
    nameless = pd.DataFrame(NUMBERS)
    expected = clone(machine).fit(nameless, LABELS)
    new = np.where(RANDOM.random(NUMBERS.shape) < 0.3, np.nan, NUMBERS)
    pp.save(machine.fit(NUMBERS, LABELS), tmp_path / "model")
    for model in (machine, pp.load(tmp_path / "model")):
        assert model.n_features_in_ == 3
        assert model.layout_ == expected.layout_
        assert "1 missing" in model.layout_.feature_names
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = scores_of(model, new)
        for ours, theirs in zip(found, scores_of(expected, pd.DataFrame(new)), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert not hasattr(machine, "feature_names_in_")


def test_gaps_are_found_however_arrays_lie_in_memory(machine):
    expected = clone(machine).fit(NUMBERS, LABELS)
    wide = np.repeat(NUMBERS, 2, axis=1)[:, ::2]
    for X in (np.asfortranarray(NUMBERS), wide):
        assert clone(machine).fit(X, LABELS).layout_ == expected.layout_


def test_lists_with_gaps_and_later_chunks_of_arrays_are_learned(streaming_machine):
    model = streaming_machine
    model.partial_fit(NUMBERS[:30].tolist(), LABELS[:30], classes=np.unique(LABELS))
    model.partial_fit(NUMBERS[30:], LABELS[30:])
    assert model.layout_.width == 4
    assert np.isfinite(model.decision_function(NUMBERS)).all()
