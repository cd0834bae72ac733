"""Bytes of files that may be damaged, cut, or state sizes which they don't have."""

import contextlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from polyplane.data.chunks import DataError

__all__ = ["as_data_errors", "parts_up_to", "read_up_to"]

STEP = 1 << 20  # bytes asked for at once, so that a false size allocates nothing


def read_up_to(file: BinaryIO, size: int) -> bytes:
    """`size` bytes, fewer only where the file ends, even if a pipe brings them in pieces."""
    return b"".join(parts_up_to(file, size))


def parts_up_to(file: BinaryIO, size: int) -> list[bytes]:
    """Read up to so many bytes in parts, to be joined with something else."""
    parts = []
    while size > 0 and (part := file.read(min(size, STEP))):
        parts.append(part)
        size -= len(part)
    return parts


@contextlib.contextmanager
def as_data_errors(path: Any, expected: str) -> Iterator[None]:
    """Whatever a library raises on damaged bytes, and the system on absent files, as `DataError`.

    Only calls into libraries belong inside: they raise nearly every kind of exception.
    """
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        problem = f"found a file that cannot be read, expected {expected}: {reason}"
        raise DataError(problem, path) from error
