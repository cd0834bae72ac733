"""`polyplane train --cluster`: the rounds of a training on a Dask cluster, as they are seen here.

Rows are read by the workers. After each round a line says how far it has come; Ctrl-C ends the
training at once, and what is left is the model of the last complete round.
"""

import contextlib
import glob
import importlib
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from polyplane.cli.failures import CallError
from polyplane.cli.options.train_request import TrainRequest
from polyplane.cli.output.screen import Screen
from polyplane.cli.training.training_run import Stopped, Watch
from polyplane.data.reading import stream
from polyplane.engine.planes.planes import MISTAKES
from polyplane.estimator.fitting.progress import Report, Work, heard_by
from polyplane.estimator.kernels.kernel_classifier import KernelClassifier
from polyplane.estimator.online_classifier import evaluations_of, training_of
from polyplane.estimator.planes.rounds.learner import count_passes

__all__ = ["check_cluster", "interrupts_stop", "run_on_cluster"]

PATIENCE = 2  # seconds for a scheduler to answer
BETWEEN_LINES = 1.0  # seconds, where rounds are short
WIDTHS = 12, 14, 10, 11, 10, 10
LOCAL = re.compile(r"local:([1-9][0-9]*)")


def check_cluster(request: TrainRequest) -> None:
    """What of a call makes no sense on a cluster, or only there."""
    if request.cluster is None:
        if request.learners is not None:
            raise CallError("--learners is about a cluster: name one with --cluster.")
        return
    unfit = {
        "--stream": request.stream, "--cache": request.cache, "--scale": request.scale != "none",
        "--chunk-rows": request.chunk_rows is not None,
    }  # fmt: skip
    for option, is_given in unfit.items():
        if is_given:
            raise CallError(f"{option} is not for --cluster, whose workers hold the rows as read.")
    if "-" in request.data:
        raise CallError("A pipe cannot be read by the workers of --cluster: name files.")
    if request.learners is not None and request.learners < 1:
        raise CallError(f"--learners is {request.learners}, expected 1 or more.")


def run_on_cluster(
    watch: Watch, request: TrainRequest, estimator: Any, n_before: int, reading: dict[str, Any]
) -> tuple[float, int]:
    """Train, beyond so many rounds made before; return when rounds began, and their number."""
    dask_cluster = _backend()
    if LOCAL.fullmatch(str(request.cluster)):
        _check_files(request.data, reading)
    with (
        interrupts_stop() as stop_if_asked,
        _connected(str(request.cluster), watch.screen) as client,
    ):
        kind = _CascadeLines if isinstance(estimator, KernelClassifier) else _Lines
        lines = kind(watch, client, dask_cluster, estimator, n_before)
        lines.stop_if_asked = stop_if_asked
        with heard_by(lines.listen), _blamed_on_the_algorithm(), _lost_in_words(watch, estimator):
            dask_cluster.fit(
                estimator, list(request.data), client=client, rounds=lines.rounds,
                learners=request.learners, resume=bool(request.resume), callback=lines.after_round,
                **reading,
            )  # fmt: skip
    return lines.begin, lines.n_rounds


def _check_files(paths: Sequence[str], reading: dict[str, Any]) -> None:
    """Files that are missing or empty are told by their reader, before processes are started."""
    for path in paths:
        if not glob.has_magic(path) and (not os.path.exists(path) or os.path.getsize(path) == 0):
            next(iter(stream(path, **reading)))


@contextlib.contextmanager
def _lost_in_words(watch: Watch, estimator: Any) -> Iterator[None]:
    """A cluster that is lost leaves the model of the last round, as Ctrl-C does."""
    try:
        yield
    except ConnectionError as error:
        if not hasattr(estimator, "classes_"):
            raise
        watch.screen.warn(str(error))
        raise Stopped from error


@contextlib.contextmanager
def _blamed_on_the_algorithm() -> Iterator[None]:
    """Some cannot be trained so, whatever the rows are."""
    try:
        yield
    except TypeError as error:
        raise CallError(str(error)) from error


def _backend() -> Any:
    try:
        return importlib.import_module("polyplane.backends.dask_cluster")
    except ImportError as error:
        raise CallError(str(error)) from error


class _Lines:
    """A table that grows by a line a round."""

    heads = "round", "rows/s", "planes", "error", "MB sent", "time left"
    between = BETWEEN_LINES

    def __init__(
        self, watch: Watch, client: Any, backend: Any, estimator: Any, n_before: int
    ) -> None:
        self.watch, self.client, self.backend = watch, client, backend
        self.rounds = self._rounds(estimator, n_before)
        self.n_first = self._made(estimator) if training_of(estimator) is not None else 0
        self.begin = self.said_at = time.perf_counter()
        self.n_rounds, self.n_said, self.n_sent = 0, 0, backend.bytes_sent(client)
        self.counted = _steps_and_mistakes(estimator)
        self.stop_if_asked: Callable[[], None] = lambda: None

    def listen(self, work: Work) -> AbstractContextManager[Report]:
        """Count time from the first round on."""
        self.begin = self.said_at = time.perf_counter()
        return self.watch.listen(work)

    def after_round(self, estimator: Any) -> None:
        """Say what the round has brought."""
        self.stop_if_asked()
        now, (done, n_rounds) = time.perf_counter(), self._progress(estimator)
        self.n_rounds = done - self.n_first
        if done < n_rounds and self.n_said and now < self.said_at + self.between:
            return
        if self.n_said == 0:
            self._say(self.heads)
        self.n_said, self.said_at = self.n_said + 1, now
        sent = self.backend.bytes_sent(self.client) - self.n_sent
        seconds = max(now - self.begin, 1e-9)
        left = seconds / self.n_rounds * (n_rounds - done)
        self._say(
            (f"{done} of {n_rounds}", f"{self.watch.n_visits / seconds:,.0f}",
             *self._about(estimator), f"{max(sent, 0) / 1e6:,.1f}", f"{left:,.0f} s")
        )  # fmt: skip

    def _rounds(self, estimator: Any, n_before: int) -> int | None:
        """How many there are to be in all, where that is not for the fit to find."""
        return n_before + int(estimator.max_iter) if n_before else None

    def _made(self, estimator: Any) -> int:
        """Rounds so far: passes over all rows, of which several may come at once."""
        return int(estimator.n_iter_)

    def _progress(self, estimator: Any) -> tuple[int, int]:
        """Rounds made, and rounds to make."""
        return self._made(estimator), self.rounds or count_passes(estimator)

    def _about(self, estimator: Any) -> tuple[str, str]:
        """The size of the model, and the share of rows that were wrong before they were learned."""
        before, self.counted = self.counted, _steps_and_mistakes(estimator)
        n_steps, n_mistakes = (now - then for now, then in zip(self.counted, before, strict=True))
        error = f"{n_mistakes / n_steps:.2%}" if n_steps > 0 else "–"
        return f"{estimator.n_planes_:,}", error

    def _say(self, cells: tuple[str, ...]) -> None:
        line = "".join(cell.rjust(width) for cell, width in zip(cells, WIDTHS, strict=True))
        self.watch.screen.note(line)


def _steps_and_mistakes(estimator: Any) -> tuple[int, int]:
    """Of a model by itself: those that are parts of one tell nothing of its errors."""
    training = training_of(estimator)
    models = [] if training is None else training.models
    return (
        (models[0].n_steps, int(models[0].planes.counts[MISTAKES])) if len(models) == 1 else (0, 0)
    )


class _CascadeLines(_Lines):
    """The same of kernel machines, whose rounds tell how many rows violate the margin."""

    heads = "round", "rows/s", "vectors", "violators", "MB sent", "time left"
    between = 0.0  # rounds are few, and nobody knows which is the last

    def _rounds(self, estimator: Any, n_before: int) -> int | None:
        return len(self._violators(estimator)) + self.backend.ROUNDS if n_before else None

    def _made(self, estimator: Any) -> int:
        return len(self._violators(estimator))

    def _progress(self, estimator: Any) -> tuple[int, int]:
        return self._made(estimator), self.rounds or self.backend.ROUNDS

    def _about(self, estimator: Any) -> tuple[str, str]:
        n_vectors, n_violators = len(estimator.support_), self._violators(estimator)[-1]
        return f"{n_vectors:,}", f"{n_violators:,.0f}"

    def _violators(self, estimator: Any) -> list[float]:
        found: list[float] = evaluations_of(estimator).get("cascade", {}).get("violators", [])
        return found


@contextlib.contextmanager
def _connected(where: str, screen: Screen) -> Iterator[Any]:
    """A client of the cluster, which is started if it is to be here."""
    distributed = importlib.import_module("distributed")
    n_workers = LOCAL.fullmatch(where)
    if n_workers is None and where.startswith("local"):
        raise CallError(f"--cluster is {where!r}, expected local: and a number of processes.")
    with contextlib.ExitStack() as stack:
        if n_workers is not None:
            address: Any = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=int(n_workers[1]), threads_per_worker=1, host="127.0.0.1",
                    dashboard_address="127.0.0.1:0", silence_logs="CRITICAL",
                )
            )  # fmt: skip
        else:
            address = where
        try:
            client = stack.enter_context(distributed.Client(address, timeout=PATIENCE))
        except (OSError, ValueError, TypeError) as error:
            raise CallError(
                f"--cluster {where}: no scheduler answers there ({_first_line(error)}); give an "
                "address such as tcp://host:8786, or local:8 for eight processes here."
            ) from error
        if n_workers is not None:
            client.run(_leave_interrupts)
        n_threads = sum(client.nthreads().values())
        screen.note(f"{n_threads} threads of workers; dashboard: {client.dashboard_link}")
        yield client


def _leave_interrupts() -> None:
    """Ctrl-C reaches all processes of a terminal: it is for the one that waits for the rounds."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextlib.contextmanager
def interrupts_stop() -> Iterator[Callable[[], None]]:
    """Ctrl-C and a polite kill end the training; the model is that of the last round.

    An interrupt that comes while Python lets go of an object is lost, and Dask lets go of many: so
    rounds call what is handed out here, which stops if one was, and Python does not report it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    asked_by: list[int] = []

    def stop(number: int, frame: Any) -> None:
        asked_by.append(number)
        raise KeyboardInterrupt(number)

    def stop_if_asked() -> None:
        if asked_by:
            raise KeyboardInterrupt(*asked_by[:1])

    usual_report = sys.unraisablehook

    def report(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            usual_report(lost)

    numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    usual = [signal.signal(number, stop) for number in numbers]
    sys.unraisablehook = report
    try:
        yield stop_if_asked
    except KeyboardInterrupt as error:
        raise Stopped(*asked_by[:1]) from error
    finally:
        sys.unraisablehook = usual_report
        for number, handler in zip(numbers, usual, strict=True):
            signal.signal(number, handler)
