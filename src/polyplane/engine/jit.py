"""The one decorator of compiled code, and where its machine code is kept.

`jit` makes a function that Python calls: it releases the GIL and its machine code is cached on
disk. `inlined` makes a word used inside such functions: it becomes part of its caller.
`chosen_by_type` gives a word several bodies.
Numba's own cache notices an edit only in the file of the function itself, so ours lives in a
folder named by a hash of every source file that holds compiled code: what a compiled function
takes from elsewhere must stand in such a file too, and a test looks.
"""

import contextlib
import hashlib
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import njit, types
from numba.core import event
from numba.extending import overload

__all__ = ["chosen_by_type", "inlined", "jit", "jit_is_disabled"]

Function = TypeVar("Function", bound=Callable[..., Any])
PACKAGE = Path(__file__).parent.parent
MARKS_OF_COMPILED_CODE = (
    b"polyplane.engine.jit",
    b"polyplane.engine.tiles",
    b"from numba",
    b"# read by compiled code",
)
DAYS_KEPT = 30  # folders of other versions of the sources are removed after that
log = logging.getLogger("polyplane")


def jit_is_disabled() -> bool:
    """True under NUMBA_DISABLE_JIT=1: every function here is then plain Python."""
    return bool(numba.config.DISABLE_JIT)


def cache_root() -> Path:
    """NUMBA_CACHE_DIR where it is set, else this user's cache folder."""
    if numba.config.CACHE_DIR:
        return Path(numba.config.CACHE_DIR)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "polyplane"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "polyplane"


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

    None where nothing can be written: then every process compiles for itself.
    """
    folder = cache_root() / f"compiled-{source_hash()}"
    try:
        if not folder.exists():
            folder.mkdir(parents=True)
            expired = time.time() - DAYS_KEPT * 86_400
            for other in folder.parent.glob("compiled-*"):
                if other.stat().st_mtime < expired:
                    shutil.rmtree(other, ignore_errors=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


CACHE_FOLDER = make_cache_folder()


@contextlib.contextmanager
def cache_folder_in_force() -> Iterator[None]:
    """Numba asks for the folder when a function is decorated; other packages keep theirs."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(CACHE_FOLDER or before)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


def jit(function: Function) -> Function:
    """Compile `function` at its first call with new types, or load it from disk."""
    with cache_folder_in_force():
        compiled: Function = njit(cache=CACHE_FOLDER is not None, nogil=True, error_model="numpy")(
            function
        )
    return compiled


def inlined(function: Function) -> Function:
    """Compile `function` into every compiled function that calls it."""
    compiled: Function = njit(
        forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy"
    )(function)
    return compiled


def chosen_by_type(word: Any, bodies: dict[type, Any]) -> None:
    """Let compiled code choose the body of `word` by the tuple type of the first argument.

    Functions passed as arguments are not cached on disk; types are. `word` itself is what runs
    under NUMBA_DISABLE_JIT=1.
    """

    def choose(first: Any, *_: Any) -> Any:
        is_known = isinstance(first, types.BaseNamedTuple)
        return bodies.get(first.instance_class) if is_known else None

    choose.__signature__ = signature(next(iter(bodies.values())))  # type: ignore[attr-defined]
    overload(word, jit_options={"forceinline": True})(choose)


class _FirstCompilation(event.Listener):  # type: ignore[misc]
    """Says once that code is being compiled, since the first fit then takes seconds."""

    def on_start(self, happening: Any) -> None:
        function = getattr(happening.data["dispatcher"], "py_func", None)
        if function is not None and function.__module__.startswith("polyplane."):
            event.unregister("numba:compile", self)
            log.warning("polyplane compiles its loops for this machine: a few seconds, once")

    def on_end(self, happening: Any) -> None:
        pass


event.register("numba:compile", _FirstCompilation())
