"""Going on with a fit that was interrupted: where it may be cut, and what it must find again.

Between two steps everything is in order, and how far a fit has come is kept beside its models:
`Course`, `KernelCourse` and `StreamCourse`. Ctrl-C waits for such a place.
"""

import contextlib
import signal
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from polyplane.arrays import Array

__all__ = ["SeenRows", "interrupts_wait", "seen_rows"]


class SeenRows(NamedTuple):
    """By what the rows of a fit are known again."""

    n_rows: int
    checksum: int  # of their classes


def seen_rows(labels: Array) -> SeenRows:
    """The rows with these codes of classes."""
    return SeenRows(labels.size, zlib.crc32(labels.tobytes()))


@contextlib.contextmanager
def interrupts_wait() -> Iterator[Callable[[], None]]:
    """Hold the first Ctrl-C back until the end; the second is raised at once.

    What is yielded lets it through: a place in the middle where everything is in order.
    """
    if threading.current_thread() is not threading.main_thread():
        yield _nothing_waits
        return
    usual: Any = signal.getsignal(signal.SIGINT)
    if not callable(usual) or getattr(usual, "waits", False):
        yield _nothing_waits
        return
    pressed: list[tuple[int, Any]] = []

    def note(number: int, frame: Any) -> None:
        if pressed:
            usual(number, frame)
        pressed.append((number, frame))

    def let_through() -> None:
        if pressed:
            usual(*pressed.pop())

    note.waits = True  # type: ignore[attr-defined]
    signal.signal(signal.SIGINT, note)
    try:
        yield let_through
    finally:
        signal.signal(signal.SIGINT, usual)
    let_through()


def _nothing_waits() -> None:
    """Whoever holds Ctrl-C back lets it through."""
