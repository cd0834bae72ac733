"""`polyplane train --cluster`: the rounds of a training on a Dask cluster, as they are seen here.

Rows are read by the workers. After each round a line says how far it has come; Ctrl-C ends the
training at once, and what is left is the model of the last complete round.
"""

import contextlib
import importlib
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from polyplane.cli.failures import CallError
from polyplane.cli.options.train_request import TrainRequest
from polyplane.cli.output.screen import Screen
from polyplane.cli.training.training_run import Stopped, Watch
from polyplane.estimator.fitting.progress import Report, Work, heard_by
from polyplane.estimator.planes.hyperplane_classifier import HyperplaneClassifier
from polyplane.estimator.planes.rounds.learner import count_passes

__all__ = ["check_cluster", "run_on_cluster"]

PATIENCE = 10  # seconds for a scheduler to answer
BETWEEN_LINES = 1.0  # seconds, where rounds are short
HEADS = "round", "rows/s", "planes", "MB sent", "time left"
WIDTHS = 12, 14, 10, 10, 10


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
) -> float:
    """Train, beyond so many rounds made before; return the time at which rounds began."""
    if not isinstance(estimator, HyperplaneClassifier):
        raise CallError(
            f"{type(estimator).__name__} is trained on a cluster from Python, by dask_cluster.fit: "
            "name an algorithm with planes, or leave out --cluster."
        )
    dask_cluster = _backend()
    with _interrupts_stop(), _connected(str(request.cluster), watch.screen) as client:
        rounds = n_before + int(estimator.max_iter) if n_before else None
        lines = _Lines(watch, client, dask_cluster, rounds)
        with heard_by(lines.listen), _blamed_on_the_algorithm(), _lost_in_words(watch, estimator):
            dask_cluster.fit(
                estimator, list(request.data), client=client, rounds=rounds,
                learners=request.learners, resume=bool(request.resume), callback=lines.after_round,
                **reading,
            )  # fmt: skip
    return lines.begin


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

    def __init__(self, watch: Watch, client: Any, backend: Any, rounds: int | None) -> None:
        self.watch, self.client, self.backend, self.rounds = watch, client, backend, rounds
        self.begin = self.said_at = time.perf_counter()
        self.n_rounds, self.n_said, self.n_sent = 0, 0, backend.bytes_sent(client)

    def listen(self, work: Work) -> AbstractContextManager[Report]:
        """Count time from the first round on."""
        self.begin = self.said_at = time.perf_counter()
        return self.watch.listen(work)

    def after_round(self, estimator: Any) -> None:
        """Say what the round has brought."""
        now, done = time.perf_counter(), int(estimator.n_iter_)
        n_rounds = self.rounds or count_passes(estimator)
        self.n_rounds += 1
        if done < n_rounds and self.n_said and now < self.said_at + BETWEEN_LINES:
            return
        if self.n_said == 0:
            self._say(HEADS)
        self.n_said, self.said_at = self.n_said + 1, now
        sent = self.backend.bytes_sent(self.client) - self.n_sent
        seconds = max(now - self.begin, 1e-9)
        left = seconds / self.n_rounds * (n_rounds - done)
        self._say(
            (f"{done} of {n_rounds}", f"{self.watch.n_visits / seconds:,.0f}",
             f"{estimator.n_planes_:,}", f"{max(sent, 0) / 1e6:,.1f}", f"{left:,.0f} s")
        )  # fmt: skip

    def _say(self, cells: tuple[str, ...]) -> None:
        line = "".join(cell.rjust(width) for cell, width in zip(cells, WIDTHS, strict=True))
        self.watch.screen.note(line)


@contextlib.contextmanager
def _connected(where: str, screen: Screen) -> Iterator[Any]:
    """A client of the cluster, which is started if it is to be here."""
    distributed = importlib.import_module("distributed")
    n_workers = re.fullmatch(r"local:([1-9][0-9]*)", where)
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
def _interrupts_stop() -> Iterator[None]:
    """Ctrl-C and a polite kill end the training; the model is that of the last round."""
    is_main = threading.current_thread() is threading.main_thread()

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    usual = signal.signal(signal.SIGTERM, stop) if is_main else None
    try:
        yield
    except KeyboardInterrupt as error:
        raise Stopped from error
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, usual)
