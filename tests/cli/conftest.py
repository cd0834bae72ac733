"""Rows and models in files, and the command line called within the process."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from polyplane import AMMClassifier, HullerClassifier, SoftPlanesClassifier, stream
from polyplane.cli.main import main
from polyplane.data.chunks import Chunk
from polyplane.data.writing import write
from polyplane.estimator.files.saving import SavedModel, write_model

N_ROWS = 120


class Done(NamedTuple):
    """What a call has left."""

    code: int
    out: str
    err: str


@pytest.fixture
def call(capfdbinary, monkeypatch):
    """The command line as a function; standard input may be given."""
    monkeypatch.setenv("COLUMNS", "100")

    def called(*words):
        code = main([str(word) for word in words])
        out, err = capfdbinary.readouterr()
        return Done(code, out.decode(), err.decode())

    return called


@pytest.fixture(scope="session")
def rows():
    """Three classes over five columns of small whole numbers, some of them zero."""
    generator = np.random.default_rng(0)
    X = generator.integers(0, 4, (N_ROWS, 5)).astype(np.float32)
    X[-1, -1] = 3  # the last column is there
    return X, (X[:, 0] + X[:, 1]).astype(np.int64) % 3


@pytest.fixture(scope="session")
def files(rows, tmp_path_factory):
    """A folder with the rows as CSV with names and as LIBSVM text, and models of them."""
    X, y = rows
    folder = tmp_path_factory.mktemp("files")
    words = np.array(["red", "green", "blue"])[y]
    write(folder / "rows.csv", [Chunk(X, words)], names=[*"abcde"])
    write(folder / "rows.libsvm", [Chunk(sp.csr_matrix(X), y)])
    table = stream(folder / "rows.csv")
    (chunk,) = table
    named = AMMClassifier(random_state=0, max_iter=3).fit(chunk.X, chunk.y)
    write_model(SavedModel(named, layout=table.layout), folder / "named.model")
    numbered = AMMClassifier(random_state=0, max_iter=3).fit(sp.csr_matrix(X), y)
    write_model(SavedModel(numbered), folder / "numbered.model")
    scaler = StandardScaler().fit(X)
    scaled = AMMClassifier(random_state=0, max_iter=3).fit(scaler.transform(X), words)
    write_model(SavedModel(scaled, scaler, table.layout), folder / "scaled.model")
    kernel = HullerClassifier(random_state=0, max_iter=1).fit(X[:40], y[:40])
    write_model(SavedModel(kernel), folder / "kernel.model")
    return folder


@pytest.fixture(scope="session")
def probable(rows, tmp_path_factory):
    """A folder with models of three and of two classes that have probabilities, and one without."""
    X, y = rows
    folder = tmp_path_factory.mktemp("probable")
    settings = {"max_iter": 3, "random_state": 0}
    words = np.where(y == 0, "yes", "no")
    made = {
        "three": SoftPlanesClassifier(**settings).fit(sp.csr_matrix(X), y),
        "two": SoftPlanesClassifier(**settings).fit(sp.csr_matrix(X), words),
        "hinge": AMMClassifier(random_state=0, max_iter=3).fit(sp.csr_matrix(X), words),
    }
    for name, model in made.items():
        write_model(SavedModel(model), folder / f"{name}.model")
    lines = [
        f"{word} {line.partition(' ')[2]}" for word, line in zip(words, _lines(X), strict=True)
    ]
    (folder / "words.libsvm").write_text("\n".join(lines))
    return folder


def _lines(X):
    return [" ".join(["0", *(f"{k + 1}:{v:g}" for k, v in enumerate(row) if v)]) for row in X]
