"""A bar for work that takes long: rows a second, the model's size, its error, time left."""

import contextlib
from collections.abc import Callable, Iterator

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

__all__ = ["Report", "StreamReport", "progress", "silence", "stream_progress"]

Report = Callable[[int, int, float], None]  # rows just visited, planes or vectors now, error

StreamReport = Callable[[int, int], None]  # passes completed, rows visited in all passes


class _RowsPerSecond(ProgressColumn):
    def render(self, task: RichTask) -> Text:
        return Text(f"{task.finished_speed or task.speed or 0:,.0f} rows/s")


def silence(n_rows: int, size: int, error: float) -> None:
    """Tell nobody."""


@contextlib.contextmanager
def progress(title: str, n_rows: int, shown: bool, unit: str = "planes") -> Iterator[Report]:
    """What to call as rows are visited; nothing is shown unless asked for."""
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


@contextlib.contextmanager
def stream_progress(title: str, n_passes: int, shown: bool) -> Iterator[StreamReport]:
    """What to call as chunks of a stream are learned, whose length nobody knows."""
    if not shown:
        yield lambda n_completed, n_rows: None
        return
    columns = (
        TextColumn("{task.description}: pass {task.fields[now]} of " + str(n_passes)),
        TextColumn("{task.completed:,.0f} rows"),
        _RowsPerSecond(),
        TimeElapsedColumn(),
    )
    with Progress(*columns) as bar:
        task = bar.add_task(title, total=None, now=1)

        def report(n_completed: int, n_rows: int) -> None:
            bar.update(task, completed=n_rows, now=n_completed + 1)

        yield report
