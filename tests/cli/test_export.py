"""Exports are written by the functions that Python users call."""

import pytest

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
