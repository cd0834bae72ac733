"""Which reader a source is for: by its first bytes, or by its name where they leave it open."""

import contextlib
import io
import numbers
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, BinaryIO

from polyplane.data.chunk_sizes import widened
from polyplane.data.chunks import BadRows, Chunk, DataError
from polyplane.data.decompress import name_of, open_bytes
from polyplane.data.formats.arrow import parquet
from polyplane.data.formats.csv import reader as csv_text
from polyplane.data.formats.csv.reader import CsvOptions
from polyplane.data.formats.libsvm import reader as libsvm_text
from polyplane.data.formats.numpy import idx as idx_images
from polyplane.data.formats.numpy import reader as arrays
from polyplane.data.table.layout import AUTO, Layout

__all__ = [
    "COMPRESSED", "FORMATS", "ReadOptions", "all_of", "chunks_of", "files_of", "format_by_name",
    "format_of", "is_path", "plain_format_of", "read_options", "settled_by",
]  # fmt: skip

TABLE = {"label", "drop", "text_columns", "missing", "categories", "n_hash", "delimiter", "header"}
OPTIONS = {
    "libsvm": {"n_features", "base", "text_labels"},
    "csv": TABLE, "parquet": TABLE, "arrow": TABLE,
    "npy": {"labels"}, "npz": {"labels", "part"}, "idx": {"labels"},
}  # fmt: skip
FORMATS = tuple(OPTIONS)
BY_SUFFIX = {
    ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm", ".csv": "csv", ".tsv": "csv",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".ipc": "arrow",
    ".feather": "arrow", ".npy": "npy", ".npz": "npz", ".idx": "idx",
}  # fmt: skip
BY_MAGIC = {
    b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow", b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
}  # fmt: skip
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
NEEDS_A_FILE = ("parquet", "npy", "npz")  # they are read from their end, or where they lie
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
LOOKED_AT = 1 << 12  # bytes, to tell one text from another
LIBSVM_LINE = re.compile(rb"\s*[^\s,;]+(\s+qid:\d+)?(\s+\d+:\S+)+\s*")
ROWS_AT_ONCE, ALL_ROWS = 8_192, 1 << 62  # where all are read


# ---- options -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadOptions:
    """How sources are read; each format takes what concerns it, and refuses the rest."""

    format: str | None = None  # one of FORMATS; None is found out
    n_features: int | None = None  # LIBSVM text
    base: int | None = None
    text_labels: bool | None = None
    label: str | int | None = AUTO  # tables: CSV, Parquet, Arrow
    drop: Sequence[str | int] = ()
    text_columns: Sequence[str | int] = ()
    missing: str | None = None  # "fill", or as the layout says
    categories: str = "onehot"
    n_hash: int = 4096
    delimiter: str | None = None
    header: bool | None = None
    labels: Any = None  # npy, npz, IDX: the file of labels
    part: str = "train"  # npz

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise ValueError(f"format is {self.format!r}, expected one of {', '.join(FORMATS)}.")
        if self.base not in (None, 0, 1):
            raise ValueError(f"base is {self.base!r}, expected 0 or 1, or None to find out.")
        is_whole = isinstance(self.n_features, numbers.Integral)
        if self.n_features is not None and not (is_whole and 1 <= self.n_features < 1 << 31):
            raise ValueError(f"n_features is {self.n_features!r}, expected 1 to 2147483647.")
        self.of_table()

    def of_table(self) -> CsvOptions:
        """What concerns tables."""
        return CsvOptions(
            self.label, _as_list(self.drop), _as_list(self.text_columns), self.missing,
            self.categories, self.n_hash, self.delimiter, self.header,
        )  # fmt: skip

    def check_they_concern(self, kind: str, name: str) -> None:
        """An option that this format does not have would be passed over without a word."""
        for option in fields(self):
            is_given = getattr(self, option.name) != option.default
            if is_given and option.name != "format" and option.name not in OPTIONS[kind]:
                homes = ", ".join(form for form in FORMATS if option.name in OPTIONS[form])
                raise ValueError(
                    f"{name} is read as {kind}, which has no option {option.name!r}, one "
                    f"of {homes}: leave it out, or state format=."
                )


def _as_list(columns: Any) -> Sequence[str | int]:
    """A single column may stand without brackets."""
    return (columns,) if isinstance(columns, str | int) else columns


def read_options(given: Mapping[str, Any]) -> ReadOptions:
    """The options, of which none is misspelt."""
    known = [option.name for option in fields(ReadOptions)]
    for name in given:
        if name not in known:
            raise TypeError(f"There is no option {name!r}: expected one of {', '.join(known)}.")
    return ReadOptions(**given)


# ---- sources -----------------------------------------------------------------------------


def is_path(source: Any) -> bool:
    """Whether a source is named, and not handed in open or as "-"."""
    return isinstance(source, str | os.PathLike) and source != "-"


def files_of(source: Any, options: ReadOptions) -> list[Path]:
    """The files on which the rows of a source depend: itself, and files of labels beside it."""
    if options.labels is not None:
        labels = options.labels if is_path(options.labels) else None
        return [Path(file) for file in (source, labels) if file is not None]
    beside = arrays.labels_path_of(source), idx_images.labels_path_of(source)
    return [Path(source), *(path for path in beside if path is not None)]


def format_by_name(path: Any) -> str | None:
    """The format that the name of a file states, compressed or not."""
    name = Path(path)
    suffix = Path(name.stem).suffix if name.suffix.lower() in COMPRESSED else name.suffix
    return BY_SUFFIX.get(suffix.lower())


def format_of(name: str, head: bytes) -> str:
    """The format of a source that begins with `head` once it is decompressed."""
    for magic, kind in BY_MAGIC.items():
        if head.startswith(magic):
            return kind
    named = format_by_name(name)
    if named is not None:
        return named
    if head[:2] == b"\0\0" and len(head) > 3 and head[2] in idx_images.DTYPES:
        return "idx"
    if b"\0" in head and not head.startswith(UTF16_MARKS):
        raise DataError(
            f"found bytes that are no text, expected a format among {', '.join(FORMATS)}: "
            "state format= if it is one, and turn UTF-16 to UTF-8",
            name,
        )
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith(b"#")]
    if any(LIBSVM_LINE.fullmatch(line.split(b"#")[0]) for line in lines[:-1] or lines):
        return "libsvm"
    is_table = any(delimiter in line for line in lines for delimiter in (b",", b";", b"\t"))
    return "csv" if is_table else "libsvm"


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
def _opened(source: Any, options: ReadOptions) -> Iterator[tuple[str, BinaryIO]]:
    """The format of a source, and its bytes."""
    name = name_of(source)
    bytes_of: Any = _StandardInput() if _is_piped_in(source) else source
    with open_bytes(bytes_of) as file:
        kind, rows, is_plain = options.format, file, isinstance(file.raw, io.FileIO)  # type: ignore[attr-defined]
        if kind is None:
            if not is_plain:
                rows = io.BufferedReader(_Filled(file), LOOKED_AT)
            kind = format_of(name, rows.peek(LOOKED_AT)[:LOOKED_AT])  # type: ignore[attr-defined]
            if kind == "libsvm" and options.delimiter is not None:
                kind = "csv"
        if kind in NEEDS_A_FILE and not is_plain:
            raise DataError(f"{kind} is not read from a pipe or an archive: unpack it first", name)
        options.check_they_concern(kind, name)
        yield kind, rows


def plain_format_of(path: Any, options: ReadOptions) -> str | None:
    """The format of a file that is not compressed; None of one that is."""
    with _opened(path, options) as (kind, file):
        is_plain = isinstance(file.raw, io.FileIO)  # type: ignore[attr-defined]
        return kind if is_plain else None


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
    with _opened(source, options) as (kind, file):
        options = replace(options, **settled) if kind == "libsvm" else options
        yield from _chunks_in(kind, file, source, chunk_rows, options, bad, layout)


def all_of(source: Any, options: ReadOptions, bad: BadRows, layout: Layout) -> list[Chunk]:
    """The rows of one source, in one chunk where no table grows with them."""
    with _opened(source, options) as (kind, file):
        n_rows = ROWS_AT_ONCE if layout.grows and kind != "libsvm" else ALL_ROWS
        return list(_chunks_in(kind, file, source, n_rows, options, bad, layout))


def _chunks_in(
    kind: str, file: BinaryIO, source: Any, chunk_rows: int, options: ReadOptions, bad: BadRows,
    layout: Layout,
) -> Iterator[Chunk]:  # fmt: skip
    name, table = name_of(source), options.of_table()
    if kind == "libsvm":
        return _text_chunks(file, name, chunk_rows, options, bad)
    if kind == "csv":
        return csv_text.chunks(file, name, chunk_rows, table, bad, layout)
    if kind == "arrow":
        return parquet.arrow_chunks(name, chunk_rows, table, bad, layout, file)
    if kind == "parquet":
        return parquet.chunks(name, chunk_rows, table, bad, layout)
    if kind == "idx":
        return _image_chunks(file, source, chunk_rows, options, bad)
    return arrays.chunks(name, chunk_rows, bad, options.labels, options.part)


def settled_by(source: Any, chunk_rows: int, options: ReadOptions) -> dict[str, Any]:
    """Options that the first of several files of LIBSVM text settles for all of them.

    Those are where indices start and whether labels are text. Counted from 0, rows are as wide as
    the reader found them only if it counted from 0.
    """
    try:
        as_found = _first_text(source, chunk_rows, options, options.base)
        from_0 = _first_text(source, chunk_rows, options, 0)
    except DataError:  # which the pass will meet, too
        return {}
    if as_found is None or from_0 is None:
        return {}
    base = int(as_found.X.shape[1] != from_0.X.shape[1]) if options.base is None else options.base
    return {"base": base, "text_labels": as_found.y.dtype.kind == "U"}


def _first_text(
    source: Any, chunk_rows: int, options: ReadOptions, base: int | None
) -> Chunk | None:
    """The first rows of LIBSVM text; None where there are none, or it is another format."""
    with _opened(source, options) as (kind, file):
        if kind != "libsvm":
            return None
        stated = replace(options, base=base, n_features=None)
        chunks = _text_chunks(file, name_of(source), chunk_rows, stated, BadRows(skips=True))
        return next(chunks, None)


def _text_chunks(
    file: BinaryIO, name: str, chunk_rows: int, options: ReadOptions, bad: BadRows
) -> Iterator[Chunk]:
    chunks = libsvm_text.chunks(
        file, name, chunk_rows, n_features=options.n_features, base=options.base,
        text_labels=options.text_labels, bad=bad,
    )  # fmt: skip
    return _with_columns(chunks, name)


def _with_columns(chunks: Any, name: str) -> Iterator[Chunk]:
    """Rows without any entry wait until it is known how wide they are."""
    waiting: list[Chunk] = []
    for chunk in chunks:
        width = chunk.X.shape[1]
        if width == 0:
            waiting.append(chunk)
            continue
        for rows in waiting:
            yield Chunk(widened(rows.X, width), rows.y)
        waiting = []
        yield chunk
    if waiting:
        raise DataError(
            "found nothing but labels, expected `index:value` after them; where no row has an "
            "entry, state n_features",
            name,
        )


def _image_chunks(
    file: BinaryIO, source: Any, chunk_rows: int, options: ReadOptions, bad: BadRows
) -> Iterator[Chunk]:
    name = name_of(source)
    beside = idx_images.labels_path_of(source) if is_path(source) else None
    labels = options.labels or beside
    if labels is None:
        yield from idx_images.chunks(file, name, chunk_rows, bad=bad)
        return
    with open_bytes(labels) as labels_file:
        yield from idx_images.chunks(file, name, chunk_rows, labels_file, name_of(labels), bad)
