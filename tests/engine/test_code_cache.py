"""Compiled code on disk: kept for the next process, never for other sources, never from others."""

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
import pytest

import polyplane
from polyplane.engine import code_cache as module
from polyplane.engine.code_cache import CodeCache, make_cache_folder, source_hash
from polyplane.engine.jit import jit

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


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    """A process that compiled, and the folder where it kept what it made."""
    folder = tmp_path_factory.mktemp("compiled")
    return run_with_cache(folder, SHUFFLE), folder


@pytest.fixture
def kept(first_run, tmp_path):
    """A copy of that folder that a test may damage."""
    return shutil.copytree(first_run[1], tmp_path / "kept")


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
def test_a_second_process_does_not_compile_again(first_run, kept):
    first, _ = first_run
    assert first.stderr.count(COMPILES) == 1
    assert COMPILES not in run_with_cache(kept, SHUFFLE).stderr


def test_two_processes_that_compile_at_once_do_not_exchange_their_code(tmp_path, monkeypatch):
    """Both have read the index before either writes it, and the first writes its code last."""
    first, second, reader = (_files(tmp_path) for _ in range(3))
    save_data = first._save_data

    def save_late(name, data):
        second.save("of bytes", "code for bytes")
        save_data(name, data)

    monkeypatch.setattr(first, "_save_data", save_late)
    monkeypatch.setattr(second, "_load_index", dict)
    first.save("of floats", "code for floats")
    assert reader.load("of bytes") == "code for bytes"
    assert reader.load("of floats") in (None, "code for floats")  # if forgotten, compiled again


def test_code_for_the_same_types_is_written_to_the_same_file(tmp_path):
    files = _files(tmp_path)
    for code in ("once", "again"):
        files.save("of floats", code)
    assert files.load("of floats") == "again"
    assert len(list(tmp_path.glob("*.nbc"))) == 1


def _files(folder):
    return module._CheckedFiles(str(folder), "loop", "stamp")


@pytest.mark.compiled
def test_compiled_code_lies_in_the_folder_of_its_sources(kept):
    assert list((kept / f"compiled-{source_hash()}").rglob("*.nbc"))


def test_importing_compiles_nothing_and_says_nothing(tmp_path):
    code = "import polyplane; polyplane.AMMClassifier, polyplane.MMClassifier"
    assert run_with_cache(tmp_path, code).stderr == ""
    assert not list(tmp_path.rglob("*.nbc"))


def test_other_packages_keep_their_cache_folder(kept):
    code = SHUFFLE + "import numba; print(numba.config.CACHE_DIR)"
    assert run_with_cache(kept, code).stdout.strip() == str(kept)


def test_an_edit_changes_the_hash_where_code_is_compiled_and_only_there(sources):
    hashes, compiled = {source_hash()}, []
    for path in sorted(sources.rglob("*.py")):
        path.write_bytes(path.read_bytes() + b"\n")
        if (found := source_hash()) not in hashes:
            compiled.append(path.relative_to(sources).as_posix())
            hashes.add(found)
    assert {"engine/rows/storage.py", "engine/jit.py", "kernel/lasvm.py"} <= set(compiled)
    assert "training/work/progress.py" not in compiled
    assert not [name for name in compiled if name.startswith(("backends/", "cli/", "report/"))]


def compiled_functions():
    """Every function that Numba may compile, in all modules of the package.

    Backends need extras that may not be installed, and hold no compiled code, which is tested too.
    """
    for found in pkgutil.walk_packages(polyplane.__path__, "polyplane."):
        if found.name != "polyplane.__main__" and "polyplane.backends." not in found.name:
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


@pytest.mark.parametrize("value", ["", ".", "cache", "~/cache"])
@pytest.mark.parametrize("name", ["XDG_CACHE_HOME", "NUMBA_CACHE_DIR"])
def test_nothing_is_loaded_relative_to_the_current_folder(name, value, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(numba.config, "CACHE_DIR", value if name == "NUMBA_CACHE_DIR" else "")
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert module.cache_root() in (None, Path.home() / ".cache" / "polyplane")


def test_a_user_without_a_home_has_a_cache_only_where_one_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does without passwd
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert make_cache_folder() is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert make_cache_folder() is not None


def test_a_user_without_a_home_can_work(tmp_path):
    """As under `docker --user 54321`."""
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "NUMBA_CACHE_DIR")}
    nobody = "import pwd; pwd.getpwuid = lambda uid: {}[uid]\n"
    done = subprocess.run(
        [sys.executable, "-c", nobody + SHUFFLE + "print('shuffled')"],
        env={**environment, "XDG_CACHE_HOME": ""}, cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.strip() == "shuffled", done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no modes")
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_can_write_to_is_not_used(mode, cache_root, caplog):
    folder = make_cache_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(mode)
    assert make_cache_folder() is None
    assert "others" in caplog.text
    folder.chmod(0o700)
    cache_root.chmod(mode)
    assert make_cache_folder() is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no modes")
def test_a_folder_of_somebody_else_is_not_used(cache_root, monkeypatch):
    make_cache_folder()
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    assert make_cache_folder() is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no modes")
def test_a_link_to_a_folder_is_not_used(cache_root, tmp_path):
    folder = make_cache_folder()
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert make_cache_folder() is None


def damaged(content, how):
    middle = len(content) // 2
    if how == "flipped":
        return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    return {"cut": content[:middle], "empty": b"", "foreign": b"cos\nsystem\n(S'true'\ntR."}[how]


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("how", ["flipped", "cut", "empty", "foreign"])
def test_damage_is_seen_before_anything_is_unpickled(how, suffix, tmp_path):
    _files(tmp_path).save("of floats", "code for floats")
    [path] = tmp_path.glob("*" + suffix)
    path.write_bytes(damaged(path.read_bytes(), how))
    with pytest.raises(ValueError, match="damaged"):
        _files(tmp_path).load("of floats")


@pytest.mark.compiled
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_damaged_cache_is_compiled_around_with_one_remark_and_replaced(suffix, kept):
    for path in kept.rglob("*" + suffix):
        path.write_bytes(damaged(path.read_bytes(), "foreign"))
    done = run_with_cache(kept, SHUFFLE + "print('shuffled')")
    assert done.stdout.strip() == "shuffled"
    assert done.stderr.count("cache of compiled code") == 1
    assert run_with_cache(kept, SHUFFLE).stderr == ""


@pytest.mark.compiled
def test_a_full_disk_is_no_reason_to_stop(monkeypatch, caplog):
    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module._CheckedFiles, "_write", fails)
    monkeypatch.setattr(CodeCache, "has_told", False)
    assert jit(lambda x: x + 1)(1) == 2
    assert jit(lambda x: x + 2)(1) == 3
    assert caplog.text.count("No space left on device") == 1
