"""Training from a stream of chunks, in as many passes as `max_iter` says.

A pass hands each chunk to `partial_fit`. With `shuffle` rows are mixed within a window of chunks,
anew in each pass; without it a pass is exactly `partial_fit` over the chunks, one by one.
Columns and classes are met as they come: a class that is not announced starts with its first row.
A stream of tables leaves its layout to the estimator, which then takes frames, too.
"""

import contextlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import scipy.sparse as sp
from sklearn.utils import check_random_state

from polyplane.data.chunk_sizes import widened
from polyplane.data.chunks import Chunk
from polyplane.data.table.layout import Layout
from polyplane.estimator.fitting.pass_watch import PassWatch, watch_of
from polyplane.estimator.fitting.restoring import check_can_resume, restoring, training_of
from polyplane.estimator.fitting.thread_safety import writing
from polyplane.estimator.input.tables import give_layout, take_layout, width_of
from polyplane.estimator.parameters import check_parameters
from polyplane.training.finished import check_can_learn_on
from polyplane.training.work.interruption import interrupts_wait
from polyplane.training.work.progress import stream_progress

__all__ = [
    "RowStream", "StreamCourse", "check_alone", "fit_stream", "forget_stream", "give_stream_course",
    "stream_course_of",
]  # fmt: skip

Estimator = TypeVar("Estimator")


@dataclass
class StreamCourse:
    """Position of a training in its stream."""

    seed: int  # of the order of rows
    n_passes: int = 0  # completed
    n_chunks: int = 0  # of the pass at work that have been learned


@runtime_checkable
class RowStream(Protocol):
    """Protocol of what `polyplane.stream` returns; asking for it loads no reader."""

    @property
    def is_once(self) -> bool:
        """Return True if it can be read only once."""

    def __iter__(self) -> Generator[Chunk, None, None]:
        """One pass."""

    def shuffled(self, seed: Sequence[int]) -> Generator[Chunk, None, None]:
        """One pass in random order."""


def fit_stream(
    estimator: Estimator,
    stream: RowStream,
    *,
    classes: Any = None,
    resumes: bool = False,
    eval_set: Any = None,
    callbacks: Any = None,
) -> Estimator:
    """Train on the rows of a stream; return the estimator.

    It starts anew unless it has `warm_start`, or `resumes` where it was interrupted. `classes`
    announces labels; `eval_set` and `callbacks` are those of `fit`, looked at after each pass.
    Ctrl-C is raised once the chunk at work has been learned, and leaves a model that can be used,
    trained further and resumed; a second Ctrl-C is raised at once. An error leaves what
    `restoring.py` says.
    """
    with writing(estimator):
        _fit_stream(estimator, stream, classes, resumes, _Asked(eval_set, callbacks))
    return estimator


class _Asked(NamedTuple):
    """Arguments of a fit that concern evaluations and callbacks."""

    eval_set: Any
    callbacks: Any


def _fit_stream(
    model: Any,
    stream: RowStream,
    classes: Any,
    resumes: bool,
    asked: _Asked,
) -> None:
    check_parameters(model)
    _check_streamable(model, stream)
    if resumes:
        check_can_learn_on(model)
        check_can_resume(model, hasattr(model, "_stream_course"))
    with restoring(model), _layout_of(model, stream):
        _begin(model, resumes)
        course = model._stream_course = _course_of(model)
        title, unit = type(model).__name__, model.family.unit
        watch: PassWatch | None = None
        is_first = True  # pass of this call
        with stream_progress(title, unit, _count_passes(model), bool(model.verbose)) as show:
            while course.n_passes < _count_passes(model):
                for chunk in _rest_of_pass(model, stream):
                    with interrupts_wait():
                        _learn(model, chunk, classes)
                        training_of(model).n_passes = course.n_passes
                        course.n_chunks += 1
                    classes = None
                    show(course.n_passes, chunk.X.shape[0])
                _check_classes(model)
                if is_first:  # only now labels and columns are known
                    watch = watch_of(model, *asked, training_of(model).labels, resumes)
                    is_first = False
                with interrupts_wait():
                    course.n_passes, course.n_chunks = course.n_passes + 1, 0
                    training_of(model).n_passes = course.n_passes
                    record = None if watch is None else watch.look(model)
                if watch is not None and record is not None and watch.is_ended_by(record):
                    break
        model.complete_stream()
        forget_stream(model)


def stream_course_of(model: Any) -> StreamCourse | None:
    """Return the position in its stream of a training that was interrupted."""
    course: StreamCourse | None = vars(model).get("_stream_course")
    return course


def give_stream_course(model: Any, course: StreamCourse) -> None:
    """Let training from a stream be resumed from there."""
    model._stream_course = course


def forget_stream(model: Any) -> None:
    """Remove the position in the stream."""
    vars(model).pop("_stream_course", None)


def _course_of(model: Any) -> StreamCourse:
    """Return the course of the training that goes on, or of a new one."""
    course = stream_course_of(model)
    return course or StreamCourse(int(check_random_state(model.random_state).randint(2**31)))


def _count_passes(model: Any) -> int:
    """Return how many passes are made; one of estimators without `max_iter`."""
    return int(getattr(model, "max_iter", 1))


def _rest_of_pass(model: Any, stream: RowStream) -> Iterator[Chunk]:
    """The chunks of the pass at work that have not been learned yet."""
    course = model._stream_course
    n_learned = course.n_chunks
    is_mixed = model.shuffle
    new_pass = stream.shuffled([course.seed, course.n_passes]) if is_mixed else iter(stream)
    with contextlib.closing(new_pass) as chunks:
        for _ in range(n_learned):
            if next(chunks, None) is None:
                raise ValueError(
                    f"{type(model).__name__}: the stream to resume ends before the place where "
                    "training was interrupted: give the same rows and chunk_rows again."
                )
        yield from chunks


def _learn(model: Any, chunk: Chunk, classes: Any) -> None:
    """Visit the rows of a chunk; those of a later file may use fewer columns than were met."""
    if not chunk.y.size:
        raise ValueError("The stream has no labels, which training needs: name their column.")
    X = chunk.X
    if sp.issparse(X) and hasattr(model, "n_features_in_"):
        X = widened(X, width_of(model))
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
    """Refuse streams and settings that `partial_fit` does not refuse by itself."""
    name = type(model).__name__
    if not hasattr(model, "partial_fit"):
        raise ValueError(f"{model!r} has no partial_fit, which a stream needs: read all rows.")
    if getattr(model, "early_stopping", False):
        raise ValueError(
            f"{name}: early_stopping needs all rows at once, not a stream: set it to False."
        )
    if stream.is_once and _count_passes(model) > 1:
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
def _layout_of(model: Any, stream: RowStream) -> Iterator[None]:
    """Rows of chunks are laid out; afterwards the model takes tables as the stream does.

    In the middle of a pass the stream may have met more columns than the model: then it does not.
    """
    before = take_layout(model)
    try:
        yield
    finally:
        layout: Layout | None = getattr(stream, "layout", None)
        if hasattr(model, "n_features_in_"):
            give_layout(model, layout.copied() if layout and layout.sources else before)


def _begin(model: Any, resumes: bool) -> None:
    """Forget what was learned before, unless training goes on from it."""
    if not resumes:
        forget_stream(model)
    if not resumes and not model.warm_start:
        for name in vars(model).keys() - model.get_params(deep=False).keys():
            delattr(model, name)
