"""Imports, and other work that makes many objects, without a search for garbage."""

import contextlib
import gc
from collections.abc import Iterator

__all__ = ["no_collection"]


@contextlib.contextmanager
def no_collection(*, for_good: bool = False) -> Iterator[None]:
    """Nothing that an import makes is garbage: looking for some takes a tenth of its time.

    `for_good`: nobody looks at what there is by then again, for programs that end soon.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on and for_good:
            gc.freeze()  # before the next search, which begins as soon as it may
        if was_on:
            gc.enable()
