"""Jobs that take turns, and tables that say on what machine."""

import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


Clock = Callable[[], float]


def times(
    jobs: dict[str, Callable[[], object]], rounds: int, clock: Clock = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of each job in so many rounds, after one round to warm up."""
    out: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(rounds + 1):
        for name, job in jobs.items():
            start = clock()
            job()
            if turn > 0:
                out[name].append(clock() - start)
    return out


def race(
    jobs: dict[str, Callable[[], object]], rounds: int, clock: Clock = time.perf_counter
) -> dict[str, float]:
    """Median seconds of each job over so many rounds, after one round to warm up.

    With `time.process_time` they are seconds of the processor: what else the machine does
    meanwhile does not count.
    """
    found = times(jobs, rounds, clock)
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def as_installed(folder: Path | str, **more: str) -> dict[str, str]:
    """The environment of a process that finds bytecode, as after an installation, or writes it.

    Where Python may not write any, it compiles our files at every start.
    """
    bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(Path(folder, "bytecode"))}
    return os.environ | bytecode | more


def processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    found = {}
    for line in lines:
        key, _, text = line.partition(":")
        found.setdefault(key.strip(), text.strip())
    flags = found.get("flags", "").split()
    widest = next((f for f in ("avx512f", "avx2", "sse2") if f in flags), "")
    return f"{found.get('model name', platform.machine())} {widest}".strip()


def machine() -> str:
    """What the figures were measured on."""
    parts = ("polyplane", "numba", "llvmlite", "numpy", "scipy", "scikit-learn")
    versions = ", ".join(f"{part} {version(part)}" for part in parts)
    return (
        f"{processor()}, {os.cpu_count()} cores; Python {platform.python_version()}, {versions}; "
        f"{time.strftime('%Y-%m-%d')}"
    )


def table(header: list[str], rows: list[list[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def publish(name: str, title: str, *parts: str) -> None:
    """Print, and keep under `results/`."""
    text = "\n\n".join([f"# {title}", f"`python -m benchmarks {name}` on {machine()}", *parts])
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text + "\n")
    print(text, flush=True)
