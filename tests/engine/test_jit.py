"""The decorators of compiled code."""

import logging
import os
from types import SimpleNamespace

import numba
import numpy as np
import pytest

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
