"""Exports are written by the functions that Python users call."""

import json

import onnx
import pytest

from polyplane import ModelError, load, to_c, to_sql
from tests.cli.documented import check


@pytest.mark.parametrize(("name", "target"), [("m.onnx", "onnx"), ("m.c", "c"), ("m", "c")])
def test_a_model_is_exported_as_its_name_or_to_says(name, target, call, files, tmp_path):
    out = tmp_path / name
    stated = ["--to", target] if "." not in name else []
    done = call("export", files / "numbered.model", "-o", out, *stated, "--json")
    found = check("export", done.out)
    assert found == {"output": str(out), "to": target, "bytes": out.stat().st_size}


def test_a_folder_that_is_not_there_is_told(call, files, tmp_path):
    done = call("export", files / "numbered.model", "-o", tmp_path / "absent" / "m.c")
    assert done.code == 1
    assert "cannot be written" in done.err


def test_exports_of_models_of_tables_name_the_columns(call, files, tmp_path):
    onnx_path, c_path = tmp_path / "m.onnx", tmp_path / "m.h"
    assert call("export", files / "named.model", "-o", onnx_path).code == 0
    metadata = {one.key: one.value for one in onnx.load(onnx_path).metadata_props}
    assert json.loads(metadata["columns"]) == [*"abcde"]
    assert call("export", files / "named.model", "-o", c_path).code == 0
    named = to_c(load(files / "named.model"), name="m", column_names=[*"abcde"])
    assert c_path.read_text() == named
    assert named == to_c(load(files / "named.model"), name="m")


def test_there_is_one_column_name_for_each_column(files):
    with pytest.raises(ModelError, match="2 column names are given for 5 columns"):
        to_c(load(files / "named.model"), column_names=["a", "b"])


def test_exports_of_tables_take_their_columns(call, tmp_path):
    rows = "age,town,label\n" + "".join(
        f"{k if k % 7 else ''},{'Ulm' if k % 3 else 'Bonn'},{'yes' if k % 3 else 'no'}\n"
        for k in range(60)
    )
    (tmp_path / "rows.csv").write_text(rows)
    model = tmp_path / "m.model"
    assert call("train", tmp_path / "rows.csv", "-a", "pegasos", "--model", model).code == 0
    done = call("export", model, "-o", tmp_path / "m.onnx")
    assert done.code == 0
    assert "It takes the columns 'age' (number), 'town' (category)." in done.out
    inputs = onnx.load(tmp_path / "m.onnx").graph.input
    assert [one.name for one in inputs] == ["age", "town"]
    assert call("export", model, "-o", tmp_path / "m.h").code == 0
    assert (tmp_path / "m.h").read_text() == to_c(load(model), name="m")
    assert "const char *town;" in (tmp_path / "m.h").read_text()


def test_sql_takes_its_options_from_the_command_line(call, files, tmp_path):
    out = tmp_path / "m.sql"
    given = ["--dialect", "sqlite", "--table", "clicks", "--keys", "id", "--keys", "day"]
    assert call("export", files / "named.model", "-o", out, *given).code == 0
    model = load(files / "named.model")
    expected = to_sql(model, dialect="sqlite", table="clicks", keys=["id", "day"])
    assert out.read_text() == expected


def test_an_option_of_another_format_is_refused(call, files, tmp_path):
    done = call("export", files / "named.model", "-o", tmp_path / "m.onnx", "--table", "clicks")
    assert done.code == 2
    assert "--table is not an option of ONNX: leave it out." in done.err
    assert not (tmp_path / "m.onnx").exists()
