"""What older files say, said as files do now: a function for each step from a version to the next.

A file has two versions: `format`, of the file and its prediction part, and that of its training
part. A change to either raises its number by one and adds a line here, and files of the version
before stay in the tests. A step may change values and arrays in place.
"""

from collections.abc import Callable, Mapping
from typing import Any

from polyplane.engine.planes.planes import Array

__all__ = ["FORMATS", "FORMAT_NOW", "TRAININGS", "TRAINING_NOW", "migrated"]

Step = Callable[[dict[str, Any], dict[str, Array]], None]

FORMAT_NOW = 2  # format 1 was never released
FORMATS: dict[int, Step] = {}  # from this format to the next
TRAINING_NOW = 1
TRAININGS: dict[int, Step] = {}  # from this version of the training part to the next


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
    for step in range(version, now):
        steps[step](values, arrays)
    return True
