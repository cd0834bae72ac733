"""Raw tables through the command line: the label is all that has to be said."""

import gzip
import json

import pandas as pd
import pytest

import polyplane as pp
from tests.data.table.test_raw_tables import TABLES, read_by_pandas
from tests.real_data import raw_table

N_LINES = 1_500


@pytest.fixture
def some_lines(tmp_path):
    """The first lines of a raw table, byte for byte."""

    def made(file):
        lines = gzip.decompress(raw_table(file).read_bytes()).splitlines(keepends=True)
        path = tmp_path / file.split("/")[1].removesuffix(".gz")
        path.write_bytes(b"".join(lines[:N_LINES]))
        return path

    return made


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.file.split("/")[0])
def test_train_predict_and_evaluate_need_no_other_option(call, table, some_lines, tmp_path):
    path, model = some_lines(table.file), tmp_path / "m.model"
    parting = ["--delimiter", " "] if table.separator == " " else []
    options = ["--label", table.label, "-a", "pegasos", "--seed", 1, "--model", model]
    done = call("train", path, *options, *parting, "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["label"]["name"] == (table.label if table.is_headed else None)
    assert not found["label"]["is_guessed"]
    assert sum(one["share"] for one in found["label"]["shares"]) == pytest.approx(1)
    assert len(found["table"]["columns"]) == sum(table.kinds.values())
    assert call("evaluate", model, path, *parting).code == 0
    said = call("predict", model, path, *parting)
    assert said.code == 0, said.err
    frame = read_by_pandas(path, table)
    frame.columns = [name.strip() if isinstance(name, str) else name for name in frame]
    predicted = pp.load(model).predict(frame.drop(columns=frame.columns[_place(frame, table)]))
    assert said.out.split("\n")[:-1] == [str(label) for label in predicted.tolist()]


def _place(frame, table):
    return list(frame).index(table.label) if table.is_headed else table.label


def test_what_was_recognised_is_said_and_info_says_it_again(call, tmp_path):
    path, model = tmp_path / "rows.csv", tmp_path / "m.model"
    rows = {
        "id": [f"C-{k:03d}" for k in range(60)],
        "age": ["?", *range(59)],
        "town": ["Ulm", "Bonn"] * 30,
        "Churn": ["no"] * 40 + ["yes"] * 20,
    }
    pd.DataFrame(rows).to_csv(path, index=False)
    done = call("train", path, "-a", "pegasos", "--model", model)
    for words in (
        "1 set aside, 1 number, 1 category",
        "1 value: 'age' 1",
        "'id': almost unique per row",
        "'Churn' (the last column",
        "no 66.7%, yes 33.3%",
    ):
        assert words in " ".join(done.out.split())
    info = " ".join(call("info", model).out.split())
    assert "1 set aside, 1 number, 1 category" in info
    assert "missing values: fill" in info
    assert "label: 'Churn'" in info


@pytest.mark.parametrize(
    ("label", "words"),
    [("price", "looks like a number to predict"), ("number", "number to predict or an id"),
     ("id", "almost unique")],
)  # fmt: skip
def test_a_label_that_is_no_class_is_refused(call, tmp_path, label, words):
    path = tmp_path / "rows.csv"
    rows = {
        "a": range(300),
        "price": [k / 7 for k in range(300)],
        "number": range(1000, 1300),
        "id": [f"C-{k}" for k in range(300)],
    }
    pd.DataFrame(rows).to_csv(path, index=False)
    done = call("train", path, "--label", label, "-a", "pegasos")
    assert done.code == 1
    assert words in done.err
    assert "--label" in done.err


def test_a_scaled_model_of_a_file_takes_frames(call, tmp_path):
    path, model = tmp_path / "rows.csv", tmp_path / "m.model"
    frame = pd.DataFrame({"a": range(40), "b": ["x", "y"] * 20, "label": [0, 1] * 20})
    frame.to_csv(path, index=False)
    assert call("train", path, "-a", "pegasos", "--scale", "maxabs", "--model", model).code == 0
    loaded = pp.load(model)
    said = call("predict", model, path).out.split()
    assert said == [str(label) for label in loaded.predict(frame).tolist()]
    pp.save(loaded, tmp_path / "again.model")
    assert pp.load(tmp_path / "again.model").predict(frame).tolist() == [*map(int, said)]
