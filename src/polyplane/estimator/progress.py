"""A bar for work that takes long: rows a second, the model's size, its error, time left."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Task as RichTask
from rich.text import Text

__all__ = [
    "Report", "StreamReport", "Work", "heard_by", "progress", "silence", "stream_progress",
]  # fmt: skip

Report = Callable[[int, int, float], None]  # rows just visited, planes or vectors now, error

StreamReport = Callable[[int, int], None]  # passes completed, rows visited in all passes


@dataclass(frozen=True)
class Work:
    """What is about to be done, for those who show it in their own way."""

    title: str
    n_rows: int | None  # to visit; None where nobody knows
    unit: str  # of the model's size
    is_search: bool = False  # for settings: there is no model yet


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


class _RowsPerSecond(ProgressColumn):
    def render(self, task: RichTask) -> Text:
        return Text(f"{task.finished_speed or task.speed or 0:,.0f} rows/s")


def silence(n_rows: int, size: int, error: float) -> None:
    """Tell nobody."""


@contextlib.contextmanager
def progress(
    title: str, n_rows: int, shown: bool, unit: str = "planes", is_search: bool = False
) -> Iterator[Report]:
    """What to call as rows are visited; nothing is shown unless asked for."""
    listener = _listener.get()
    if listener is not None:
        with listener(Work(title, n_rows, unit, is_search)) as report:
            yield report
        return
    if not shown:
        yield silence
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        _RowsPerSecond(),
        TextColumn("{task.fields[size]:,} " + unit + ", error {task.fields[error]:.2%}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as bar:
        task = bar.add_task(title, total=n_rows, size=0, error=0.0)

        def report(n_visited: int, size: int, error: float) -> None:
            bar.update(task, advance=n_visited, size=size, error=error)

        yield report


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
        """Of the chunk, before its rows were learned."""
        return self.n_wrong / max(1, self.n_rows)


@contextlib.contextmanager
def stream_progress(title: str, n_passes: int, shown: bool) -> Iterator[Callable[[int, int], None]]:
    """What to call when a chunk has been learned: passes completed, and rows of the chunk."""
    latest, listener = _Latest(), _listener.get()
    with contextlib.ExitStack() as stack:
        stack.enter_context(heard_by(latest.listen))
        if listener is not None:
            work = Work(title, None, "planes")
            report = stack.enter_context(listener(work))
            yield lambda _, n_rows: report(n_rows, latest.size, latest.error)
            return
        if not shown:
            yield lambda _, n_rows: None
            return
        columns = (
            TextColumn("{task.description}: pass {task.fields[now]} of " + str(n_passes)),
            TextColumn("{task.completed:,.0f} rows"),
            _RowsPerSecond(),
            TextColumn("{task.fields[size]:,} {task.fields[unit]}, error {task.fields[error]:.2%}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        bar = stack.enter_context(Progress(*columns))
        task = bar.add_task(title, total=None, now=1, size=0, unit="planes", error=0.0)
        n_of_pass = 0

        def show(n_completed: int, n_rows: int) -> None:
            nonlocal n_of_pass
            n_of_pass += n_rows if n_completed == 0 else 0
            total = n_of_pass * n_passes if n_completed > 0 else None
            bar.update(
                task, advance=n_rows, now=n_completed + 1, total=total, size=latest.size,
                unit=latest.unit, error=latest.error,
            )  # fmt: skip

        yield show
