"""Model files that were written once are read, and predict what they did when written.

`python -m tests.estimator.files.test_frozen_files` writes them, when a format is released.
"""

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import polyplane as pp
from polyplane.training.work.progress import heard_by

FILES = Path(__file__).parent / "frozen"
WRITTEN = FILES / "expected.json"
EXPECTED = json.loads(WRITTEN.read_text()) if WRITTEN.exists() else {}
FLOWERS, KINDS = load_iris(return_X_y=True)
NAMES = load_iris().target_names[KINDS]


class Pause(KeyboardInterrupt):
    """Raised in the middle of a fit."""


@contextlib.contextmanager
def paused():
    @contextlib.contextmanager
    def listen(work):
        reports = iter(range(9))

        def report(n_rows, size, error):
            if next(reports) == 8:
                raise Pause

        yield report

    with contextlib.suppress(Pause), heard_by(listen):
        yield


def models():
    """What is worth keeping: each kind of state once."""
    yield "amm", pp.AMMClassifier(random_state=0).fit(FLOWERS, NAMES)
    yield (
        "knots",
        pp.SoftPlanesClassifier(
            n_planes=2, columns="knots", step_size=0.3, max_iter=2, random_state=0
        ).fit(FLOWERS, KINDS),
    )
    yield "cpm", pp.CPMClassifier(n_planes=2, max_iter=2, random_state=0).fit(FLOWERS, KINDS)
    yield "samm", pp.SAMMClassifier(random_state=0).fit(FLOWERS, KINDS > 0)
    yield "lasvm", pp.LaSVMClassifier(random_state=0).fit(FLOWERS, KINDS)
    yield "pegasos", pp.KernelPegasosClassifier(random_state=0).fit(FLOWERS, KINDS)
    turned = pp.SoftPlanesClassifier(
        n_planes=2,
        columns="knots",
        directions="principal",
        max_iter=2,
        random_state=0,
    )
    yield "turned", turned.fit(FLOWERS, KINDS)
    yield "stream", pp.SoftPlanesClassifier(random_state=0).partial_fit(FLOWERS, KINDS)
    yield (
        "scaled",
        make_pipeline(MaxAbsScaler(), pp.MMClassifier(random_state=0)).fit(FLOWERS, KINDS),
    )
    unfinished = pp.AMMClassifier(max_iter=3, early_stopping=True, random_state=0)
    with paused():
        unfinished.fit(FLOWERS, KINDS)
    yield "unfinished", unfinished


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_predicts_what_it_did_and_learns_on(name):
    model, expected = pp.load(FILES / f"{name}.model"), EXPECTED[name]
    assert model.predict(FLOWERS).tolist() == expected["labels"]
    scores = model.decision_function(FLOWERS)
    np.testing.assert_allclose(scores, expected["scores"], rtol=1e-5, atol=1e-5)
    last = model[-1] if hasattr(model, "steps") else model
    if name == "unfinished":
        assert last.resume(FLOWERS, KINDS).n_iter_ <= 3
    else:
        last.partial_fit(FLOWERS, expected["labels"])


def test_there_is_a_file_of_each_kind_of_state():
    assert set(EXPECTED) == {name for name, _ in models()}


def write_files():
    expected = {}
    for name, model in models():
        pp.save(model, FILES / f"{name}.model")
        scores = model.decision_function(FLOWERS).round(6)
        expected[name] = {"labels": model.predict(FLOWERS).tolist(), "scores": scores.tolist()}
    WRITTEN.write_text(json.dumps(expected))


if __name__ == "__main__":
    write_files()
