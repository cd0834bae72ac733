"""What a search saw of its held-out rows, and what it should have chosen."""

import contextlib

import numpy as np
import pytest

from polyplane.estimator.planes.packs import clearly_behind

__all__ = ["looks_at_held_out_rows", "lowest_after_rounds"]


@contextlib.contextmanager
def looks_at_held_out_rows(kind):
    """A list that fills with machine, training and wrong rows of each look."""
    seen, original = [], kind._wrong_rows

    def wrong_rows(self, training, data, order):
        is_wrong = original(self, training, data, order)
        seen.append((self, training, is_wrong))
        return is_wrong

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "_wrong_rows", wrong_rows)
        yield seen


def lowest_after_rounds(seen, name, values, n_passes):
    """The value with the lowest error after the last pass, if all that was seen is in order."""
    alive, place = list(values), 0
    for _ in range(n_passes):
        looks = seen[place : place + len(alive)]
        assert [getattr(machine, name) for machine, _, _ in looks] == alive
        place += len(alive)
        is_wrong = np.stack([each for _, _, each in looks])
        stays = ~clearly_behind(is_wrong)
        alive = [value for value, stay in zip(alive, stays, strict=True) if stay]
        errors = is_wrong.mean(axis=1)[stays]
    assert place == len(seen)
    return alive[int(np.argmin(errors))]
