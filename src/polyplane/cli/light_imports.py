"""scikit-learn without what no verb uses of it, for a quick start.

Its first import loads scipy.stats and pandas, two thirds of a second, for functions that nothing
here calls: rows reach estimators as arrays. While it is imported, pandas counts as not installed
and something stands in the place of scipy.stats; whoever needs them later gets the real ones.
"""

import contextlib
import importlib
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["import_scikit_learn"]

LIGHTLY = ("sklearn.base", "sklearn.pipeline", "sklearn.preprocessing", "sklearn.utils.multiclass")
PANDAS, STATS = "pandas", "scipy.stats"


class _Later(ModuleType):
    """A module that is loaded when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def import_scikit_learn() -> None:
    """Import it lightly, unless it is there already."""
    if "sklearn" in sys.modules:
        return
    absent: Any = None  # how Python marks what must not be imported
    stats = _Later(STATS)
    stats.__spec__ = find_spec(STATS)
    with _standing_in(PANDAS, absent), _standing_in(STATS, stats):
        for name in LIGHTLY:
            importlib.import_module(name)


@contextlib.contextmanager
def _standing_in(name: str, stand_in: Any) -> Iterator[None]:
    """Put something in the place of a module that is not loaded yet."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = stand_in
    try:
        yield
    finally:
        if name in sys.modules and sys.modules[name] is stand_in:
            del sys.modules[name]
