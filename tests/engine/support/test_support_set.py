"""The support set: slots, the list of active ones, picks, and the cache of lines."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.jit import jit
from polyplane.engine.support.gram_cache import (
    add_line,
    bring_line,
    has_line,
    keep_line,
    touch_line,
)
from polyplane.engine.support.support_set import (
    ACTIVE,
    INSERTED,
    NOT_THERE,
    OF_SIDE,
    PART,
    REMOVED,
    SLOTS,
    WANTED,
    Visit,
    active_slots,
    add_update,
    empty_set,
    is_full,
    likely_pick,
    new_vector,
    remove_least,
    remove_vector,
    slot_of,
    spans_of_set,
    spans_of_visit,
    weighted_sum,
    with_places,
    with_room,
)
from tests.examples import examples

pytestmark = pytest.mark.loops

ROOM, N_LINES = 32, 4


@jit
def insert(held, visit, j):
    """Row j becomes a vector; return its slot, or -2 where there is no room."""
    vectors, rows = spans_of_set(held), spans_of_visit(visit)
    if is_full(vectors):
        return -2
    return new_vector(vectors, rows, j, visit.diagonal[j])


@jit
def remove(held, slot):
    """Give the slot back."""
    remove_vector(spans_of_set(held), slot, 1)


@jit
def keep(held, visit, j, slot):
    """The line of row j, which is the vector in `slot`, enters the cache."""
    return keep_line(spans_of_set(held), slot, spans_of_visit(visit), j)


@jit
def touch(held, slot):
    """Use a line."""
    return touch_line(spans_of_set(held), slot)


@jit
def asks(held, slot, part):
    """Whether the line is there."""
    return has_line(spans_of_set(held), slot, part)


@jit
def add_up(held, kind, visit, j):
    """The weighted sum of row j."""
    return weighted_sum(spans_of_set(held), kind, spans_of_visit(visit), j)


@jit
def found_slot(held, visit, j):
    """The slot of row j."""
    return slot_of(spans_of_set(held), spans_of_visit(visit), j)


@jit
def add_to_scores(held, kind, factor, start):
    """Add a line to scores."""
    add_line(spans_of_set(held), kind, factor, start)


@jit
def add_to_row(held, visit, j, now, timed):
    """Add to the coefficients of row j."""
    add_update(spans_of_set(held), spans_of_visit(visit), j, now, timed)


@jit
def drop_least(held):
    """Remove the least vector."""
    remove_least(spans_of_set(held))


def gram(n, seed=0):
    """A symmetric matrix of whole numbers, each of its own."""
    values = np.random.default_rng(seed).permutation(n * n).reshape(n, n).astype(np.float32)
    return values + values.T


def visit_of(K, side=None):
    """All rows of a Gram matrix as one chunk that met no support vector before."""
    n = len(K)
    side = np.arange(n) % 2 if side is None else np.asarray(side)
    return Visit(
        values=np.ascontiguousarray(K, np.float32),
        diagonal=np.diagonal(K).astype(np.float32),
        side=side.astype(np.int32),
        weight=np.ones(n),
        slot=np.full(n, NOT_THERE, np.int32),
        row=np.arange(100, 100 + n),
        first_place=0,
    )


def roomy(n_coefs=1, n_scores=1, room=ROOM, n_lines=N_LINES):
    """An empty set with room."""
    return with_room(empty_set(n_coefs, n_scores), room, n_lines)


def vectors(held):
    """What every vector is, by its row, in the order of the active list."""
    return [
        (
            int(held.row[s]),
            int(held.side[s]),
            int(held.place[s]),
            float(held.own[s]),
            held.coef[:, s].tolist(),
            held.scores[:, s].tolist(),
            float(held.low[s]),
            float(held.high[s]),
        )
        for s in active_slots(held)
    ]


# ---- slots -----------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 99), max_size=80))
@settings(deadline=None, max_examples=examples(40))
def test_slots_and_the_active_list_are_those_of_a_plain_list(steps):
    """Even numbers insert the next row, odd ones remove a vector: the model is three lists."""
    visit, held = visit_of(gram(ROOM)), roomy()
    active, free, rows, n_slots, n_removed = [], [], {}, 0, 0
    waiting = list(range(ROOM))
    for step in steps:
        if step % 2 == 0 and waiting:
            j = waiting.pop(0)
            slot = free.pop() if free else n_slots
            n_slots = max(n_slots, slot + 1)
            assert insert(held, visit, j) == slot
            active.append(slot)
            rows[slot] = j
        elif step % 2 == 1 and active:
            hole = step % len(active)
            slot = active[hole]
            last = active.pop()
            if last != slot:
                active[hole] = last
            waiting.append(rows[slot])
            free.append(slot)
            n_removed += 1
            remove(held, slot)
        assert active_slots(held).tolist() == active
        assert held.row[active].tolist() == [100 + rows[s] for s in active]
        assert held.place[active].tolist() == [rows[s] for s in active]
        assert held.position[active].tolist() == list(range(len(active)))
        assert (np.delete(held.position, active) == NOT_THERE).all()
        of_side = np.bincount([rows[s] % 2 for s in active], minlength=2)
        assert held.counts[OF_SIDE : OF_SIDE + 2].tolist() == of_side.tolist()
        assert held.counts[[SLOTS, REMOVED]].tolist() == [n_slots, n_removed]
        assert held.counts[INSERTED] == len(active) + n_removed


def test_a_set_is_full_when_every_slot_is_in_use():
    visit, held = visit_of(gram(17)), roomy(room=16)
    assert [insert(held, visit, j) for j in range(16)] == list(range(16))
    assert insert(held, visit, 16) == -2
    remove(held, 5)
    assert insert(held, visit, 16) == 5


def test_a_freed_slot_weighs_nothing():
    visit, held = visit_of(gram(6)), roomy(n_coefs=1)
    for j in range(3):
        slot = insert(held, visit, j)
        held.coef[0, slot], held.low[slot], held.high[slot] = j + 1, -1, 1
    remove(held, 1)
    assert held.coef[0, :3].tolist() == [1, 0, 3]
    assert held.low[1] == held.high[1] == 0
    assert add_up(held, 0, visit, 5) == visit.values[5, 0] + 3 * visit.values[5, 2]


@pytest.mark.parametrize("n", range(10))
def test_a_weighted_sum_is_over_all_vectors(n):
    visit, held = visit_of(gram(12)), roomy(n_coefs=2)
    for j in range(n):
        insert(held, visit, j)
    held.coef[:, :n] = np.random.default_rng(0).integers(-9, 10, (2, n))
    for kind, j in itertools.product((0, 1), (0, 11)):
        assert add_up(held, kind, visit, j) == held.coef[kind, :n] @ visit.values[j, :n]


def test_a_row_is_found_only_while_its_slot_is_its_own():
    visit, held = visit_of(gram(4)), roomy()
    for j in range(3):
        insert(held, visit, j)
    later = visit._replace(slot=np.array([0, 1, 2, NOT_THERE], np.int32))
    assert [found_slot(held, later, j) for j in range(4)] == [0, 1, 2, NOT_THERE]
    remove(held, 1)
    assert found_slot(held, later, 1) == NOT_THERE
    insert(held, visit, 3)  # takes slot 1
    assert held.row[1] == 103
    assert found_slot(held, later, 1) == NOT_THERE
    assert found_slot(held, later, 2) == 2


def test_an_update_adds_to_the_row_that_is_there_or_to_a_new_vector():
    visit, held = visit_of(gram(3)), roomy(n_coefs=2)
    add_to_row(held, visit, 1, 2.0, 5.0)
    assert held.counts[ACTIVE] == 1
    again = visit._replace(slot=np.array([NOT_THERE, 0, NOT_THERE], np.int32))
    add_to_row(held, again, 1, -3.0, 1.0)
    add_to_row(held, again, 0, 7.0, 8.0)
    assert held.row[active_slots(held)].tolist() == [101, 100]
    assert held.coef[:, :2].tolist() == [[-1, 7], [6, 8]]
    assert held.own[:2].tolist() == [visit.diagonal[1], visit.diagonal[0]]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=examples(30))
def test_the_least_vector_is_the_shortest_and_of_equals_the_first_row(coefs, random):
    n = len(coefs)
    K = np.diag([random.choice([1.0, 4.0]) for _ in range(n)])
    visit, held = visit_of(K), roomy(n_coefs=2)
    order = random.sample(range(n), n)
    for j in order:
        add_to_row(held, visit, j, float(coefs[j]), 1.0)
    expected = min(range(n), key=lambda j: (coefs[j] ** 2 * K[j, j], j))
    drop_least(held)
    left = sorted(held.row[active_slots(held)] - 100)
    assert left == [j for j in range(n) if j != expected]
    assert not held.coef[:, held.position == NOT_THERE].any()


# ---- picks -----------------------------------------------------------------------------------


def picks(n, n_coins):
    """What each of so many coins, evenly spaced, picks of n."""
    return np.array([likely_pick(k / n_coins, n) for k in range(n_coins)])


@pytest.mark.parametrize("n", [2, 3, 5, 6, 7, 8, 9, 13])
def test_every_number_is_picked_equally_often(n):
    n_digits, n_tries = (n - 1).bit_length(), 3
    counts = np.bincount(picks(n, 2 ** (n_digits * n_tries)), minlength=n)
    assert counts.size == n
    assert (counts[1:] == counts[-1]).all()
    n_spent = (2**n_digits - n) ** n_tries  # coins without a number among their digits: 0 follows
    assert counts[0] - n_spent == counts[-1]


@pytest.mark.parametrize("n", [3, 5, 6, 7, 9, 12, 15])
def test_one_number_more_changes_only_the_picks_of_that_number(n):
    before, after = picks(n, 2**12), picks(n + 1, 2**12)
    changed = before != after
    assert (after[changed] == n).all()
    width = 2 ** (n - 1).bit_length()
    n_tries = 12 // (n - 1).bit_length()
    picks_it = (1 - (1 - (n + 1) / width) ** n_tries) / (n + 1)  # uniform, where digits suffice
    assert changed.sum() == round(picks_it * 2**12)


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 10**6))
@settings(deadline=None)
def test_a_pick_is_always_in_range(coin, n):
    assert 0 <= likely_pick(coin, n) < n


# ---- the cache -------------------------------------------------------------------------------


def filled(n, n_lines=N_LINES):
    """A set of the first n rows, the line of each entering the cache as it comes."""
    visit, held = visit_of(gram(ROOM)), roomy(n_lines=n_lines)
    for j in range(n):
        keep(held, visit, j, insert(held, visit, j))
    return visit, held


def lines(held, K):
    """Slots that have a line, each of which must hold true values; the last used comes last."""
    slots = active_slots(held)
    owned = [line for line in range(held.owner.size) if held.owner[line] != NOT_THERE]
    for line in owned:
        slot = held.owner[line]
        assert held.line[slot] == line
        np.testing.assert_array_equal(
            held.gram[line, slots], K[held.place[slot], held.place[slots]]
        )
    assert np.count_nonzero(held.line != NOT_THERE) == len(owned)
    return [int(held.owner[line]) for line in sorted(owned, key=lambda line: held.used[line])]


def test_the_line_not_used_for_longest_makes_room():
    visit, held = filled(3)
    assert lines(held, visit.values) == [0, 1, 2]
    touch(held, 0)
    assert lines(held, visit.values) == [1, 2, 0]
    for j in (3, 4):
        keep(held, visit, j, insert(held, visit, j))
    assert lines(held, visit.values) == [2, 0, 3, 4]
    bring_line(held, 1, visit.values[1, held.place].copy())
    assert lines(held, visit.values) == [0, 3, 4, 1]


def test_a_removed_vector_gives_its_line_back_first():
    visit, held = filled(4)
    remove(held, 2)
    assert lines(held, visit.values) == [0, 1, 3]
    slot = insert(held, visit, 9)
    assert slot == 2
    keep(held, visit, 9, slot)
    assert lines(held, visit.values) == [0, 1, 3, 2]


@given(st.lists(st.tuples(st.sampled_from("ikrtb"), st.integers(0, 99)), max_size=60))
@settings(deadline=None, max_examples=examples(40))
def test_lines_are_true_whatever_happens(steps):
    visit, held = visit_of(gram(ROOM)), roomy()
    waiting = list(range(ROOM))
    for what, number in steps:
        slots = active_slots(held)
        with_line = slots[held.line[slots] != NOT_THERE]
        if what in "ik" and waiting:
            j = waiting.pop(number % len(waiting))
            keep(held, visit, j, insert(held, visit, j))
        elif what == "r" and slots.size:
            slot = int(slots[number % slots.size])
            waiting.append(int(held.place[slot]))
            remove(held, slot)
        elif what == "t" and with_line.size:
            touch(held, int(with_line[number % with_line.size]))
        elif what == "b" and slots.size > with_line.size:
            slot = int(np.setdiff1d(slots, with_line)[0])
            bring_line(held, slot, visit.values[held.place[slot], held.place].copy())
            assert lines(held, visit.values)[-1] == slot
        lines(held, visit.values)


def test_a_missing_line_is_asked_for():
    _, held = filled(6)
    assert asks(held, 5, 3)
    assert held.counts[WANTED] == NOT_THERE
    assert not asks(held, 0, 3)
    assert held.counts[[WANTED, PART]].tolist() == [0, 3]


def test_a_line_is_added_to_scores_of_its_kind():
    visit = visit_of(gram(ROOM))
    held = roomy(n_scores=2)
    for j in range(3):
        keep(held, visit, j, insert(held, visit, j))
    held.scores[:, :3] = [[1, 2, 3], [4, 5, 6]]
    add_to_scores(held, 1, 2.0, touch(held, 1))
    assert held.scores[0, :3].tolist() == [1, 2, 3]
    np.testing.assert_array_equal(held.scores[1, :3], [4, 5, 6] + 2 * visit.values[1, :3])


@given(n=st.integers(0, 20), n_gone=st.integers(0, 5), n_lines=st.sampled_from([2, 4, 8, 100]))
@settings(deadline=None, max_examples=examples(40))
def test_more_room_keeps_every_vector_and_the_last_lines(n, n_gone, n_lines):
    visit, held = filled(n)
    held.coef[0, :n], held.scores[0, :n] = np.arange(n), -np.arange(n)
    held.low[:n], held.high[:n] = -1, 1
    for slot in range(min(n, n_gone)):
        remove(held, slot)
    before, in_cache = vectors(held), lines(held, visit.values)
    more = with_room(held, 48, n_lines)
    assert vectors(more) == before
    assert lines(more, visit.values) == in_cache[-n_lines:]
    assert more.owner.size == min(n_lines, 48)
    assert more.place.size == more.gram.shape[1] == 48
    free = more.free[: min(n, n_gone)].tolist()
    for j, slot in zip(range(20, 20 + len(free)), free[::-1], strict=True):
        assert insert(more, visit, j) == slot
        keep(more, visit, j, slot)
    assert insert(more, visit, 31) == n
    keep(more, visit, 31, n)
    assert lines(more, visit.values)[-1] == n


def test_vectors_follow_their_values_to_other_places():
    visit, held = filled(6)
    remove(held, 4)
    new_place = np.random.default_rng(0).permutation(ROOM)
    rows = held.row[active_slots(held)].tolist()
    with_places(held, new_place)
    assert held.place[active_slots(held)].tolist() == new_place[np.array(rows) - 100].tolist()
    assert not np.delete(held.place, active_slots(held)).any()
    moved = np.empty_like(visit.values)
    moved[np.ix_(new_place, new_place)] = visit.values
    lines(held, moved)
