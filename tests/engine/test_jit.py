"""Compiled code: kept on disk for the next process, and never for other sources."""

import ast
import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest

import polyplane
from polyplane.engine import jit as module
from polyplane.engine.jit import inlined, jit, jit_is_disabled, make_cache_folder, source_hash

COMPILES = "polyplane compiles its loops for this machine"
SHUFFLE = """
import numpy as np
from polyplane.engine.order import in_place, shuffle
shuffle(in_place(9), np.random.default_rng(0))
shuffle(np.arange(9), np.random.default_rng(0))
"""


def run_with_cache(folder, code):
    """Run `code` in a process of its own that keeps compiled code in `folder`."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "NUMBA_DISABLE_JIT": "0"}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A copy of the sources that a test may edit."""
    copy = tmp_path / "polyplane"
    shutil.copytree(module.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(module, "PACKAGE", copy)
    return copy


@pytest.fixture
def cache_root(tmp_path, monkeypatch):
    """An empty folder for compiled code."""
    root = tmp_path / "cache"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(root))
    return root


@pytest.mark.compiled
def test_a_second_process_does_not_compile_again(tmp_path):
    first, second = run_with_cache(tmp_path, SHUFFLE), run_with_cache(tmp_path, SHUFFLE)
    assert first.stderr.count(COMPILES) == 1
    assert COMPILES not in second.stderr


@pytest.mark.compiled
def test_compiled_code_lies_in_the_folder_of_its_sources(tmp_path):
    run_with_cache(tmp_path, SHUFFLE)
    assert list((tmp_path / f"compiled-{source_hash()}").rglob("*.nbc"))


def test_importing_compiles_nothing_and_says_nothing(tmp_path):
    code = "import polyplane; polyplane.AMMClassifier, polyplane.MMClassifier"
    assert run_with_cache(tmp_path, code).stderr == ""
    assert not list(tmp_path.rglob("*.nbc"))


def test_other_packages_keep_their_cache_folder(tmp_path):
    code = SHUFFLE + "import numba; print(numba.config.CACHE_DIR)"
    assert run_with_cache(tmp_path, code).stdout.strip() == str(tmp_path)


def test_decorating_leaves_the_cache_folder_of_numba_alone():
    before = numba.config.CACHE_DIR
    jit(lambda x: x)
    inlined(lambda x: x)
    assert before == numba.config.CACHE_DIR


def test_a_failure_while_decorating_leaves_the_cache_folder_of_numba_alone(monkeypatch):
    def fails(**options):
        raise RuntimeError(numba.config.CACHE_DIR)

    before = numba.config.CACHE_DIR
    monkeypatch.setattr(module, "njit", fails)
    with pytest.raises(RuntimeError, match="compiled-"):
        jit(lambda x: x)
    assert before == numba.config.CACHE_DIR


def test_an_edit_changes_the_hash_where_code_is_compiled_and_only_there(sources):
    hashes, compiled = {source_hash()}, []
    for path in sorted(sources.rglob("*.py")):
        path.write_bytes(path.read_bytes() + b"\n")
        if source_hash() not in hashes:
            compiled.append(path.relative_to(sources).as_posix())
            hashes.add(source_hash())
    assert {"engine/rows.py", "engine/jit.py", "kernel/lasvm.py"} <= set(compiled)
    assert "estimator/progress.py" not in compiled
    assert not [name for name in compiled if name.startswith(("cli/", "report/"))]


def compiled_functions():
    """Every function that Numba may compile, in all modules of the package."""
    for found in pkgutil.walk_packages(polyplane.__path__, "polyplane."):
        if found.name != "polyplane.__main__":
            loaded = importlib.import_module(found.name)
            for value in vars(loaded).values():
                function = getattr(value, "py_func", None)
                if function is not None and function.__module__ == found.name:
                    yield function


def names_imported(path):
    """Which module of the package each imported name of a source file comes from."""
    return {
        alias.asname or alias.name: statement.module
        for statement in ast.walk(ast.parse(path.read_text()))
        if isinstance(statement, ast.ImportFrom)
        and (statement.module or "").startswith("polyplane")
        for alias in statement.names
    }


@pytest.mark.compiled
def test_what_compiled_code_takes_from_elsewhere_is_part_of_the_hash():
    seen = 0
    for function in compiled_functions():
        imported = names_imported(Path(function.__code__.co_filename))
        for name in set(function.__code__.co_names) & set(imported):
            text = Path(sys.modules[imported[name]].__file__).read_bytes()
            seen += 1
            assert any(line in text for line in module.MARKS_OF_COMPILED_CODE), (function, name)
    assert seen > 100


def test_a_new_or_renamed_file_of_compiled_code_changes_the_hash(sources):
    before = source_hash()
    (sources / "engine" / "new.py").write_text("from polyplane.engine.jit import jit")
    with_new = source_hash()
    (sources / "engine" / "new.py").rename(sources / "engine" / "newer.py")
    assert len({before, with_new, source_hash()}) == 3


def test_what_is_no_source_does_not_change_the_hash(sources):
    before = source_hash()
    (sources / "notes.txt").touch()
    assert source_hash() == before


def test_folders_of_long_gone_sources_are_removed(cache_root):
    stale, recent, foreign = (cache_root / name for name in ("compiled-a", "compiled-b", "other"))
    for folder in (stale, recent, foreign):
        folder.mkdir(parents=True)
    long_ago = time.time() - 31 * 86_400
    os.utime(stale, (long_ago, long_ago))
    os.utime(foreign, (long_ago, long_ago))
    made = make_cache_folder()
    assert sorted(cache_root.iterdir()) == sorted([made, recent, foreign])


def test_there_is_no_cache_folder_where_nothing_can_be_written(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(blocked))
    assert make_cache_folder() is None


def test_a_package_without_a_writable_cache_still_works(tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()
    code = SHUFFLE + "print('shuffled')"
    assert run_with_cache(blocked, code).stdout.strip() == "shuffled"
    assert not list(module.PACKAGE.rglob("*.nbi"))  # Numba's own fallback would go stale


def test_without_numba_cache_dir_the_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert module.cache_root() == tmp_path / "polyplane"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert module.cache_root() == Path.home() / ".cache" / "polyplane"


@pytest.mark.compiled
def test_compiled_functions_release_the_gil_and_follow_numpy_in_division():
    divide = jit(lambda x, y: x / y)
    assert divide.targetoptions["nogil"]
    assert np.isinf(divide(1.0, 0.0))


def test_the_switch_of_numba_is_seen():
    assert jit_is_disabled() == (os.environ.get("NUMBA_DISABLE_JIT", "0") != "0")
