"""What a search saw of its held-out rows, and what it should have chosen."""

import contextlib
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

from polyplane.training.search import contest
from polyplane.training.search.contest import later_half

__all__ = ["looks_at_held_out_rows", "lowest_after_looks", "lowest_as_fitted"]


class Look(NamedTuple):
    """At one trial."""

    settings: Any
    training: Any
    is_wrong: Any
    rows: Any
    n_passes: int  # of the search, or of several one after the other


@contextlib.contextmanager
def looks_at_held_out_rows():
    """A list that fills with looks at trials."""
    seen, original, together, n_passes = [], contest.wrong_rows, contest.pass_side_by_side, 0

    def wrong_rows(trial, data, order):
        is_wrong = original(trial, data, order)
        seen.append(Look(trial.job.settings, trial.training, is_wrong, order, n_passes))
        return is_wrong

    def pass_side_by_side(*given):
        nonlocal n_passes
        n_passes += 1
        together(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contest, "wrong_rows", wrong_rows)
        patch.setattr(contest, "pass_side_by_side", pass_side_by_side)
        yield seen


def lowest_after_looks(seen, name):
    """The value that should have won, if looks were at those left by the look before, in order."""
    looks = {}
    for one in seen:
        of_value = looks.setdefault(one.n_passes, {}).setdefault(getattr(one.settings, name), [])
        of_value.append(one.is_wrong.mean())
    errors = list(looks.values())
    for before, after in pairwise(errors):
        assert list(after) == [value for value in before if value in after]
    recent = {value: later_half(np.array([each[value] for each in errors])) for value in errors[-1]}
    return min(recent, key=lambda value: recent[value].mean())


def lowest_as_fitted(seen, name, n_rows):
    """The value that should have won, if models of all rows were judged first, and then parts.

    Of a trial that leaves out a part there are two looks: at that part and at the others.
    """
    learned = {
        getattr(one.settings, name): one.is_wrong.mean() for one in seen if one.rows.size == n_rows
    }
    of_parts = [one for one in seen if one.rows.size < n_rows]
    more = {}
    for left, kept in zip(of_parts[::2], of_parts[1::2], strict=True):
        assert left.training is kept.training
        assert sorted([*left.rows, *kept.rows]) == list(range(n_rows))
        value = getattr(left.settings, name)
        more.setdefault(value, []).append(left.is_wrong.mean() - kept.is_wrong.mean())
    n_parts = max(map(len, more.values()))
    expected = {v: learned[v] + np.mean(each) for v, each in more.items() if len(each) == n_parts}
    return min(expected, key=expected.get)
