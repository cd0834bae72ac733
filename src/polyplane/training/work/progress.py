"""Progress of long work: rows a second, the size of the model, its error, the time left.

Bars are drawn by `progress_bar.py`, unless a listener takes the reports.
"""

import contextlib
import importlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass

__all__ = [
    "Lines",
    "Report",
    "Work",
    "heard_by",
    "in_words",
    "progress",
    "silence",
    "stream_progress",
    "without_errors",
]

# rows just visited, planes or vectors now, and the share of those rows that was wrong before they
# were learned: NaN where the model had met them, or is a part of one
Report = Callable[[int, int, float], None]
BETWEEN_LINES = 10.0  # seconds


@dataclass(frozen=True)
class Work:
    """A description of work that begins, for a listener."""

    title: str
    n_rows: int | None  # to visit; None if that is unknown
    unit: str  # of the model's size
    is_search: bool = False  # for settings: there is no model yet
    is_elsewhere: bool = False  # the model at hand does not change between reports


Listener = Callable[[Work], AbstractContextManager[Report]]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextlib.contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Report all work to this listener, in place of bars.

    A report is made only where everything is in order: an exception raised there leaves a model
    that can be saved and resumed.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def silence(n_rows: int, size: int, error: float) -> None:
    """Show nothing."""


def without_errors(report: Report) -> Report:
    """Return a report for rows that the model has met, whose errors say nothing."""
    return lambda n_rows, size, error: report(n_rows, size, math.nan)


def in_words(size: int, unit: str, error: float) -> str:
    """Return the words beside a bar."""
    return f"{size:,} {unit}" + ("" if math.isnan(error) else f", error {error:.2%}")


class Lines:
    """Progress where no bar can be drawn: a line every ten seconds."""

    def __init__(
        self, say: Callable[[str], None], title: str, total: int | None, unit: str = "rows"
    ) -> None:
        self.say, self.title, self.total, self.unit = say, title, total, unit
        self.done, self.words, self.start = 0, "", time.monotonic()
        self.due = self.start + BETWEEN_LINES

    def __call__(self, n: int = 0, words: str = "") -> None:
        """Add work that is done."""
        self.done, self.words = self.done + n, words
        now = time.monotonic()
        if now >= self.due:
            self.due = now + BETWEEN_LINES
            self.tell(now)

    def tell(self, now: float) -> None:
        """Show how much is done."""
        share = f" of {self.total:,}" if self.total else ""
        speed = self.done / max(now - self.start, 1e-9)
        parts = [f"{self.title}: {self.done:,}{share} {self.unit}"]
        parts += [f"{speed:,.0f} {self.unit}/s"] * (speed >= 1) + [self.words] * bool(self.words)
        self.say(", ".join(parts))


@contextlib.contextmanager
def progress(
    title: str,
    n_rows: int | None,
    shown: bool,
    unit: str = "planes",
    is_search: bool = False,
    is_elsewhere: bool = False,
) -> Iterator[Report]:
    """Yield a function to call as rows are visited; nothing is shown unless asked for."""
    listener = _listener.get()
    if listener is not None:
        with listener(Work(title, n_rows, unit, is_search, is_elsewhere)) as report:
            yield report
        return
    if not shown:
        yield silence
        return
    with _shown(title, n_rows) as show:
        yield lambda n_visited, size, error: show(n_visited, in_words(size, unit, error))


@contextlib.contextmanager
def _shown(title: str, total: int | None) -> Iterator[Callable[[int, str], None]]:
    """Yield what shows work: a bar, or lines where none can be drawn."""
    bars = importlib.import_module("polyplane.training.work.progress_bar")
    if bars.can_be_drawn():
        with bars.bar(title, total) as show:
            yield show
    else:
        lines = Lines(print, title, total)
        yield lines
        lines.tell(time.monotonic())


@dataclass
class _Chunk:
    """Reports of the current chunk: planes of the model, and errors by rows."""

    size: int = 0
    n_rows: int = 0
    n_wrong: float = 0.0

    @contextlib.contextmanager
    def listen(self, work: Work) -> Iterator[Report]:
        """Listen to the work on a chunk."""
        self.n_rows, self.n_wrong = 0, 0.0
        yield self.note

    def note(self, n_rows: int, size: int, error: float) -> None:
        """Count some rows of it."""
        self.size, self.n_rows = size, self.n_rows + n_rows
        self.n_wrong += n_rows * error

    @property
    def error(self) -> float:
        """Error of its rows before they were learned; NaN where they were only collected."""
        return self.n_wrong / self.n_rows if self.n_rows else math.nan


@contextlib.contextmanager
def stream_progress(
    title: str, unit: str, n_passes: int, shown: bool
) -> Iterator[Callable[[int, int], None]]:
    """Yield what to call when a chunk has been learned: passes completed, and rows of the chunk."""
    chunk, has_listener = _Chunk(), _listener.get() is not None
    with contextlib.ExitStack() as stack:
        is_drawn = shown and not has_listener
        show = stack.enter_context(_shown(title, None)) if is_drawn else None
        report = stack.enter_context(progress(title, None, False, unit))
        stack.enter_context(heard_by(chunk.listen))

        def tell(n_completed: int, n_rows: int) -> None:
            error = chunk.error if n_completed == 0 else math.nan
            report(n_rows, chunk.size, error)
            if show is not None:
                size = in_words(chunk.size, unit, error)
                show(n_rows, f"pass {n_completed + 1} of {n_passes}, {size}")

        yield tell
