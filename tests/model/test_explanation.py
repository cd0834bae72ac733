"""Contributions of columns add up to the lead, and are what the planes give."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import permutation_importance

import polyplane as pp
from polyplane.engine.jit import jit_is_disabled
from polyplane.engine.rows.storage import dense_rows, matrix_of, packed
from polyplane.estimator.online_classifier import record_of
from polyplane.model.explanation import NOTHING_TYPICAL, Explainer
from polyplane.model.prediction import Features, Products

pytestmark = pytest.mark.loops
GENERATOR = np.random.default_rng(0)
X = GENERATOR.integers(0, 5, (60, 6)).astype(np.float32)
Y = (X[:, 0] * X[:, 1] + X[:, 2]).astype(int) % 3
TWO = Y > 0
MACHINES = {
    "pegasos": (pp.PegasosClassifier(), Y),
    "mm": (pp.MMClassifier(n_planes=3), Y),
    "mm of two classes": (pp.MMClassifier(n_planes=9), TWO),
    "amm": (pp.AMMClassifier(), Y),
    "amm without intercept": (pp.AMMClassifier(fit_intercept=False), Y),
    "amm, rest and ensemble": (pp.AMMClassifier(multi_class="ovr", n_estimators=2), Y),
    "amm by pairs": (pp.AMMClassifier(multi_class="ovo", n_estimators=2), Y),
    "cpm": (pp.CPMClassifier(n_planes=3), TWO),
    "cpm by pairs": (pp.CPMClassifier(n_planes=3), Y),
    "samm": (pp.SAMMClassifier(), Y),
    "gamm": (pp.GAMMClassifier(), Y),
    "poly2": (pp.Poly2Classifier(), Y),
    "poly2, hashed": (pp.Poly2Classifier(n_hash=7), Y),
    "polyplane, plain": (pp.SoftPlanesClassifier(columns="plain", n_planes=3), Y),
    "polyplane, knots": (pp.SoftPlanesClassifier(columns="knots", n_planes=3), TWO),
    "polyplane, units": (pp.SoftPlanesClassifier(columns="fine", n_planes=6, units=3), Y),
    "polyplane by pairs": (pp.SoftPlanesClassifier(multi_class="ovo", n_planes=2, units=2), Y),
    "polyplane, rest": (pp.SoftPlanesClassifier(multi_class="ovr", n_planes=20), Y),
}
BY_PAIRS = [name for name in MACHINES if "pairs" in name]


@pytest.fixture(scope="module", params=MACHINES)
def fitted(request):
    model, y = MACHINES[request.param]
    settings = {"max_iter": 2, "random_state": 0}
    made = type(model)(**(model.get_params() | settings)).fit(X, y)
    made.is_by_pairs, made.kind = request.param in BY_PAIRS, request.param
    return made


def leads_of(model):
    """How far each predicted class is above the best of the others."""
    scores = model.decision_function(X)
    if scores.ndim == 1:
        return abs(scores)
    ranked = np.sort(scores, axis=1)
    return ranked[:, -1] - ranked[:, -2]


def near(model):
    """Rounding of sums whose largest terms may be much larger than what they come to."""
    return 1e-5 * (1 + abs(model.plane_scores(X)).max())


def test_columns_and_base_add_up_to_the_lead(fitted):
    found = fitted.explain(X)
    assert found.contributions.shape == X.shape
    assert np.array_equal(found.winner, fitted.predict(X))
    assert not (found.winner == found.runner_up).any()
    np.testing.assert_allclose(
        found.contributions.sum(axis=1, dtype=float) + found.base, found.lead
    )
    if not fitted.is_by_pairs:
        np.testing.assert_allclose(found.lead, leads_of(fitted), atol=near(fitted))
        assert np.array_equal(found.planes[:, 0], fitted.assign(X))
    for which, labels in enumerate((found.winner, found.runner_up)):
        known = found.planes[:, which] >= 0
        of_plane = fitted.plane_classes_[found.planes[known, which]]
        assert np.array_equal(of_plane, labels[known])


def test_each_column_gets_what_planes_give_to_its_features(fitted):
    found = fitted.explain(X)
    expected, base = explained_plainly(fitted, found)
    np.testing.assert_allclose(found.contributions, expected, atol=near(fitted))
    np.testing.assert_allclose(found.base, base, atol=near(fitted))


def explained_plainly(model, found):
    """The definition, row by row and group by group, in float64."""
    record, features = record_of(model), model._training.columns.features(1.0)
    rows, order, _ = model._seen(X)
    entries = packed(rows, order)
    seen = matrix_of(entries, len(record.sums) - 1).toarray().astype(float)
    seen = np.column_stack([np.full(len(X), entries.constant), seen])
    planes = (record.sums[:, : record.n_planes] * record.scales).astype(float)
    scores = seen @ planes
    of_groups, shares = scores_of_groups(record, scores)
    contributions, bases = np.zeros(X.shape), np.zeros(len(X))
    for i in range(len(X)):
        for group, gain in gains_of(record, model.classes_, found.winner[i], found.runner_up[i]):
            mine = record.group == group
            share = shares[i] * mine
            bases[i] += gain * (of_groups[i, group] - share @ (scores[i] - planes[0] * seen[i, 0]))
            give(contributions[i], features, model, i, seen, planes @ share * gain)
    return contributions, bases


def scores_of_groups(record, scores):
    """What groups score, and the share of each plane in its group."""
    of_groups = np.full((len(scores), record.n_groups), record.empty_score)
    shares = np.zeros(scores.shape)
    for g in range(record.n_groups):
        mine = np.flatnonzero(record.group == g)
        if mine.size and record.is_soft:
            of_groups[:, g] = np.logaddexp.reduce(scores[:, mine], axis=1)
            shares[:, mine] = softmax(scores[:, mine], axis=1)
        elif mine.size:
            best = scores[:, mine].argmax(axis=1)
            of_groups[:, g] = scores[np.arange(len(scores)), mine[best]]
            shares[np.arange(len(scores)), mine[best]] = 1
    return of_groups, shares


def gains_of(record, classes, winner, runner_up):
    """The groups that the lead is made of, and what each counts."""
    decomposition = record.decomposition
    w, r = np.searchsorted(classes, [winner, runner_up])
    if decomposition.is_joint:
        signed = [(w, 1), (r, -1)]
    else:
        of_rank = np.argsort(decomposition.ranks)
        signed = []
        for place, problem in enumerate(decomposition.problems()):
            if decomposition.kind == "ovr":
                sign = {of_rank[w]: 1, of_rank[r]: -1}.get(problem.classes[1], 0)
                signed += [(2 * place + 1, sign), (2 * place, -sign)] if sign else []
            elif set(problem.classes) == {of_rank[w], of_rank[r]}:
                sign = 1 if problem.classes[1] == of_rank[w] else -1
                signed += [(2 * place + 1, sign), (2 * place, -sign)]
    n_groups, n_units = decomposition.n_groups(), record.n_units
    return [
        ((e * n_groups + group) * n_units + unit, sign / record.n_estimators)
        for e in range(record.n_estimators)
        for group, sign in signed
        for unit in range(n_units)
    ]


def give(out, features, model, i, seen, weights):
    """Add what a group gives to the columns of row i."""
    if features.products is not None:
        gamma, coef0, n_hash = model.gamma, model.coef0, model.n_hash
        single = pp.Poly2Classifier(gamma=gamma, coef0=coef0, n_hash=n_hash)
        for a in range(X.shape[1]):
            for b in range(a, X.shape[1]):
                part = weights[1:] @ phi_of_pair(single, X[i], a, b)
                out[a] += part / 2
                out[b] += part / 2
        return
    columns = features.columns
    owners = np.arange(X.shape[1]) if columns is None else columns.columns_of_features()
    np.add.at(out, owners, weights[1:] * seen[i, 1:])


def phi_of_pair(machine, row, a, b):
    """Features of a row that belong to two columns: what both make less what each makes alone."""

    def phi(kept):
        only = np.zeros_like(row)
        only[kept] = row[kept]
        products = Products(machine.gamma, machine.coef0, machine.n_hash, row.size)
        rows = Features(1.0, products=products).seen(dense_rows(only[None], 1.0))
        n_features = machine.n_hash or row.size * (row.size + 3) // 2
        return matrix_of(packed(rows, np.arange(1)), n_features).toarray()[0].astype(float)

    return phi([a]) if a == b else phi([a, b]) - phi([a]) - phi([b])


def storages_of(model):
    """CSR, and one more: where planes see products, or soft ones rows as they come, float64.

    Storages are opened by a word that all loops share: both loops, of best planes and of soft ones,
    see each of them, but not with every kind of features. Without the JIT they do.
    """
    if jit_is_disabled():
        return sp.csr_matrix(X), X.astype(np.uint8), X.astype(np.float64)
    if model.kind == "poly2, hashed":
        return (sp.csr_matrix(X),)
    sees_doubles = model.kind in ("poly2", "polyplane, plain")
    return sp.csr_matrix(X), X.astype(np.float64 if sees_doubles else np.uint8)


def test_sparse_and_byte_rows_are_explained_alike(fitted):
    found = fitted.explain(X)
    for other in storages_of(fitted):
        same = fitted.explain(other)
        contributions = same.contributions
        if sp.issparse(contributions):
            assert sp.issparse(other)
            contributions = contributions.toarray()
        np.testing.assert_array_equal(contributions, found.contributions)
        np.testing.assert_array_equal(same.base, found.base)
        np.testing.assert_array_equal(same.planes, found.planes)


def test_a_reference_moves_contributions_to_the_base(fitted):
    plain, moved = fitted.explain(X), fitted.explain(X, reference=X[:20])
    np.testing.assert_allclose(moved.lead, plain.lead, atol=near(fitted))
    for name in ("winner", "runner_up", "planes"):
        assert np.array_equal(getattr(plain, name), getattr(moved, name))
    assert not sp.issparse(fitted.explain(sp.csr_matrix(X), reference=X).contributions)


def test_columns_that_are_one_to_users_are_added_up(fitted):
    """As those are that a column of a table becomes."""
    shown_as = np.array([0, 0, 1, 2, 2, 2], np.int32)
    record, features = record_of(fitted), fitted._training.columns.features(1.0)
    explainer = Explainer(record, features, 6, fitted.classes_, None, shown_as=shown_as)
    rows = fitted._seen(X)[0]
    for made in (explainer, explainer.with_reference(rows)):
        found = made.explain(rows, 1)
        apart = replace(made, shown_as=None, typical=NOTHING_TYPICAL)
        if made is not explainer:
            apart = apart.with_reference(rows)
        expected = np.zeros((len(X), 3))
        np.add.at(expected.T, shown_as, apart.explain(rows, 1).contributions.T)
        np.testing.assert_allclose(found.contributions, expected, atol=near(fitted))
    if features.columns is None and not getattr(fitted, "n_hash", None):
        with pytest.raises(ValueError, match=r"Planes have \d+ features, but 5 columns make"):
            replace(explainer, n_columns=5, shown_as=None).explain(rows, 1)


def test_of_a_linear_machine_contributions_are_weights_times_distances():
    model = pp.PegasosClassifier(random_state=0, max_iter=2).fit(X, TWO)
    weights = np.where(model.predict(X), 1, -1)[:, None] * (model.planes_[1] - model.planes_[0])
    np.testing.assert_allclose(model.explain(X).contributions, weights * X, rtol=1e-4)
    moved = model.explain(X, reference=X).contributions
    np.testing.assert_allclose(moved, weights * (X - X.mean(axis=0)), rtol=1e-3, atol=1e-2)


def test_explaining_changes_nothing_and_files_know_it_too(fitted, tmp_path):
    scores = fitted.decision_function(X)
    found = fitted.explain(X)
    np.testing.assert_array_equal(fitted.decision_function(X), scores)
    pp.save(fitted, tmp_path / "model")
    loaded = pp.load(tmp_path / "model").explain(X)
    np.testing.assert_array_equal(loaded.contributions, found.contributions)
    np.testing.assert_array_equal(loaded.base, found.base)
    assert np.array_equal(loaded.runner_up, found.runner_up)


@pytest.mark.compiled
def test_threads_find_the_same():
    many = np.tile(X, (400, 1))
    model = pp.AMMClassifier(random_state=0, max_iter=2).fit(X, Y)
    alone = model.explain(many)
    shared = model.set_params(n_jobs=2).explain(many)
    sparse = model.explain(sp.csr_matrix(many))
    np.testing.assert_array_equal(alone.contributions, shared.contributions)
    np.testing.assert_array_equal(alone.contributions, sparse.contributions.toarray())
    np.testing.assert_array_equal(alone.planes, shared.planes)


@pytest.mark.parametrize("kind", [pp.AMMClassifier, pp.SoftPlanesClassifier])
def test_a_class_without_rows_may_be_the_runner_up(kind):
    model = kind(random_state=0).partial_fit(X, TWO.astype(int), classes=[0, 1, 2])
    found = model.explain(X)
    np.testing.assert_allclose(found.lead, leads_of(model), atol=near(model))
    alone = kind(random_state=0).partial_fit(X[:5], np.zeros(5, int))
    with pytest.raises(ValueError, match="second class"):
        alone.explain(X)


def test_columns_that_few_rows_of_very_many_use():
    wide = sp.random_array((80, 200_000), density=1e-4, random_state=GENERATOR, format="csr")
    y = np.asarray(wide[:, :100_000].sum(axis=1) > wide[:, 100_000:].sum(axis=1)).astype(int)
    model = pp.SoftPlanesClassifier(max_iter=2, n_planes=2, random_state=0)
    model.fit(wide, y)
    found = model.explain(wide)
    assert sp.issparse(found.contributions)
    assert found.contributions.shape == wide.shape
    lead = abs(model.decision_function(wide))
    np.testing.assert_allclose(found.lead, lead, atol=1e-4)
    is_in_row = wide.toarray() != 0
    assert not found.contributions.toarray()[~is_in_row].any()


# ---- importances -------------------------------------------------------------------------


def test_importances_are_mean_contributions(fitted):
    found = fitted.feature_importances_
    expected = fitted.explain(X, reference=X).importances
    np.testing.assert_allclose(found, expected / expected.sum())
    assert found.sum() == pytest.approx(1)
    mean = abs(fitted.explain(X).contributions).mean(axis=0)
    np.testing.assert_allclose(fitted.explain(X).importances, mean, rtol=1e-5)


def test_the_column_that_decides_matters_and_a_constant_one_does_not():
    constant = X.copy()
    constant[:, 3] = 100
    for kind in (pp.PegasosClassifier, pp.AMMClassifier):
        model = kind(random_state=0, max_iter=20).fit(constant, constant[:, 1] > 1)
        assert model.feature_importances_[3] == pytest.approx(0, abs=1e-4)  # rounding of 100 w
        assert model.feature_importances_.argmax() == 1


def test_columns_of_names_are_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[*"abcdef"])
    model = pp.AMMClassifier(random_state=0).fit(frame, Y)
    assert list(model.explain(frame).names) == [*"abcdef"]
    assert model.feature_importances_.shape == (6,)
    assert pp.AMMClassifier(random_state=0).fit(X, Y).explain(X).names is None


@pytest.mark.parametrize("made", [list, sp.coo_matrix, sp.csr_array, np.asfortranarray])
def test_rows_of_any_kind_are_kept(made):
    model = pp.PegasosClassifier(random_state=0).fit(made(X), TWO)
    expected = pp.PegasosClassifier(random_state=0).fit(X, TWO).feature_importances_
    np.testing.assert_allclose(model.feature_importances_, expected, rtol=1e-5)


def test_without_rows_of_a_fit_there_are_none(tmp_path):
    model = pp.AMMClassifier(random_state=0).fit(X, Y)
    pp.save(model, tmp_path / "model")
    streamed = pp.AMMClassifier(random_state=0).partial_fit(X, Y)
    for other in (pickle.loads(pickle.dumps(model)), pp.load(tmp_path / "model"), streamed):
        with pytest.raises(AttributeError, match="use explain"):
            _ = other.feature_importances_
    assert b"kept" not in pickle.dumps(model)
    kernel = pp.HullerClassifier().fit(X, TWO)
    with pytest.raises(AttributeError, match="permutation_importance"):
        _ = kernel.feature_importances_
    assert not hasattr(kernel, "explain")


@pytest.mark.compiled
def test_tools_of_scikit_learn_take_them():
    pixels, digits = load_digits(return_X_y=True)
    pixels, digits = pixels[:400], digits[:400]
    model = pp.AMMClassifier(random_state=0).fit(pixels, digits)
    by_shuffling = permutation_importance(model, pixels, digits, n_repeats=2, random_state=0)
    told = model.feature_importances_
    assert by_shuffling.importances_mean.shape == told.shape
    assert told[by_shuffling.importances_mean == 0].mean() < told.mean()
    chosen = SelectFromModel(pp.AMMClassifier(random_state=0)).fit(pixels, digits)
    assert 0 < chosen.get_support().sum() < pixels.shape[1]
    kernel = pp.HullerClassifier(random_state=0).fit(pixels[:100], digits[:100])
    found = permutation_importance(kernel, pixels[:50], digits[:50], n_repeats=1)
    assert found.importances.shape == (64, 1)


# ---- directions and tables -------------------------------------------------------------------


def real_columns():
    generator = np.random.default_rng(1)
    columns = generator.standard_normal((80, 4)).astype(np.float32)
    columns[:, 1] += columns[:, 0]
    return columns, (columns[:, 0] * columns[:, 2] > 0).astype(int)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("has_reference", [False, True])
def test_what_directions_give_is_shared_out_among_their_columns(is_sparse, has_reference):
    columns, y = real_columns()
    seen = sp.csr_matrix(columns) if is_sparse else columns
    model = pp.SoftPlanesClassifier(
        columns="knots", directions="principal", n_planes=4, max_iter=2, random_state=0,
    ).fit(seen, y)  # fmt: skip
    found = model.explain(seen, reference=seen if has_reference else None)
    assert found.contributions.shape == columns.shape
    np.testing.assert_allclose(found.lead, abs(model.decision_function(seen)), atol=1e-4)


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["knots", "plain"])
def test_contributions_are_of_the_columns_of_a_table(kind):
    pandas = pytest.importorskip("pandas")
    columns, y = real_columns()
    frame = pandas.DataFrame({
        "size": columns[:, 0], "colour": np.where(columns[:, 1] > 0, "red", "blue"),
        "price": np.where(columns[:, 2] > 1, np.nan, columns[:, 2]), "weight": columns[:, 3],
        "id": [f"row{k}" for k in range(80)],
    })  # fmt: skip
    with pytest.warns(UserWarning, match="'id' is almost unique"):
        model = pp.SoftPlanesClassifier(
            columns=kind, directions="principal", n_planes=4, max_iter=2, random_state=0
        ).fit(frame, y)
    found = model.explain(frame, reference=frame)
    assert list(found.names) == list(frame.columns)
    assert found.contributions.shape == frame.shape
    assert not found.contributions[:, 4].any()
    np.testing.assert_allclose(found.lead, abs(model.decision_function(frame)), atol=1e-4)
    assert model.feature_importances_.shape == (5,)
