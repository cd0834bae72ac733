"""Models of tables take raw columns in ONNX and C: what they say is what Python says."""

import datetime
import gzip
import itertools
import json
import re
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import polyplane as pp
from polyplane.data.table.frames import frame_of, rows_of
from polyplane.data.table.layout import Layout
from polyplane.data.table.texts import MISSING_TEXTS
from polyplane.estimator.files.exported_tables import exported_table
from polyplane.estimator.files.saving import SavedModel, write_model
from polyplane.model.export.c_headers.table import KEYWORDS, field_names
from polyplane.model.export.table_input import TableColumn
from polyplane.model.format.model_file import ModelError
from tests.data.table.test_raw_tables import TABLES, read_by_pandas, read_by_polars
from tests.examples import examples
from tests.exported import (
    STRICT,
    assert_same_scores,
    cells_of,
    compile_c,
    largest_part,
    needs_a_compiler,
    run_c,
    run_c_table,
    run_onnx,
    run_onnx_table,
)
from tests.real_data import raw_table

polars = pytest.importorskip("polars")
pytestmark = pytest.mark.compiled
N_LINES = 700
MACHINE = pp.SoftPlanesClassifier(n_planes=2, max_iter=2, random_state=0)
LINEAR = pp.PegasosClassifier(max_iter=1, random_state=0)


def rows_by(layout, frame):
    """Rows of X, dense, by a layout that stays as it is."""
    kept = Layout.from_dict(layout.to_dict(), is_frozen=True)
    X = rows_of(frame_of(frame), kept)
    return X.toarray() if sp.issparse(X) else X


def fitted(frame, y, machine=MACHINE):
    """The machine on a frame; what is set aside is nobody's concern here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return type(machine)(**machine.get_params()).fit(frame, y)


def assert_says_the_same(model, frame, found):
    """Labels are the same, scores and probabilities to rounding."""
    assert list(map(str, found["label"])) == list(map(str, model.predict(frame).tolist()))
    assert_same_scores(model, frame, found["scores"])
    if hasattr(model, "predict_proba"):
        limit = 1e-6 * largest_part(model, frame)
        expected = model.predict_proba(frame)
        np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=limit)


def assert_onnx_and_c_say_the_same(model, frame, folder):
    """Both, on rows of a pandas frame; x in C is that of Python to the bit; C refuses free text."""
    cells, n_classes = cells_of(frame, model.layout_), model.classes_.size
    made, table = pp.to_onnx(model), exported_table(model.layout_, model.layout_.width)
    if any(column.kind == "words" for column in table.columns):
        assert_says_the_same(model, frame, run_onnx_table(made, cells))
        with pytest.raises(ModelError, match=r"is free text, .* export the model to ONNX instead"):
            pp.to_c(model, name="model")
        return
    text = pp.to_c(model, name="model")
    if table.is_of_numbers:
        X = np.column_stack(cells)
        assert_says_the_same(model, frame, run_onnx(made, X))
        assert_says_the_same(model, frame, run_c(text, X, n_classes, folder))
        return
    assert_says_the_same(model, frame, run_onnx_table(made, cells))
    assert run_onnx_table(made, [column[:0] for column in cells])["scores"].shape == (0, n_classes)
    found = run_c_table(text, cells, n_classes, folder)
    assert_says_the_same(model, frame, found)
    np.testing.assert_array_equal(found["x"], rows_by(model.layout_, frame))


# ---- the ten tables --------------------------------------------------------------------------


def some_lines(table, folder):
    """The first lines of a raw table in a file."""
    path = folder / table.file.split("/")[1]
    with gzip.open(raw_table(table.file)) as file, gzip.open(path, "wb") as part:
        part.writelines(itertools.islice(file, N_LINES))
    return path


def without_label(frame, table):
    """The columns that are learned from, and the label."""
    names = list(frame.columns)
    stripped = [name.strip() if isinstance(name, str) else name for name in names]
    place = stripped.index(table.label) if isinstance(table.label, str) else table.label
    return frame[[name for k, name in enumerate(names) if k != place]], frame[names[place]]


@needs_a_compiler
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.file.split("/")[0])
def test_raw_tables_are_the_same_for_pandas_polars_files_onnx_and_c(table, tmp_path):
    path = some_lines(table, tmp_path)
    frame, y = without_label(read_by_pandas(path, table), table)
    other, _ = without_label(read_by_polars(path, table), table)
    half = len(frame) // 2
    model = fitted(frame[:half], y[:half].astype(str).str.strip().to_numpy())
    labels, scores = model.predict(frame), model.decision_function(frame)
    if table.is_headed:  # polars gives columns names that pandas does not
        np.testing.assert_array_equal(model.predict(other), labels)
        np.testing.assert_array_equal(model.decision_function(other), scores)
    pp.save(model, tmp_path / "m.model")
    again = pp.load(tmp_path / "m.model")
    np.testing.assert_array_equal(again.decision_function(frame), scores)
    assert_onnx_and_c_say_the_same(again, frame, tmp_path)


@needs_a_compiler
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.file.split("/")[0])
def test_models_of_raw_files_are_exported_with_what_was_recognised(table, tmp_path):
    path, layout = some_lines(table, tmp_path), Layout()
    delimiter = " " if table.separator == " " else None
    X, y = pp.read(path, label=table.label, layout=layout, delimiter=delimiter)
    model = fitted(X, y, LINEAR)
    write_model(SavedModel(model, layout=layout), tmp_path / "m.model")
    frame, _ = without_label(read_by_pandas(path, table), table)
    frame.columns = [name.strip() if isinstance(name, str) else name for name in frame]
    assert_onnx_and_c_say_the_same(pp.load(tmp_path / "m.model"), frame, tmp_path)


# ---- random tables ---------------------------------------------------------------------------

HOSTILE = [
    "", " ", "label", "scores", "X", "Gemm_0", "LabelEncoder_1", "constant_0", "int", "NAN", "NULL",
    "größe", "a b", "a-b", "a_b", '"', "*/ int x; /*", "??/", "\\", "name_row", "NAME_X", "$row",
    "_Bool", "1st", "\n", "%s", "class", "model_row", "日本", "\x7f", "A", "a",
]  # fmt: skip
TEXT_CELLS = st.one_of(
    st.none(),
    st.sampled_from(["red", "green", "dark blue", "größe", "x,y", 'q"q', "\\", "??/", "NA", "?"]),
    st.sampled_from(
        ["name_", "NAME_TEXTS", "$1", "日本", "\u00e9", "e\u0301", "a\tb", "*/", "\x01"]
    ),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4),
)
NUMBERS = st.one_of(st.none(), st.integers(-1000, 1000), st.floats(-1e6, 1e6, width=32))
DATES = st.one_of(
    st.none(), st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))
)
WORDS = st.sampled_from(
    ["the", "The", "THE", "größe", "GRÖSSE", "don't", "x1", "...", "日本", "Éa"]
)
SENTENCES = st.lists(WORDS, max_size=8).map(" ".join)
KINDS = {
    "number": NUMBERS.map(lambda value: None if value is None else float(value)),
    "text": TEXT_CELLS,
    "date": DATES,
    "flag": st.one_of(st.none(), st.booleans()),
}


@st.composite
def frames(draw):
    """A frame to learn from, and another with values that are new to it."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5))
    names = draw(st.lists(st.sampled_from(HOSTILE), min_size=6, max_size=6, unique=True))
    n_rows = draw(st.integers(4, 30))
    columns = {}
    for name, kind in zip(names, kinds, strict=False):
        cells = draw(st.lists(KINDS[kind], min_size=n_rows, max_size=n_rows))
        dtype = {"number": float, "date": "datetime64[us]"}.get(kind, object)
        columns[name] = pd.Series(cells, dtype=dtype)
    columns[names[-1]] = pd.Series(["b", "a"] * n_rows, dtype=object)[:n_rows]
    frame = pd.DataFrame(columns)
    n_learned = draw(st.integers(2, n_rows))
    return frame[:n_learned], frame, draw(st.booleans())


@needs_a_compiler
@settings(deadline=None, max_examples=examples(25))
@given(frames())
def test_random_tables_are_the_same_for_onnx_and_c(drawn):
    some, every, grows = drawn
    y = np.arange(len(some)) % 2
    if grows:
        model = pp.PegasosClassifier(random_state=0).partial_fit(some, y, classes=[0, 1])
    else:
        model = fitted(some, y, LINEAR)
    try:
        model.predict(every)
    except ValueError as error:  # texts that were all numbers, and now are not
        assert "as in training" in str(error)  # noqa: PT017
        every = some
    with tempfile.TemporaryDirectory() as folder:
        assert_onnx_and_c_say_the_same(model, every, Path(folder))


# ---- single columns --------------------------------------------------------------------------


def people(n=200):
    """A number with gaps, a category with rare values, a flag and a date."""
    generator = np.random.default_rng(3)
    days = pd.Timestamp("1969-11-30") + pd.to_timedelta(generator.integers(0, 70_000, n), "h")
    towns = np.array(["Ulm", "Bonn", "Köln", "rare 1", "rare 2", None], object)
    return pd.DataFrame(
        {
            "age": np.where(generator.random(n) < 0.1, np.nan, generator.integers(18, 90, n)),
            "town": towns[generator.choice(6, n, p=[0.3, 0.3, 0.3, 0.01, 0.01, 0.08])],
            "is member": generator.random(n) < 0.5,
            "since": days.where(generator.random(n) < 0.9),
        }
    )


def classes_of(frame):
    return np.where(frame["age"].fillna(0) + 20 * (frame["town"] == "Ulm") > 50, "old", "young")


@needs_a_compiler
@pytest.mark.parametrize(
    "machine",
    [
        MACHINE,
        pp.AMMClassifier(random_state=0, max_iter=2, multi_class="ovo"),
        pp.Poly2Classifier(random_state=0, max_iter=2),
        pp.LaSVMClassifier(random_state=0, gamma=0.01),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_all_families_take_tables(machine, tmp_path):
    frame = people()
    model = fitted(frame, classes_of(frame), machine)
    cells = cells_of(frame, model.layout_)
    found = run_onnx_table(pp.to_onnx(model), cells)
    assert found["label"].tolist() == model.predict(frame).tolist()
    found = run_c_table(pp.to_c(model, name="model"), cells, 2, tmp_path)
    assert found["label"] == model.predict(frame).tolist()
    np.testing.assert_array_equal(found["x"], rows_by(model.layout_, frame))


@needs_a_compiler
def test_new_rare_missing_and_padded_values(tmp_path):
    frame = people()
    model = fitted(frame, classes_of(frame))
    texts = ["Ulm", "ulm", "Köln", "rare 1", "never met", "Ul", "Ulmm", "", *MISSING_TEXTS, None]
    new = frame.iloc[np.arange(len(texts)) % len(frame)].reset_index(drop=True)
    new["town"] = texts
    assert_onnx_and_c_say_the_same(model, new, tmp_path)
    blanks = "\t\n\v\f\r\x1c\x1f \x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"
    padded = ["x\u3000", "\u200bUlm", " Ulm", *(f"{one}Ulm{one}{one}" for one in blanks)]
    new = frame.iloc[np.arange(len(padded))].reset_index(drop=True)
    new["town"] = padded
    assert_onnx_and_c_say_the_same(model, new, tmp_path)


@needs_a_compiler
def test_categories_are_found_by_all_their_spellings(tmp_path):
    day = pd.Timestamp("2024-01-31")
    values = [1.0, True, False, 2.5, day, day.replace(hour=12), "word"] * 10
    frame = pd.DataFrame({"value": pd.Series(values, dtype=object)})
    model = fitted(frame, np.arange(len(frame)) % 7, LINEAR)
    texts = [*map(str, values[:7]), "1", "true", "FALSE", "2024-01-31", "2024-01-31T00:00:00",
             "2024-01-31T12:00:00", "1.00", "2.50"]  # fmt: skip
    assert_onnx_and_c_say_the_same(model, pd.DataFrame({"value": texts}), tmp_path)
    assert model.predict(frame).tolist() == model.predict(frame.astype(str)).tolist()


@needs_a_compiler
def test_dates_have_the_parts_that_python_finds(tmp_path):
    generator = np.random.default_rng(0)
    minutes = generator.integers(-200 * 365 * 1440, 300 * 365 * 1440, 400)
    edges = ["1969-12-31T23:59:59.999999", "1970-01-01", "2000-02-29T23:00", "1900-03-01T00:00",
             "1899-12-31T12:30:00.000001", "2100-02-28T23:59:59", "2024-12-31", "NaT"]  # fmt: skip
    moments = np.concatenate(
        [
            minutes.astype("datetime64[m]").astype("datetime64[us]"),
            np.array(edges, "datetime64[us]"),
        ]
    )
    frame = pd.DataFrame({"when": moments})
    y = (np.arange(len(frame)) % 3).astype(str)
    assert_onnx_and_c_say_the_same(fitted(frame, y, LINEAR), frame, tmp_path)


def texts(n=120, seed=0):
    """Messages of several words, most of them different."""
    words = ["free", "prize", "call", "now", "größe", "öl", "don't", "日本", "see", "you", "2day"]
    generator = np.random.default_rng(seed)
    lines = [" ".join(generator.choice(words, 9)) for _ in range(n)]
    return pd.DataFrame({"message": lines}), np.array(["free" in line for line in lines])


def test_words_are_found_whatever_stands_around_them(tmp_path):
    frame, y = texts()
    model = fitted(frame, y, LINEAR)
    assert [source.kind for source in model.layout_.sources] == ["text"]
    new = ["FREE... prize!call,NOW", "free-free free", "Größe größe", "Öl ÖL öl", "日本", "freely",
           "x" * 500, "don't dont DON'T", "", "NA", "N/A", " ? ", "free\tcall", "ｆｒｅｅ",
           "naïve free", "½free free½", "_free_", "free\u0301", "\U0001f600free", None]  # fmt: skip
    frame = pd.DataFrame({"message": new})
    assert_onnx_and_c_say_the_same(model, frame, tmp_path)


def test_words_with_capitals_beyond_ascii_are_known_to_onnx():
    words = ["istanbul", "diyarbakir", "ǆep", "kelvin", "größe", "åre", "здравствуйте"]
    lines = [f"{word} " * 5 + f"number{k % 3}" for k, word in enumerate(words * 12)]
    y = np.arange(len(lines)) % len(words)
    frame = pd.DataFrame({"message": [f"{line} {k}" for k, line in enumerate(lines)]})
    model = fitted(frame, y, LINEAR)
    new = ["İstanbul", "İSTANBUL", "DİYARBAKIR", "DİYARBAKİR", "ǅep", "ǄEP", "\u212aelvin",
           "GRÖSSE", "GRÖẞE", "gRÖßE", "\u212bre", "Åre",
           "Здравствуйте", "ЗДРАВСТВУЙТЕ"]  # fmt: skip
    frame = pd.DataFrame({"message": new})
    assert rows_by(model.layout_, frame).any(axis=1).sum() == len(new) - 1  # GRÖSSE is new
    found = run_onnx_table(pp.to_onnx(model), cells_of(frame, model.layout_))
    assert_says_the_same(model, frame, found)


# ---- whole models ----------------------------------------------------------------------------


def read_model(frame, y, path, scaler=None, **options):
    """What the command line makes of a file."""
    frame.assign(label=y).to_csv(path, index=False)
    layout = Layout(grows=False)
    X, labels = pp.read(path, label="label", layout=layout, **options)
    if scaler is not None:
        X = scaler.fit_transform(X)
    return SavedModel(fitted(X, labels, LINEAR), scaler, layout).predictor()


@pytest.mark.parametrize("of", ["town", "message"])
def test_hashed_categories_and_words_are_refused(of, tmp_path):
    frame, y = texts() if of == "message" else (people(), classes_of(people()))
    model = read_model(frame, y, tmp_path / "f.csv", categories="hash", n_hash=16)
    for export in (pp.to_onnx, pp.to_c):
        with pytest.raises(ModelError, match=f"column .{of}. are hashed.*--categories onehot"):
            export(model)


@needs_a_compiler
def test_scalers_behind_a_table_are_exported_with_it(tmp_path):
    frame = people()
    model = read_model(frame, classes_of(frame), tmp_path / "f.csv", MaxAbsScaler())
    layout = model[0].layout
    cells = cells_of(frame, layout)
    scores = model.decision_function(frame)
    for found in (
        run_onnx_table(pp.to_onnx(model), cells),
        run_c_table(pp.to_c(model, name="model"), cells, 2, tmp_path),
    ):
        assert list(found["label"]) == model.predict(frame).tolist()
        difference = found["scores"][:, 1] - found["scores"][:, 0]
        np.testing.assert_allclose(difference, scores, rtol=0, atol=1e-5 * np.abs(scores).max())


def test_scalers_before_a_table_are_exported_if_it_is_of_numbers():
    frame = people()[["age"]].fillna(30).assign(height=np.arange(200.0))
    y = frame["age"] > 50
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), LINEAR).fit(frame, y)
    found = run_onnx(pp.to_onnx(model), frame.to_numpy())
    assert found["label"].tolist() == model.predict(frame).tolist()
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), LINEAR)
    model.fit(frame.mask(frame < 20), y)
    with pytest.raises(ModelError, match="numbers without gaps"):
        pp.to_onnx(model)


@needs_a_compiler
def test_values_that_are_missing_count_as_zero_where_training_said_so(tmp_path):
    frame = people()
    model = read_model(frame, classes_of(frame), tmp_path / "f.csv", missing="zero")
    assert_onnx_and_c_say_the_same(model, frame, tmp_path)


@needs_a_compiler
def test_tables_of_numbers_take_rows_of_numbers_with_gaps(tmp_path):
    frame = people()[["age"]].assign(height=np.arange(200.0) // 4, flag=[True, False] * 100)
    model = fitted(frame, classes_of(people()))
    assert model.layout_.width == 4
    made = pp.to_onnx(model)
    assert [one.name for one in made.graph.input] == ["X"]
    metadata = {one.key: one.value for one in made.metadata_props}
    assert json.loads(metadata["columns"]) == ["age", "height", "flag"]
    new = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.3)
    assert_onnx_and_c_say_the_same(model, new.astype(float), tmp_path)


# ---- names -----------------------------------------------------------------------------------


def test_fields_have_different_names_that_c_allows():
    names = [*HOSTILE, *sorted(KEYWORDS), "a", "a", "a_2", "A B", "\ud800", "x" * 40]
    fields = field_names([TableColumn(name, "number") for name in names])
    assert len(set(fields)) == len(fields)
    assert not set(fields) & KEYWORDS
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name, re.ASCII) for name in fields)
    assert field_names([TableColumn("Monthly Charges", "number")]) == ["Monthly_Charges"]


@needs_a_compiler
def test_columns_of_hostile_names_compile_as_c_and_as_cpp(tmp_path):
    names = list(dict.fromkeys([*HOSTILE, *sorted(KEYWORDS)]))
    frame = pd.DataFrame({name: ["a", "b"] * 10 for name in names})
    model = fitted(frame, np.arange(20) % 2, LINEAR)
    pp.to_c(model, tmp_path / "model.h")
    source = tmp_path / "program.txt"
    source.write_text('#include "model.h"\nint main(void) { model_row row = {0}; '
                      "return model_predict(&row) > 9; }\n")  # fmt: skip
    for kind, standard, *more in (["c", "-std=c99"], ["c++", "-std=c++11"], ["c", "-std=gnu17"]):
        quiet = ["-Wno-missing-field-initializers"]
        compile_c(["-x", kind, standard, *STRICT, *quiet, *more, "-c", source, "-o",
                   tmp_path / "program.o"])  # fmt: skip
    inputs = [one.name for one in pp.to_onnx(model).graph.input]
    assert len(set(inputs)) == len(names)
    assert "" not in inputs


def test_columns_without_names_are_counted():
    X = np.array([["a", 1.0], ["b", 2.0]] * 10, object)
    model = fitted(X, np.arange(20) % 2, LINEAR)
    made = pp.to_onnx(model)
    assert [one.name for one in made.graph.input] == ["column_1", "column_2"]
    assert "const char *column_1;" in pp.to_c(model)


def test_other_names_may_be_given_one_for_each_column_that_is_read():
    frame = people().assign(id=[f"id {k}" for k in range(200)])
    model = fitted(frame, classes_of(frame))
    made = pp.to_onnx(model, column_names=["w", "x", "y", "z"])
    assert [one.name for one in made.graph.input] == ["w", "x", "y", "z"]
    with pytest.raises(ModelError, match="2 column names are given for 4 columns"):
        pp.to_c(model, column_names=["w", "x"])


# ---- docs ------------------------------------------------------------------------------------


@needs_a_compiler
def test_the_examples_of_the_docs_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[3] / "docs" / "export.md").read_text()
    page = page.partition("\n## Tables\n")[2]
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": generator.integers(18, 80, 100),
            "workclass": generator.choice(["State-gov", "Private"], 100),
            "occupation": generator.choice(["Sales", "Tech-support", None], 100),
            "capital_gain": np.where(generator.random(100) < 0.2, np.nan, 1000.0),
        }
    )
    frame.to_csv("new.csv", index=False)
    model = fitted(frame, np.where(frame["age"] > 40, ">50K", "<=50K"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    made = pp.to_onnx(model).SerializeToString()
    session = onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])
    scope = {"pd": pd, "session": session}
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code, scope)
    assert scope["labels"].tolist() == model.predict(frame).tolist()
    [program] = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    (tmp_path / "main.c").write_text(program)
    pp.to_c(model, "income.h")
    compile_c(["-std=c99", *STRICT, "main.c", "-o", "main", "-lm"])
    row = pd.DataFrame({"age": [39.0], "workclass": "State-gov", "occupation": [None],
                        "capital_gain": [np.nan]})  # fmt: skip
    found = subprocess.run(["./main"], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == model.predict(row)[0]
