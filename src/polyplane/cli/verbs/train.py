"""`polyplane train`: rows to a model in a file, from memory or from a stream."""

import shlex
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from polyplane.cli.failures import CallError, interrupted_code
from polyplane.cli.input.model_input import LoadedModel, check_choice, layout_of
from polyplane.cli.input.row_input import (
    base_of,
    check_labels,
    chunks_of,
    open_rows,
    tell_of_bad_rows,
)
from polyplane.cli.input.scaling import ScaledStream, scaled, scaler_of_rows, scaler_of_stream
from polyplane.cli.input.table_words import label_facts, table_facts
from polyplane.cli.output.evaluation_report import show_evaluation
from polyplane.cli.output.screen import Screen
from polyplane.cli.settings import estimator_class, parsed_settings, show_settings
from polyplane.cli.training.cluster_run import check_cluster, run_on_cluster
from polyplane.cli.training.train_request import TrainRequest, train_request
from polyplane.cli.training.training_run import Stopped, Watch, run_under
from polyplane.cli.training.training_summary import summary_of, tell_summary
from polyplane.cli.verbs.evaluate import tell_of_labels
from polyplane.data.chunk_sizes import joined
from polyplane.data.chunks import DataError
from polyplane.data.reading import CHUNK_ROWS, Stream
from polyplane.data.table.layout import AUTO, LaidOut
from polyplane.estimator.files.saving import (
    SavedModel,
    fitted_model,
    read_model,
    write_model,
)
from polyplane.estimator.input.tables import give_layout, keep_keys, take_layout
from polyplane.model.prediction import n_threads
from polyplane.report.metrics import Evaluation, as_labels_of, other_spellings

__all__ = ["run"]

IN_CASE_OF_NEED = "interrupted.model"  # where no file was named and work would be lost
FREE_PARAMETERS = {"n_jobs", "verbose"}  # that may change while a training is resumed


@dataclass
class Job:
    """A training: what it starts from, and what it needs beside the estimator."""

    request: TrainRequest
    screen: Screen
    saved: SavedModel
    goes_on: bool = False  # with a training that was stopped
    path: Path | None = None
    n_rows: int = 0
    n_skipped: int = 0
    table: dict[str, Any] | None = None  # what was recognised in it
    label: dict[str, Any] | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def estimator(self) -> Any:
        """The classifier."""
        return self.saved.estimator

    def facts(self, is_finished: bool) -> dict[str, Any]:
        """Return the arguments for a model file, enough to resume with the data alone."""
        request = self.request
        return {
            "data": list(request.data),
            "stream": request.stream,
            "chunk_rows": request.chunk_rows,
            "scale": request.scale,
            "base": self.saved.training.get("base"),
            "finished": is_finished,
            "cluster": request.cluster is not None,
        }

    def write(self, is_finished: bool) -> None:
        """Put the model into its file, if it has one."""
        self.saved.training = self.facts(is_finished)
        if self.path is not None:
            write_model(self.saved, self.path)


def run(screen: Screen, *, algorithm: str, list_settings: bool = False, **asked: Any) -> int | None:
    """Train, or list the settings of an algorithm."""
    if list_settings:
        show_settings(screen, algorithm)
        return None
    return _train_and_test(train_request(algorithm=algorithm, **asked), screen)


def _train_and_test(request: TrainRequest, screen: Screen) -> int | None:
    """Read, train, write, and say what came of it."""
    job = _resumed(request, screen) if request.resume else _new(request, screen)
    _check_place(job)
    _check_test(job)
    watch = Watch(screen, request.checkpoint, lambda: job.write(is_finished=False))
    try:
        _train(job, watch)
    except Stopped as error:
        _keep(job)
        return interrupted_code(error)
    job.write(is_finished=True)
    tested = _tested(job)
    found = summary_of(job, watch, tested)
    tell_summary(screen, found)
    if tested is not None:
        screen.say()
        show_evaluation(screen, tested)
    screen.result(found)
    return None


def _train(job: Job, watch: Watch) -> None:
    if job.request.cluster is not None:
        _on_cluster(job, watch)
        return
    begin, resume = _from_stream(job) if job.request.stream else _from_memory(job)
    start = time.perf_counter()
    run_under(watch, resume if job.goes_on else begin, resume)
    job.seconds["training"] = time.perf_counter() - start


# ---- where it starts ---------------------------------------------------------------------


def _new(request: TrainRequest, screen: Screen) -> Job:
    if request.checkpoint is not None and request.model is None:
        raise CallError("--checkpoint needs a file to write to: name it with --model.")
    check_cluster(request)
    kind = estimator_class(request.algorithm)
    saved = SavedModel(kind(**_parameters(kind, request)))
    return Job(request, screen, saved, path=_path(request.model))


def _parameters(kind: Any, request: TrainRequest) -> dict[str, Any]:
    """Return the parameters of an estimator that stand on the command line."""
    own = {"random_state": request.seed, "n_jobs": request.jobs}
    given = {name: value for name, value in own.items() if value is not None}
    return parsed_settings(kind, request.settings) | given


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)


def _resumed(request: TrainRequest, screen: Screen) -> Job:
    """Settings are those of the file; a training that had ended goes on with new passes."""
    saved = read_model(request.resume)
    was = saved.training
    is_stopped = was.get("finished") is False
    check_cluster(request)
    if is_stopped and bool(was.get("cluster")) != (request.cluster is not None):
        rest = (
            "on a cluster: name one with --cluster" if was.get("cluster") else "here: no --cluster"
        )
        raise CallError(f"{request.resume} holds a training that was stopped, and goes on {rest}.")
    stream = bool(was.get("stream", request.stream)) if is_stopped else request.stream
    chunk_rows = was.get("chunk_rows") if is_stopped else request.chunk_rows
    asked = {
        **vars(request),
        "stream": stream,
        "chunk_rows": chunk_rows,
        "scale": str(was.get("scale", "none")),
    }
    if request.scale not in ("none", asked["scale"]):
        raise CallError(
            f"--scale is {request.scale}, but {request.resume} was trained with "
            f"--scale {asked['scale']}: leave it out."
        )
    _set_parameters(saved.estimator, request, is_stopped)
    path = _path(request.model or request.resume)
    return Job(TrainRequest(**asked), screen, saved, is_stopped, path)


def _set_parameters(estimator: Any, request: TrainRequest, is_stopped: bool) -> None:
    given = _parameters(type(estimator), request)
    if is_stopped:
        for name in given.keys() - FREE_PARAMETERS:
            if given[name] != getattr(estimator, name, given[name]):
                raise CallError(
                    f"{request.resume} holds a training that was stopped, in which {name} cannot "
                    "change: leave it out to go on with it."
                )
    else:
        _go_on(estimator, request)
    estimator.set_params(**given)


def _go_on(estimator: Any, request: TrainRequest) -> None:
    """Let a finished training go on with new passes or new rows."""
    if "warm_start" not in estimator.get_params() and not request.stream:
        raise CallError(
            f"{request.resume} holds a finished training of {type(estimator).__name__}, which has "
            "no further passes to make: train without --resume, or add rows by --stream."
        )
    estimator.warm_start = request.cluster is None


def _check_place(job: Job) -> None:
    """Before hours are spent."""
    if job.path is None:
        return
    if job.path.is_dir():
        raise CallError(f"--model {job.path} is a folder: name a file in it.")
    if not job.path.absolute().parent.is_dir():
        raise CallError(f"--model {job.path}: there is no such folder; make it first.")


def _check_test(job: Job) -> None:
    """Refuse --threshold and --positive where the call alone shows that they make no sense."""
    request = job.request
    for option, value in (("--threshold", request.threshold), ("--positive", request.positive)):
        if value is not None and request.test is None:
            raise CallError(f"{option} is about test rows: give some with --test.")
    check_choice(request.threshold, request.positive, None, _has_probabilities(job), _title(job))


def _has_probabilities(job: Job) -> bool:
    return hasattr(job.estimator, "predict_proba")


def _title(job: Job) -> str:
    return type(job.estimator).__name__


# ---- rows --------------------------------------------------------------------------------


def _rows(job: Job) -> Stream:
    request = job.request
    rows = open_rows(
        request.data,
        request.reading,
        layout=job.saved.layout,
        base=job.saved.training.get("base"),
        cache=request.cache,
        on_bad=request.on_bad,
        chunk_rows=request.chunk_rows or CHUNK_ROWS,
    )
    job.saved.training.setdefault("base", base_of(rows))
    return rows


def _from_memory(job: Job) -> tuple[Any, Any]:
    """Return functions that begin and that resume a fit of all rows."""
    start = time.perf_counter()
    rows = _rows(job)
    keeps_keys = job.request.scale == "none" and keep_keys(job.estimator, rows.layout)
    job.screen.note(f"Reading {', '.join(job.request.data)}.")
    X, y = joined(rows.all_chunks())
    tell_of_bad_rows(rows, job.screen)
    _recognise(job, rows, y)
    check_labels(y, job.request.data[0])
    if job.request.threshold is not None or job.request.positive is not None:
        choice = job.request.threshold, job.request.positive
        check_choice(*choice, np.unique(y), _has_probabilities(job), _title(job))
    job.saved.layout = rows.layout if rows.layout.sources else None
    if job.saved.scaler is None:
        job.saved.scaler = scaler_of_rows(job.request.scale, X)
    X = scaled(job.saved.scaler, X)
    if keeps_keys and rows.layout.sources:  # which the estimator then keeps, and may add to
        X, job.saved.layout = LaidOut(X, rows.layout), None
    job.n_rows, job.n_skipped = X.shape[0], rows.bad.n_skipped
    job.seconds["reading"] = time.perf_counter() - start
    return lambda: job.estimator.fit(X, y), lambda: job.estimator.resume(X, y)


def _recognise(job: Job, rows: Stream, y: Any = None) -> None:
    """Note what the table was taken for."""
    job.table = table_facts(rows.layout)
    job.label = label_facts(rows.layout, rows.options.label, y)


def _from_stream(job: Job) -> tuple[Any, Any]:
    """Return functions that begin and that resume a training that never holds all rows."""
    start = time.perf_counter()
    rows = _rows(job)
    if job.saved.scaler is None:
        job.saved.scaler = scaler_of_stream(job.request.scale, rows, job.screen)
    job.saved.layout = rows.layout
    job.seconds["reading"] = time.perf_counter() - start
    stream = ScaledStream(rows, job.saved.scaler)

    def note_rows() -> None:
        job.n_rows, job.n_skipped = stream.n_rows, rows.bad.n_skipped
        if not rows.layout.sources:
            job.saved.layout = None
        _recognise(job, rows)
        tell_of_bad_rows(rows, job.screen)

    def begin() -> None:
        job.estimator.fit(stream)
        note_rows()

    def resume() -> None:
        job.estimator.resume(stream)
        note_rows()

    return begin, resume


def _on_cluster(job: Job, watch: Watch) -> None:
    """Train where workers read the rows."""
    request, start = job.request, time.perf_counter()
    if all(Path(path).is_file() for path in request.data):
        _rows(job)  # options, and where indices start
    reading = request.reading | ({"on_bad": "skip"} if request.on_bad == "skip" else {})
    give_layout(job.estimator, job.saved.layout)
    n_before = int(getattr(job.estimator, "n_iter_", 0))
    more = n_before if request.resume and not job.goes_on else 0  # a finished one makes new rounds
    try:
        begun, n_rounds = run_on_cluster(watch, request, job.estimator, more, reading)
    finally:
        job.saved.layout = take_layout(job.estimator)
    job.n_rows, job.seconds["reading"] = watch.n_visits // max(1, n_rounds), begun - start
    job.seconds["training"] = time.perf_counter() - begun
    if job.saved.layout is not None:
        job.table = table_facts(job.saved.layout)
        job.label = label_facts(job.saved.layout, request.reading.get("label", AUTO), None)


# ---- how it ends -------------------------------------------------------------------------


def _keep(job: Job) -> None:
    """Leave a model that can be used and resumed."""
    if not hasattr(job.estimator, "classes_"):
        job.screen.warn("Stopped before there was a model: nothing was written.")
        return
    if job.path is None:
        job.path = Path(IN_CASE_OF_NEED)
    job.write(is_finished=False)
    data = " ".join(map(shlex.quote, job.request.data))
    job.screen.warn(
        f"Stopped in pass {job.estimator.n_iter_ + 1}. {job.path} holds the model so far; go on:"
    )
    where = f" --cluster {shlex.quote(job.request.cluster)}" if job.request.cluster else ""
    job.screen.warn(f"  polyplane train {data} --resume {shlex.quote(str(job.path))}{where}")


def _tested(job: Job) -> Evaluation | None:
    """Return the evaluation on test rows, or None without any."""
    request = job.request
    if request.test is None:
        return None
    loaded = _loaded(job, request.test)
    found = loaded.evaluation(request.threshold, request.positive)
    rows = open_rows(
        request.test,
        request.reading,
        layout=loaded.layout,
        base=loaded.fitted.call.get("base"),
        on_bad=request.on_bad,
    )
    spelt: dict[str, str] = {}
    for chunk in chunks_of(rows, job.screen, "Testing"):
        if not chunk.y.size:
            raise DataError("has no labels, which an evaluation needs", request.test)
        spelt |= other_spellings(np.asarray(chunk.y), loaded.classes)
        labels = as_labels_of(np.asarray(chunk.y), loaded.classes)
        found.add(labels, *loaded.predict_with_values(loaded.rows(chunk.X)))
    tell_of_labels(job.screen, found.tally, spelt, request.test)
    return found


def _loaded(job: Job, source: str) -> LoadedModel:
    """The model as a file would hold it."""
    fitted = fitted_model(job.saved)
    return LoadedModel(fitted, source, layout_of(fitted), n_threads(job.estimator.n_jobs))
