"""Versions of what the library runs on, for reports of errors."""

import importlib.metadata
import os
import platform
import sys

from polyplane import __version__

__all__ = ["show_versions", "versions"]

PACKAGES = "numpy", "scipy", "scikit-learn", "numba", "llvmlite", "pyarrow", "safetensors", "click"
EXTRAS = "onnx", "onnxruntime", "matplotlib", "dask", "distributed", "pandas", "polars"
ABSENT = "not installed"


def versions() -> dict[str, str]:
    """Return the versions of Python, the system, polyplane and the packages it uses, by name."""
    found = {"polyplane": __version__, "python": sys.version.split()[0]}
    found["system"] = f"{platform.platform()}, {platform.machine()}"
    found["processors"] = str(os.cpu_count())
    return found | {name: _version(name) for name in PACKAGES + EXTRAS}


def show_versions() -> None:
    """Print the versions of Python, polyplane and the packages it uses.

    Include the output in a report of an error.

    See Also
    --------
    polyplane.__version__ : The version of this library alone.

    Examples
    --------
    >>> import polyplane as pp
    >>> pp.show_versions()  # doctest: +ELLIPSIS
    polyplane ...
    """
    found = versions()
    width = max(map(len, found))
    for name, version in found.items():
        print(f"{name:{width}}  {version}")


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ABSENT
