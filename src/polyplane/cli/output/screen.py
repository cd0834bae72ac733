"""Output of verbs: results on standard output, everything else on standard error.

With --json standard output holds one JSON object and nothing else. Progress is a bar on a terminal
and a line every ten seconds elsewhere; neither with --quiet.
"""

import contextlib
import json
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

from polyplane.cli.output.printable import PrintableRemarks, printable
from polyplane.training.work.progress import Lines
from polyplane.training.work.progress_bar import bar

__all__ = ["Advance", "Screen", "as_json"]

Advance = Callable[..., None]  # how much more is done, and words to show beside it


class _Console(Console):
    """A console that leaves a closed pipe to the caller."""

    def on_broken_pipe(self) -> NoReturn:
        """Called while the error is handled."""
        raise


def _console(is_error: bool) -> Console:
    return _Console(stderr=is_error, markup=False, highlight=False, emoji=False, soft_wrap=False)


@dataclass
class Screen:
    """The terminal, or what stands in its place."""

    json: bool = False
    quiet: bool = False
    debug: bool = False
    out: Console = field(default_factory=lambda: _console(False))
    err: Console = field(default_factory=lambda: _console(True))

    @property
    def is_ascii(self) -> bool:
        """Return True if standard output takes no other letters."""
        return not self.out.encoding.startswith("utf")

    @contextlib.contextmanager
    def remarks(self) -> Iterator[None]:
        """Remarks of the package on standard error; with --quiet none."""
        log = logging.getLogger("polyplane")
        before = log.level, log.propagate
        handler = logging.StreamHandler()
        handler.setFormatter(PrintableRemarks())
        log.addHandler(handler)
        log.propagate = False
        if self.quiet:
            log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.level, log.propagate = before

    def say(self, text: str = "", is_one_line: bool = False) -> None:
        """Words that belong to the result; not with --json. A command to copy is one line."""
        if not self.json:
            self.out.print(self._spelt(text), soft_wrap=is_one_line)

    def note(self, text: str) -> None:
        """A remark on the way; not with --quiet."""
        if not self.quiet:
            self.err.print(printable(text), soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a warning, even with --quiet."""
        self.err.print(printable(text), soft_wrap=True)

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None
    ) -> None:
        """A table that belongs to the result; the first column is words, others are numbers.

        One that is too wide for the terminal is a list of its rows.
        """
        if self.json:
            return
        if title:
            self.out.print(self._spelt(title), style="bold")
        names = [self._spelt(column) for column in columns]
        texts = [[self._spelt(str(cell)) for cell in row] for row in rows]
        if not self.fits(names, texts):
            self._list(names, texts)
            return
        made = Table()
        for place, name in enumerate(names):
            made.add_column(name, justify="left" if place == 0 else "right", no_wrap=True)
        for row in texts:
            made.add_row(*map(Text, row))
        self.out.print(made)

    def fits(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bool:
        """Return True if a table has room in the terminal."""
        cells = [list(map(str, row)) for row in (columns, *rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return sum(widths) + 3 * len(widths) + 1 <= self.out.width

    def _list(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        left = max(map(len, names[1:]), default=0)
        for first, *others in rows:
            self.out.print(f"{names[0]} {first}")
            for name, cell in zip(names[1:], others, strict=True):
                self.out.print(f"  {name.ljust(left)} {cell}")

    def _spelt(self, text: str) -> str:
        """Return a text on one line, in letters that standard output takes."""
        shown = printable(text)
        return shown.replace("±", "+-") if self.is_ascii else shown

    def result(self, values: dict[str, Any]) -> None:
        """All that was found, for programs: printed with --json."""
        if self.json:
            print(as_json(values), flush=True)

    @contextlib.contextmanager
    def progress(
        self, title: str, total: int | None = None, unit: str = "rows"
    ) -> Iterator[Advance]:
        """Yield a function to call as work is done: advance(n), or advance(n, "error 2.1%")."""
        if self.quiet:
            yield lambda n=0, words="": None
        elif self.err.is_terminal:
            with bar(title, total, unit, self.err, is_transient=True) as advance:
                yield advance
        else:
            yield Lines(lambda line: self.err.print(line, soft_wrap=True), title, total, unit)


def as_json(values: Any) -> str:
    """JSON in ASCII, in which numbers that are not finite are null."""
    return json.dumps(_plain(values), allow_nan=False)


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy as Python's own."""
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
