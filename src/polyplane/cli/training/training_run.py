"""A training under watch: its progress shown, its model kept now and then, Ctrl-C obeyed.

Models are kept only where a report is made, for there everything is in order. Models in memory may
be trained by several threads, so their fit is left, kept and resumed; that changes no bit. A stream
reports between chunks, when nobody works, and is kept there; so is the model of the latest round
of a training that is elsewhere.
"""

import contextlib
import math
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from polyplane.cli.output.screen import Screen
from polyplane.cli.training.train_request import Checkpoint
from polyplane.training.work.progress import Report, Work, heard_by, in_words

__all__ = ["Stopped", "Watch", "run_under"]

RECENT_ROWS = 10_000  # new rows over which errors are averaged


class Stopped(KeyboardInterrupt):
    """The user has asked for an end, and everything is in order.

    The number of the signal that asked is the exception's argument, which the exit code depends on.
    """


class _Due(KeyboardInterrupt):
    """A checkpoint is due."""


@dataclass
class Watch:
    """State of a training that is watched: rows, errors, checkpoints."""

    screen: Screen
    checkpoint: Checkpoint | None
    keep: Callable[[], None]  # write the model
    asked_to_stop_by: int | None = None  # a signal
    n_visits: int = 0
    n_kept: int = 0  # checkpoints
    seconds_searching: float = 0.0
    _since: tuple[float, int] = field(default_factory=lambda: (time.monotonic(), 0))
    _new: deque[tuple[int, float]] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def n_new(self) -> int:
        """Return the number of rows that the progressive error is about."""
        return sum(n for n, _ in self._new)

    @property
    def progressive_error(self) -> float | None:
        """Share of wrong rows among the last of the first pass, each before it was learned."""
        return sum(n * error for n, error in self._new) / self.n_new if self.n_new else None

    @contextlib.contextmanager
    def listen(self, work: Work) -> Iterator[Report]:
        """Hear of some work, and show it."""
        title = "Searching settings" if work.is_search else "Training"
        start = time.monotonic()
        with self.screen.progress(title, work.n_rows) as advance:

            def report(n_rows: int, size: int, error: float) -> None:
                with self._lock:
                    words = "" if work.is_search else in_words(size, work.unit, error)
                    advance(n_rows, words)
                    if not work.is_search:
                        self._note(n_rows, error)
                self._act(work)

            yield report
        if work.is_search:
            self.seconds_searching += time.monotonic() - start

    def _note(self, n_rows: int, error: float) -> None:
        self.n_visits += n_rows
        if math.isnan(error) or n_rows == 0:
            return  # met before
        self._new.append((n_rows, error))
        while self.n_new - self._new[0][0] >= RECENT_ROWS:
            self._new.popleft()

    def _act(self, work: Work) -> None:
        """Stop or write the model, if a report finds that this is due."""
        if self.asked_to_stop_by is not None:
            raise Stopped(self.asked_to_stop_by)
        if work.is_search or not self._is_due():
            return
        if work.n_rows is not None and not work.is_elsewhere:
            raise _Due
        self.keep_now()

    def _is_due(self) -> bool:
        if self.checkpoint is None:
            return False
        kept_at, n_visits = self._since
        if self.checkpoint.seconds is not None:
            return time.monotonic() - kept_at >= self.checkpoint.seconds
        return self.n_visits - n_visits >= (self.checkpoint.rows or 1)

    def keep_now(self) -> None:
        """Write the model, and count from here."""
        self.keep()
        self.n_kept += 1
        self._since = time.monotonic(), self.n_visits


def run_under(watch: Watch, begin: Callable[[], Any], resume: Callable[[], Any]) -> None:
    """Train; where that is left for a checkpoint, go on."""
    step = begin
    with heard_by(watch.listen), _signals_ask(watch):
        while True:
            try:
                step()
                return
            except _Due:
                watch.keep_now()
                step = resume


@contextlib.contextmanager
def _signals_ask(watch: Watch) -> Iterator[None]:
    """The first Ctrl-C, or a polite kill, ends the training in order; the next one at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, frame: Any) -> None:
        if watch.asked_to_stop_by is not None:
            raise KeyboardInterrupt(number)
        watch.asked_to_stop_by = number
        watch.screen.note("Stopping at the next safe place; press Ctrl-C again to stop at once.")

    numbers = signal.SIGINT, signal.SIGTERM
    usual = [signal.signal(number, ask) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, usual, strict=True):
            signal.signal(number, handler)
