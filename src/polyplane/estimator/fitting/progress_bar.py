"""The bars of `progress.py`, drawn by rich, which is imported where one is shown."""

import contextlib
import importlib.util
from collections.abc import Callable, Iterator

from rich import get_console
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

__all__ = ["bar_of_passes", "bar_of_rows", "can_be_drawn"]


class _RowsPerSecond(ProgressColumn):
    def render(self, task: RichTask) -> Text:
        return Text(f"{task.finished_speed or task.speed or 0:,.0f} rows/s")


def can_be_drawn() -> bool:
    """Not in a notebook without ipywidgets; rich would ask for them again and again."""
    return not get_console().is_jupyter or importlib.util.find_spec("ipywidgets") is not None


@contextlib.contextmanager
def bar_of_rows(title: str, n_rows: int) -> Iterator[Callable[[int, str], None]]:
    """What to call with rows just visited, and what is said beside the bar."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        _RowsPerSecond(),
        TextColumn("{task.fields[words]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as bar:
        task = bar.add_task(title, total=n_rows, words="")
        yield lambda n_visited, words: bar.update(task, advance=n_visited, words=words)


@contextlib.contextmanager
def bar_of_passes(title: str, n_passes: int) -> Iterator[Callable[[int, int, str], None]]:
    """The same of a stream, with passes completed first; its length is that of the first pass."""
    columns = (
        TextColumn("{task.description}: pass {task.fields[now]} of " + str(n_passes)),
        TextColumn("{task.completed:,.0f} rows"),
        _RowsPerSecond(),
        TextColumn("{task.fields[words]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    n_of_pass = 0
    with Progress(*columns) as bar:
        task = bar.add_task(title, total=None, now=1, words="")

        def show(n_completed: int, n_rows: int, words: str) -> None:
            nonlocal n_of_pass
            n_of_pass += n_rows if n_completed == 0 else 0
            total = n_of_pass * n_passes if n_completed > 0 else None
            bar.update(task, advance=n_rows, now=n_completed + 1, total=total, words=words)

        yield show
