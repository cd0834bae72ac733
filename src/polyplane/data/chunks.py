"""Chunks of rows that every reader yields, and errors for input that cannot be read."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from polyplane.arrays import Array

__all__ = ["Array", "BadRows", "Chunk", "DataError", "placed"]

ERRORS_KEPT = 10  # of rows that were skipped; the others are only counted


class Chunk(NamedTuple):
    """Some rows and their labels."""

    X: Any  # dense float32 or uint8 in C order, or a CSR matrix of float32 with int32 columns
    y: Array


def placed(words: str, path: Any = None, line: int | None = None, column: int | None = None) -> str:
    """Words about a place in a file, which comes first."""
    places = {"": path, "line ": line, "column ": column}
    place = ", ".join(f"{word}{at}" for word, at in places.items() if at is not None)
    return f"{place}: {words}" if place else words


class DataError(ValueError):
    """Error for input that cannot be read, with its place and what was expected there.

    Parameters
    ----------
    problem : str
        Words that say what is wrong.
    path : path, optional
        File that was read.
    line : int, optional
        Number of the line, from 1.
    column : int, optional
        Number of the column, from 1.

    See Also
    --------
    read : Reads all rows, or raises this error.

    Examples
    --------
    >>> import polyplane as pp
    >>> print(pp.DataError("found 'x', expected a number", "rows.csv", 3))
    rows.csv, line 3: found 'x', expected a number
    """

    def __init__(
        self, problem: str, path: Any = None, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(placed(problem, path, line, column))
        self.problem, self.path, self.line, self.column = problem, path, line, column

    def __reduce__(self) -> Any:
        return DataError, (self.problem, self.path, self.line, self.column)


@dataclass
class BadRows:
    """Rows that cannot be read: the first is an error, or they are skipped and counted."""

    skips: bool = False
    n_skipped: int = 0
    errors: list[DataError] = field(default_factory=list)

    def meet(self, error: DataError) -> None:
        """Raise the error, or note that its row is skipped."""
        if not self.skips:
            raise error
        self.n_skipped += 1
        if len(self.errors) < ERRORS_KEPT:
            self.errors.append(error)
