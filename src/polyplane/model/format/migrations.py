"""What older files say, said as files do now: a function for each step from a version to the next.

A file has two versions: `format`, of the file and its prediction part, and that of its training
part. A change to either raises its number by one and adds a line here, and files of the version
before stay in the tests. A step changes values and arrays in place; it returns False where what the
file holds is no longer known.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from polyplane.engine.planes.planes import Array

__all__ = ["FORMATS", "FORMAT_NOW", "TRAININGS", "TRAINING_NOW", "migrated"]

Step = Callable[[dict[str, Any], dict[str, Array]], bool]


def _one_unit(values: dict[str, Any], arrays: dict[str, Array]) -> bool:
    """Classes were one soft maximum, and what is found now was the same for all."""
    prediction = values.get("prediction")
    if not isinstance(prediction, dict):
        return True  # that is found and said elsewhere
    if isinstance(prediction.get("planes"), dict):
        prediction["planes"]["units"] = 1
    found = prediction.get("found")
    if prediction.get("algorithm") == "polyplane" and isinstance(found, dict) and found:
        passes = found.get("max_iter")
        n_passes = passes if isinstance(passes, int) and passes > 0 else 40
        found |= {"units": 1, "shrinkage": 2 / n_passes, "learn_from": "unsure"}
    return True


def _without_levels(values: dict[str, Any], arrays: dict[str, Array]) -> bool:
    """Columns had one kind of knots, which training no longer knows; plain ones stay."""
    planes = values.get("planes")
    models = planes.get("models") if isinstance(planes, dict) else None
    for model in models if isinstance(models, list) else ():
        if isinstance(model, dict):
            model["units"] = 1
    columns = planes.get("columns") if isinstance(planes, dict) else None
    if not isinstance(columns, dict):
        return True
    ranks = columns.pop("ranks", None)
    columns["levels"] = None if ranks is None else {}
    if ranks is None:
        return True
    before, after = "training.planes.columns.ranks.", "training.planes.columns.levels."
    old = {
        name.removeprefix(before): arrays.pop(name)
        for name in list(arrays)
        if name.startswith(before)
    }
    if "shifts" not in old or old.get("knots", np.empty(0)).size:
        return False
    kept = ("shifts", "factors", "knot_starts", "knots")
    arrays |= {after + name: old[name] for name in kept if name in old}
    arrays[after + "places"] = np.zeros((0, 0), np.float32)
    n_columns = old["shifts"].size
    kinds = {"n_hats": np.int32, "first_hat": np.int32, "heights": np.float32}
    arrays |= {after + name: np.zeros((0, n_columns), kind) for name, kind in kinds.items()}
    return True


def _without_directions(values: dict[str, Any], arrays: dict[str, Array]) -> bool:
    """Columns were mapped one by one; missing fields of maps are null."""
    prediction = values.get("prediction")
    if isinstance(prediction, dict) and prediction.get("algorithm") == "polyplane":
        found = prediction.get("found")
        if isinstance(found, dict) and found:
            found |= {"directions": "none", "loss": "cross-entropy"}
    return True


def _with_cross_entropy(values: dict[str, Any], arrays: dict[str, Array]) -> bool:
    """Planes followed one loss; maps had no directions, and missing fields are null."""
    planes = values.get("planes")
    models = planes.get("models") if isinstance(planes, dict) else None
    for model in models if isinstance(models, list) else ():
        if isinstance(model, dict):
            model["squared_hinge"] = False
    return True


def _without_evaluations(values: dict[str, Any], arrays: dict[str, Array]) -> bool:
    """Losses and errors on sets for evaluation were not kept."""
    values["evaluations"] = []
    return True


def _two_kinds(values: dict[str, Any], arrays: dict[str, Array]) -> bool:
    """Columns of tables were numbers or categories, in files only, and gaps were errors."""
    prediction = values.get("prediction")
    table = prediction.get("table") if isinstance(prediction, dict) else None
    if not isinstance(table, dict):
        return True
    try:
        sources, pairs = table.pop("sources"), table.pop("categories")
        names = [name for name, _ in sources]
        in_order = [str(k + 1) for k in range(len(names) + 1)]
        table |= {
            "sources": [[name, "category" if is_text else "number", 0, 0]
                        for name, is_text in sources],
            "pairs": [[source, "value", value] for source, value in pairs],
            "has_names": not set(names) <= set(in_order),
            "missing": "error", "grows": False, "is_learned": True,
        }  # fmt: skip
    except (KeyError, TypeError, ValueError):
        return True  # the table is refused where it is read
    return True


def _with_more(values: dict[str, Any], arrays: dict[str, Array]) -> bool:
    """Of maps of columns, and of tables."""
    return _without_directions(values, arrays) and _two_kinds(values, arrays)


def _columns_alike(values: dict[str, Any], arrays: dict[str, Array]) -> bool:
    """Columns counted alike, whatever they were worth."""
    prediction = values.get("prediction")
    if isinstance(prediction, dict) and prediction.get("algorithm") == "polyplane":
        found = prediction.get("found")
        if isinstance(found, dict) and found:
            found["relevance"] = 0.0
    return True


FORMAT_NOW = 5  # format 1 was never released
FORMATS: dict[int, Step] = {  # from this format to the next
    2: _one_unit,
    3: _with_more,
    4: _columns_alike,
}
TRAINING_NOW = 4
TRAININGS: dict[int, Step] = {  # of the training part, to the next version
    1: _without_levels,
    2: _with_cross_entropy,
    3: _without_evaluations,
}


def migrated(
    values: dict[str, Any],
    arrays: dict[str, Array],
    version: int,
    now: int,
    steps: Mapping[int, Step],
) -> bool:
    """Bring values and arrays up to the present version; False where no steps lead there."""
    if not all(step in steps for step in range(version, now)) or version > now:
        return False
    return all(steps[step](values, arrays) for step in range(version, now))
