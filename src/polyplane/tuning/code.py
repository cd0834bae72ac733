"""Lines to paste that train a model: with all imports, and with how its rows are read."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sklearn.base import BaseEstimator

__all__ = ["FRAME", "GAPS", "MATRIX", "code_of_model", "code_that_makes"]

MATRIX, FRAME, GAPS = "matrix", "frame", "gaps"  # what X was, where it was not read from a file
SCALERS = {"maxabs": "MaxAbsScaler", "standard": "StandardScaler"}
MAX_LINE_LETTERS = 88  # letters of a line
FILLED = 'SimpleImputer(strategy="median")'
LAID_OUT = f"""make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    ({FILLED}, make_column_selector(dtype_include="number")),
)"""
BEFORE_SCALERS = {MATRIX: [], GAPS: [FILLED], FRAME: [LAID_OUT]}  # by scikit-learn
PIPELINE = ["from sklearn.pipeline import make_pipeline"]
IMPUTE = ["from sklearn.impute import SimpleImputer"]
COMPOSE = ["from sklearn.compose import make_column_selector, make_column_transformer"]
IMPORTS = {MATRIX: PIPELINE, GAPS: IMPUTE + PIPELINE, FRAME: COMPOSE + IMPUTE + PIPELINE}


def code_that_makes(
    kind: str,
    parameters: Mapping[str, Any],
    scale: str,
    form: str,
    reading: tuple[Any, Mapping[str, Any]] | None = None,
    dropped: Sequence[tuple[int, str]] = (),
) -> str:
    """Code for one of our classifiers behind a scaler, of rows of a form, without some columns."""
    made, imports = _call(f"pp.{kind}", _named(parameters)), ["import polyplane as pp"]
    if scale != "none":
        scaler = SCALERS[scale]
        made = _call("make_pipeline", [*BEFORE_SCALERS[form], f"{scaler}()", made])
        names = f"{scaler}, OneHotEncoder" if form == FRAME else scaler
        imports += [*IMPORTS[form], f"from sklearn.preprocessing import {names}"]
    lines = []
    if reading is not None:
        source, options = reading
        lines.append(f"X, y = {_call('pp.read', [repr(source), *_named(options)])}")
    if dropped:
        lines += _without(dropped, form)
    return "\n".join([*imports, "", *lines, f"model = {made}", "model.fit(X, y)"])


def _named(parameters: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in parameters.items()]


def _call(name: str, given: Sequence[str]) -> str:
    """On one line if it is short, else on a line for each thing given."""
    line = f"{name}({', '.join(given)})"
    if len(line) <= MAX_LINE_LETTERS and "\n" not in line:
        return line
    inside = "".join(f"{one},\n" for one in given).replace("\n", "\n    ")
    return f"{name}(\n    {inside.rstrip(' ')})"


def _without(dropped: Sequence[tuple[int, str]], form: str) -> list[str]:
    """Columns that nearly decide alone."""
    if form == FRAME:
        line = f"X = X.drop(columns={[name for _, name in dropped]!r})"
    else:
        places = [place for place, _ in dropped]
        line = f"X = X[:, [k for k in range(X.shape[1]) if k not in {places!r}]]"
    return ["# without columns that nearly decide alone", line]


def code_of_model(model: Any) -> str:
    """Return code for any estimator, as its `repr` shows it."""
    homes: dict[str, set[str]] = {}
    for kind in {type(one) for one in _parts(model)}:
        homes.setdefault(_home_of(kind), set()).add(kind.__name__)
    imports = [f"from {home} import {', '.join(sorted(homes[home]))}" for home in sorted(homes)]
    return "\n".join([*imports, "", f"model = {model!r}", "model.fit(X, y)"])


def _parts(model: Any) -> Iterator[Any]:
    yield model
    for value in model.get_params(deep=True).values() if hasattr(model, "get_params") else ():
        if isinstance(value, BaseEstimator):
            yield value


def _home_of(kind: Any) -> str:
    """The shortest module that has the class under its name."""
    parts = kind.__module__.split(".")
    homes = [".".join(parts[: k + 1]) for k in range(len(parts))]
    own = (one for one in homes if getattr(sys.modules.get(one), kind.__name__, None) is kind)
    return next(own, kind.__module__)
