"""Compilation of loops and their words by Numba, without work that nobody needs.

Words   An inlined word becomes part of each loop that calls it, and is optimised there. Numba
        makes machine code of the word itself as well, fully optimised, which is never run. Here a
        word is only tidied up, function by function, and waits for its callers.
Loops   Compilation makes many objects and drops few: searches for garbage would take a sixth of
        its time.

Both lean on inner parts of Numba. Where a version lacks them, words are compiled as Numba does it.
"""

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult

from polyplane.quick_imports import no_collection

__all__ = ["LoopCompiler", "options_of_words"]

NOWHERE = 0  # where the machine code lies that Python would call
NEEDED = {
    JITCodeLibrary: ("_optimize_final_module", "_finalize_final_module"),
    CompileResult: ("_find_referenced_environments",),
}
IS_KNOWN = all(hasattr(kind, part) for kind, parts in NEEDED.items() for part in parts)


class LoopCompiler(Compiler):  # type: ignore[misc]
    """Compiles what Python calls."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a loop, and the words that are met along the way."""
        with no_collection():
            compiled = super().compile_extra(func)
        if not IS_KNOWN:
            return compiled
        # Each function has an environment, where Numba looks for Python objects, errors among
        # them. Of words it is found in their callers' code, as after loading them from disk.
        for environment in compiled._find_referenced_environments():
            compiled.codegen.set_env(environment.env_name, environment)
        return compiled


class WordCompiler(Compiler):  # type: ignore[misc]
    """Compiles what only compiled code calls, and all of it inlines."""

    def compile_extra(self, func: Any) -> Any:
        """Up to what a caller takes over."""
        context = self.state.targetctx
        self.state.library = _WordLibrary(context.codegen(), func.__qualname__)
        self.state.targetctx = context.subtarget(get_executable=_not_executable)
        return super().compile_extra(func)


class _WordLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code to be linked with its callers' before it is optimised and becomes machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


def _not_executable(library: Any, fndesc: Any, env: Any) -> Any:
    """The function that stands for a word, as Numba makes it of one without wrappers."""
    library.finalize()
    name = fndesc.qualname.split(".")[-1]
    return _dynfunc.make_function(fndesc.lookup_module(), name, "", NOWHERE, env, (library,))


def options_of_words(is_known: bool = IS_KNOWN) -> dict[str, Any]:
    """Options with which Numba compiles words, as far as this version goes."""
    lean = {"pipeline_class": WordCompiler} if is_known else {}
    return {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True} | lean
