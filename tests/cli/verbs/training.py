"""Digits in files to train on, and `polyplane` called for its exit code and words."""

import numpy as np
from sklearn.datasets import load_digits

from polyplane.cli.main import main
from polyplane.data.chunks import Chunk
from polyplane.data.writing import write
from tests.cli.documented import check

PIXELS, DIGITS = load_digits(return_X_y=True)
PIXELS = PIXELS.astype(np.float32)


def written_files(folder):
    """Rows as LIBSVM text, to train on and to test on; and as a table with words in it."""
    write(folder / "train.libsvm", [Chunk(PIXELS[:1200], DIGITS[:1200])])
    write(folder / "test.libsvm", [Chunk(PIXELS[1200:], DIGITS[1200:])])
    towns = ["Ulm", "Bonn", "Kiel"]
    lines = [f"{k % 7},{towns[k % 3]},{'yes' if (k % 7 > 3) != (k % 3 == 1) else 'no'}" for k in
             range(600)]  # fmt: skip
    (folder / "table.csv").write_text("\n".join(["age,town,bought", *lines]))
    (folder / "empty.csv").write_text("")
    return folder


def call(capsys, *words):
    """Exit code, what was printed, and what was said about it."""
    code = main([str(word) for word in words])
    said = capsys.readouterr()
    return code, said.out, said.err


def json_of(capsys, *words):
    """What `polyplane train --json` prints, and what is said beside it."""
    code, out, err = call(capsys, *words, "--json")
    assert code == 0, err
    return check("train", out), err
