"""Model files: arrays and plain values in one safetensors file, of which nothing is believed.

Layout    eight bytes, the length of the header; the header, JSON; the arrays, one after the other
          (https://github.com/huggingface/safetensors). The header's `__metadata__` holds
          `polyplane`, the plain values as JSON, `format`, a number that rises when older programs
          can no longer read what is written, and `checksum`, the CRC-32 of values and arrays.
Writing   to a file beside the one named, which takes its place once it is on the disk. No array
          is copied. The writer of safetensors itself aligns arrays to 8 bytes only: planes in a
          mapped file would span two cache lines, and sparse rows be scored 15% more slowly.
Reading   runs no code. What the header promises is compared with the file's size before anything
          is allocated. Small files are read, large ones mapped: then memory is what is touched.
"""

import json
import mmap
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors

from polyplane.arrays import Array
from polyplane.whole_files import whole_file

__all__ = ["ModelError", "is_model_file", "read_file", "write_file"]

FORMAT = 1
ALIGNMENT = 64  # arrays of whole cache lines start on one
LONGEST_HEADER = 100_000_000  # safetensors reads no longer ones
MAPPED = 1 << 26  # bytes from which a file is mapped instead of read
CODES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16",
    "uint32": "U32", "int32": "I32", "uint64": "U64", "int64": "I64",
    "float16": "F16", "float32": "F32", "float64": "F64",
}  # fmt: skip
DTYPES = {code: np.dtype(name) for name, code in CODES.items()}


class ModelError(ValueError):
    """Error for a model that cannot be written, or for a file that holds none.

    Parameters
    ----------
    problem : str
        Words that say what is wrong.
    path : path, optional
        File that was read or written.

    See Also
    --------
    load : Reads a model file, or raises this error.

    Examples
    --------
    >>> import polyplane as pp
    >>> print(pp.ModelError("the file is not a model", "clicks.model"))
    clicks.model: the file is not a model
    """

    def __init__(self, problem: str, path: Any = None) -> None:
        super().__init__(problem if path is None else f"{os.fspath(path)}: {problem}")
        self.problem, self.path = problem, path

    def __reduce__(self) -> Any:
        return ModelError, (self.problem, self.path)


# ---- writing -----------------------------------------------------------------------------


def write_file(path: Any, values: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a model file, whole or not at all."""
    path = Path(path)
    stored = {name: np.ascontiguousarray(arrays[name]) for name in _aligned_first(arrays)}
    try:
        with whole_file(path) as file:
            file.write(_header(json.dumps(values, allow_nan=False), stored))
            for array in stored.values():
                file.write(_bytes_of(array))
    except OSError as error:
        raise ModelError(f"cannot be written ({error.strerror}); nothing was changed", path) from (
            error
        )


def _aligned_first(arrays: Mapping[str, Array]) -> list[str]:
    """Arrays of whole cache lines come first, and then those of larger elements: all align."""

    def place(name: str) -> tuple[bool, int]:
        return arrays[name].nbytes % ALIGNMENT > 0, -arrays[name].itemsize

    return sorted(arrays, key=place)


def _header(values: str, arrays: Mapping[str, Array]) -> bytes:
    entries: dict[str, Any] = {}
    start = 0
    for name, array in arrays.items():
        end = start + array.nbytes
        code = CODES[array.dtype.name]
        entries[name] = {"dtype": code, "shape": array.shape, "data_offsets": [start, end]}
        start = end
    checksum = _checksum(values, arrays)
    about = {"polyplane": values, "format": str(FORMAT), "checksum": checksum}
    header = json.dumps({"__metadata__": about, **entries}).encode()
    header += b" " * (-(8 + len(header)) % ALIGNMENT)
    if len(header) > LONGEST_HEADER:
        raise ModelError(
            f"cannot be written: its {len(arrays):,} arrays need a header longer than model files "
            "may have; train fewer models side by side, for example with multi_class='ovr'"
        )
    return len(header).to_bytes(8, "little") + header


def _bytes_of(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _checksum(values: str, arrays: Mapping[str, Array]) -> str:
    total = zlib.crc32(values.encode())
    for name, array in arrays.items():
        total = zlib.crc32(f"{name} {array.dtype.name} {array.shape}".encode(), total)
        total = zlib.crc32(_bytes_of(array), total)
    return f"{total:08x}"


# ---- reading -----------------------------------------------------------------------------


def is_model_file(path: Any) -> bool:
    """Return True if a file begins as a model file does, sound or not."""
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            return 2 <= length <= LONGEST_HEADER and file.read(16) == b'{"__metadata__":'
    except (OSError, ValueError):
        return False


def read_file(path: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """The values and arrays of a model file; arrays can be written to, the file stays as it is."""
    try:
        with open(path, "rb") as file:
            return _read(file, os.fstat(file.fileno()).st_size, path)
    except ModelError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        why = getattr(error, "strerror", None) or error
        raise ModelError(f"cannot be read ({why})", path) from error


def _read(file: Any, size: int, path: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    entries, first = _read_header(file, size, path)
    about = entries.pop("__metadata__", None)
    if not isinstance(about, dict) or "polyplane" not in about:
        raise ModelError("is a safetensors file, but holds no model of polyplane", path)
    _check_format(about, path)
    buffer = _buffer_of(file, size)
    try:
        with safetensors.safe_open(os.fspath(path), framework="np"):
            pass  # its checks: offsets follow each other up to the end, and fit dtype and shape
        in_order = sorted(entries, key=lambda name: entries[name]["data_offsets"])
        arrays = {name: _array_in(buffer, first, entries[name]) for name in in_order}
        values = json.loads(about["polyplane"])
    except Exception as error:
        raise ModelError(f"is damaged: {_first_line(error)}", path) from None
    if _checksum(about["polyplane"], arrays) != about.get("checksum"):
        raise ModelError("is damaged: its checksum does not fit; get or train it again", path)
    return values, arrays


def _read_header(file: Any, size: int, path: Any) -> tuple[dict[str, Any], int]:
    """The entries of the header, and where arrays begin."""
    length = int.from_bytes(file.read(8), "little")
    if size < 10 or length < 2 or length > LONGEST_HEADER:
        raise ModelError("is not a model file, which `polyplane train` and `save` write", path)
    if length > size - 8:
        raise ModelError("is cut short or not a model file: get or train it again", path)
    try:
        entries = json.loads(file.read(length))
        if isinstance(entries, dict):
            return entries, 8 + length
    except (ValueError, RecursionError):
        pass
    raise ModelError("is not a model file, which `polyplane train` and `save` write", path)


def _check_format(about: Mapping[str, Any], path: Any) -> None:
    written = str(about.get("format"))
    if not written.isdecimal() or len(written) > 9 or int(written) == 0:
        raise ModelError("is damaged: it does not say in which format it is", path)
    if int(written) > FORMAT:
        raise ModelError(
            f"was written by a newer polyplane (format {written}, this one reads format "
            f"{FORMAT}): upgrade polyplane",
            path,
        )


def _buffer_of(file: Any, size: int) -> Any:
    """All bytes, as memory that can be written to without changing the file."""
    if size >= MAPPED:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    buffer = np.empty(size + ALIGNMENT, np.uint8)
    skip = -buffer.ctypes.data % ALIGNMENT
    file.seek(0)
    file.readinto(buffer[skip : skip + size])
    return buffer[skip : skip + size]


def _array_in(buffer: Any, first: int, entry: Mapping[str, Any]) -> Array:
    dtype, shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
    start, end = entry["data_offsets"]
    count = (end - start) // dtype.itemsize
    if count == 0:
        return np.empty(shape, dtype)
    array = np.frombuffer(buffer, dtype, count, first + start).reshape(shape)
    return array if array.flags.aligned else array.copy()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
