"""Models, problems and candidates side by side: work in threads that end together."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from polyplane.estimator.fitting.progress import Report

__all__ = ["Hands", "for_each", "share_out"]


class WorkEnded(Exception):
    """Raised inside threads once another one, or the user, has ended the work."""


class Hands:
    """Tasks that wait for a thread, and threads that wait for a task."""

    def __init__(self, tasks: Iterable["Task"] = (), n_threads: int = 0) -> None:
        self._tasks, self._n_threads, self._n_idle = deque(tasks), n_threads, 0
        self._changed, self._is_over = threading.Condition(), False
        self.error: BaseException | None = None

    @property
    def are_several(self) -> bool:
        """Whether a task may be shared."""
        return self._n_threads > 1

    @property
    def are_idle(self) -> bool:
        """Whether a thread waits for which there is no task."""
        return self._n_idle > len(self._tasks)

    def give(self, task: "Task") -> None:
        """Have another thread do a part of what this one was to do."""
        with self._changed:
            self._tasks.append(task)
            self._changed.notify()

    def end(self, error: BaseException | None = None) -> None:
        """Let threads end at their next report, because of an error if there is one."""
        with self._changed:
            self.error = self.error or error
            self._is_over = True
            self._changed.notify_all()

    def work(self, report: Report) -> None:
        """Do tasks until there are none, and nobody is at work who might give one."""

        def checked(n_rows: int, n_planes: int, error: float) -> None:
            if self._is_over:
                raise WorkEnded
            report(n_rows, n_planes, error)

        try:
            while (task := self._next()) is not None:
                task(checked, self)
        except BaseException as error:
            self.end(error)

    def _next(self) -> "Task | None":
        with self._changed:
            self._n_idle += 1
            while not (self._tasks or self._is_over or self._n_idle == self._n_threads):
                self._changed.wait()
            if self._is_over or not self._tasks:
                self._changed.notify_all()
                return None
            self._n_idle -= 1
            return self._tasks.popleft()


Task = Callable[[Report, Hands], None]


def share_out(tasks: Sequence[Task], n_threads: int, report: Report) -> None:
    """Call `task(report, hands)` for each task in threads; a task may give `hands` others.

    Ctrl-C is raised in the caller only; the threads then end at their next report, so that every
    model is left between two steps.
    """
    if n_threads <= 1:
        hands = Hands()
        for task in tasks:
            task(report, hands)
        return
    hands = Hands(tasks, n_threads)
    threads = [threading.Thread(target=hands.work, args=(report,)) for _ in range(n_threads)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:
        hands.end()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        raise
    if hands.error is not None:
        raise hands.error


def for_each(work: Callable[[int, Report], None], n: int, n_threads: int, report: Report) -> None:
    """Call `work(k, report)` for k = 0 ... n - 1 in threads."""

    def task(k: int, report: Report, hands: Hands) -> None:
        work(k, report)

    share_out([partial(task, k) for k in range(n)], min(n, n_threads), report)
