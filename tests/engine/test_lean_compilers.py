"""Loops and words are compiled without work that nobody needs."""

import gc
from typing import NamedTuple

import numba
import pytest
from numba.core import event

from polyplane.engine import jit as module
from polyplane.engine.jit import chosen_by_type, inlined, jit
from polyplane.engine.lean_compilers import LoopCompiler, WordCompiler, options_of_words

pytestmark = pytest.mark.compiled


class Pair(NamedTuple):
    """Two numbers."""

    left: float
    right: float


def total(pair):
    """The word of a test."""
    return pair.left + pair.right


chosen_by_type(total, {Pair: total})


@inlined
def doubled(x):
    """A word that a word calls."""
    return 2 * x


@inlined
def quadrupled(x):
    """A word that a loop calls."""
    return doubled(doubled(x))


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    """What these tests compile is compiled each time."""
    monkeypatch.setattr(module, "CACHE_FOLDER", None)


def has_machine_code(compiled):
    """Whether Numba has made some of a function, for any types."""
    results = compiled.overloads.values()
    assert results
    return any(one.codegen._engine.is_symbol_defined(one.fndesc.mangled_name) for one in results)


def test_words_are_part_of_their_loop_and_have_no_machine_code():
    loop = jit(lambda x: quadrupled(x) + 1)
    assert loop(5) == 21
    assert has_machine_code(loop)
    assert not has_machine_code(quadrupled)
    assert not has_machine_code(doubled)
    (result,) = loop.overloads.values()
    names = [function.name for function in result.library.get_defined_functions()]
    assert not [name for name in names if "doubled" in name or "quadrupled" in name]


def test_a_word_in_several_loops_and_for_several_types():
    for more in (1, 2):
        loop = jit(lambda x, more=more: quadrupled(x) + more)
        assert loop(5) == 20 + more
        assert loop(0.25) == 1.0 + more


def test_a_body_chosen_by_type_is_part_of_its_loop():
    loop = jit(lambda pair: total(pair))
    assert loop(Pair(1.0, 2.0)) == 3.0


def test_errors_of_words_keep_what_they_tell():
    """Numba builds such an error from Python objects, which it finds by the word's environment."""

    @inlined
    def refuses(x):
        if x > 2:
            raise ValueError("refused", x)
        return x

    loop = jit(lambda x: refuses(x) + 1)
    assert loop(1) == 2
    with pytest.raises(ValueError, match=r"'refused', 3"):
        loop(3)


def test_other_versions_of_numba_compile_words_their_own_way():
    assert options_of_words()["pipeline_class"] is WordCompiler
    assert "pipeline_class" not in options_of_words(is_known=False)
    usual = numba.njit(**options_of_words(is_known=False))(lambda x: x + 1)
    assert jit(lambda x: usual(x))(3) == 4


def test_garbage_is_left_alone_while_a_loop_is_compiled_and_no_longer():
    seen = []

    class Looks(event.Listener):
        """At each pass of the compiler."""

        def on_start(self, happening):
            seen.append(gc.isenabled())

        def on_end(self, happening):
            pass

    with event.install_listener("numba:run_pass", Looks()):
        assert gc.isenabled()
        jit(lambda x: x + 1)(1)
    assert seen
    assert not any(seen)
    assert gc.isenabled()


def test_garbage_is_looked_for_again_after_a_compilation_that_fails():
    with pytest.raises(numba.TypingError):
        jit(lambda x: x.absent)(1)
    assert gc.isenabled()


def test_loops_use_the_compiler_without_collection():
    assert jit(lambda x: x)._compiler.pipeline_class is LoopCompiler
