"""Check that models side by side fit into memory, before any of them is made."""

import contextlib
import os
from pathlib import Path

__all__ = ["bytes_available", "check_memory"]

SURELY_THERE = 1 << 28  # bytes for which nobody is asked
MEMORY_FACTS, GROUP_LIMIT = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")


def bytes_available() -> float:
    """Return the bytes that can be used without swapping; infinity where unknown."""
    most = [float("inf")]
    with contextlib.suppress(OSError, ValueError):
        lines = MEMORY_FACTS.read_text().splitlines()
        [available] = [line for line in lines if line.startswith("MemAvailable:")]
        most.append(1024.0 * int(available.split()[1]))
    with contextlib.suppress(OSError, ValueError):
        most.append(float(GROUP_LIMIT.read_text()))  # "max" where there is none
    with contextlib.suppress(OSError, ValueError, AttributeError):  # as on Windows
        most.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    return min(most)


def check_memory(name: str, kind: str, n_models: int, bytes_each: int, what: str) -> None:
    """One sentence instead of a process that the system ends half-way."""
    needed = n_models * bytes_each
    if needed <= SURELY_THERE:
        return
    available = bytes_available()
    if needed > available:
        advice = "set multi_class='ovr' or " if kind == "ovo" else ""
        raise ValueError(
            f"{name}: {n_models:,} models of {what} need about {needed / 1e9:,.1f} GB of memory, "
            f"and {available / 1e9:,.1f} GB are available: {advice}use fewer classes, columns or "
            "planes."
        )
