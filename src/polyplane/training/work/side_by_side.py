"""Models, problems and candidates side by side: work in threads that end together."""

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from polyplane.training.work.progress import Report

__all__ = ["for_each"]


class WorkEnded(Exception):
    """Raised inside threads once another one, or the user, has ended the work."""


def for_each(work: Callable[[int, Report], None], n: int, n_threads: int, report: Report) -> None:
    """Call `work(k, report)` for k = 0 ... n - 1 in threads.

    After an error, or Ctrl-C in the caller, all threads end at their next report, so that every
    model is left between two steps; then it is raised in the caller.
    """
    if min(n, n_threads) <= 1:
        for k in range(n):
            work(k, report)
        return
    is_over = threading.Event()

    def checked(n_rows: int, n_planes: int, error: float) -> None:
        if is_over.is_set():
            raise WorkEnded
        report(n_rows, n_planes, error)

    pool = ThreadPoolExecutor(min(n, n_threads))
    try:
        futures = [pool.submit(work, k, checked) for k in range(n)]
        wait(futures, return_when=FIRST_EXCEPTION)
    finally:
        is_over.set()
        pool.shutdown(cancel_futures=True)
    for future in futures:
        error = None if future.cancelled() else future.exception()
        if error is not None and not isinstance(error, WorkEnded):
            raise error
