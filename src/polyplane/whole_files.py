"""Files that appear under their names only when they are whole: a failure leaves what was there.

Until then a file is called `.NAME.PID.unfinished` and locked. One that a killed process has left is
not locked any more, and the next who writes that name removes it. Errors name the file that was
asked for.
"""

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # Windows, where no file that is open can be removed
    fcntl = None  # type: ignore[assignment]

__all__ = ["errors_named", "whole_file"]

HAS_LOCKS = fcntl is not None


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file beside the one named, which takes its place once all has reached the disk."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is a folder, a pipe or a device: name a file", str(path))
    _remove_abandoned(path)
    with errors_named(path):
        file, unfinished = _unfinished_file(path)
    with file:  # which locks it
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not HAS_LOCKS:  # Windows moves no file that is open
                file.close()
            with errors_named(path):
                os.replace(unfinished, path)
        except BaseException:
            if not HAS_LOCKS:
                file.close()
            unfinished.unlink(missing_ok=True)
            raise
    _sync_folder(path.parent)


@contextlib.contextmanager
def errors_named(path: Path) -> Iterator[None]:
    """Errors of the system about files that the user has not named, with the one they have."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _unfinished_file(path: Path) -> tuple[Any, Path]:
    """An empty file that is ours alone, and its name."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    for attempt in count():
        owner = f"{os.getpid()}-{attempt}" if attempt else f"{os.getpid()}"
        unfinished = path.with_name(f".{path.name}.{owner}.unfinished")
        file = os.fdopen(os.open(unfinished, flags, 0o666), "wb")
        if _is_locked_now(file) and _is_still(unfinished, file):
            file.truncate(0)
            return file, unfinished
        file.close()
    raise AssertionError("there is always one more name")


def _is_locked_now(file: Any) -> bool:
    """Lock the file, where that is possible; False where another thread or process has done so."""
    if HAS_LOCKS:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            pass
    return True


def _is_still(path: Path, file: Any) -> bool:
    """Whether the name is that of the file: who removes abandoned files may have been faster."""
    try:
        return not HAS_LOCKS or os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _remove_abandoned(path: Path) -> None:
    """Remove what killed processes have left of the file; what is locked is at work."""
    name = re.compile(rf"\.{re.escape(path.name)}\.\d+(-\d+)?\.unfinished")
    with contextlib.suppress(OSError):
        for other in [
            entry.path for entry in os.scandir(path.parent) if name.fullmatch(entry.name)
        ]:
            with contextlib.suppress(OSError):
                _remove_if_unlocked(other)


def _remove_if_unlocked(path: str) -> None:
    if not HAS_LOCKS:
        os.unlink(path)
        return
    with open(path, "rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an OSError where there are no locks
        os.unlink(path)


def _sync_folder(folder: Path) -> None:
    """Let the new name outlive a power cut, where the system knows how."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
