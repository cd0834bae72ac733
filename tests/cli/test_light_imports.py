"""A verb loads what it uses, and nothing is lost for who needs the rest later."""

import subprocess
import sys

import pytest

UNUSED = ("pandas", "scipy.stats", "matplotlib")


def modules_loaded(*words):
    code = (
        "import sys; from polyplane.cli.main import main; code = main(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("verb", ["predict", "evaluate", "train", "info"])
def test_verbs_do_not_load_what_they_do_not_use(verb, files):
    words = {
        "predict": ("predict", files / "numbered.model", files / "rows.libsvm"),
        "evaluate": ("evaluate", files / "named.model", files / "rows.csv"),
        "train": ("train", files / "rows.libsvm", "-a", "pegasos"),
        "info": ("info", files / "numbered.model"),
    }[verb]
    loaded = modules_loaded(*words)
    assert not loaded & set(UNUSED)
    assert "numpy" in loaded


LATER = """
from polyplane.cli.light_imports import import_scikit_learn
import_scikit_learn()
import sys
assert "scipy.stats" not in sys.modules and "pandas" not in sys.modules
import sklearn.utils.fixes as fixes, numpy as np
print(fixes._mode(np.array([1, 2, 2]), axis=0)[0])  # uses scipy.stats
import pandas, scipy.stats
from sklearn.linear_model import LogisticRegression
frame = pandas.DataFrame({"a": [0.0, 1.0, 2.0, 3.0]})
print(LogisticRegression().fit(frame, [0, 0, 1, 1]).feature_names_in_[0], scipy.stats.norm.cdf(0))
"""


def test_what_was_left_out_is_there_for_who_needs_it_later():
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True)
    assert done.stdout.split() == ["[2]", "a", "0.5"], done.stderr
