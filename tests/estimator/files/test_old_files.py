"""Model files of every released format are read, and predict what they did when written.

`python -m tests.estimator.files.test_old_files` adds files of the present format, and no others.
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
from polyplane.estimator.fitting.progress import heard_by
from polyplane.model.format.migrations import FORMAT_NOW
from polyplane.model.format.model_file import is_model_file

FILES = Path(__file__).parent / "old"
FLOWERS, KINDS = load_iris(return_X_y=True)
NAMES = load_iris().target_names[KINDS]
WRITTEN = sorted(FILES.glob("*.model"))


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
        pp.PolyplaneClassifier(
            n_planes=2, columns="knots", step_size=0.3, max_iter=2, random_state=0, search=False
        ).fit(FLOWERS, KINDS),
    )
    yield "cpm", pp.CPMClassifier(n_planes=2, max_iter=2, random_state=0).fit(FLOWERS, KINDS)
    yield "samm", pp.SAMMClassifier(random_state=0).fit(FLOWERS, KINDS > 0)
    yield "lasvm", pp.LaSVMClassifier(random_state=0).fit(FLOWERS, KINDS)
    yield "pegasos", pp.KernelPegasosClassifier(random_state=0).fit(FLOWERS, KINDS)
    turned = pp.PolyplaneClassifier(
        n_planes=2,
        columns="knots",
        directions="principal",
        max_iter=2,
        random_state=0,
        search=False,
    )
    yield "turned", turned.fit(FLOWERS, KINDS)
    yield "stream", pp.PolyplaneClassifier(random_state=0).partial_fit(FLOWERS, KINDS)
    yield (
        "scaled",
        make_pipeline(MaxAbsScaler(), pp.MMClassifier(random_state=0)).fit(FLOWERS, KINDS),
    )
    unfinished = pp.AMMClassifier(max_iter=3, early_stopping=True, random_state=0)
    with paused():
        unfinished.fit(FLOWERS, KINDS)
    yield "unfinished", unfinished


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_it_predicts_what_it_did(path):
    model = pp.load(path)
    expected = json.loads(path.with_suffix(".json").read_text())
    assert model.predict(FLOWERS).tolist() == expected["labels"]
    scores = model.decision_function(FLOWERS)
    np.testing.assert_allclose(scores, expected["scores"], rtol=1e-5, atol=1e-5)
    last = model[-1] if hasattr(model, "steps") else model
    if "unfinished" in path.stem:
        assert last.resume(FLOWERS, KINDS).n_iter_ <= 3
    elif path.stem == "knots-2":  # knots that planes are no longer trained on
        with pytest.raises(ValueError, match="it predicts, but cannot learn on"):
            last.partial_fit(FLOWERS, expected["labels"])
    else:
        last.partial_fit(FLOWERS, expected["labels"])


def test_there_are_files_of_the_present_format():
    assert len([path for path in WRITTEN if path.stem.endswith(f"-{FORMAT_NOW}")]) == 10
    assert all(is_model_file(path) for path in WRITTEN)


def write_files():
    for name, model in models():
        path = FILES / f"{name}-{FORMAT_NOW}.model"
        if path.exists():
            continue
        pp.save(model, path)
        scores = model.decision_function(FLOWERS).round(6)
        found = {"labels": model.predict(FLOWERS).tolist(), "scores": scores.tolist()}
        path.with_suffix(".json").write_text(json.dumps(found))


if __name__ == "__main__":
    write_files()
