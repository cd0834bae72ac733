"""Imports without what no verb uses of them, for a quick start.

scikit-learn and SciPy load scipy.stats, scipy.linalg, pandas, numpy.f2py and other large parts,
together a second, for functions that nothing here calls: rows reach estimators as arrays. While a
verb is imported, pandas counts as not installed and something stands in the place of the others;
whoever needs them later gets the real ones.
"""

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from polyplane.quick_imports import no_collection

__all__ = ["imported_lightly"]

OF_ESTIMATORS = ("sklearn.base", "sklearn.utils.multiclass")
ABSENT = "pandas"
LATER = (
    "numpy.f2py", "numpy.testing", "pyarrow.compute", "scipy.linalg", "scipy.optimize",
    "scipy.special", "scipy.stats", "sklearn.pipeline", "sklearn.preprocessing",
)  # fmt: skip
FILES_OF_NUMBA = "yaml"  # which reads settings by it, where there are any
FUNCTIONS_LATER = {  # which scikit-learn takes out of these to call them, if at all, by itself
    "scipy.sparse.csgraph": ("laplacian",),
    "scipy.sparse.linalg": ("LinearOperator", "cg"),
}


class _Later(ModuleType):
    """A module that is loaded when something of it is asked for."""

    def __init__(self, name: str):
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)

    def __getattr__(self, name: str) -> Any:
        """`__path__` is asked for where a part of the module is imported."""
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        functions = FUNCTIONS_LATER.get(self.__name__, ())
        if functions and name == "__path__":  # or a name of the module: nobody knows which
            parent, _, child = self.__name__.rpartition(".")
            return [os.path.join(path, child) for path in sys.modules[parent].__path__]
        if name in functions:
            return lambda *given, **named: self._real(name)(*given, **named)
        return self._real(name)

    def _real(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def imported_lightly(module: str, *, with_estimators: bool) -> Any:
    """The module of a verb and, if it trains, scikit-learn before it."""
    absent: Any = None  # how Python marks what must not be imported
    importlib.import_module("numpy")  # asks itself for what stands in, without end
    with contextlib.ExitStack() as stack:
        stack.enter_context(no_collection(for_good=True))
        stack.enter_context(_standing_in(ABSENT, absent))
        is_there = importlib.util.find_spec(FILES_OF_NUMBA) is not None
        for name in (*LATER, FILES_OF_NUMBA) if is_there else LATER:
            stack.enter_context(_standing_in(name, _Later(name)))
        if with_estimators:
            _import_estimators()
        return importlib.import_module(module)


def _import_estimators() -> None:
    """Import what all estimators need of scikit-learn.

    It calls functions that stand in, if at all; whoever is imported later may make classes of them.
    """
    importlib.import_module("scipy.sparse")  # first, so that it knows of what stands in
    with contextlib.ExitStack() as stack:
        for name in FUNCTIONS_LATER:
            stack.enter_context(_standing_in(name, _Later(name)))
        for name in OF_ESTIMATORS:
            importlib.import_module(name)


@contextlib.contextmanager
def _standing_in(name: str, stand_in: Any) -> Iterator[None]:
    """Put something in the place of a module that is not loaded yet."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = stand_in
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, stand_in)  # as an import does; the real one replaces it
    try:
        yield
    finally:
        if name in sys.modules and sys.modules[name] is stand_in:
            del sys.modules[name]
