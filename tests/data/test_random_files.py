"""Random files in which everything varies at once: the readers agree with the plain rules.

Tests of single properties had every loop of a reader read every kind of row, but one kind at a
time; what went wrong needed two kinds in one file. `python -m tests.data.fuzz` tries more cases.
"""

import pytest

from polyplane.engine.jit import jit_is_disabled
from tests.data import fuzz
from tests.data.formats.csv import random_csv
from tests.data.formats.libsvm import random_libsvm
from tests.examples import IS_NIGHT

pytestmark = pytest.mark.loops

BATCHES = 10
READERS = {  # files by night, half of them by day, and files without the JIT
    "libsvm": (random_libsvm, 5_000, 300),
    "csv": (random_csv, 1_500, 300),
}


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("form", READERS)
def test_text_is_read_by_its_rules(form, batch):
    reader, n_compiled, n_plain = READERS[form]
    n_files = (n_plain if jit_is_disabled() else n_compiled) // BATCHES
    n_files = n_files if IS_NIGHT or jit_is_disabled() else n_files // 2
    for seed in range(batch * n_files, (batch + 1) * n_files):
        reader.check(seed)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_all_ways_of_reading_csv_agree_in_every_word(batch):
    n_files = 30 if jit_is_disabled() else 150 if IS_NIGHT else 75
    for seed in range(batch * n_files, (batch + 1) * n_files):
        random_csv.check_ways(seed)


def test_a_case_that_fails_is_written_to_a_file_with_its_seed(tmp_path, monkeypatch, capsys):
    def check(seed):
        assert seed != 5

    monkeypatch.setattr(random_libsvm, "check", check)
    assert fuzz.run("libsvm", 60.0, 8, 2, tmp_path) == 1
    assert (tmp_path / "polyplane-libsvm-5.txt").read_bytes() == random_libsvm.case_of(5).text
    said = capsys.readouterr().out
    assert f"seed 5 fails: see {tmp_path / 'polyplane-libsvm-5.txt'}" in said
    assert "libsvm: 8 cases from seed 2 on, 1 failed" in said


@pytest.mark.parametrize(
    "seed", [409868237624, 409868241741, 409868234010, 851393334918, 851393263696]
)
def test_cases_of_csv_that_once_failed(seed):
    """A last line of blanks is a record; a first block without values is no table of ids.

    A quote may stand between the bytes of a letter: what is left without quotes is the text.
    """
    random_csv.check(seed)
