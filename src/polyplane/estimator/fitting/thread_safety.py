"""One estimator in several threads: writers take turns, readers see the state before or after.

Training changes planes and support vectors in place. Whoever trains holds the estimator's lock;
whoever only looks takes a view of it, made while nobody trains: the finished classifier, which is
never changed, with what belongs to it. While training is at work, readers go on with the view from
before if there is one, and else wait for its end.
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

__all__ = [
    "at_rest", "finished_of", "forget_finished", "reads", "reads_alone", "remember", "view_of",
    "writes", "writing",
]  # fmt: skip

Method = TypeVar("Method", bound=Callable[..., Any])
LONGEST_COURTESY = 0.1  # seconds for which a writer lets readers go first that wait already


class Turns:
    """Whose turn it is."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.writer: int | None = None  # the thread that trains
        self.before: Any = None  # the view for readers while it does
        self.finished: Any = None  # what is left of a training, and whose it is, until one trains
        self._n_waiting = 0
        self._of_waiting = threading.Lock()
        self.nobody_waits = threading.Event()
        self.nobody_waits.set()

    @contextlib.contextmanager
    def waited_for(self) -> Iterator[None]:
        """The lock, for a reader that has to wait for it."""
        self._count_waiting(1)
        try:
            with self.lock:
                yield
        finally:
            self._count_waiting(-1)

    def _count_waiting(self, change: int) -> None:
        with self._of_waiting:
            self._n_waiting += change
            if self._n_waiting:
                self.nobody_waits.clear()
            else:
                self.nobody_waits.set()


_TURNS: Any = weakref.WeakKeyDictionary()
_OF_TURNS = threading.Lock()


def _forget_threads() -> None:
    """A process that was forked has none of the threads that hold locks."""
    global _OF_TURNS
    _OF_TURNS = threading.Lock()
    _TURNS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def _turns_of(estimator: Any) -> Turns:
    with _OF_TURNS:
        turns: Turns | None = _TURNS.get(estimator)
        if turns is None:
            turns = _TURNS[estimator] = Turns()
        return turns


def view_of(estimator: Any) -> Any:
    """The fitted estimator as it was before or is after what other threads do to it."""
    turns = _turns_of(estimator)
    if turns.writer == threading.get_ident():
        return estimator
    if turns.lock.acquire(blocking=False):
        try:
            return _view(estimator, turns)
        finally:
            turns.lock.release()
    before = turns.before
    if before is not None:
        return before
    with turns.waited_for():
        return _view(estimator, turns)


def _view(estimator: Any, turns: Turns) -> Any:
    """For who holds the lock. What is left of a training is derived once and copies no array."""
    if not _is_finished(estimator, turns):
        turns.finished = estimator._record(), vars(estimator)["_training"]
    view = _twin(estimator)
    view._finished = turns.finished[0]
    view._training = _twin(estimator._training)
    if vars(view._training).get("own") is not None:  # which training changes in place
        view._training.own = _twin(view._training.own)
    return view


def _is_finished(estimator: Any, turns: Turns) -> bool:
    """Whether what is left of its training has been derived and still holds."""
    return turns.finished is not None and turns.finished[1] is vars(estimator).get("_training")


def finished_of(view: Any) -> Any:
    """What is left of a training, where a view has it; None of an estimator itself.

    Nobody has to forget it: it is kept beside the lock, and whoever trains lets go of it.
    """
    return vars(view).get("_finished")


def remember(estimator: Any, finished: Any) -> None:
    """What is left of its training is known, as from a file."""
    _turns_of(estimator).finished = finished, estimator._training


def forget_finished(estimator: Any) -> None:
    """What is left of its training is to be derived anew."""
    _turns_of(estimator).finished = None


def _twin(thing: Any) -> Any:
    made = object.__new__(type(thing))
    vars(made).update(vars(thing))
    return made


@contextlib.contextmanager
def writing(estimator: Any) -> Iterator[None]:
    """The estimator's lock, for whoever changes it."""
    turns, thread = _turns_of(estimator), threading.get_ident()
    if turns.writer == thread:
        yield
        return
    turns.nobody_waits.wait(LONGEST_COURTESY)
    with turns.lock:
        has_view = _is_finished(estimator, turns)
        turns.before, turns.writer = _view(estimator, turns) if has_view else None, thread
        turns.finished = None
        try:
            yield
        finally:
            turns.before = turns.writer = None


@contextlib.contextmanager
def at_rest(estimator: Any) -> Iterator[None]:
    """The estimator's lock, for whoever looks at all of it; who trains may look in between."""
    with _turns_of(estimator).lock:
        yield


def writes(method: Method) -> Method:
    """A method that trains: it waits for others that do."""

    @functools.wraps(method)
    def alone(self: Any, *arguments: Any, **named: Any) -> Any:
        with writing(self):
            return method(self, *arguments, **named)

    return alone  # type: ignore[return-value]


def reads(method: Method) -> Method:
    """A method that looks at the finished classifier."""

    @functools.wraps(method)
    def of_view(self: Any, *arguments: Any, **named: Any) -> Any:
        return method(view_of(self), *arguments, **named)

    return of_view  # type: ignore[return-value]


def reads_alone(method: Method) -> Method:
    """A method that looks at models in training: it waits until nobody trains."""

    @functools.wraps(method)
    def when_it_rests(self: Any, *arguments: Any, **named: Any) -> Any:
        with at_rest(self):
            return method(self, *arguments, **named)

    return when_it_rests  # type: ignore[return-value]
