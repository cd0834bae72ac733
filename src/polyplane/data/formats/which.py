"""Choice of the reader of a source: by its first bytes, or else by its name."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from polyplane.data.chunks import BadRows, Chunk, DataError
from polyplane.data.decompress import name_of, open_bytes
from polyplane.data.formats.arrow.format import ARROW, PARQUET
from polyplane.data.formats.csv.format import CSV
from polyplane.data.formats.libsvm.format import LIBSVM
from polyplane.data.formats.numpy.format import IDX, NPY, NPZ
from polyplane.data.formats.row_format import ALL_ROWS, Reading, ReadOptions, RowFormat
from polyplane.data.table.layout import Layout

__all__ = [
    "COMPRESSED", "FORMATS", "ReadOptions", "all_of", "chunks_of", "files_of", "format_by_name",
    "format_of", "is_path", "plain_format_of", "read_options", "settled_by",
]  # fmt: skip

FORMATS = {one.name: one for one in (LIBSVM, CSV, PARQUET, ARROW, NPY, NPZ, IDX)}
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
LOOKED_AT = 1 << 12  # bytes, to tell one text from another
ROWS_AT_ONCE = 8_192  # of a table that grows with them


# ---- options -----------------------------------------------------------------------------


def read_options(given: Mapping[str, Any]) -> ReadOptions:
    """The options, of which none is misspelt."""
    known = [option.name for option in fields(ReadOptions)]
    for name in given:
        if name not in known:
            raise TypeError(f"There is no option {name!r}: expected one of {', '.join(known)}.")
    form = given.get("format")
    if form is not None and form not in tuple(FORMATS):
        raise ValueError(f"format is {form!r}, expected one of {', '.join(FORMATS)}.")
    return ReadOptions(**given)


def _check_they_concern(options: ReadOptions, form: RowFormat, name: str) -> None:
    """An option that this format does not have would be passed over without a word."""
    for option in fields(options):
        is_given = getattr(options, option.name) != option.default
        if is_given and option.name not in {"format", *form.options}:
            homes = ", ".join(one.name for one in FORMATS.values() if option.name in one.options)
            raise ValueError(
                f"{name} is read as {form.name}, which has no option {option.name!r}, one "
                f"of {homes}: leave it out, or state format=."
            )


# ---- sources -----------------------------------------------------------------------------


def is_path(source: Any) -> bool:
    """Return True if a source is a path, and not an open file or "-"."""
    return isinstance(source, str | os.PathLike) and source != "-"


def files_of(source: Any, options: ReadOptions) -> list[Path]:
    """The files on which the rows of a source depend: itself, and files of labels beside it."""
    if options.labels is not None:
        labels = options.labels if is_path(options.labels) else None
        return [Path(file) for file in (source, labels) if file is not None]
    beside = [one.labels_beside(source) for one in FORMATS.values() if one.labels_beside]
    return [Path(source), *(path for path in beside if path is not None)]


def format_by_name(path: Any) -> str | None:
    """The format that the name of a file states, compressed or not."""
    name = Path(path)
    suffix = Path(name.stem).suffix if name.suffix.lower() in COMPRESSED else name.suffix
    stated = (one.name for one in FORMATS.values() if suffix.lower() in one.suffixes)
    return next(stated, None)


def format_of(name: str, head: bytes) -> str:
    """The format of a source that begins with `head` once it is decompressed."""
    marked = [one.name for one in FORMATS.values() if one.magic and head.startswith(one.magic)]
    stated = format_by_name(name)
    if marked or stated is not None:
        return marked[0] if marked else str(stated)
    found = [one for one in FORMATS.values() if one.looks_like is not None and one.looks_like(head)]
    binary = next((one.name for one in found if not one.is_text), None)
    if binary is not None:
        return binary
    if b"\0" in head and not head.startswith(UTF16_MARKS):
        raise DataError(
            f"found bytes that are no text, expected a format among {', '.join(FORMATS)}: "
            "state format= if it is one, and turn UTF-16 to UTF-8",
            name,
        )
    return found[0].name if found else LIBSVM.name


class _Filled(io.RawIOBase):
    """A pipe that hands out as much as it is asked for, so that a look at it sees enough."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        return int(self._file.readinto(room))


class _StandardInput(io.RawIOBase):
    """Standard input without the buffer that Python puts around it.

    A process that ends, after Ctrl-C, while a thread waits inside that buffer is aborted: the lock
    cannot be had. What has been read into the buffer before comes first.
    """

    name = "standard input"

    def __init__(self) -> None:
        buffer: Any = sys.stdin.buffer
        os.set_blocking(buffer.fileno(), False)
        try:
            self._head = buffer.read(len(buffer.peek())) or b""
        finally:
            os.set_blocking(buffer.fileno(), True)
        self._raw = buffer.raw

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        if not self._head:
            return self._raw.readinto(room) or 0
        some, self._head = self._head[: len(room)], self._head[len(room) :]
        room[: len(some)] = some
        return len(some)


def _is_piped_in(source: Any) -> bool:
    raw = getattr(getattr(sys.stdin, "buffer", None), "raw", None)
    is_waiting = isinstance(raw, io.FileIO) and not raw.seekable()
    return isinstance(source, str) and source == "-" and is_waiting and sys.platform != "win32"


@contextlib.contextmanager
def _opened(
    source: Any, options: ReadOptions, bad: BadRows, layout: Layout
) -> Iterator[tuple[RowFormat, Reading]]:
    """The format of a source, and its bytes."""
    name = name_of(source)
    bytes_of: Any = _StandardInput() if _is_piped_in(source) else source
    with open_bytes(bytes_of) as file:
        kind = options.format
        rows = file
        if kind is None:
            if not _is_plain(file):
                rows = io.BufferedReader(_Filled(file), LOOKED_AT)
            kind = format_of(name, rows.peek(LOOKED_AT)[:LOOKED_AT])  # type: ignore[attr-defined]
            if kind == LIBSVM.name and options.delimiter is not None:
                kind = CSV.name
        form = FORMATS[kind]
        if form.needs_file and not _is_plain(file):
            raise DataError(f"{kind} is not read from a pipe or an archive: unpack it first", name)
        _check_they_concern(options, form, name)
        path = Path(source) if is_path(source) else None
        yield form, Reading(path, name, rows, options, bad, layout)


def _is_plain(file: Any) -> bool:
    """Return True if the bytes are those of a file on disk."""
    return isinstance(file.raw, io.FileIO)


def plain_format_of(path: Any, options: ReadOptions) -> RowFormat | None:
    """The format of a file that is not compressed; None of one that is."""
    with _opened(path, options, BadRows(), Layout()) as (form, one):
        return form if _is_plain(one.file) else None


# ---- rows --------------------------------------------------------------------------------


def chunks_of(
    source: Any,
    chunk_rows: int,
    options: ReadOptions,
    bad: BadRows,
    layout: Layout,
    settled: Mapping[str, Any],
) -> Iterator[Chunk]:
    """The rows of one source, so many at a time; LIBSVM text obeys what has been settled."""
    with _opened(source, options, bad, layout) as (form, one):
        stated = options if form.settle is None else replace(options, **settled)
        yield from form.read(one._replace(options=stated), chunk_rows)


def all_of(source: Any, options: ReadOptions, bad: BadRows, layout: Layout) -> list[Chunk]:
    """The rows of one source, in one chunk where no table grows with them."""
    with _opened(source, options, bad, layout) as (form, one):
        return list(form.read(one, ROWS_AT_ONCE if layout.grows and form.is_table else ALL_ROWS))


def settled_by(source: Any, chunk_rows: int, options: ReadOptions) -> dict[str, Any]:
    """Options that the first of several files settles for all of them."""

    def first_rows(base: int | None) -> Chunk | None:
        stated = replace(options, base=base, n_features=None)
        with _opened(source, options, BadRows(skips=True), Layout()) as (form, one):
            return next(form.read(one._replace(options=stated), chunk_rows), None)

    try:
        with _opened(source, options, BadRows(), Layout()) as (form, _):
            settle = form.settle
        return {} if settle is None else dict(settle(first_rows, options))
    except DataError:  # which the pass will meet, too
        return {}
