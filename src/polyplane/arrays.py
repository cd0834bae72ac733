"""The type of NumPy arrays, of any shape and dtype."""

from typing import Any

import numpy.typing as npt

__all__ = ["Array"]

Array = npt.NDArray[Any]
