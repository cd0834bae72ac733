"""Settings chosen on training rows only, and what they then give on test rows."""

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split

SEEDS = range(5)


def grid(**choices):
    """Every combination of the choices."""
    return [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]


def held_out_parts(X, y, share=1 / 6):
    """One split of the training rows."""
    i, j = train_test_split(np.arange(len(y)), test_size=share, random_state=0, stratify=y)
    return [(i, j)]


def folds(X, y, n_folds=5):
    """Cross-validation on the training rows."""
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y))


def error(model, X, y):
    """Percent of rows that a fitted model gets wrong."""
    return 100 * float(np.mean(model.predict(X) != y))


class Trial(NamedTuple):
    """A setting, its mean error on held-out rows, and its mean number of planes."""

    setting: dict[str, Any]
    error: float
    planes: float


def trials(estimator, settings, X, y, parts, seeds: Iterable[int] = (0,)):
    """Every setting, tried on the parts."""
    out = []
    for setting in settings:
        errors, planes = [], []
        for (i, j), seed in itertools.product(parts, seeds):
            model = clone(estimator).set_params(**setting, random_state=seed).fit(X[i], y[i])
            errors.append(error(model, X[j], y[j]))
            planes.append(model.n_planes_)
        out.append(Trial(setting, float(np.mean(errors)), float(np.mean(planes))))
    return out


def best(estimator, settings, X, y, parts, seeds: Iterable[int] = (0,)):
    """The setting with the lowest held-out error, and that error."""
    found = min(trials(estimator, settings, X, y, parts, seeds), key=lambda trial: trial.error)
    return found.setting, found.error


def errors_on_test(estimator, setting, data, seeds: Iterable[int] = SEEDS):
    """Test errors of a setting, one for each seed, and the mean number of planes."""
    X, y, X_test, y_test = data
    errors, planes = [], []
    for seed in seeds:
        model = clone(estimator).set_params(**setting, random_state=seed).fit(X, y)
        errors.append(error(model, X_test, y_test))
        planes.append(model.n_planes_)
    return errors, float(np.mean(planes))


def spread(errors):
    """Mean and deviation over seeds, as text."""
    return f"{np.mean(errors):.2f} ± {np.std(errors, ddof=1):.2f}"


def words(setting):
    """A setting as text."""
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in setting.items()
    )
