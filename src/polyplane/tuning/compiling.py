"""Compilation, which happens once on a machine, kept apart from what machines take.

The first fit of a machine with new storage compiles its loops, for seconds. They are compiled on a
few made-up rows before a machine is timed, and what is compiled later all the same is not counted.
"""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba.core import event

from polyplane.engine.planes.planes import Array

__all__ = ["Compilation", "made_up_rows", "watched"]

ROWS, COLUMNS = 60, 8
SEVERAL = 3  # classes: two are often a case of their own, more are not


class Compilation:
    """How long loops have been compiled since somebody began to watch."""

    def __init__(self, listener: Any) -> None:
        self._listener = listener

    @property
    def seconds(self) -> float:
        """So far; of several threads that compile, one does at a time."""
        return float(self._listener.duration) if self._listener.done else 0.0

    def clock(self) -> float:
        """Seconds that stand still while loops are compiled."""
        return time.perf_counter() - self.seconds


@contextlib.contextmanager
def watched() -> Iterator[Compilation]:
    """Compilations, from here to the end."""
    listener = event.TimingListener()
    with event.install_listener("numba:compile", listener):
        yield Compilation(listener)


def made_up_rows(is_sparse: bool, n_classes: int) -> tuple[Any, Array]:
    """A few rows of the same storage, with which the same loops are compiled."""
    X = np.random.default_rng(0).uniform(0.1, 1, (ROWS, COLUMNS)).astype(np.float32)
    labels = np.arange(ROWS) % min(SEVERAL, n_classes)
    return sp.csr_matrix(X) if is_sparse else X, labels
