"""Random files in which everything varies at once: the readers agree with the plain rules.

Tests of single properties had every loop of a reader read every kind of row, but one kind at a
time; what went wrong needed two kinds in one file. `python -m tests.data.fuzz` tries more cases.
"""

import pytest

from polyplane.engine.jit import jit_is_disabled
from tests.data import random_libsvm

N_FILES, N_WITHOUT_JIT, BATCHES = 50_000, 600, 10


def seeds_of(batch, n_files):
    return range(batch * n_files // BATCHES, (batch + 1) * n_files // BATCHES)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_libsvm_text_is_read_by_its_rules(batch, monkeypatch):
    for module, name in random_libsvm.SIZED:
        monkeypatch.setattr(module, name, getattr(module, name))  # which every case sets
    for seed in seeds_of(batch, N_WITHOUT_JIT if jit_is_disabled() else N_FILES):
        random_libsvm.check(seed)
