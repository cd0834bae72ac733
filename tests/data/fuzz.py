"""Random cases until the time is over: the readers of text against their rules.

`python -m tests.data.fuzz libsvm --seconds 60` prints how many cases it tried and the first seed;
`--cases 10000000 --seed 0` tries so many from that seed on. A case that fails is written to a file,
and the command ends with 1. Case k of seed s is `check(s + k)`.
"""

import argparse
import contextlib
import importlib
import logging
import secrets
import sys
import tempfile
import time
import traceback
from pathlib import Path

KINDS = {
    "libsvm": "tests.data.formats.libsvm.random_libsvm",
    "csv": "tests.data.formats.csv.random_csv",
}
BETWEEN_LOOKS = 64  # cases, at the clock
BETWEEN_LINES = 60.0  # seconds, on the screen
MOST_FAILURES = 20


def run(kind, seconds, n_cases, seed, folder):
    """Try cases; return how many failed."""
    module = importlib.import_module(KINDS[kind])
    module.check(seed)  # compiles
    start = said = time.monotonic()
    tried = n_failed = 0
    while tried < n_cases and n_failed < MOST_FAILURES:
        if tried % BETWEEN_LOOKS == 0:
            now = time.monotonic()
            if now - start >= seconds:
                break
            if now - said >= BETWEEN_LINES:
                said = now
                print(f"{kind}: {tried:,} cases so far", flush=True)
        try:
            module.check(seed + tried)
        except Exception:
            n_failed += 1
            report(module, kind, seed + tried, folder)
        tried += 1
    speed = tried / max(time.monotonic() - start, 1e-9)
    print(f"{kind}: {tried:,} cases from seed {seed} on, {n_failed} failed ({speed:,.0f} a second)")
    return n_failed


def report(module, kind, seed, folder):
    """Write the file that failed, and what went wrong, and say where."""
    folder = Path(folder or tempfile.gettempdir())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"polyplane-{kind}-{seed}.txt"
    with contextlib.suppress(Exception):  # where the generator itself fails
        path.write_bytes(module.case_of(seed).text)
    path.with_suffix(".why").write_text(traceback.format_exc(), encoding="utf-8")
    again = f"python -m tests.data.fuzz {kind} --seed {seed} --cases 1"
    print(f"{kind}: seed {seed} fails: see {path} and {path.stem}.why; again: {again}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="libsvm, csv; default both")
    parser.add_argument("--seconds", type=float, default=None, help="for each kind")
    parser.add_argument("--cases", type=int, default=None, help="for each kind")
    parser.add_argument("--seed", type=int, default=None, help="default: drawn, and printed")
    parser.add_argument("--folder", default=None, help="where failing cases are written")
    given = parser.parse_args()
    if unknown := set(given.kinds) - set(KINDS):
        parser.error(f"there is no {', '.join(unknown)}: expected libsvm or csv")
    logging.getLogger("polyplane").setLevel(logging.ERROR)  # remarks on odd files are no news
    seconds = given.seconds or (float("inf") if given.cases else 60.0)
    seed = secrets.randbelow(1 << 40) if given.seed is None else given.seed
    n_cases = given.cases or sys.maxsize
    kinds = given.kinds or list(KINDS)
    failed = [run(kind, seconds, n_cases, seed, given.folder) for kind in kinds]
    sys.exit(any(failed))


if __name__ == "__main__":
    main()
