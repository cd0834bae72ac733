"""Real data sets by name, from the folder $POLYPLANE_DATA, the user's cache or their public homes.

A set lies in a folder of its own name. Files are checked before they are used: by their SHA-256
where it is known, otherwise their rows, features and classes are compared with the registry.
`infinite_digits` stands here, too: digits that need no file.
"""

import contextlib
import difflib
import hashlib
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pooch
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from polyplane.data.chunk_sizes import joined
from polyplane.data.chunks import Array, BadRows, Chunk, DataError
from polyplane.data.decompress import open_bytes
from polyplane.data.formats.libsvm import reader as libsvm_text
from polyplane.data.formats.numpy import idx as idx_images
from polyplane.data.sets.registry import DataFile, DataSet, registered

__all__ = ["DataSet", "describe", "load", "names"]

Paths = dict[str, Path]  # of a set's parts
PIECE = 1 << 16  # bytes of a download at a time
PATIENCE = 30  # seconds without an answer
REASONS = {
    "ChunkedEncodingError": "the connection broke off",
    "ConnectionError": "no connection to the server",
}


def __getattr__(name: str) -> Any:
    if name == "infinite_digits":  # loaded late, because its source digits are scikit-learn's
        return importlib.import_module("polyplane.data.sets.infinite_digits").infinite_digits
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def names() -> list[str]:
    """The names of all data sets, sorted."""
    return sorted(registered())


def describe(name: str) -> DataSet:
    """All facts about a data set."""
    if name in registered():
        return registered()[name]
    close = difflib.get_close_matches(str(name).lower(), names(), cutoff=0.5)
    guess = f"did you mean {_or(close)}? " if close else ""
    problem = f"there is no data set {name!r}: {guess}`datasets.names()` lists all {len(names())}"
    raise DataError(problem)


def load(name: str) -> tuple[Any, Array, Any, Array | None]:
    """X_train, y_train, X_test, y_test; the last two are None where there is no test part.

    X is a CSR matrix of float32, or an array of bytes where the set is images; y is int64, the
    labels as they stand in the files. What is not on this computer is downloaded first.
    """
    data_set = describe(name)
    paths = _stored(data_set)
    fetched = _fetched(data_set, [part for part, path in paths.items() if path is None])
    at_hand = {part: path for part, path in paths.items() if path is not None} | fetched
    try:
        parts = {part: _read(data_set, part, at_hand) for part in _row_parts(data_set)}
        if not all(_known_sums(data_set, path.name) for path in at_hand.values()):
            _check_facts(data_set, parts, at_hand)
    except DataError as error:
        if not fetched:
            raise
        for path in fetched.values():
            path.unlink()
        problem = f"{error.problem}; what was fetched is removed, see {data_set.home}"
        raise DataError(problem, error.path, error.line, error.column) from None
    return *parts["train"], *parts.get("test", (None, None))


# ---- files that are here -----------------------------------------------------------------


def _row_parts(data_set: DataSet) -> list[str]:
    return ["train"] if data_set.rows_test is None else ["train", "test"]


def _folders(data_set: DataSet) -> list[Path]:
    """Where the set's files may lie, the place to look first at the beginning."""
    roots = [os.environ.get("POLYPLANE_DATA"), pooch.os_cache("polyplane")]
    return [Path(root) / data_set.name for root in roots if root]


def _stored(data_set: DataSet) -> dict[str, Path | None]:
    """The checked file of every part, None where it has none."""
    paths: dict[str, Path | None] = dict.fromkeys(file.part for file in data_set.files)
    for part in paths:
        names_of_part = dict.fromkeys(file.name for file in data_set.files if file.part == part)
        places = [folder / name for folder in _folders(data_set) for name in names_of_part]
        paths[part] = next((place for place in places if place.is_file()), None)
    for path in paths.values():
        if path is not None:
            _check_sum(path, _known_sums(data_set, path.name))
    return paths


def _known_sums(data_set: DataSet, file_name: str) -> list[str]:
    """The checksums that a file of this name may have; none where they are not known."""
    return [file.sha256 for file in data_set.files if file.name == file_name and file.sha256]


def _check_sum(path: Path, known: list[str], origin: Any = None) -> None:
    if not known:
        return
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", path) from None
    if found not in known:
        fix = "it was not kept" if origin else "remove it, or copy it again"
        problem = f"is damaged or another file: found SHA-256 {found}, expected "
        raise DataError(f"{problem}{_or(known)}; {fix}", origin or path)


# ---- files that are elsewhere ------------------------------------------------------------


class _Bar:
    """A bar as pooch drives it, drawn by rich."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=None, visible=False)
        self._total, self._done = 0, 0

    @property
    def total(self) -> int:
        return self._total

    @total.setter
    def total(self, total: int) -> None:
        self._total = total
        self._progress.update(self._task, total=total or None, visible=True)

    def update(self, n_bytes: int) -> None:
        self._done += n_bytes  # pooch counts the last piece as a whole one
        self._progress.update(self._task, completed=min(self._done, self._total or self._done))

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        self._progress.refresh()


@contextlib.contextmanager
def _bar(title: str) -> Iterator[_Bar]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield _Bar(progress, title)


@contextlib.contextmanager
def _without_words_of_pooch() -> Iterator[None]:
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")
    try:
        yield
    finally:
        logger.setLevel(level)


def _fetched(data_set: DataSet, parts: list[str]) -> Paths:
    """Download these parts into the user's cache; return where they are."""
    public = {file.part: file for file in data_set.files if file.url}
    if not all(part in public for part in parts):
        raise DataError(_why_absent(data_set, parts), data_set.name)
    folder = _folders(data_set)[-1]
    done: Paths = {}
    for part in parts:
        try:
            done[part] = _download(public[part], folder)
        except OSError as error:  # what requests raises is one, too
            problem = _what_to_fetch(data_set, [public[part] for part in parts], error)
            raise DataError(problem, data_set.name) from error
    return done


def _download(file: DataFile, folder: Path) -> Path:
    """Fetch a file; it gets its name only when it is complete and its checksum right."""

    def fetch(url: str, target: str, _: Any) -> None:
        with _bar(file.name) as bar:
            get = pooch.HTTPDownloader(
                bar, PIECE, timeout=PATIENCE, headers={"Accept-Encoding": "identity"}
            )
            get(url, target, None)
        _check_sum(Path(target), [file.sha256] if file.sha256 else [], origin=url)

    try:
        with _without_words_of_pooch():
            return Path(pooch.retrieve(file.url, None, file.name, folder, downloader=fetch))
    except BaseException:
        with contextlib.suppress(OSError):
            folder.rmdir()  # made for this file, unless others are in it
        raise


def _why_absent(data_set: DataSet, parts: list[str]) -> str:
    files = [next(file.name for file in data_set.files if file.part == part) for part in parts]
    return (
        f"{' and '.join(files)} not found and not to be downloaded, because "
        f"{data_set.why_no_download}: put a copy into {_or(_folders(data_set))}; the set's home "
        f"is {data_set.home}"
    )


def _what_to_fetch(data_set: DataSet, files: list[DataFile], error: OSError) -> str:
    response = getattr(error, "response", None)
    kind = type(error).__name__
    reason = error.strerror or REASONS.get(kind, kind)
    if response is not None:
        reason = f"the server says {response.status_code} {response.reason}"
    return (
        f"the download failed ({reason}): fetch {' and '.join(str(file.url) for file in files)} "
        f"by other means and put {'it' if len(files) == 1 else 'them'}, not renamed, into "
        f"{_or(_folders(data_set))}"
    )


def _or(things: list[Any]) -> str:
    return " or ".join(str(thing) for thing in things)


# ---- rows --------------------------------------------------------------------------------


def _read(data_set: DataSet, part: str, paths: Paths) -> Chunk:
    path = paths[part]
    with open_bytes(path) as file:
        if data_set.format == "libsvm":
            return libsvm_text.read(
                file, str(path), n_features=data_set.n_features, text_labels=False, bad=BadRows()
            )
        labels_path = paths[f"{part} labels"]
        with open_bytes(labels_path) as labels:
            chunks = idx_images.chunks(
                file, str(path), data_set.rows_train, labels, str(labels_path)
            )
            return joined(list(chunks))


def _check_facts(data_set: DataSet, parts: dict[str, Chunk], paths: Paths) -> None:
    """Compare rows, classes and features with the registry; nothing else vouches for the files."""
    for part, n_rows in (("train", data_set.rows_train), ("test", data_set.rows_test)):
        if n_rows is not None:
            _check_fact(data_set, paths[part], "rows", parts[part].X.shape[0], n_rows)
    labels = np.unique(np.concatenate([rows.y for rows in parts.values()]))
    _check_fact(data_set, paths["train"], "classes", labels.size, data_set.n_classes)
    n_features = max(_features_used(rows.X) for rows in parts.values())
    _check_fact(data_set, paths["train"], "features", n_features, data_set.n_features)


def _features_used(X: Any) -> int:
    if isinstance(X, np.ndarray):
        return int(X.shape[1])
    return int(X.indices.max(initial=-1)) + 1


def _check_fact(data_set: DataSet, path: Path, what: str, found: int, expected: int) -> None:
    if found != expected:
        problem = (
            f"found {found:,} {what}, expected the {expected:,} of {data_set.name}, by which files "
            "are checked whose checksum is not known: it is damaged or of another set, replace it"
        )
        raise DataError(problem, path)
