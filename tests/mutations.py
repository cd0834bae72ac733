"""Ten wrong lines, each put in alone: `python -m tests.mutations` says which tests see it.

Each line is changed in a copy of the tree, and the tests named with it are run there, compiled and,
where the line is part of a loop, without the JIT. `--tests-of COMMIT` takes the tests of another
commit with the sources of this one, so that two suites can be compared.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
LONGEST = 600  # seconds; a loop that a mutation makes endless is seen as well


class Mutation(NamedTuple):
    """One change of one line, and who is to notice."""

    file: str  # of src/polyplane
    line: str
    wrong: str
    tests: tuple[str, ...]
    is_in_a_loop: bool


MUTATIONS = [
    Mutation(
        "engine/steps/hinge.py",
        "margin + seen.rival_score - seen.own_score > 0",
        "margin + seen.rival_score - seen.own_score >= 0",
        ("hyperplane/test_amm.py", "engine/steps/test_hinge.py"),
        True,
    ),
    Mutation(
        "engine/steps/polytope.py",
        "return (other if other > NONE else np.float32(0)) >= (",
        "return (other if other > NONE else np.float32(0)) > (",
        ("engine/steps/test_polytope.py", "hyperplane/test_convex_polytope.py"),
        True,
    ),
    Mutation(
        "engine/planes/scoring.py",
        "np.float32(np.log(n_planes) + ROUNDING_PER_PLANE * n_planes)",
        "np.float32(np.log(n_planes))",
        ("engine/planes/test_scoring.py",),
        True,
    ),
    Mutation(
        "kernel/lasvm.py",
        "if abs(at(held.coef, s)) < least:",
        "if abs(at(held.coef, s)) <= least:",
        ("kernel/test_lasvm.py", "kernel/test_same_bits.py"),
        True,
    ),
    Mutation(
        "data/formats/libsvm/lines.py",
        "or previous >= state[WIDTH] or",
        "or previous > state[WIDTH] or",
        ("data/formats/libsvm/test_reader.py", "data/test_random_files.py"),
        True,
    ),
    Mutation(
        "engine/code_cache.py",
        "if DIGEST(rest).digest() != digest:",
        "if not digest:",
        ("engine/test_code_cache.py",),
        False,
    ),
    Mutation(
        "training/rows.py",
        "return members[weights > 0] if weights.size else members",
        "return members[weights >= 0] if weights.size else members",
        ("contract/test_every_weight.py",),
        False,
    ),
    Mutation(
        "portfolio/blend.py",
        "total = total + scores[chosen]",
        "total = scores[chosen]",
        ("portfolio/test_blend.py",),
        False,
    ),
    Mutation(
        "model/many_classes/decision_rules.py",
        "TIE_BREAK = 0.2",
        "TIE_BREAK = 0.6",
        ("model/many_classes/test_decomposition.py",),
        False,
    ),
    Mutation(
        "model/format/model_file.py",
        'if _checksum(about["polyplane"], arrays) != about.get("checksum"):',
        'if "checksum" not in about:',
        ("model/format/test_model_file.py",),
        False,
    ),
]


def copied(folder, tests_of):
    """A copy of the tree in `folder`, with the tests of a commit if one is named."""
    leave = shutil.ignore_patterns("__pycache__")
    for name in ("src", "tests", "docs", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=leave)
    for name in ("pyproject.toml", "README.md", "Makefile"):
        shutil.copy(ROOT / name, folder)
    if tests_of:
        shutil.rmtree(folder / "tests")
        packed = folder / "tests.tar"
        call = ["git", "-C", str(ROOT), "archive", "-o", str(packed), tests_of, "tests"]
        subprocess.run(call, check=True)
        shutil.unpack_archive(packed, folder)


def put_in(mutation, folder):
    """Change the line, which must stand there once."""
    path = folder / "src" / "polyplane" / mutation.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutation.line) != 1:
        sys.exit(f"{mutation.file} has {text.count(mutation.line)} times: {mutation.line}")
    path.write_text(text.replace(mutation.line, mutation.wrong), encoding="utf-8")


def first_to_notice(mutation, folder, is_compiled):
    """Name of the first test that fails, or None if all pass."""
    data = Path(os.environ.get("POLYPLANE_DATA", ROOT.parent / "shared" / "data")).resolve()
    environment = os.environ | {
        "PYTHONPATH": str(folder / "src"),
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "NUMBA_DISABLE_JIT": "0" if is_compiled else "1",
        "POLYPLANE_DATA": str(data),
    }
    paths = [str(Path("tests") / name) for name in mutation.tests]
    chosen = [] if is_compiled else ["-m", "loops and not compiled"]
    call = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *chosen, *paths]
    try:
        done = subprocess.run(
            call, cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return "no end"
    if done.returncode not in (0, 1):  # 1: tests failed; the rest: they could not be run
        sys.exit(done.stdout[-3_000:] + done.stderr[-3_000:])
    found = re.search(r"^FAILED \S*?::(\w+)", done.stdout, re.MULTILINE)
    return found[1] if found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests-of", default=None, metavar="COMMIT", help="run its tests instead")
    parser.add_argument("--only", default="", metavar="FILE", help="those of files with this name")
    given = parser.parse_args()
    survivors = 0
    print("| line of `src/polyplane/` | changed to | noticed, compiled | without the JIT |")
    print("|---|---|---|---|")
    for mutation in (m for m in MUTATIONS if given.only in m.file):
        start, noticed = time.monotonic(), []
        with tempfile.TemporaryDirectory() as name:
            copied(Path(name), given.tests_of)
            put_in(mutation, Path(name))
            for is_compiled in (True, False) if mutation.is_in_a_loop else (True,):
                noticed.append(first_to_notice(mutation, Path(name), is_compiled))
        survivors += not any(noticed)
        words = [f"`{test}`" if test else "**no**" for test in noticed]
        cells = f"`{mutation.file}`: `{mutation.line}`", f"`{mutation.wrong}`", *words, "no loop"
        print("| " + " | ".join(cells[:4]) + " |", flush=True)
        print(f"{mutation.file}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    sys.exit(survivors > 0)


if __name__ == "__main__":
    main()
