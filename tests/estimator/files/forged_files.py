"""Model files in which one value is another: they are refused in a sentence, or harmless.

A program of its own, because memory is bounded for the whole process: `python -m
tests.estimator.files.forged_files SHARE` tries each value of the header of every small model and
three elements of each array in turn, one in SHARE of all that they are replaced by, and prints
what went wrong, if anything.
"""

import json
import resource
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polyplane as pp
from polyplane.model.format.model_file import read_file, write_file
from polyplane.model.format.prediction_part import read_fitted

GENERATOR = np.random.default_rng(0)
X = GENERATOR.integers(0, 4, (30, 3)).astype(np.float32)
Y = (X[:, 0] + X[:, 1]).astype(np.int64) % 3
WRONG = [
    -1, 0, 1, 7, 2**31, 10**9, 2**63, -(2**63), 10**400, 0.5, -2.5, 1e300, True, False, None, "",
    "x", [], [0], {}, {"tuple": []}, {"float": "nan"}, {"float": "inf"}, {"dict": []}, [[[[]]]],
    {"scalar": "int64", "value": 3}, {"texts": ["a"], "dtype": "<U1"},
]  # fmt: skip
ROOM = 600 << 20  # bytes beyond those that the sound models have taken
MACHINES = [
    pp.AMMClassifier(prune_interval=10, max_iter=1),
    pp.AMMClassifier(mode="batch", max_iter=1, n_estimators=2),
    pp.CPMClassifier(n_planes=2, max_iter=1, early_stopping=True),
    pp.Poly2Classifier(max_iter=1),
    pp.SAMMClassifier(max_iter=1),
    pp.SoftPlanesClassifier(
        n_planes=2, columns="knots", step_size=0.3, max_iter=1, directions="principal"
    ),
    pp.HullerClassifier(C=1.0),
    pp.LaSVMClassifier(multi_class="ovr"),
    pp.KernelPegasosClassifier(max_iter=1),
]


def sound_models():
    """Small models, of every kind of value that files hold."""
    for machine in MACHINES:
        yield machine.set_params(random_state=0).fit(X, Y)
    yield make_pipeline(StandardScaler(), pp.MMClassifier(max_iter=1)).fit(X, Y)
    yield pp.SoftPlanesClassifier(random_state=0).partial_fit(X, Y)


def nodes_of(values, path=()):
    """Where a value stands in the tree, leaf or not."""
    if path:
        yield path
    if isinstance(values, dict | list):
        inside = values.items() if isinstance(values, dict) else enumerate(values)
        for key, value in inside:
            yield from nodes_of(value, (*path, key))


def changed(values, path, value):
    """A copy of the tree with another value."""
    copy = json.loads(json.dumps(values))
    spot = copy
    for key in path[:-1]:
        spot = spot[key]
    spot[path[-1]] = value
    return copy


SHOWN = (
    "planes_", "planes_per_class_", "n_support_", "support_vectors_", "dual_coef_", "history_",
    "n_steps_", "n_iter_", "classes_", "alpha_", "entropy_", "gamma_",
)  # fmt: skip


def look(path):
    """Do all that is done without estimators."""
    fitted = read_fitted(path)
    rows = fitted.scaled(X)
    fitted.predict(rows), fitted.decision_function(rows), fitted.sizes(), fitted.norms()
    if fitted.has_planes:
        fitted.assign(rows)
    if fitted.has_planes and fitted.has_probabilities:
        fitted.predict_proba(rows)


def use(path):
    """Do all that is done with models."""
    look(path)
    model = pp.load(path)
    model.predict(X)
    model.decision_function(X)
    inner = model[-1] if hasattr(model, "steps") else model
    for name in SHOWN:
        if hasattr(type(inner), name) or name in vars(inner):
            repr(getattr(inner, name))
    int(inner.n_steps_), int(inner.n_iter_), inner.get_params()
    if hasattr(inner, "partial_fit"):
        inner.partial_fit(X[:9], Y[:9])
        model.predict(X)
        pp.save(model, path)


def wrong_elements(array):
    """What an element of an array is replaced by."""
    if array.dtype.kind == "f":
        return [0, -1, 1e-45, 3e38, -3e38]
    ends = np.iinfo(array.dtype)
    wrong = {ends.min, ends.max, ends.max - 1, ends.max // 2 + 1, -1, 0, 1, 2, array.size}
    return sorted(one for one in wrong if one >= ends.min)


def forgeries(values, arrays):
    """Each change of one value: in words, with the values and arrays that a file then has."""
    for place in nodes_of(values):
        for wrong in WRONG if place[-1] != "verbose" else []:
            words = f"{'.'.join(map(str, place))} = {wrong!r}"
            yield words, lambda p=place, w=wrong: (changed(values, p, w), arrays)
    for name, array in arrays.items():
        for k in sorted({0, array.size // 2, array.size - 1} & set(range(array.size))):
            for wrong in wrong_elements(array):
                yield (
                    f"{name}[{k}] = {wrong}",
                    lambda n=name, k=k, w=wrong: (
                        values,
                        {**arrays, n: with_element(arrays[n], k, w)},
                    ),
                )


def with_element(array, k, value):
    """A copy of the array with another element."""
    copy = array.copy()
    copy.reshape(-1)[k] = value
    return copy


def trouble_with(path):
    """What goes wrong with a file, or None: one sentence of a ModelError is right."""
    try:
        use(path)
    except pp.ModelError as error:
        return f"two lines: {error}" if "\n" in str(error) else None
    except ValueError as error:  # a parameter that asks for more than there is, say
        is_sentence = str(error).partition(":")[0].endswith("Classifier")
        is_sentence |= str(error).startswith(("Input X has values", "Input X contains"))
        return None if is_sentence else f"ValueError: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return None


def main(share):
    """Try forged files; return how many were tried and what went wrong."""
    warnings.simplefilter("ignore")
    path = Path(tempfile.mkdtemp()) / "model"
    files = []
    for model in sound_models():
        pp.save(model, path)
        files.append((repr(model), *read_file(path)))
        use(path)  # compiles all that is needed
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    n_tried, wrong = 0, []
    for name, values, arrays in files:
        for k, (words, forged) in enumerate(forgeries(values, arrays)):
            if k % share:
                continue
            write_file(path, *forged())
            n_tried += 1
            trouble = trouble_with(path)
            if trouble is not None:
                wrong.append(f"{name}: {words}: {trouble}")
    return n_tried, wrong


if __name__ == "__main__":
    n_tried, wrong = main(int(sys.argv[1]))
    print(*wrong, sep="\n")
    print(f"{n_tried} forged files")
    sys.exit(len(wrong) > 0)
