"""Training from a stream of chunks, in as many passes as `max_iter` says.

A pass hands each chunk to `partial_fit`. With `shuffle` rows are mixed within a window of chunks,
anew in each pass; without it a pass is exactly `partial_fit` over the chunks, one by one.
Columns and classes are met as they come: a class that is not announced starts with its first row.
"""

import contextlib
import signal
import threading
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import scipy.sparse as sp
from sklearn.utils import check_random_state

from polyplane.data.chunk_sizes import widened
from polyplane.data.chunks import Chunk
from polyplane.estimator.parameters import check_parameters
from polyplane.estimator.progress import StreamReport, stream_progress

__all__ = ["RowStream", "check_alone", "fit_stream"]

Estimator = TypeVar("Estimator")


@runtime_checkable
class RowStream(Protocol):
    """What `polyplane.stream` returns; to ask whether X is one loads no reader."""

    @property
    def is_once(self) -> bool:
        """Whether it can be read only once."""

    def __iter__(self) -> Generator[Chunk, None, None]:
        """One pass."""

    def shuffled(self, seed: Sequence[int]) -> Generator[Chunk, None, None]:
        """One pass in random order."""


def fit_stream(
    estimator: Estimator,
    stream: RowStream,
    *,
    classes: Any = None,
    report: StreamReport | None = None,
) -> Estimator:
    """Train on the rows of a stream; return the estimator.

    It starts anew unless it has `warm_start`. `classes` announces labels, `report` is called after
    each chunk. An error leaves the estimator as it was. Ctrl-C is raised once the chunk at work has
    been learned, and leaves a model that can be used and trained further; a second Ctrl-C is raised
    at once.
    """
    model: Any = estimator
    check_parameters(model)
    _check_streamable(model, stream)
    seed = int(check_random_state(model.random_state).randint(2**31))
    bar = stream_progress(type(model).__name__, model.max_iter, bool(model.verbose))
    with _started_anew(model), bar as show, _without_bars(model):
        n_rows = 0
        for n_passes in range(model.max_iter):
            new_pass = stream.shuffled([seed, n_passes]) if model.shuffle else iter(stream)
            with contextlib.closing(new_pass) as chunks:
                for chunk in chunks:
                    with _interrupts_wait():
                        _learn(model, chunk, classes)
                        model.n_iter_ = n_passes
                    classes, n_rows = None, n_rows + chunk.X.shape[0]
                    show(n_passes, n_rows)
                    if report is not None:
                        report(n_passes, n_rows)
            _check_classes(model)
            model.n_iter_ = n_passes + 1
        if hasattr(model, "finish") and model._finishes():
            model.finish()
    return estimator


def _learn(model: Any, chunk: Chunk, classes: Any) -> None:
    """Visit the rows of a chunk; those of a later file may use fewer columns than were met."""
    if not chunk.y.size:
        raise ValueError("The stream has no labels, which training needs: name their column.")
    X = widened(chunk.X, getattr(model, "n_features_in_", 0)) if sp.issparse(chunk.X) else chunk.X
    model.partial_fit(X, chunk.y, classes=classes)


def check_alone(model: Any, **given: Any) -> None:
    """`fit` on a stream takes nothing else: the stream has the labels in it, and no weights."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{type(model).__name__}: {name} does not go with a stream, which brings rows and "
                "labels: leave it out, or read all rows."
            )


def _check_streamable(model: Any, stream: RowStream) -> None:
    """What `partial_fit` does not refuse by itself."""
    name = type(model).__name__
    if not hasattr(model, "partial_fit"):
        raise ValueError(f"{model!r} has no partial_fit, which a stream needs: read all rows.")
    if getattr(model, "early_stopping", False):
        raise ValueError(
            f"{name}: early_stopping needs all rows at once, not a stream: set it to False."
        )
    if stream.is_once and model.max_iter > 1:
        raise ValueError(
            f"{name}: max_iter={model.max_iter} passes need a stream that can be read again, which "
            "a pipe cannot: set max_iter=1, or save it to a file first."
        )


def _check_classes(model: Any) -> None:
    if model.classes_.size < 2:
        raise ValueError(
            f"{type(model).__name__} needs rows of at least 2 classes; the stream holds only one "
            f"class, {model.classes_.tolist()[0]!r}."
        )


@contextlib.contextmanager
def _started_anew(model: Any) -> Iterator[None]:
    """Forget what was learned before, unless training goes on from it or fails."""
    before = dict(vars(model))
    if not model.warm_start:
        for name in before.keys() - model.get_params(deep=False).keys():
            delattr(model, name)
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) or not hasattr(model, "classes_"):
            vars(model).clear()
            vars(model).update(before)
        raise


@contextlib.contextmanager
def _without_bars(model: Any) -> Iterator[None]:
    """A progress bar for each chunk would be no progress."""
    shown, model.verbose = model.verbose, False
    try:
        yield
    finally:
        model.verbose = shown


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Hold the first Ctrl-C back until the end."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    pressed: list[tuple[int, Any]] = []

    def note(number: int, frame: Any) -> None:
        if pressed:
            usual(number, frame)
        pressed.append((number, frame))

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if pressed:
        usual(*pressed[0])
