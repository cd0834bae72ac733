"""Progress bars drawn by rich, which is imported where one is shown."""

import contextlib
import importlib.util
from collections.abc import Callable, Iterator

from rich import get_console
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["bar", "can_be_drawn"]


def can_be_drawn() -> bool:
    """Return False in a notebook without ipywidgets, where rich would ask for them repeatedly."""
    return not get_console().is_jupyter or importlib.util.find_spec("ipywidgets") is not None


@contextlib.contextmanager
def bar(
    title: str,
    total: int | None,
    unit: str = "rows",
    console: Console | None = None,
    is_transient: bool = False,
) -> Iterator[Callable[[int, str], None]]:
    """Yield a function that takes the work just done and the words to show beside the bar.

    Without a total there is no bar, but all the rest.
    """
    known = (BarColumn(), TaskProgressColumn(), TimeRemainingColumn()) if total else ()
    columns = (
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),  # time goes on while the first rows wait for loops to be compiled
        *known,
        TextColumn("{task.completed:,.0f} " + unit),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[words]}", markup=False),
    )
    with Progress(*columns, console=console, transient=is_transient) as shown:
        task = shown.add_task(title, total=total, rate="", words="")

        def advance(n: int = 0, words: str = "") -> None:
            speed = shown.tasks[0].finished_speed or shown.tasks[0].speed
            rate = f"{speed:,.0f} {unit}/s" if speed else ""
            shown.update(task, advance=n, words=words, rate=rate)

        yield advance
