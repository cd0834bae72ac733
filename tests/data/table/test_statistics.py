"""Target statistics: equal to those written down, blind to a row's own label, and kept in files."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from polyplane.data.table.frames import frame_of, rows_of
from polyplane.data.table.layout import Layout
from polyplane.data.table.statistics import (
    N_PARTS,
    Labelled,
    TargetStatistics,
    entries_with_columns,
    joined_codes,
    learned_statistics,
)
from tests.reference.target_statistics import statistics_of_row

COMBINATIONS = [(0,), (1,), (0, 1), (1, 2)]


def some_table(n=120, seed=0):
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "carrier": generator.choice(["AA", "BB", "CC", None], n),
            "flight": generator.choice([7.0, 12.0, 100.0, np.nan], n),
            "origin": pd.Categorical(generator.choice(["x", "y"], n)),
            "distance": generator.normal(size=n),
        }
    )
    return frame, generator.integers(0, 3, n)


def kept(frame):
    """Return the layout of a training, which keeps the keys of its rows."""
    layout = Layout(grows=False, keeps_keys=True)
    rows = rows_of(frame_of(frame), layout)
    return layout, rows


def learned(n_classes, is_weighted, seed=3):
    frame, labels = some_table()
    layout, _ = kept(frame)
    generator = np.random.default_rng(1)
    weights = generator.choice([0.0, 1.0, 2.5], len(labels)) if is_weighted else np.ones(120)
    labelled = Labelled(labels % n_classes, weights, n_classes)
    names = [f"class {k}" for k in range(n_classes)]
    made, columns = learned_statistics(layout.keyed, COMBINATIONS, labelled, names, seed)
    return frame, layout, labelled, made, columns


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_columns_are_those_written_down_row_by_row(n_classes, is_weighted):
    frame, _, labelled, made, columns = learned(n_classes, is_weighted)
    parts = np.random.default_rng(3).permutation(len(frame)) % N_PARTS
    texts = [frame[name].astype(object).where(frame[name].notna(), "none") for name in frame]
    expected = []
    for keys in COMBINATIONS:
        values = list(zip(*(texts[k] for k in keys), strict=True))
        least = len(keys)
        given = values, labelled.ranks, labelled.weights, n_classes, parts, least
        expected.append([statistics_of_row(i, *given) for i in range(len(frame))])
    np.testing.assert_allclose(columns, np.hstack(expected), rtol=1e-5, atol=1e-5)
    assert made.width == columns.shape[1] == len(made.names(["a", "b", "c"])) == len(made.places())


@pytest.mark.parametrize("i", range(0, 120, 7))
def test_the_own_label_of_a_row_changes_none_of_its_columns_but_by_the_prior(i):
    _, layout, labelled, _, columns = learned(3, False)
    other = labelled.ranks.copy()
    other[i] = (other[i] + 1) % 3
    changed = labelled._replace(ranks=other)
    _, again = learned_statistics(layout.keyed, COMBINATIONS, changed, list("abc"), 3)
    np.testing.assert_array_equal(again[i], columns[i])
    assert not np.array_equal(again, columns)


def test_rows_of_prediction_get_what_all_training_rows_say():
    frame, layout, labelled, made, _ = learned(3, True)
    layout.keeps_keys, layout.statistics = False, made
    rows = rows_of(frame_of(frame), layout)
    no_weight = Labelled(labelled.ranks, labelled.weights, 3)
    for i in (0, 5, 50):
        alone = rows_of(frame_of(frame.iloc[[i]]), layout)
        np.testing.assert_array_equal(alone.toarray()[0], rows.toarray()[i])
    twice = pd.concat([frame, frame], ignore_index=True)
    weights = np.concatenate([no_weight.weights, np.zeros(120)])
    double, _ = kept(twice)
    ranks = np.concatenate([no_weight.ranks] * 2)
    names = list("abc")
    _, columns = learned_statistics(
        double.keyed, COMBINATIONS, Labelled(ranks, weights, 3), names, 0
    )
    found = rows.toarray()[:, layout.width_without_statistics :]
    np.testing.assert_allclose(found, columns[120:], rtol=1e-5, atol=1e-5)


def test_values_that_were_not_met_get_the_shares_of_all_rows():
    frame, layout, labelled, made, _ = learned(3, False)
    layout.keeps_keys, layout.statistics = False, made
    new = frame.iloc[:1].assign(carrier="ZZ", flight=3.0)
    found = rows_of(frame_of(new), layout).toarray()[0, layout.width_without_statistics :]
    shares = np.bincount(labelled.ranks) / len(frame)
    rest = [*np.log(shares / (1 - shares)), 0.0]
    np.testing.assert_allclose(found[:12], np.tile(rest, 3), rtol=1e-5)


def test_keys_are_categories_and_whole_numbers_that_come_again():
    frame, _ = some_table()
    frame["many"] = np.arange(120)
    frame["half"] = np.repeat(np.arange(30), 4) / 2
    layout, rows = kept(frame.sample(frac=1, random_state=0))
    assert [layout.sources[key.place].name for key in layout.keys] == [
        "carrier",
        "flight",
        "origin",
    ]
    assert layout.keyed.n_rows == rows.shape[0]
    numbers, _ = kept(frame[["flight", "distance"]])
    assert numbers.keys == []


def test_plain_values_become_the_same_statistics():
    frame, layout, _, made, _ = learned(3, True)
    again = TargetStatistics.from_dict(made.to_dict(), 4)
    layout.keeps_keys, layout.statistics = False, made
    expected = rows_of(frame_of(frame), layout).toarray()
    layout.statistics = again
    np.testing.assert_array_equal(rows_of(frame_of(frame), layout).toarray(), expected)
    assert again.to_dict() == made.to_dict()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda plain: plain["keys"][0].update(source=4), "no column"),
        (lambda plain: plain["keys"][0].update(texts=["AA", "AA"]), "meet twice"),
        (lambda plain: plain["statistics"][0].update(keys=[3]), "no key"),
        (lambda plain: plain["statistics"][0].update(keys=[0, 1, 2]), "one key or two"),
        (lambda plain: plain["statistics"][0].update(codes=""), "other values"),
        (lambda plain: plain["statistics"][2].update(rest="AACAfw=="), "other values|not finite"),
        (lambda plain: plain["classes"].append("d"), "other values"),
    ],
)
def test_statistics_that_cannot_be_are_refused(change, words):
    _, _, _, made, _ = learned(3, False)
    plain = made.to_dict()
    change(plain)
    with pytest.raises(ValueError, match=words):
        TargetStatistics.from_dict(plain, 4)


def test_codes_of_pairs_tell_all_pairs_apart():
    _, layout, _, _, _ = learned(2, False)
    codes = joined_codes(layout.keyed, (0, 1))
    pairs = {tuple(pair) for pair in layout.keyed.codes[:2].T.tolist()}
    assert len(set(codes.tolist())) == len(pairs)


def test_entries_get_columns_behind_them():
    generator = np.random.default_rng(0)
    dense = generator.integers(0, 2, (5, 4)).astype(np.float32)
    behind = generator.normal(size=(5, 3)).astype(np.float32)
    rows = sp.csr_matrix(dense)
    entries = entries_with_columns(rows.data, rows.indices, rows.indptr, behind, 4)
    found = sp.csr_matrix(entries, shape=(5, 7))
    np.testing.assert_array_equal(found.toarray(), np.hstack([dense, behind]))
    assert found.has_canonical_format
