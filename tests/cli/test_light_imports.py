"""A verb loads what it uses, and nothing is lost for who needs the rest later."""

import json
import subprocess
import sys

import pytest

from polyplane.cli.program import program

UNUSED = {"pandas", "scipy.stats", "matplotlib"}
OF_TRAINING = {"sklearn", "joblib", "polyplane.estimator.input.validation"}
CALLS = """
import json, sys
from polyplane.cli.main import main
loaded = []
for words in json.loads(sys.argv[1]):
    code = main(words)
    loaded.append([code, sorted(sys.modules)])
print(json.dumps(loaded), file=sys.stderr)
"""
WITHOUT_TRAINING = [
    ("predict", "numbered.model", "rows.libsvm"),
    ("predict", "scaled.model", "rows.csv", "--scores", "--planes"),
    ("evaluate", "named.model", "rows.csv"),
    ("evaluate", "kernel.model", "rows.libsvm"),
    ("info", "numbered.model"),
    ("info", "kernel.model"),
    ("info", "rows.csv"),
    ("export", "scaled.model", "-o", "scaled.h"),
]


def modules_loaded(*calls):
    """What is loaded after each of these calls of the command line, one after the other."""
    words = json.dumps([list(map(str, call)) for call in calls])
    command = [sys.executable, "-c", CALLS, words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stderr.splitlines()[-1])
    assert [code for code, _ in found] == [0] * len(calls), done.stderr
    return [set(names) for _, names in found]


def test_training_does_not_load_what_it_does_not_use(files):
    [loaded] = modules_loaded(("train", files / "rows.libsvm", "-a", "pegasos"))
    assert not loaded & UNUSED
    assert "sklearn" in loaded


def test_training_on_a_table_does_not_load_pandas(files):
    [loaded] = modules_loaded(("train", files / "rows.csv", "-a", "pegasos"))
    assert "pandas" not in loaded


@pytest.fixture(scope="module")
def after_each(files, tmp_path_factory):
    """By verb and words, what one process has loaded so far: a start takes most of the time."""
    out = tmp_path_factory.mktemp("out")

    def known(word):
        return files / word if (files / word).exists() else word

    calls = [
        [out / word if word == "scaled.h" else known(word) for word in words]
        for words in WITHOUT_TRAINING
    ]
    return dict(zip(WITHOUT_TRAINING, modules_loaded(*calls), strict=True))


@pytest.mark.parametrize("words", WITHOUT_TRAINING, ids=" ".join)
def test_verbs_that_do_not_train_load_no_scikit_learn(words, after_each):
    loaded = after_each[words]
    assert not loaded & (UNUSED | OF_TRAINING)
    assert "numpy" in loaded


LATER = """
from polyplane.cli.light_imports import FUNCTIONS_LATER, LATER, imported_lightly
imported_lightly("polyplane.cli.verbs.train", with_estimators=True)
import sys
import sklearn.utils.fixes as fixes, numpy as np
of_optimize = {"scipy.optimize", "scipy.special", "scipy.linalg", *FUNCTIONS_LATER}
asked_for = of_optimize if hasattr(fixes, "line_search_wolfe1") else set()
loaded = sys.modules.keys() & {*LATER, *FUNCTIONS_LATER, "yaml"} - asked_for  # by 1.6 itself
assert not loaded, loaded
assert "scipy.stats" not in sys.modules and "pandas" not in sys.modules
print(fixes._mode(np.array([1, 2, 2]), axis=0)[0])  # uses scipy.stats
import scipy.sparse as sp
from sklearn.utils import extmath, sparsefuncs
rows = sp.csr_matrix([[1.0, 2.0], [3.0, 4.0]])
print((sparsefuncs._implicit_column_offset(rows, np.ones(2)) @ np.ones(2))[1])  # a LinearOperator
print(fixes.laplacian(np.ones((2, 2)))[0, 1], round(extmath.fast_logdet(np.eye(2)), 1))
print(sp.linalg.norm(rows[0, :1]), sp.csgraph.connected_components(rows)[0])
import pandas, scipy.stats
from sklearn.linear_model import LogisticRegression
frame = pandas.DataFrame({"a": [0.0, 1.0, 2.0, 3.0]})
print(LogisticRegression().fit(frame, [0, 0, 1, 1]).feature_names_in_[0], scipy.stats.norm.cdf(0))
"""


def test_what_was_left_out_is_there_for_who_needs_it_later():
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True)
    assert done.stdout.split() == ["[2]", "5.0", "-1.0", "0.0", "1.0", "1", "a", "0.5"], done.stderr


@pytest.mark.parametrize("needs_estimators", [True, False])
@pytest.mark.parametrize("name", program.commands)
def test_every_verb_is_imported_in_a_new_process(name, needs_estimators):
    """Where nothing is loaded that could hide what stands in for it."""
    words = f"'polyplane.cli.verbs.{name}', with_estimators={needs_estimators}"
    command = (
        f"from polyplane.cli.light_imports import imported_lightly; imported_lightly({words}).run"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
