"""`polyplane train --cluster`: the rounds of a training on a Dask cluster, as they are seen here.

Rows are read by the workers. Ctrl-C ends the training at once, and what is left is the model of
the last complete round.
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
from polyplane.cli.output.screen import Screen
from polyplane.cli.training.train_request import TrainRequest
from polyplane.cli.training.training_run import Stopped, Watch
from polyplane.data.reading import stream
from polyplane.estimator.fitting.restoring import training_of
from polyplane.estimator.kernel_classifier import KernelClassifier
from polyplane.estimator.online_classifier import evaluations_of
from polyplane.training.work.progress import Report, Work, heard_by

__all__ = ["check_cluster", "interrupts_stop", "run_on_cluster"]

SCHEDULER_TIMEOUT_SECONDS = 2  # seconds for a scheduler to answer
LOCAL = re.compile(r"local:([1-9][0-9]*)")


def check_cluster(request: TrainRequest) -> None:
    """Refuse options that make no sense on a cluster, or only there."""
    if request.cluster is None:
        if request.learners is not None:
            raise CallError("--learners is about a cluster: name one with --cluster.")
        return
    unfit = {
        "--stream": request.stream,
        "--cache": request.cache,
        "--scale": request.scale != "none",
        "--chunk-rows": request.chunk_rows is not None,
    }
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
    is_cascade = isinstance(estimator, KernelClassifier)
    n_made, begin = _count_rounds(estimator), time.perf_counter()
    n_rounds = None
    if n_before:
        n_rounds = (
            n_made + dask_cluster.ROUNDS if is_cascade else n_before + int(estimator.max_iter)
        )

    def listen(work: Work) -> AbstractContextManager[Report]:
        nonlocal begin
        begin = time.perf_counter()
        return watch.listen(work)

    with (
        interrupts_stop() as stop_if_asked,
        _connected(str(request.cluster), watch.screen) as client,
        heard_by(listen),
        _blamed_on_the_algorithm(),
        _lost_in_words(watch, estimator),
    ):
        dask_cluster.fit(
            estimator,
            list(request.data),
            client=client,
            rounds=n_rounds,
            learners=request.learners,
            resume=bool(request.resume),
            callback=lambda _: stop_if_asked(),
            **reading,
        )
    return begin, _count_rounds(estimator) - n_made


def _count_rounds(estimator: Any) -> int:
    """Return how many rounds an estimator has made: passes over all rows, or those of a cascade."""
    if training_of(estimator) is None:
        return 0
    if isinstance(estimator, KernelClassifier):
        return len(evaluations_of(estimator).get("cascade", {}).get("violators", []))
    return int(estimator.n_iter_)


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
                    n_workers=int(n_workers[1]),
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    silence_logs="CRITICAL",
                )
            )
        else:
            address = where
        try:
            client = stack.enter_context(
                distributed.Client(address, timeout=SCHEDULER_TIMEOUT_SECONDS)
            )
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
