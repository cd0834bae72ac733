"""Where compiled code is kept between processes, and who is trusted with it.

Numba's own cache notices an edit only in the file of the function itself, so ours lives in a
folder named by a hash of every source file that holds compiled code: what a compiled function
takes from elsewhere must stand in such a file too, and a test looks.
What lies in the folder is executed. So it must be ours, nobody else may write to it, and it is
never looked for relative to the current folder. A file that is cut or damaged, a full disk, a user
without a home: code is then compiled as if there were no cache, and one remark says so.
"""

import contextlib
import hashlib
import logging
import os
import pickle
import shutil
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime import rtsys

__all__ = ["CodeCache", "cache_root", "make_cache_folder", "source_hash"]

PACKAGE = Path(__file__).parent.parent
MARKS_OF_COMPILED_CODE = (
    b"polyplane.engine.jit",
    b"polyplane.engine.tiles",
    b"from numba",
    b"# read by compiled code",
)
DAYS_KEPT = 30  # folders of other versions of the sources are removed after that
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
DIGEST = hashlib.sha256
DIGEST_SIZE = DIGEST().digest_size
log = logging.getLogger("polyplane")


# ---- the folder --------------------------------------------------------------------------


def cache_root() -> Path | None:
    """NUMBA_CACHE_DIR where it is set, else this user's cache folder; None where there is none.

    Relative paths are passed over, as the XDG rules ask: the current folder may be anybody's.
    """
    folder = "" if sys.platform == "win32" else "~/.cache"
    named = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if numba.config.CACHE_DIR:
        root = Path(numba.config.CACHE_DIR)
    elif os.path.isabs(named):
        root = Path(named) / "polyplane"
    else:
        root = Path(os.path.expanduser(folder or "~/AppData/Local")) / "polyplane"
    return root if root.is_absolute() else None


def source_hash() -> str:
    """Name of the present state of all sources that hold compiled code."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_bytes()
        if any(line in text for line in MARKS_OF_COMPILED_CODE):
            digest.update(path.relative_to(PACKAGE).as_posix().encode())
            digest.update(text)
    return digest.hexdigest()[:16]


def make_cache_folder() -> Path | None:
    """The folder for the present sources; those of long gone sources are removed.

    None where nothing can be kept, or others could change it: every process then compiles for
    itself.
    """
    root = cache_root()
    if root is None:
        return None
    folder = root / f"compiled-{source_hash()}"
    try:
        if not folder.exists():
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            _remove_expired(root)
        if not is_ours_alone(folder):
            log.warning(
                "polyplane does not use %s, which others own or can write to: each process "
                "compiles its loops anew. Make it yours alone: chmod go-w",
                folder,
            )
            return None
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


def is_ours_alone(folder: Path) -> bool:
    """Return True if only this user and root can change or exchange a folder."""
    if not hasattr(os, "geteuid"):  # Windows: a user's folders are the user's alone
        return True
    us, root = os.geteuid(), 0
    own, above = folder.lstat(), folder.parent.stat()
    is_safe_above = above.st_mode & stat.S_ISVTX or not above.st_mode & OTHERS_WRITE
    return (
        stat.S_ISDIR(own.st_mode)
        and own.st_uid == us
        and not own.st_mode & OTHERS_WRITE
        and above.st_uid in (us, root)
        and bool(is_safe_above)
    )


def _remove_expired(root: Path) -> None:
    expired = time.time() - DAYS_KEPT * 86_400
    for other in root.glob("compiled-*"):
        if other.stat().st_mtime < expired:
            shutil.rmtree(other, ignore_errors=True)


# ---- what lies in it ---------------------------------------------------------------------


class CodeCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, which never stops a program and never runs damaged code."""

    has_told = False

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        locator = self._impl.locator
        self._cache_file = _CheckedFiles(
            self._cache_path, self._impl.filename_base, locator.get_source_stamp()
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code kept for these types, or None.

        Numba would first get ready to compile, a fifth of a second; to run what is compiled takes
        only its runtime. What is not found here is compiled, and Numba gets ready then.
        """
        try:
            rtsys.initialize(target_context)
            return self._load_overload(sig, target_context)
        except Exception as problem:  # damaged pickles raise anything
            self._tell("cannot be read", problem)
            with contextlib.suppress(OSError):
                self.flush()  # what was damaged is written anew
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for these types, if that is possible."""
        try:
            super().save_overload(sig, data)
        except Exception as problem:
            self._tell("cannot be written", problem)

    def _tell(self, what: str, problem: Exception) -> None:
        if not CodeCache.has_told:
            CodeCache.has_told = True
            log.warning(
                "polyplane's cache of compiled code %s %s (%s): it compiles without; nothing else "
                "is wrong, and removing that folder makes a new one",
                self.cache_path,
                what,
                problem or type(problem).__name__,
            )


class _CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """Index and code of one function; each file starts with a digest of the rest.

    Numba numbers the files of code by what the index holds: two processes that compile at the same
    time would take the same number for different types, and the next one would run the code of
    one on the arrays of the other. Here a file is named by its types, so that no other can be it.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keep code for these types; of two processes that do so, the index may forget one."""
        overloads = self._load_index()
        if key not in overloads:
            named = self._dump((self._version, self._source_stamp, key))
            number = int.from_bytes(DIGEST(named).digest()[:8], "big")
            overloads[key] = self._data_name(number)
            self._save_index(overloads)
        self._save_data(overloads[key], data)

    def _load_index(self) -> Any:
        try:
            content = _checked(Path(self._index_path).read_bytes())
        except FileNotFoundError:
            return {}
        version, stamp, overloads = pickle.loads(content)
        is_fresh = version == self._version and stamp == self._source_stamp
        return overloads if is_fresh else {}

    def _save_index(self, overloads: Any) -> None:
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return pickle.loads(_checked(Path(self._data_path(name)).read_bytes()))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _write(self, path: str, value: Any) -> None:
        content = self._dump(value)
        with self._open_for_write(path) as file:
            file.write(DIGEST(content).digest() + content)


def _checked(content: bytes) -> bytes:
    """Return the content of a cache file; refuse a file that was cut or changed."""
    digest, rest = content[:DIGEST_SIZE], content[DIGEST_SIZE:]
    if DIGEST(rest).digest() != digest:
        raise ValueError("a file in it is damaged")
    return rest
