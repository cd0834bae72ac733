"""Any file as plain bytes: what is compressed is known by its first bytes, not by its name."""

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

import pyarrow as pa

from polyplane.data.chunks import DataError

__all__ = ["Source", "name_of", "open_bytes"]

Source = str | os.PathLike[str] | BinaryIO
BUFFER = 1 << 18
MOST_MAGIC = 6
DAMAGE = OSError, zlib.error, lzma.LZMAError


class _Reading(io.RawIOBase):
    """The bytes that have been looked at, then the rest; failures of a decompressor name the file.

    Closing it closes `owned`.
    """

    def __init__(
        self, file: Any, name: str, head: bytes = b"", kind: str = "", owned: Any = None
    ) -> None:
        self._file, self._name, self._head, self._kind = file, name, head, kind
        self._owned = owned

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        if self._head or not hasattr(self._file, "readinto"):
            some = self._head[: len(room)] or self._file.read(len(room))
            room[: len(some)], self._head = some, self._head[len(room) :]
            return len(some)
        try:
            return self._file.readinto(room) or 0
        except EOFError:
            problem = f"the {self._kind} archive is cut short: copy or make it again"
        except DAMAGE as error:
            if not self._kind:
                raise
            problem = f"the {self._kind} archive is damaged ({error}): copy or make it again"
        raise DataError(problem, self._name)

    def close(self) -> None:
        if not self.closed and self._owned is not None:
            self._owned.close()
        super().close()


def _zstd(file: Any) -> Any:
    return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")


DECOMPRESSORS: dict[bytes, tuple[str, Callable[[Any], Any]]] = {
    b"\x1f\x8b": ("gzip", lambda file: gzip.GzipFile(fileobj=file, mode="rb")),
    b"BZh": ("bzip2", bz2.BZ2File),
    b"\xfd7zXZ\x00": ("xz", lzma.LZMAFile),
    b"\x28\xb5\x2f\xfd": ("zstd", _zstd),
}


def name_of(source: Source) -> str:
    """Return the name of a file for error messages."""
    if isinstance(source, str | os.PathLike):
        return "standard input" if source == "-" else os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "the stream"


def _opened(source: Source, name: str) -> Any:
    """The file, not yet looked at."""
    if not isinstance(source, str | os.PathLike):
        return source
    if source == "-":
        return sys.stdin.buffer
    try:
        return open(source, "rb", buffering=0)
    except FileNotFoundError:
        problem = "there is no such file: check the path"
    except IsADirectoryError:
        problem = "is a folder: name a file in it"
    except (OSError, ValueError) as error:
        problem = f"cannot be opened ({getattr(error, 'strerror', None) or error})"
    raise DataError(problem, name)


def _first_bytes(file: Any, name: str) -> bytes:
    """Return the first bytes, enough for a magic number, also of a pipe."""
    head = b""
    while len(head) < MOST_MAGIC:
        try:
            some = file.read(MOST_MAGIC - len(head))
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror or error})", name) from None
        if isinstance(some, str):
            raise DataError('is opened as text: open it as bytes, with mode "rb"', name)
        if not some:
            break
        head += some
    return head


def open_bytes(source: Source) -> BinaryIO:
    """Open a path, standard input ("-") or a binary file for reading, decompressed.

    Closing it closes the file only if it was opened here. A damaged archive is a DataError, when
    reading meets the damage.
    """
    name = name_of(source)
    file = _opened(source, name)
    is_ours = isinstance(source, str | os.PathLike) and source != "-"
    head = _first_bytes(file, name)
    if not head:
        if is_ours:
            file.close()
        raise DataError("is empty: rows were expected", name)
    if is_ours and file.seekable():
        file.seek(0)
        plain = file
    else:
        plain = _Reading(file, name, head, owned=file if is_ours else None)
    for magic, (kind, decompressor) in DECOMPRESSORS.items():
        if head.startswith(magic):
            inner = decompressor(io.BufferedReader(plain, BUFFER))
            return io.BufferedReader(_Reading(inner, name, kind=kind, owned=plain), BUFFER)
    return io.BufferedReader(plain, BUFFER)
