"""One SELECT says what Python says, in DuckDB and in SQLite, of matrices and tables of any kind."""

import datetime
import gzip
import io
import sqlite3
import warnings

import duckdb
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import polyplane as pp
from benchmarks.tables import TABLES
from polyplane.engine.order import in_place
from polyplane.engine.rows.storage import dense_rows
from polyplane.model.export.export_formats import DIALECTS
from polyplane.model.export.sql_queries import query as module
from polyplane.model.export.sql_queries.query import sql_query
from polyplane.model.export.sql_queries.text import DIALECTS as BY_NAME
from polyplane.model.export.sql_queries.text import identifier
from polyplane.model.format.model_file import ModelError
from polyplane.model.many_classes.decomposition import Decomposition
from polyplane.model.plane_record import record_of
from tests.exported import largest_part
from tests.model.export.c_headers.test_header import SET
from tests.model.export.onnx_graphs.test_model import LABELS, X, curved_classes, exported, finished
from tests.real_data import raw_table

pytestmark = pytest.mark.compiled
N_TRAIN, N_TEST = 120, 300  # statements grow with the knots that columns have
MOST_COLUMNS = 30  # of a raw table; of wider ones every third is taken
MACHINE = pp.SoftPlanesClassifier(n_planes=2, max_iter=2, random_state=0)


def run(query, frame, dialect, table="rows"):
    """Return what the query says of a frame, as columns by name; DuckDB reads Postgres's, too."""
    texts = frame.select_dtypes(["string"]).columns
    frame = frame.astype(dict.fromkeys(texts, object))  # older releases know no other texts
    if dialect == "sqlite":
        connection = sqlite3.connect(":memory:")
        frame.to_sql(table, connection, index=False)
        cursor = connection.execute(query)
    else:
        connection = duckdb.connect(config={"threads": 1})
        connection.register("given", frame)
        connection.execute(f"CREATE TABLE {identifier(table)} AS SELECT * FROM given")
        cursor = connection.execute(query)
    names = [one[0] for one in cursor.description]
    return dict(zip(names, map(list, zip(*cursor.fetchall(), strict=True)), strict=True))


def assert_says_the_same(model, frame, dialect, **options):
    """Assert that labels are the same, and probabilities or scores to rounding."""
    found = run(pp.to_sql(model, dialect=dialect, **options), frame, dialect)
    rows = frame.to_numpy() if model_takes_matrices(model) else frame
    assert list(map(str, found["label"])) == list(map(str, model.predict(rows).tolist()))
    values = np.array([column for name, column in found.items() if name != "label"], float).T
    is_pipeline = hasattr(model, "steps")
    limit = 1e-5 if is_pipeline else max(1e-5, 1e-6 * largest_part(model, rows))
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(values, model.predict_proba(rows), rtol=0, atol=limit)
        return
    expected = model.decision_function(rows)
    values = values[:, 1] - values[:, 0] if expected.ndim == 1 else values
    np.testing.assert_allclose(values, expected, rtol=0, atol=limit)


def model_takes_matrices(model):
    return not hasattr(model, "feature_names_in_")


def fitted(machine, frame, y):
    """Return the machine on a frame; what is set aside is nobody's concern here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return machine.fit(frame, y)


# ---- raw tables ------------------------------------------------------------------------------


def some_rows(table):
    """Return evenly spread rows of a raw table, and their labels; texts stay texts."""
    with gzip.open(raw_table(table.file), "rt", encoding="utf-8") as file:
        first = [next(file)] if table.is_headed else []
        lines = list(file)
    step = max(1, len(lines) // (N_TRAIN + N_TEST))
    frame = pd.read_csv(
        io.StringIO("".join([*first, *lines[::step]])),
        sep=table.separator,
        skipinitialspace=True,
        header=0 if table.is_headed else None,
    )
    frame.columns = [str(name).strip() for name in frame.columns]
    y = frame.pop(str(table.label)).astype(str).str.strip()
    y = (y != "normal").astype(str) if table.file.startswith("nsl_kdd") else y
    frame = frame.drop(columns=[name for name in table.leaks if name in frame])
    frame = frame.iloc[:, ::3] if frame.shape[1] > MOST_COLUMNS else frame
    texts = frame.select_dtypes(["object", "string"]).columns
    frame[texts] = frame[texts].astype(object).where(frame[texts].notna(), None)
    order = np.random.default_rng(0).permutation(len(frame))
    return frame.iloc[order].reset_index(drop=True), y.to_numpy()[order]


@pytest.mark.parametrize("name", TABLES)
def test_raw_tables_are_the_same_in_databases(name):
    frame, y = some_rows(TABLES[name])
    model = pp.PolyplaneClassifier(quality=1, random_state=0)
    model = fitted(model, frame[:N_TRAIN], y[:N_TRAIN])
    rest = frame[N_TRAIN : N_TRAIN + N_TEST]
    for dialect in ("duckdb", "sqlite"):
        assert_says_the_same(model, rest, dialect)


# ---- matrices --------------------------------------------------------------------------------

MODELS = [
    pp.PegasosClassifier(multi_class="ovr"),
    pp.AMMClassifier(multi_class="ovo", n_estimators=2),
    pp.AMMClassifier(multi_class="ovo", combine="margin"),
    pp.CPMClassifier(sides="negative", multi_class="ovr"),
    pp.Poly2Classifier(),
    pp.Poly2Classifier(n_hash=10),
    pp.SoftPlanesClassifier(columns="knots", multi_class="ovo", directions="principal", **SET),
    pp.SoftPlanesClassifier(columns="plain", multi_class="ovr", **SET),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_all_planes_score_the_same(model, dialect):
    values, y = curved_classes()
    values = values + values / 7
    model = model.set_params(random_state=0, max_iter=2).fit(values, y)
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(5)])
    assert_says_the_same(model, frame, dialect)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_the_portfolio_on_a_matrix_has_the_same_probabilities(dialect):
    values = np.random.default_rng(0).standard_normal((200, 4)).astype(np.float32)
    y = (values[:, 0] * values[:, 1] > 0).astype(int) + (values[:, 2] > 1)
    model = fitted(pp.PolyplaneClassifier(quality=1, random_state=0), values, y)
    frame = pd.DataFrame(3 * values, columns=[f"x{j}" for j in range(4)])
    assert_says_the_same(model, frame, dialect)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(clip=True), MaxAbsScaler()])
def test_scalers_before_a_classifier_are_written(scaler, dialect):
    values, y = curved_classes()
    model = make_pipeline(scaler, pp.SoftPlanesClassifier(max_iter=2, random_state=0))
    model.fit(values[:40], y[:40])
    frame = pd.DataFrame(values * 1.5, columns=[f"x{j}" for j in range(5)])
    assert_says_the_same(model, frame, dialect)


@pytest.mark.parametrize("empty_score", [-np.inf, 0.25])
@pytest.mark.parametrize("owner", [[0, 1, 2, 3], [3, 0, 0, 0, 1, 2, 2], [0, 0, 3], [2], []])
@pytest.mark.parametrize("is_soft", [False, True])
def test_groups_of_any_size_score_like_the_record(owner, empty_score, is_soft):
    decomposition = Decomposition("joint", "vote", np.array([2, 0, 3, 1], np.int32))
    record = record_of([[finished(owner, 1, 50.0)]], decomposition, empty_score, is_soft, 0.7)
    rows = dense_rows(X, 1.0)
    query = sql_query(exported(record, rows, True), BY_NAME["sqlite"], ["rows"], (), "1")
    found = run(query, pd.DataFrame(X, columns=["x0", "x1", "x2"]), "sqlite")
    assert found["label"] == record.classes_of(rows, in_place(len(X))).tolist()
    values = np.array([found[f"probability_{c}"] for c in range(4)]).T
    expected = record.probabilities(rows, in_place(len(X)))
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_a_row_with_a_gap_has_no_label_where_the_model_takes_none(dialect):
    values, y = curved_classes()
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(5)])
    model = pp.SoftPlanesClassifier(columns="knots", max_iter=1, random_state=0).fit(values, y)
    query = pp.to_sql(model, dialect=dialect)
    frame.loc[3, "x1"] = np.nan
    found = run(query, frame, dialect)
    assert [row for row, label in enumerate(found["label"]) if label is None] == [3]


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_labels_keep_their_type(kind, dialect):
    labels = LABELS[kind][0]
    values, y = curved_classes(labels.size)
    if kind == "uint64" and dialect == "sqlite":
        model = pp.PegasosClassifier(random_state=0, max_iter=1).fit(values, labels[y])
        with pytest.raises(ModelError, match="18446744073709551615 is no integer of sqlite"):
            pp.to_sql(model, dialect=dialect)
        return
    model = pp.PegasosClassifier(random_state=0, max_iter=2).fit(values, labels[y])
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(5)])
    assert run(pp.to_sql(model, dialect=dialect), frame, dialect)["label"] == (
        model.predict(values).tolist()
    )


def test_many_columns_are_no_deep_expression():
    values = np.random.default_rng(0).standard_normal((50, 800))
    model = pp.AMMClassifier(max_iter=1, random_state=0).fit(values, (values[:, 0] > 0).astype(int))
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(800)])
    assert_says_the_same(model, frame, "sqlite")


# ---- tables ----------------------------------------------------------------------------------


def mixed_table(n=240):
    """Return rows with all kinds of columns but free text, with gaps, and labels."""
    rng = np.random.default_rng(0)
    start = datetime.datetime(2023, 1, 1)
    frame = pd.DataFrame(
        {
            "size": rng.exponential(size=n),
            'a "b" c': rng.choice(["it's", 'a "quote"', "\\n", " x ", "%", "select"], n),
            "Group": rng.choice(["1", "2.0", "-7"], n),
            "when": [start + datetime.timedelta(hours=int(h)) for h in rng.integers(0, 20_000, n)],
            "large": 1e9 + rng.integers(0, 1000, n),
            "is_new": rng.integers(0, 2, n).astype(bool),
        }
    )
    for k, name in enumerate(["size", 'a "b" c', "when", "large"]):
        frame[name] = frame[name].astype(object) if name == 'a "b" c' else frame[name]
        frame.loc[k::17, name] = None
    hour = frame["when"].dt.hour.fillna(0)
    signal = frame["size"].fillna(1) + (frame['a "b" c'] == "it's") + (hour > 12) + frame["is_new"]
    return frame, np.where(signal > 1.8, "y's", 'n"o')


def strange_rows(frame):
    """Return the rows with values that training has not met, too large or not there."""
    frame = frame.copy()
    frame.loc[0:5, "size"] = [1e300, -1e300, np.nan, np.inf, -np.inf, 0.0]
    frame.loc[6:9, 'a "b" c'] = ["never met", "?", "", " it's\t"]
    frame.loc[10, "when"] = pd.Timestamp("1899-12-31 23:59:59.5")
    frame.loc[11, "when"] = pd.Timestamp("2100-02-28")
    frame.loc[12, "Group"] = None
    return frame


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "machine", [MACHINE, pp.Poly2Classifier(max_iter=1, random_state=0)], ids=["soft", "poly2"]
)
def test_gaps_unknown_values_dates_and_names_are_taken(machine, dialect):
    frame, y = mixed_table()
    if machine is not MACHINE:
        frame = frame.drop(columns=["large", "size", "when"])  # whose products are too large
    model = fitted(type(machine)(**machine.get_params()), frame, y)
    frame = strange_rows(frame) if machine is MACHINE else frame
    finite = frame.replace([np.inf, -np.inf], [1e300, -1e300])
    found = run(pp.to_sql(model, dialect=dialect), frame, dialect)
    assert found["label"] == model.predict(finite).tolist()
    assert_says_the_same(model, finite, dialect)


def test_statistics_of_numbers_and_pairs_are_looked_up():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "city": rng.choice([f"c{k}" for k in range(40)], 600),
            "shop": rng.choice([f"s{k}" for k in range(30)], 600),
            "tenths": rng.integers(0, 30, 600) / 10,
        }
    )
    y = ((frame["city"].str.len() + frame["shop"].str.len()) % 2 == 0).to_numpy()
    y = np.where(y ^ (rng.random(600) < 0.1), "even", "odd")
    model = fitted(pp.PolyplaneClassifier(quality=1, random_state=0), frame, y)
    assert model.layout_.statistics is not None
    frame.loc[:20, "city"] = "never met"
    frame.loc[21:40, "shop"] = None
    for dialect in ("duckdb", "sqlite"):
        assert_says_the_same(model, frame, dialect)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_names_of_tables_keys_and_classes_do_not_collide(dialect):
    frame, y = mixed_table()
    y = np.where(frame["is_new"], np.where(y == "y's", "A", "a"), "label")
    model = fitted(type(MACHINE)(**MACHINE.get_params()), frame, y)
    frame["Label"], frame['key "1"'] = range(len(frame)), "x"
    keys = ["Label", 'key "1"']
    for table in ("model_planes", 'ta"ble', "select"):
        query = pp.to_sql(model, dialect=dialect, table=table, keys=keys)
        found = run(query, frame, dialect, table)
        assert list(found)[:3] == [*keys, "label_"]
        assert found["Label"] == list(range(len(frame)))
        assert found["label_"] == model.predict(frame).tolist()
        assert len({name.casefold() for name in found}) == 6


def test_a_column_that_is_not_there_is_an_error_in_sqlite():
    frame, y = mixed_table()
    model = fitted(type(MACHINE)(**MACHINE.get_params()), frame, y)
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        run(pp.to_sql(model, dialect="sqlite"), frame.drop(columns="size"), "sqlite")


def test_a_table_in_a_schema_is_a_sequence_of_names():
    values, y = curved_classes()
    query = pp.to_sql(pp.PegasosClassifier(max_iter=1).fit(values, y), table=["main", "rows"])
    assert 'FROM "main"."rows" AS r' in query


# ---- what is refused -------------------------------------------------------------------------


def test_what_sql_cannot_do_is_refused_in_a_sentence(monkeypatch):
    values, y = curved_classes()
    kernels = pp.HullerClassifier(gamma=0.1, max_iter=1).fit(values, y > 0)
    with pytest.raises(ModelError, match=r"by support vectors, which SQL cannot do: export"):
        pp.to_sql(kernels)
    planes = pp.PegasosClassifier(max_iter=1).fit(values, y)
    with pytest.raises(ModelError, match="dialect is 'oracle', expected one of duckdb, sqlite"):
        pp.to_sql(planes, dialect="oracle")
    with pytest.raises(ModelError, match="two columns are called 'A'"):
        pp.to_sql(planes, column_names=["A", "a", "b", "c", "d"])
    with pytest.raises(ModelError, match="holds a NUL character, which SQL cannot write"):
        pp.to_sql(planes, column_names=["A\0", "a", "b", "c", "d"])
    monkeypatch.setattr(module, "MOST_NUMBERS", 10)
    with pytest.raises(ModelError, match="would hold 15 numbers, above the 10"):
        pp.to_sql(planes)


def test_more_columns_than_a_sub_select_has_are_refused():
    values = np.random.default_rng(0).standard_normal((20, 2_001))
    model = pp.PegasosClassifier(max_iter=1).fit(values, values[:, 0] > 0)
    with pytest.raises(ModelError, match=r"of 2,001 columns, and sqlite has at most 2,000"):
        pp.to_sql(model, dialect="sqlite")
    assert pp.to_sql(model).startswith("-- PegasosClassifier: 2001 columns, 2 classes, 2 planes.")


def test_free_text_is_refused():
    words = ["red", "green", "blue", "old", "new", "small", "large", "round"]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"text": [" ".join(rng.permutation(words)[:6]) for _ in range(200)]})
    y = frame["text"].str.startswith("r").to_numpy()
    model = fitted(pp.PegasosClassifier(max_iter=1), frame, y)
    with pytest.raises(ModelError, match="column 'text' is free text, which SQL cannot read"):
        pp.to_sql(model)
