"""Many classes taken in pairs: work grows with the pairs, and memory is asked for beforehand."""

import numpy as np
import pytest

import polyplane as pp
from polyplane.model.many_classes.decomposition import Decomposition
from polyplane.training.work import memory

N_CLASSES = 12
N_PAIRS = N_CLASSES * (N_CLASSES - 1) // 2
X = np.random.default_rng(0).normal(size=(4 * N_CLASSES, 3)).astype(np.float32)
Y = np.arange(len(X)) % N_CLASSES
SMALL = {"n_planes": 2, "start_scale": 3.0, "step_size": 0.3, "columns": "plain", "max_iter": 1,
         "units": 1, "shrinkage": 0.05, "learn_from": "unsure"}  # fmt: skip
MACHINES = [
    pp.PegasosClassifier(multi_class="ovo", max_iter=1),
    pp.CPMClassifier(n_planes=2, max_iter=1),
    pp.MMClassifier(n_planes=2, multi_class="ovo", max_iter=1),
    pp.SoftPlanesClassifier(multi_class="ovo", **SMALL),
    pp.LaSVMClassifier(),
]


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_the_first_prediction_makes_each_pair_a_few_times_at_most(machine, monkeypatch):
    made = []
    found = Decomposition.problem_at

    def noted(decomposition, place):
        made.append(place)
        return found(decomposition, place)

    model = machine.fit(X, Y)
    monkeypatch.setattr(Decomposition, "problem_at", noted)
    model.predict(X[:5])
    assert N_PAIRS <= len(made) <= 4 * N_PAIRS


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_pairs_beyond_memory_are_refused_before_training(machine, monkeypatch):
    monkeypatch.setattr(memory, "SURELY_THERE", 0)
    monkeypatch.setattr(memory, "bytes_available", lambda: 100_000)
    words = rf"{N_PAIRS} models of .* need about 0\.\d GB of memory, and 0\.0 GB are .*'ovr'.*\.$"
    for train in (machine.__class__.fit, machine.__class__.partial_fit):
        fresh = type(machine)(**machine.get_params())
        with pytest.raises(ValueError, match=words):
            train(fresh, X, Y)
        assert not hasattr(fresh, "classes_")


def test_planes_of_pairs_are_counted_with_their_columns(monkeypatch):
    """105 classes of 55,197 columns, as a set of texts has them: 5,460 models of 32 planes."""
    monkeypatch.setattr(memory, "bytes_available", lambda: 50e9)
    rows = np.zeros((210, 55_197), np.uint8)
    with pytest.raises(ValueError, match=r"5,460 models .* about 115\.\d GB of memory"):
        pp.CPMClassifier().fit(rows, np.arange(210) % 105)


def test_what_the_system_says_is_a_number_of_bytes(monkeypatch, tmp_path):
    assert memory.bytes_available() > 1 << 20
    facts, limit = tmp_path / "meminfo", tmp_path / "memory.max"
    facts.write_text("MemTotal: 9 kB\nMemAvailable:   7 kB\n")
    monkeypatch.setattr(memory, "MEMORY_FACTS", facts)
    monkeypatch.setattr(memory, "GROUP_LIMIT", limit)
    assert memory.bytes_available() == 7 * 1024
    limit.write_text("max\n")
    assert memory.bytes_available() == 7 * 1024
    limit.write_text("4096\n")
    assert memory.bytes_available() == 4096
    facts.write_text("nothing that is known")
    limit.unlink()
    assert memory.bytes_available() > 1 << 20
