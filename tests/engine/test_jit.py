"""The decorators of compiled code."""

import ast
import logging
import os
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import polyplane
from polyplane.engine import jit as module
from polyplane.engine.jit import inlined, jit, jit_is_disabled

pytestmark = pytest.mark.loops


def test_decorating_leaves_the_cache_folder_of_numba_alone():
    before = numba.config.CACHE_DIR
    jit(lambda x: x)
    inlined(lambda x: x)
    assert before == numba.config.CACHE_DIR


@pytest.mark.compiled
def test_a_failure_while_decorating_leaves_the_cache_folder_of_numba_alone(monkeypatch):
    def fails(function):
        raise RuntimeError(numba.config.CACHE_DIR)

    before = numba.config.CACHE_DIR
    monkeypatch.setattr(module, "CodeCache", fails)
    with pytest.raises(RuntimeError, match="compiled-"):
        jit(lambda x: x)
    assert before == numba.config.CACHE_DIR


@pytest.mark.compiled
def test_compiled_functions_release_the_gil_and_follow_numpy_in_division():
    divide = jit(lambda x, y: x / y)
    assert divide.targetoptions["nogil"]
    assert np.isinf(divide(1.0, 0.0))


def test_the_switch_of_numba_is_seen():
    assert jit_is_disabled() == (os.environ.get("NUMBA_DISABLE_JIT", "0") != "0")


@pytest.fixture
def compiles(caplog):
    """A listener of its own, told of loops that are compiled; and what it has said."""
    listener = module._FirstCompilation()

    def tell(name):
        function = SimpleNamespace(__module__=name)
        happening = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})
        with caplog.at_level(logging.WARNING, "polyplane"):
            listener.on_start(happening)
        return caplog.messages

    return tell


def test_compilation_is_said_once_and_only_that_of_polyplane(compiles, monkeypatch):
    monkeypatch.setattr(module, "CACHE_FOLDER", "a folder")
    assert compiles("numba.np.arrayobj") == []
    assert compiles("polyplane.engine.order") == [module.COMPILED_ONCE]
    assert compiles("polyplane.engine.rows.storage") == [module.COMPILED_ONCE]


def test_without_a_folder_each_process_compiles_which_is_said(compiles, monkeypatch):
    monkeypatch.setattr(module, "CACHE_FOLDER", None)
    assert compiles("polyplane.engine.order") == [module.COMPILED_EACH_TIME]


# ---- arrays that live as long as their spans ---------------------------------------------

MAKERS = {"zeros", "empty", "full", "ones", "zeros_like", "empty_like", "full_like"}


def names_of_new_arrays(function):
    """Names that a function gives to arrays that it makes."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            is_tuple = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            pairs = (
                zip(target.elts, node.value.elts, strict=True)
                if is_tuple
                else [(target, node.value)]
            )
            for name, value in pairs:
                made_by = getattr(getattr(value, "func", None), "attr", "")
                if made_by in MAKERS and isinstance(name, ast.Name):
                    yield name.id


def spans_of_own_arrays(source):
    """Functions that are compiled and make a span of an array that they made themselves.

    Numba frees an array after its last use by name, and a span is not a use.
    """
    for function in ast.walk(ast.parse(source)):
        decorators = getattr(function, "decorator_list", [])
        if not {"jit", "inlined"} & {getattr(one, "id", "") for one in decorators}:
            continue
        own = set(names_of_new_arrays(function))
        for call in ast.walk(function):
            is_span = isinstance(call, ast.Call) and getattr(call.func, "id", "") == "span"
            if is_span and getattr(call.args[0], "id", "") in own:
                yield f"{function.name}: {ast.unparse(call)}"


def test_no_loop_makes_a_span_of_an_array_that_it_has_made():
    sources = sorted(Path(polyplane.__file__).parent.rglob("*.py"))
    found = [one for path in sources for one in spans_of_own_arrays(path.read_text())]
    assert found == []


def test_a_span_of_an_array_of_its_own_is_found():
    source = "@jit\ndef f(n):\n    a, b = np.zeros(n), 3\n    s = span(a)\n    return b\n"
    assert list(spans_of_own_arrays(source)) == ["f: span(a)"]
