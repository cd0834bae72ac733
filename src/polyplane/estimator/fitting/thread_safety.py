"""One estimator in several threads: threads that train or read it take turns.

Training changes planes and support vectors in place. A thread that trains holds the lock of the
estimator. A thread that reads waits for the step at work, takes a view of the estimator and lets go
of the lock: the view holds the finished classifier, which is never changed.
Locks are kept beside estimators, not in them: copies, pickles and model files know nothing of them.
A copy or a pickle is made of a model at rest.
"""

import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from polyplane.training.state import twin

__all__ = [
    "at_rest", "finished_of", "forget_finished", "reads", "reads_alone", "remember", "view_of",
    "writes", "writing",
]  # fmt: skip

Method = TypeVar("Method", bound=Callable[..., Any])


class _Turns:
    """The lock of an estimator, and what was derived of its training."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.line = threading.Lock()  # a writer that returns at once waits behind the readers
        self.writer: int | None = None  # the thread that trains
        self.finished: Any = None  # the finished classifier and its training, until one trains

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock; a thread that trains holds it already."""
        if self.writer == threading.get_ident():
            yield
            return
        with contextlib.ExitStack() as stack:
            with self.line:
                stack.enter_context(self.lock)
            yield


_TURNS: Any = weakref.WeakKeyDictionary()
_OF_TURNS = threading.Lock()


def _forget_threads() -> None:
    """Forget all locks: a forked process has none of the threads that hold them."""
    global _OF_TURNS
    _OF_TURNS = threading.Lock()
    _TURNS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def _turns_of(estimator: Any) -> _Turns:
    with _OF_TURNS:
        turns: _Turns | None = _TURNS.get(estimator)
        if turns is None:
            turns = _TURNS[estimator] = _Turns()
        return turns


def view_of(estimator: Any) -> Any:
    """Return the fitted estimator as it is between two steps; the thread that trains gets itself.

    The finished classifier is derived once after a training. No array is copied.
    """
    turns = _turns_of(estimator)
    if turns.writer == threading.get_ident():
        return estimator
    with turns.held():
        if turns.finished is None or turns.finished[1] is not vars(estimator).get("_training"):
            turns.finished = estimator._record(), vars(estimator)["_training"]
        view = twin(estimator)
        view._finished = turns.finished[0]
        view._training = twin(estimator._training)
        return view


def finished_of(view: Any) -> Any:
    """Return the finished classifier of a view; None of an estimator itself."""
    return vars(view).get("_finished")


def remember(estimator: Any, finished: Any) -> None:
    """Keep the finished classifier of an estimator, such as one from a file."""
    _turns_of(estimator).finished = finished, estimator._training


def forget_finished(estimator: Any) -> None:
    """Have the finished classifier derived anew."""
    _turns_of(estimator).finished = None


@contextlib.contextmanager
def writing(estimator: Any) -> Iterator[None]:
    """Hold the lock of an estimator that is changed."""
    turns = _turns_of(estimator)
    if turns.writer == threading.get_ident():
        yield
        return
    with turns.held():
        turns.writer, turns.finished = threading.get_ident(), None
        try:
            yield
        finally:
            turns.writer = None


@contextlib.contextmanager
def at_rest(estimator: Any) -> Iterator[None]:
    """Hold the lock of an estimator of which all is read; the thread that trains may read it."""
    with _turns_of(estimator).held():
        yield


def writes(method: Method) -> Method:
    """Return a method that trains, one thread at a time."""
    return _inside(writing, method)


def reads_alone(method: Method) -> Method:
    """Return a method that reads models in training while nobody trains."""
    return _inside(at_rest, method)


def _inside(lock: Callable[[Any], Any], method: Method) -> Method:
    @functools.wraps(method)
    def alone(self: Any, *arguments: Any, **named: Any) -> Any:
        with lock(self):
            return method(self, *arguments, **named)

    return alone  # type: ignore[return-value]


def reads(method: Method) -> Method:
    """Return a method that reads the finished classifier."""

    @functools.wraps(method)
    def of_view(self: Any, *arguments: Any, **named: Any) -> Any:
        return method(view_of(self), *arguments, **named)

    return of_view  # type: ignore[return-value]
