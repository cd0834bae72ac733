"""Maps of columns are found as written down, and finished planes apply to X as it comes."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.order import in_place
from polyplane.engine.planes.planes import with_planes, zero_planes
from polyplane.engine.rows.storage import count_rows, csr_rows, dense_rows, packed
from polyplane.model.input import column_maps as module
from polyplane.model.input.column_maps import AS_IS, KINDS, MOST_KNOTS, column_map
from tests.engine.rows.test_storage import STORAGES, score
from tests.examples import examples

pytestmark = pytest.mark.loops

with_every_kind = pytest.mark.parametrize("kind", KINDS)
N_ROWS = 150


def mixed_columns(seed=0):
    """Columns of all sorts, of whole numbers that fit a byte."""
    generator = np.random.default_rng(seed)
    columns = [
        generator.integers(0, 256, N_ROWS),  # many values
        np.full(N_ROWS, 7),
        np.zeros(N_ROWS, int),
        np.ones(N_ROWS, int),
        generator.random(N_ROWS) < 0.3,  # 0 and 1
        generator.choice([0, 5], N_ROWS),
        generator.choice([3, 4], N_ROWS),
        *(np.resize(generator.permutation(256)[:m], N_ROWS) for m in (3, 8, 9, 64, 65)),
        generator.integers(0, 256, N_ROWS) * (generator.random(N_ROWS) < 0.4),  # a heavy tie
        np.arange(N_ROWS) == 9,
        (np.arange(N_ROWS) == 9) * 6,
    ]
    return np.ascontiguousarray(generator.permutation(columns).T)


def rank_of(value, among):
    return ((among < value).sum() + (among == value).sum() / 2) / len(among)


def knots_of(among, n_most):
    """The values themselves, or those met often and others, evenly among the rest of the rows."""
    values, counts = np.unique(among, return_counts=True)
    if len(values) <= n_most:
        return values
    often = set(values[counts > len(among) / n_most])
    rest = sorted(x for x in among if x not in often)
    n = max(2, n_most - len(often))
    chosen = {rest[k * (len(rest) - 1) // (n - 1)] for k in range(n)}
    return np.array(sorted({values[0], values[-1]} | often | chosen))


def hats_at(x, knots):
    """Functions that are 1 at one knot, 0 at all others, and straight in between."""
    return np.stack([np.interp(x, knots, row) for row in np.eye(len(knots))], axis=1)


def mapped_column(seen, x, kind):
    """Parts of a column's features with their shares of the squared length, of `x`."""
    n_values = len(set(seen))
    if n_values == 1:
        return [(0 * x[:, None], 0.0)]
    if set(seen) == {0, 1}:
        return [(x[:, None], seen.mean())]
    if kind == "plain" or n_values == 2:
        return [((x - seen.mean())[:, None] / seen.std(), 1.0)]
    if n_values <= 8:
        return [(0 * x[:, None], 0.0), (hats_at(x, np.unique(seen)), 1.0)]
    knots = knots_of(seen, MOST_KNOTS)
    ranks = [rank_of(knot, seen) for knot in knots]
    of_seen, of_x = np.interp(seen, knots, ranks), np.interp(x, knots, ranks)
    cut = np.clip(x, knots[0], knots[-1])
    parts = [((cut - seen.mean())[:, None] / seen.std(), 0.5)]
    parts.append(((of_x - of_seen.mean())[:, None] / of_seen.std(), 0.5))
    shares = {}
    for n, share in {"rank": [], "knots": [(8, 0.3)], "fine": [(8, 1), (32, 1), (128, 1)]}[kind]:
        n = min(n, len(knots))
        shares[n] = shares.get(n, 0) + share
    for n, share in shares.items():
        some = knots[np.arange(n) * (len(knots) - 1) // (n - 1)]
        parts.append((hats_at(x, some), share))
    return parts


def transcribed(X, Z, kind):
    """Features of Z under the map found from X: linear ones, then each level by column."""
    both = np.vstack([X, Z]).astype(np.float64)
    columns = [mapped_column(x[: len(X)], x, kind) for x in both.T]
    whole = sum(share for parts in columns for _, share in parts)
    n_parts = max(len(parts) for parts in columns)
    blocks = [
        scaled(*parts[k], X, is_linear=k == 0)
        for k in range(n_parts)
        for parts in columns
        if len(parts) > k
    ]
    return np.hstack(blocks)[len(X) :] / np.sqrt(whole)


def scaled(features, share, X, is_linear):
    """Brought to their share of the squared length; what is cut is not made longer again."""
    if is_linear and features.shape[1] == 1:
        is_flag = set(np.unique(features[: len(X)])) <= {0.0, 1.0}
        return features * (1 if is_flag or share == 0 else np.sqrt(share))
    length = root_mean_square(features, X)
    return features * np.sqrt(share) / length


def root_mean_square(features, X):
    return np.sqrt(np.square(features[: len(X)]).sum(axis=1).mean())


def features_of(rows, n_features):
    """Opened rows with their zeros, and a first column for the constant."""
    n_rows = count_rows(rows)
    some = packed(rows, in_place(n_rows))
    entries = some.values, some.columns, some.starts
    matrix = sp.csr_array(entries, shape=(n_rows, n_features)).toarray()
    return np.hstack([np.full((n_rows, 1), some.constant), matrix]).astype(np.float64)


def rows_of(matrix, constant=1):
    return dense_rows(np.ascontiguousarray(matrix, np.float32), constant)


@with_every_kind
@pytest.mark.parametrize("seed", [0, 1])
def test_the_map_is_the_one_written_down(kind, seed):
    X = mixed_columns(seed)
    Z = np.vstack([X, X[::7] * 2 - 40, X[::5] + 0.25])  # some beyond all knots, some in between
    found = column_map(rows_of(X), in_place(len(X)), X.shape[1], kind)
    features = features_of(found.for_training(rows_of(Z)), found.n_features)
    np.testing.assert_array_equal(features[:, 0], 1)
    np.testing.assert_allclose(features[:, 1:], transcribed(X, Z, kind), atol=3e-6)
    assert found.has_knots == (kind != "plain")
    assert found.n_folded == (found.n_features if kind == "plain" else 15 + found.table.knots.size)
    assert found.n_columns == X.shape[1]


@with_every_kind
def test_rows_have_length_one(kind):
    X = mixed_columns()
    found = column_map(rows_of(X), in_place(len(X)), X.shape[1], kind)
    features = features_of(found.for_training(rows_of(X)), found.n_features)[:, 1:]
    np.testing.assert_allclose(np.square(features).sum(axis=1).mean(), 1, rtol=1e-5)


def test_values_that_are_met_often_are_knots():
    generator = np.random.default_rng(0)
    X = generator.uniform(0, 1e5, (3_000, 1)).astype(np.float32)
    X[::5], X[1::50] = 0, 7_688
    found = column_map(rows_of(X), in_place(3_000), 1, "fine").table
    assert {0, 7_688} <= set(found.knots.tolist())
    assert 120 <= found.knots.size <= 130


def test_categories_alone_have_length_one():
    X = np.random.default_rng(0).integers(0, 5, (50, 3))
    found = column_map(rows_of(X), in_place(50), 3, "knots")
    features = features_of(found.for_training(rows_of(X)), found.n_features)[:, 1:]
    assert found.n_features == 18
    np.testing.assert_allclose(np.square(features).sum(axis=1), 1, rtol=1e-6)
    assert (np.count_nonzero(features, axis=1) == 3).all()


@with_every_kind
@given(seed=st.integers(0, 99))
@settings(deadline=None, max_examples=examples(5))
def test_storage_does_not_change_the_map(kind, seed):
    X, order = mixed_columns(seed), in_place(N_ROWS)[::-2].copy()
    maps = [
        column_map(STORAGES[name](X, 1), order, X.shape[1], kind)
        for name in ("float32", "uint8", "CSR")
    ]
    for other in maps[1:]:
        for one, another in zip(maps[0].table, other.table, strict=True):
            np.testing.assert_array_equal(one, another)
            assert one.dtype == another.dtype


def test_zeros_that_are_stored_do_not_change_the_map():
    X = np.array([[-1, 2.5], [0, 0], [0, 3], [4, -2], [0, 5]], np.float32)
    stored = sp.csr_array(np.where(X == 0, 9, X))
    stored.data[stored.data == 9] = -0.0
    for kind in KINDS:
        dense, sparse = (
            column_map(rows, in_place(5), 2, kind).table
            for rows in (rows_of(X), csr_rows(stored, 1))
        )
        assert [a.tobytes() for a in dense] == [a.tobytes() for a in sparse]


@with_every_kind
def test_only_the_rows_of_the_order_count(kind):
    X, order = mixed_columns(), np.array([5, 3, 3, 80, 17, 149, 60, 2, 100, 33, 51], np.int32)
    found = column_map(rows_of(X), order, X.shape[1], kind)
    expected = column_map(rows_of(X[order]), in_place(len(order)), X.shape[1], kind)
    for one, another in zip(found.table, expected.table, strict=True):
        np.testing.assert_array_equal(one, another)


def test_values_are_looked_at_in_evenly_spaced_rows(monkeypatch):
    monkeypatch.setattr(module, "ROWS_LOOKED_AT", 4)
    X = np.arange(20)[:, None] ** 2 / 8
    monkeypatch.setattr(module, "MOST_CATEGORIES", 3)
    order = in_place(20)[::-1].copy()
    found = column_map(rows_of(X), order, 1, "rank").table
    np.testing.assert_array_equal(found.knots, X[[4, 9, 14, 19], 0])
    ranks = np.array([-0.375, -0.125, 0.125, 0.375])
    np.testing.assert_allclose(found.places[0], ranks / ranks.std(), rtol=1e-6)


@pytest.mark.parametrize("kind", ["rank", "knots", "fine"])
def test_a_column_that_looks_constant_in_the_rows_looked_at_is_plain(kind, monkeypatch):
    monkeypatch.setattr(module, "ROWS_LOOKED_AT", 4)
    X = np.full((20, 1), 3.0)
    X[1] = 8
    found = column_map(rows_of(X), in_place(20), 1, kind)
    assert not found.has_knots
    assert found.table.shifts == 3.25
    np.testing.assert_allclose(found.table.factors, 1 / X.std(), rtol=1e-6)


def planes_like(n_features, seed):
    """Five planes by feature."""
    sums = np.random.default_rng(seed).standard_normal((1 + n_features, 5))
    return sums.astype(np.float32)


@with_every_kind
@given(seed=st.integers(0, 2**32), constant=st.sampled_from([0, 1]))
@settings(deadline=None, max_examples=examples(6))
def test_folded_planes_score_rows_as_they_come(kind, seed, constant):
    X = mixed_columns(seed)
    found = column_map(rows_of(X), in_place(len(X)), X.shape[1], kind)
    Z = np.vstack([X[::9], X[::9] * 2 - 40])
    sums = planes_like(found.n_features, seed)
    folded = found.folded(sums, constant)
    assert folded.dtype == np.float32
    assert len(folded) == 1 + found.n_folded
    trained = features_of(found.for_training(rows_of(Z, constant)), found.n_features) @ sums
    seen = features_of(found.for_prediction(rows_of(Z, 1)), found.n_folded)
    sizes = np.abs(seen) @ np.abs(folded)
    assert (np.abs(seen @ folded - trained) <= 1e-6 * sizes + 3e-5).all()
    left = found.of_prediction()
    again = features_of(left.for_prediction(rows_of(Z, 1)), left.n_features)
    np.testing.assert_array_equal(again, seen)


@with_every_kind
def test_folding_does_not_touch_its_argument(kind):
    X = mixed_columns()
    found = column_map(rows_of(X), in_place(len(X)), X.shape[1], kind)
    sums = planes_like(found.n_features, 0)
    found.folded(sums)
    np.testing.assert_array_equal(sums, planes_like(found.n_features, 0))


def test_plain_columns_are_predicted_from_the_rows_themselves():
    X = mixed_columns()
    rows = rows_of(X)
    found = column_map(rows, in_place(len(X)), X.shape[1], "plain")
    assert found.for_prediction(rows) is rows
    assert X.shape[1] == found.n_features


# ---- directions ------------------------------------------------------------------------------


def directions_of(X, Z):
    """Principal directions, of variance 1, of the standardised ranks of columns of many values."""
    both = np.vstack([X, Z]).astype(np.float64)
    ranks = []
    for seen, x in zip(X.T, both.T, strict=True):
        if len(set(seen)) > 8:
            knots = knots_of(seen, MOST_KNOTS)
            of_knots = [rank_of(knot, seen) for knot in knots]
            of_seen = np.interp(seen, knots, of_knots)
            ranks.append((np.interp(x, knots, of_knots) - of_seen.mean()) / of_seen.std())
    ranks = np.array(ranks)
    _, directions = np.linalg.eigh(np.cov(ranks[:, : len(X)]))
    found = directions.T @ ranks
    found /= found[:, : len(X)].std(axis=1, ddof=1, keepdims=True)
    return found.T[: len(X)], found.T[len(X) :]


@pytest.mark.parametrize("kind", ["rank", "knots", "fine"])
@pytest.mark.parametrize("storage", ["float32", "CSR"])
def test_directions_are_mapped_like_columns(kind, storage):
    X = mixed_columns()
    rows = STORAGES[storage](X, 1)
    found = column_map(rows, in_place(len(X)), X.shape[1], kind, turns=True)
    n_mapped = X.shape[1] + found.turn.weights.shape[1]
    assert found.n_columns == X.shape[1]
    turned = features_of(module.turned_rows(rows, found.turn), n_mapped)[:, 1:]
    np.testing.assert_array_equal(turned[:, : X.shape[1]], X)
    directions, _ = directions_of(X, X[:1])
    signs = np.sign((directions * turned[:, X.shape[1] :]).sum(axis=0))
    np.testing.assert_allclose(turned[:, X.shape[1] :], directions * signs, atol=1e-4)
    features = features_of(found.for_training(rows), found.n_features)[:, 1:]
    again = column_map(rows_of(turned), in_place(len(X)), n_mapped, kind)
    expected = features_of(again.for_training(rows_of(turned)), again.n_features)[:, 1:]
    np.testing.assert_array_equal(features, expected)


@pytest.mark.parametrize("kind", ["rank", "knots", "fine"])
def test_folded_planes_see_directions(kind):
    X = mixed_columns()
    found = column_map(rows_of(X), in_place(len(X)), X.shape[1], kind, turns=True)
    Z = np.vstack([X[::9], X[::9] * 2 - 40])
    sums = planes_like(found.n_features, 0)
    trained = features_of(found.for_training(rows_of(Z)), found.n_features) @ sums
    folded, left = found.folded(sums), found.of_prediction()
    seen = features_of(left.for_prediction(rows_of(Z)), left.n_features)
    np.testing.assert_allclose(seen @ folded, trained, atol=1e-3)
    assert len(folded) == 1 + found.n_folded == 1 + left.n_features


def test_plain_columns_and_single_ones_have_no_directions():
    X = mixed_columns()
    plain = column_map(rows_of(X), in_place(len(X)), X.shape[1], "plain", turns=True)
    assert plain.turn is None
    single = np.random.default_rng(0).standard_normal((50, 1))
    found = column_map(rows_of(single), in_place(50), 1, "knots", turns=True)
    assert found.turn is None
    several = column_map(rows_of(X), in_place(len(X)), X.shape[1], "knots", turns=True)
    assert several.turn is not None


def wide_and_sparse(share=0.1, n_columns=201):
    generator = np.random.default_rng(0)
    return generator.integers(1, 9, (40, n_columns)) * (generator.random((40, n_columns)) < share)


@with_every_kind
@pytest.mark.parametrize("constant", [0, 1])
def test_wide_sparse_data_are_left_alone_but_for_their_constant(kind, constant):
    X = wide_and_sparse()
    length = np.sqrt(np.square(X).sum(axis=1).mean())
    rows = csr_rows(sp.csr_array(X.astype(np.float32)), constant)
    found = column_map(rows, in_place(40), 201, kind)
    assert found.table is None
    assert not found.has_knots
    assert found.n_features == 201
    np.testing.assert_allclose(found.constant, length, rtol=1e-12)
    seen = found.for_training(rows)
    assert seen.values is rows.values
    np.testing.assert_allclose(seen.constant, constant * length, rtol=1e-6)
    assert found.for_prediction(rows) is rows
    sums = planes_like(201, 0)
    folded = found.folded(sums, constant)
    np.testing.assert_array_equal(folded[1:], sums[1:])
    np.testing.assert_allclose(folded[0], sums[0] * constant * length, rtol=1e-6)


@pytest.mark.parametrize(
    ("share", "n_columns", "is_tabular"),
    [(0.1, 63, True), (0.1, 80, False), (0.7, 201, False), (1.0, 201, False)],
)
def test_few_columns_are_tabular(share, n_columns, is_tabular):
    X = wide_and_sparse(share, n_columns)
    found = column_map(rows_of(X), in_place(len(X)), n_columns, "plain")
    assert (found.table is not None) == is_tabular


def test_dense_columns_of_both_signs_are_tabular():
    X = np.random.default_rng(0).standard_normal((40, 300))
    assert column_map(rows_of(X), in_place(40), 300, "plain").table is not None
    assert column_map(rows_of(X + 5), in_place(40), 300, "plain").table is None


@pytest.mark.parametrize("n_flags", [150, 200, 201, 900])
def test_no_number_of_flags_makes_a_table_a_text(n_flags):
    generator = np.random.default_rng(0)
    X = np.hstack([generator.lognormal(3, 2, (40, 9)), generator.random((40, n_flags)) < 0.03])
    found = column_map(rows_of(X), in_place(40), 9 + n_flags, "knots")
    assert found.has_knots


def test_sparse_columns_of_different_sizes_are_tabular():
    X = wide_and_sparse() * np.geomspace(1, 1_000, 201)
    assert column_map(rows_of(X), in_place(40), 201, "plain").table is not None


@with_every_kind
def test_what_must_be_mapped_is_mapped(kind):
    X = wide_and_sparse()
    rows = csr_rows(sp.csr_array(X.astype(np.float32)), 1)
    found = column_map(rows, in_place(40), 201, kind, may_leave_out=True, must_map=True)
    assert found.table is not None
    assert found.used is None


def test_what_is_to_be_left_alone_is_whatever_it_holds():
    X = mixed_columns()
    for rows in (rows_of(X), csr_rows(sp.csr_array(X), 1)):
        found = column_map(rows, in_place(len(X)), X.shape[1], AS_IS, must_map=True)
        assert found.is_as_is
        assert found.for_training(rows).values is rows.values
        np.testing.assert_allclose(found.constant, np.sqrt(np.square(X).sum(axis=1).mean()))


@with_every_kind
@pytest.mark.parametrize("value", [0, 1, 5])
@pytest.mark.parametrize("order", [[0, 1, 2], [1], []])
def test_columns_that_never_change_say_nothing(kind, value, order):
    rows = rows_of(np.full((3, 2), value))
    found = column_map(rows, np.array(order, np.int32), 2, kind)
    assert found.n_features == 2
    assert found.constant == 1
    assert not features_of(found.for_training(rows), 2)[:, 1:].any()
    folded = found.folded(np.full((3, 1), 4, np.float32))
    assert folded.tolist() == [[4], [0], [0]]


def test_wide_data_without_entries_have_the_constant_one():
    rows = csr_rows(sp.csr_array((4, 300), dtype=np.float32), 1)
    found = column_map(rows, in_place(4), 300, "plain")
    assert found.constant == 1


@with_every_kind
@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1e-20, 1e10])
def test_extreme_scales_stay_finite(kind, scale):
    X = np.random.default_rng(0).standard_normal((50, 3)) * scale
    found = column_map(rows_of(X), in_place(50), 3, kind)
    assert all(np.isfinite(part).all() for part in found.table)
    assert np.isfinite(features_of(found.for_training(rows_of(X)), found.n_features)).all()
    assert np.isfinite(found.folded(planes_like(found.n_features, 0))).all()


def engine_scores(rows, planes):
    """Scores of planes, by feature, as prediction computes them: in float32."""
    made = zero_planes(len(planes) - 1, keeps_average=False)
    made = with_planes(made, np.zeros(planes.shape[1]), planes.T)
    out = []
    for i in range(60):
        score(rows, i, made)
        out.append(made.scores[: planes.shape[1]].copy())
    return np.array(out, np.float64)


@pytest.mark.parametrize("mean", [0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("constant", [0, 1])
def test_folding_costs_accuracy_in_proportion_to_the_mean(mean, constant):
    """In units of the scores' spread: 3e-5 at mean 100, 2e-3 at 10,000, a fifth at a million."""
    X = (mean + np.random.default_rng(0).standard_normal((60, 4))).astype(np.float32)
    found = column_map(rows_of(X), in_place(60), 4, "plain")
    sums = planes_like(4, 1)
    exact = features_of(found.for_training(rows_of(X, constant)), 4) @ sums
    by_engine = engine_scores(found.for_prediction(rows_of(X, 1)), found.folded(sums, constant))
    worst = np.abs(by_engine - exact).max() / exact.std()
    assert worst <= 1e-6 + 3e-7 * mean


def test_ranks_keep_their_accuracy_at_any_mean():
    X = (1e6 + np.random.default_rng(0).standard_normal((60, 4))).astype(np.float32)
    found = column_map(rows_of(X), in_place(60), 4, "rank")
    sums = planes_like(found.n_features, 1)
    exact = features_of(found.for_training(rows_of(X)), found.n_features) @ sums
    by_engine = engine_scores(found.for_prediction(rows_of(X)), found.folded(sums))
    assert np.abs(by_engine - exact).max() <= 1e-5 * exact.std()


def test_a_kind_must_be_known():
    with pytest.raises(ValueError, match="plain, rank, knots, fine, not 'ranks'"):
        column_map(rows_of(np.ones((2, 1))), in_place(2), 1, "ranks")


# ---- more columns -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain"])
def test_new_columns_are_scaled_like_others_and_not_shifted(kind):
    X = np.random.default_rng(0).normal(3, 2, (60, 4)).astype(np.float32)
    wide = np.column_stack([X, 10 * X[:, :2]])
    columns = column_map(dense_rows(X, 1.0), np.arange(60), 4, kind)
    wider = columns.widened(6)
    assert (wider.n_columns, wider.n_features) == (6, 6)
    assert columns.widened(4) is columns
    before = packed(columns.for_training(dense_rows(X, 1.0)), np.arange(60))
    after = packed(wider.for_training(dense_rows(wide, 1.0)), np.arange(60))
    as_matrix = [
        sp.csr_matrix((r.values, r.columns, r.starts), shape=(60, n)).toarray()
        for r, n in ((before, 4), (after, 6))
    ]
    np.testing.assert_array_equal(as_matrix[1][:, :4], as_matrix[0])
    factor = np.median(columns.table.factors)
    np.testing.assert_allclose(as_matrix[1][:, 4:], factor * wide[:, 4:], rtol=1e-6)


def test_columns_left_alone_widen_freely():
    X = sp.random_array(
        (50, 300), density=0.02, random_state=np.random.default_rng(0), format="csr"
    )
    columns = column_map(csr_rows(X, 1.0), np.arange(50), 300, "knots").widened(400)
    assert (columns.table, columns.n_columns, columns.n_features) == (None, 400, 400)


def test_hats_cannot_widen():
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    columns = column_map(dense_rows(X, 1.0), np.arange(60), 3, "knots")
    with pytest.raises(ValueError, match=r"5 columns, 2 more than before.*columns='plain'"):
        columns.widened(5)


def test_very_many_flags_are_words():
    generator = np.random.default_rng(0)
    X = sp.csr_array((generator.random((30, 2_500)) < 0.01).astype(np.float32))
    found = column_map(csr_rows(X, 1), in_place(30), 2_500, "knots")
    assert found.table is None


@with_every_kind
def test_entries_are_counted_before_rows_are_written_out(kind):
    X = mixed_columns()
    found = column_map(rows_of(X), in_place(len(X)), X.shape[1], kind)
    for rows in (rows_of(X), csr_rows(sp.csr_array(X.astype(np.float32)), 1)):
        entries = packed(found.for_training(rows), in_place(len(X))).values.size
        assert entries <= found.count_entries(rows) <= 4 * entries
