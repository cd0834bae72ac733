"""Budget of an exploration: seconds, or samples of given sizes for the same work again.

Loops are compiled once on a machine. The seconds of that are counted by themselves and are no part
of the budget, so that an exploration tries the same whether or not loops were compiled before.
"""

import contextlib
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from numba.core import event

__all__ = ["Budget", "budget_of", "seconds_of"]

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
FIRST_ROWS, FEWEST_ROWS = 1_000, 200  # of the first sample, and where there is little time
SHORT_BUDGET_SECONDS = 30.0  # seconds
MOST_GROWTH, LEAST_GROWTH = 4.0, 1.3  # from a sample to the next
# Share of the time left: a sample that takes no more leaves room for one after it.
MAX_SHARE_OF_EARLY_SAMPLE = 0.35
MAX_SHARE_OF_LAST_SAMPLE = 0.9  # of the time left, for a sample after which there is no other
MAX_SHARE_OF_ONE_ALGORITHM = 0.4  # of the time left, for a single algorithm
PAGE_SHARE_AND_SECONDS = 0.04, 0.3  # share and seconds that the page takes in the end
PAGE_TIME_FACTOR = 1.3  # times that the last page takes what one before it took


@dataclass
class Budget:
    """Seconds of a clock; with `rows`, samples of these sizes and no clock at all."""

    seconds: float = math.inf
    rows: Sequence[int] = ()
    clock: Callable[[], float] = time.monotonic
    start: float = field(init=False)
    page_seconds: float = field(default=0.0, init=False)  # that a page has taken
    compilation: event.TimingListener = field(init=False)

    def __post_init__(self) -> None:
        if self.rows and (min(self.rows) < 1 or sorted(self.rows) != list(self.rows)):
            raise ValueError(f"rows is {self.rows!r}, expected sizes from small to large.")
        if not self.seconds > 0:
            raise ValueError(f"budget is {self.seconds!r}, expected more than 0 seconds.")
        self.begin()

    def begin(self) -> None:
        """Count time from here."""
        self.start, self.compilation = self.clock(), event.TimingListener()

    @contextlib.contextmanager
    def without_compilation(self) -> Iterator[None]:
        """Leave out the seconds in which loops are compiled inside a `with` block."""
        with event.install_listener("numba:compile", self.compilation):
            yield

    @property
    def compile_seconds(self) -> float:
        """Seconds of compilation so far, which the next exploration will not need."""
        return float(self.compilation.duration) if self.compilation.done else 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since it began, without those of compilation."""
        return self.clock() - self.start - self.compile_seconds

    @property
    def left(self) -> float:
        """Seconds for training; what the page takes is kept back."""
        if self.rows or math.isinf(self.seconds):
            return math.inf
        kept = PAGE_SHARE_AND_SECONDS[0] * self.seconds + min(
            PAGE_SHARE_AND_SECONDS[1], 0.1 * self.seconds
        )
        kept = max(kept, PAGE_TIME_FACTOR * self.page_seconds)
        return max(0.0, self.seconds - kept - self.elapsed)

    def first_rows(self, n_rows: int) -> int:
        """Return the size of the first sample: a part of few rows, so that errors have a curve."""
        if self.rows:
            return min(n_rows, self.rows[0])
        share = min(1.0, self.seconds / SHORT_BUDGET_SECONDS)
        part = min(int(share * FIRST_ROWS), math.ceil(n_rows / MOST_GROWTH))
        return min(n_rows, max(FEWEST_ROWS, part))

    def next_rows(self, n_before: int, n_rows: int, price: Callable[[int], float]) -> int | None:
        """Return the size of the next sample; `price` tells the seconds that a size takes."""
        if self.rows:
            return next((min(n, n_rows) for n in self.rows if n_before < min(n, n_rows)), None)
        if n_before >= n_rows:
            return None
        largest = min(n_rows, int(MOST_GROWTH * n_before))
        largest = n_rows if LEAST_GROWTH * largest > n_rows else largest  # the last few as well
        if (
            price(largest)
            <= (MAX_SHARE_OF_EARLY_SAMPLE if largest < n_rows else MAX_SHARE_OF_LAST_SAMPLE)
            * self.left
        ):
            return largest
        least = math.ceil(min(n_rows, LEAST_GROWTH * n_before))
        n_next = largest
        while n_next > least and price(n_next) > MAX_SHARE_OF_LAST_SAMPLE * self.left:
            n_next = max(least, int(0.9 * n_next))
        return n_next if price(n_next) <= MAX_SHARE_OF_LAST_SAMPLE * self.left else None

    def allows(self, seconds: float) -> bool:
        """Return True if there is time for so much more."""
        return seconds <= self.left

    def allows_one(self, seconds: float) -> bool:
        """Return True if one algorithm may take so much of a sample's time."""
        return seconds <= MAX_SHARE_OF_ONE_ALGORITHM * self.left


def budget_of(given: Any) -> Budget:
    """Return a budget of seconds, of a text such as 60s or 5m, or the given one from now on."""
    if isinstance(given, Budget):
        given.begin()
        return given
    if isinstance(given, str):
        return Budget(seconds_of(given))
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError(f"budget is {given!r}, expected seconds, or a text such as '60s' or '5m'.")
    return Budget(float(given))


def seconds_of(text: str) -> float:
    """Return the seconds of a text such as 60s, 5m or 1h; a number alone is seconds."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", text)
    if found is None or float(found[1]) <= 0:
        raise ValueError(f"budget is {text!r}, expected a time such as 60s, 5m or 1h.")
    return float(found[1]) * UNITS[found[2]]
