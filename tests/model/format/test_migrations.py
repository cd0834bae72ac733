"""Files of older versions are brought up to date step by step, or refused in a sentence."""

import numpy as np
import pytest

from polyplane.model.format import migrations, model_file
from polyplane.model.format.migrations import FORMAT_NOW, migrated
from polyplane.model.format.model_file import ModelError, read_file, write_file


def renamed(values, arrays):
    values["size"] = values.pop("length")
    arrays["new"] = arrays.pop("old")
    return True


def doubled(values, arrays):
    values["size"] *= 2
    return True


def test_steps_are_made_in_order():
    values, arrays = {"length": 3}, {"old": np.arange(3)}
    assert migrated(values, arrays, 1, 3, {1: renamed, 2: doubled})
    assert values == {"size": 6}
    assert list(arrays) == ["new"]


def test_a_step_may_not_know_what_a_file_holds():
    values, arrays = {"length": 3}, {"old": np.arange(3)}
    assert not migrated(values, arrays, 1, 3, {1: renamed, 2: lambda values, arrays: False})


def test_what_is_up_to_date_stays_as_it_is():
    values = {"length": 3}
    assert migrated(values, {}, 3, 3, {1: renamed, 2: doubled})
    assert values == {"length": 3}


@pytest.mark.parametrize("version", [0, 1, 5])
def test_a_version_from_which_no_steps_lead_is_left_alone(version):
    values = {"length": 3}
    assert not migrated(values, {}, version, 4, {2: renamed, 3: doubled})
    assert values == {"length": 3}


def test_a_file_of_an_older_format_is_read(tmp_path, monkeypatch):
    path = tmp_path / "model"
    write_file(path, {"length": 3}, {"old": np.arange(3)})
    monkeypatch.setattr(model_file, "FORMAT_NOW", FORMAT_NOW + 1)
    with pytest.raises(ModelError, match=f"is of format {FORMAT_NOW}, which .* no longer reads"):
        read_file(path)
    monkeypatch.setitem(migrations.FORMATS, FORMAT_NOW, renamed)
    values, arrays = read_file(path)
    assert values == {"size": 3}
    np.testing.assert_array_equal(arrays["new"], np.arange(3))


def test_steps_lead_from_every_version_that_was_released():
    assert sorted(migrations.FORMATS) == list(range(2, FORMAT_NOW))
    assert sorted(migrations.TRAININGS) == list(range(1, migrations.TRAINING_NOW))
