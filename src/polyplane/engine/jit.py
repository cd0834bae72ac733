"""The one decorator of compiled code.

`jit` makes a function that Python calls: it releases the GIL and its machine code is cached on
disk. `inlined` makes a word used inside such functions: it becomes part of its caller.
`chosen_by_type` gives a word several bodies.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any, TypeVar

import numba
from numba import njit, types
from numba.core import event
from numba.extending import overload

from polyplane.engine.code_cache import CodeCache, make_cache_folder
from polyplane.engine.lean_compilers import LoopCompiler, options_of_words

__all__ = ["chosen_by_type", "inlined", "jit", "jit_is_disabled"]

Function = TypeVar("Function", bound=Callable[..., Any])
log = logging.getLogger("polyplane")
COMPILED_ONCE = (
    "polyplane compiles its loops for this machine, once: 2 to 10 seconds, more on slow machines"
)
COMPILED_EACH_TIME = (
    "polyplane compiles its loops in each process, 2 to 10 seconds or more: there is no folder to "
    "keep them in. Name one that is yours alone by NUMBA_CACHE_DIR"
)


def jit_is_disabled() -> bool:
    """True under NUMBA_DISABLE_JIT=1: every function here is then plain Python."""
    return bool(numba.config.DISABLE_JIT)


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
    compiled: Any = njit(nogil=True, error_model="numpy", pipeline_class=LoopCompiler)(function)
    if CACHE_FOLDER is not None and not jit_is_disabled():
        with cache_folder_in_force():
            compiled._cache = CodeCache(function)  # as cache=True does, with Numba's own
    return compiled  # type: ignore[no-any-return]


def inlined(function: Function) -> Function:
    """Compile `function` into every compiled function that calls it."""
    compiled: Function = njit(error_model="numpy", **options_of_words())(function)
    return compiled


def chosen_by_type(word: Any, bodies: dict[type, Any], otherwise: Any = None) -> None:
    """Let compiled code choose the body of `word` by the tuple type of the first argument.

    `otherwise` is the body for all other tuples, if there is one.

    Functions passed as arguments are not cached on disk; types are. `word` itself is what runs
    under NUMBA_DISABLE_JIT=1.
    """

    def choose(first: Any, *_: Any) -> Any:
        is_known = isinstance(first, types.BaseNamedTuple)
        return bodies.get(first.instance_class, otherwise) if is_known else None

    choose.__signature__ = signature(next(iter(bodies.values())))  # type: ignore[attr-defined]
    overload(word, jit_options=options_of_words())(choose)


class _FirstCompilation(event.Listener):  # type: ignore[misc]
    """Says once in a process that code is being compiled, since the first fit then takes seconds.

    Words that are compiled along the way, and other threads, find that it has been said.
    """

    def __init__(self) -> None:
        self.has_told = False

    def on_start(self, happening: Any) -> None:
        function = getattr(happening.data["dispatcher"], "py_func", None)
        is_ours = function is not None and function.__module__.startswith("polyplane.")
        if is_ours and not self.has_told:
            self.has_told = True
            log.warning(COMPILED_ONCE if CACHE_FOLDER is not None else COMPILED_EACH_TIME)

    def on_end(self, happening: Any) -> None:
        pass


event.register("numba:compile", _FirstCompilation())
