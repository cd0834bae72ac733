"""Work that takes long, as it is told: rows a second, the model's size, its error, time left.

Bars are drawn by `progress_bar.py`, unless someone else listens.
"""

import contextlib
import importlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Lines",
    "Report",
    "StreamReport",
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

StreamReport = Callable[[int, int], None]  # passes completed, rows visited in all passes


BETWEEN_LINES = 10.0  # seconds


@dataclass(frozen=True)
class Work:
    """What is about to be done, for those who show it in their own way."""

    title: str
    n_rows: int | None  # to visit; None where nobody knows
    unit: str  # of the model's size
    is_search: bool = False  # for settings: there is no model yet
    is_elsewhere: bool = False  # the model at hand does not change between reports


Listener = Callable[[Work], AbstractContextManager[Report]]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextlib.contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Have all work reported to this listener, in place of bars.

    A report is made only where everything is in order: an exception raised there leaves a model
    that can be saved and resumed.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def silence(n_rows: int, size: int, error: float) -> None:
    """Tell nobody."""


def without_errors(report: Report) -> Report:
    """The same report of rows that are not new to the model: how many are wrong says nothing."""
    return lambda n_rows, size, error: report(n_rows, size, math.nan)


def in_words(size: int, unit: str, error: float) -> str:
    """What is shown beside a bar."""
    return f"{size:,} {unit}" + ("" if math.isnan(error) else f", error {error:.2%}")


class Lines:
    """Progress where no bar can be drawn: a line every now and then."""

    def __init__(
        self, say: Callable[[str], None], title: str, total: int | None, unit: str = "rows"
    ) -> None:
        self.say, self.title, self.total, self.unit = say, title, total, unit
        self.done, self.words, self.start = 0, "", time.monotonic()
        self.due = self.start + BETWEEN_LINES

    def __call__(self, n: int = 0, words: str = "") -> None:
        """So much more is done."""
        self.done, self.words = self.done + n, words
        now = time.monotonic()
        if now >= self.due:
            self.due = now + BETWEEN_LINES
            self.tell(now)

    def tell(self, now: float) -> None:
        """How far it has come."""
        share = f" of {self.total:,}" if self.total else ""
        speed = self.done / max(now - self.start, 1e-9)
        parts = [f"{self.title}: {self.done:,}{share} {self.unit}"]
        parts += [f"{speed:,.0f} {self.unit}/s"] * (speed >= 1) + [self.words] * bool(self.words)
        self.say(", ".join(parts))


def _bars() -> Any:
    """What draws them: few fits show one, and rich takes its time to be imported."""
    return importlib.import_module("polyplane.estimator.fitting.progress_bar")


@contextlib.contextmanager
def progress(
    title: str,
    n_rows: int,
    shown: bool,
    unit: str = "planes",
    is_search: bool = False,
    is_elsewhere: bool = False,
) -> Iterator[Report]:
    """What to call as rows are visited; nothing is shown unless asked for."""
    listener = _listener.get()
    if listener is not None:
        with listener(Work(title, n_rows, unit, is_search, is_elsewhere)) as report:
            yield report
        return
    if not shown:
        yield silence
        return
    if not _bars().can_be_drawn():
        lines = Lines(print, title, n_rows)
        yield lambda n_visited, size, error: lines(n_visited, in_words(size, unit, error))
        lines.tell(time.monotonic())
        return
    with _bars().bar_of_rows(title, n_rows) as show:
        yield lambda n_visited, size, error: show(n_visited, in_words(size, unit, error))


@dataclass
class _Latest:
    """What the chunk at work has told: the model's size, and its errors by rows."""

    unit: str = "planes"
    size: int = 0
    n_rows: int = 0
    n_wrong: float = 0.0

    @contextlib.contextmanager
    def listen(self, work: Work) -> Iterator[Report]:
        """Hear of a chunk."""
        self.unit, self.n_rows, self.n_wrong = work.unit, 0, 0.0
        yield self.note

    def note(self, n_rows: int, size: int, error: float) -> None:
        """Some rows of it."""
        self.size, self.n_rows = size, self.n_rows + n_rows
        self.n_wrong += n_rows * error

    @property
    def error(self) -> float:
        """Of the chunk, before its rows were learned; NaN where they were only collected."""
        return self.n_wrong / self.n_rows if self.n_rows else math.nan


@contextlib.contextmanager
def stream_progress(title: str, n_passes: int, shown: bool) -> Iterator[Callable[[int, int], None]]:
    """What to call when a chunk has been learned: passes completed, and rows of the chunk."""
    latest, listener = _Latest(), _listener.get()
    with contextlib.ExitStack() as stack:
        stack.enter_context(heard_by(latest.listen))
        if listener is not None:
            work = Work(title, None, "planes")
            report = stack.enter_context(listener(work))
            yield lambda n_completed, n_rows: report(
                n_rows, latest.size, latest.error if n_completed == 0 else math.nan
            )
            return
        if not shown:
            yield lambda _, n_rows: None
            return
        if not _bars().can_be_drawn():
            lines = Lines(print, title, None)
            yield lambda _, n_rows: lines(n_rows, in_words(latest.size, latest.unit, math.nan))
            lines.tell(time.monotonic())
            return
        show = stack.enter_context(_bars().bar_of_passes(title, n_passes))

        def tell(n_completed: int, n_rows: int) -> None:
            error = latest.error if n_completed == 0 else math.nan
            show(n_completed, n_rows, in_words(latest.size, latest.unit, error))

        yield tell
