"""Files that appear under their names only when they are whole: a failure leaves what was there."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["errors_named", "whole_file"]

NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
MAX_NAME_KEPT = 40  # characters of the name that the temporary file's name repeats


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file that replaces `path` once its content is on the disk.

    The file keeps the mode of the one that it replaces, and a symbolic link is written through.
    Errors of the system name `path`. A process that is killed leaves the temporary file,
    `.NAME.RANDOM.unfinished`, in the folder.
    """
    with errors_named(path):
        target, mode = _target_of(path)
        temporary = target.with_name(
            f".{target.name[:MAX_NAME_KEPT]}.{secrets.token_hex(8)}.unfinished"
        )
        file = os.fdopen(os.open(temporary, NEW_FILE, 0o666 if mode is None else mode), "wb")
    try:
        with _unnamed_errors_named(path):
            yield file
            file.flush()
            os.fsync(file.fileno())
        with errors_named(path):
            file.close()
            if mode is not None:
                os.chmod(temporary, mode)
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):  # what is still buffered is written in vain
            file.close()
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


@contextlib.contextmanager
def errors_named(path: Path) -> Iterator[None]:
    """Raise errors of the system about files that the user has not named with the name given."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextlib.contextmanager
def _unnamed_errors_named(path: Path) -> Iterator[None]:
    """Add the name to errors of the system that have none, such as those of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _target_of(path: Path) -> tuple[Path, int | None]:
    """Return the file to which links lead, and its mode; None if there is no file yet."""
    if "\0" in os.fspath(path):
        raise OSError(errno.EINVAL, "the name holds a null character")
    target = Path(os.path.realpath(path))
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return target, None
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is a folder, a pipe or a device: name a file")
    return target, stat.S_IMODE(mode)


def _sync_folder(folder: Path) -> None:
    """Let the new name outlive a power cut, where the system can do that."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
