"""The seconds of compilation, which happens once on a machine, kept apart from those of fits."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from numba.core import event

__all__ = ["Compilation", "watched"]


class Compilation:
    """How long loops have been compiled since watching began."""

    def __init__(self, listener: Any) -> None:
        self._listener = listener

    @property
    def seconds(self) -> float:
        """So far; of several threads that compile, one does at a time."""
        return float(self._listener.duration) if self._listener.done else 0.0

    def clock(self) -> float:
        """Return seconds that stand still while loops are compiled."""
        return time.perf_counter() - self.seconds


@contextlib.contextmanager
def watched() -> Iterator[Compilation]:
    """Watch compilation inside a `with` block."""
    listener = event.TimingListener()
    with event.install_listener("numba:compile", listener):
        yield Compilation(listener)
