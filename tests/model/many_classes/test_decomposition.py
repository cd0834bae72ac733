"""How models of few classes make one classifier, against plain loops over its definition."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.targets import LEFT_OUT
from polyplane.model.many_classes.decomposition import REST, Decomposition, Problem
from tests.examples import examples

KINDS = ["joint", "ovr", "ovo"]
HOW = [("ovr", "margin"), ("ovo", "margin"), ("ovo", "vote"), ("ovo", "soft")]
ROUNDED = {"vote", "soft"}  # ways to combine that are not exact


def decomposed(kind, n_classes, combine="margin", ranks=None):
    ranks = np.arange(n_classes) if ranks is None else ranks
    return Decomposition(kind, combine, np.asarray(ranks, np.int32))


@st.composite
def scored(draw, kind, combine, values):
    """A decomposition of some classes met in any order, and scores of its groups on some rows."""
    n_classes = draw(st.integers(3, 6))
    ranks = draw(st.permutations(range(n_classes)))
    made = decomposed(kind, n_classes, combine, ranks)
    n_rows = draw(st.integers(1, 4))
    size = n_rows * made.n_groups()
    scores = draw(st.lists(values, min_size=size, max_size=size))
    return made, np.array(scores, np.float32).reshape(n_rows, -1)


exact = st.integers(-12, 12).map(lambda v: v / 8)  # sums of a few of them are exact
uneven = st.floats(-3, 3, width=32)


def lead_of(made, scores, problem):
    """How far the second side of a problem is ahead of the first."""
    place = made.problems().index(problem)
    return scores[2 * place + 1] - scores[2 * place]


def expected_scores(made, scores):
    """By rank, from the definition, in the order in which classes were met."""
    n = made.n_classes
    out = [0.0] * n
    if made.kind == "ovr":
        for c in range(n):
            out[made.ranks[c]] = lead_of(made, scores, Problem((REST, c)))
        return out
    margins, votes, logs = [0.0] * n, [0.0] * n, [0.0] * n
    for b in range(n):
        for a in range(b):
            lead = lead_of(made, scores, Problem((a, b)))
            margins[b] += min(1, max(-1, lead))
            margins[a] -= min(1, max(-1, lead))
            if lead != 0:
                votes[b if lead > 0 else a] += 0.5
                votes[a if lead > 0 else b] -= 0.5
            logs[b] += math.log(0.05 + 1 / (1 + math.exp(-lead)))
            logs[a] += math.log(0.05 + 1 / (1 + math.exp(lead)))
    for c in range(n):
        by_vote = votes[c] + 0.2 / n * margins[c]
        ways = {"vote": by_vote, "margin": margins[c], "soft": logs[c]}
        out[made.ranks[c]] = ways[made.combine]
    return out


# ---- problems --------------------------------------------------------------------------------


def test_problems_by_hand():
    assert decomposed("joint", 4).problems() == [Problem()]
    assert decomposed("ovr", 4).problems() == [
        Problem((REST, 1)), Problem((REST, 0)), Problem((REST, 2)), Problem((REST, 3)),
    ]  # fmt: skip
    assert decomposed("ovo", 4).problems() == [
        Problem((0, 1)), Problem((0, 2)), Problem((1, 2)), Problem((0, 3)), Problem((1, 3)),
        Problem((2, 3)),
    ]  # fmt: skip


@pytest.mark.parametrize("n_classes", [0, 1, 2])
def test_up_to_two_classes_are_one_problem(n_classes):
    assert decomposed("joint", n_classes).problems() == [Problem()]
    assert decomposed("ovr", n_classes).problems() == [Problem((REST, 1))]
    assert decomposed("ovo", n_classes).problems() == [Problem((0, 1))]


@pytest.mark.parametrize("kind", KINDS)
def test_later_classes_only_append_problems(kind):
    for n_classes in range(1, 8):
        before = decomposed(kind, n_classes).problems()
        assert decomposed(kind, n_classes + 1).problems()[: len(before)] == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [0, 1, 2, 3, 7, 40])
def test_a_problem_is_found_without_the_others(kind, n_classes):
    made = decomposed(kind, n_classes)
    problems = made.problems()
    assert made.n_problems() == len(problems)
    assert [made.problem_at(place) for place in range(len(problems))] == problems


def test_pairs_of_very_many_classes_are_found_by_their_place():
    made = decomposed("ovo", 100_000)
    for a, b in ((0, 1), (0, 99_999), (99_998, 99_999), (65_535, 65_536), (1, 92_682)):
        assert made.problem_at(b * (b - 1) // 2 + a) == Problem((a, b))


# ---- codes -----------------------------------------------------------------------------------


def test_codes_by_hand():
    assert Problem().codes(3).tolist() == [0, 1, 2]
    assert Problem((REST, 1)).codes(4).tolist() == [0, 1, 0, 0]
    assert Problem((0, 2)).codes(4).tolist() == [0, LEFT_OUT, 1, LEFT_OUT]


def test_a_class_not_met_yet_has_no_code():
    assert Problem((0, 1)).codes(1).tolist() == [0]
    assert Problem((REST, 1)).codes(1).tolist() == [0]
    assert Problem().codes(1).tolist() == [0]


@pytest.mark.parametrize(("problem", "n_codes"), [((), 5), ((REST, 2), 2), ((1, 4), 2)])
def test_a_model_tells_apart_all_classes_or_two(problem, n_codes):
    assert Problem(problem).n_codes(5) == n_codes
    assert Problem(problem).n_codes(1) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_with_two_classes_all_kinds_are_the_same_model(kind):
    [problem] = decomposed(kind, 2).problems()
    assert problem.codes(2).tolist() == [0, 1]
    assert problem.n_codes(2) == 2


# ---- scores of classes -----------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "combine"), HOW)
@given(data=st.data())
@settings(deadline=None, max_examples=examples(40))
def test_class_scores_equal_their_definition(kind, combine, data):
    """Exact where numbers are; logarithms, and of votes the part that breaks ties, are rounded."""
    made, scores = data.draw(scored(kind, combine, exact))
    expected = [expected_scores(made, row) for row in scores]
    found = made.class_scores(scores)
    assert found.dtype == np.float32
    if combine in ROUNDED:
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-6)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("kind", "combine"), HOW)
@given(data=st.data())
@settings(deadline=None, max_examples=examples(40))
def test_the_order_in_which_classes_were_met_only_permutes_scores(kind, combine, data):
    made, scores = data.draw(scored(kind, combine, exact))
    in_order = made._replace(ranks=np.arange(made.n_classes, dtype=np.int32))
    np.testing.assert_array_equal(
        made.class_scores(scores)[:, made.ranks], in_order.class_scores(scores)
    )


@given(data=st.data())
@settings(deadline=None, max_examples=examples(60))
def test_a_class_with_more_votes_wins_whatever_the_margins(data):
    """A pair that ties gives half a vote to each."""
    made, scores = data.draw(scored("ovo", "vote", st.one_of(exact, uneven)))
    found = made.class_scores(scores)
    for row, by_rank in zip(scores, found, strict=True):
        votes = np.zeros(made.n_classes)
        for a, b in itertools.combinations(range(made.n_classes), 2):
            lead = lead_of(made, row, Problem((a, b)))
            votes[made.ranks[b]] += (lead > 0) + (lead == 0) / 2
            votes[made.ranks[a]] += (lead < 0) + (lead == 0) / 2
        for c, d in itertools.permutations(range(made.n_classes), 2):
            assert votes[c] <= votes[d] or by_rank[c] > by_rank[d]


def test_equal_votes_are_decided_by_margins():
    """Each of three classes beats one other: the widest margin decides."""
    made = decomposed("ovo", 3, "vote")
    leads = {Problem((0, 1)): 0.5, Problem((1, 2)): 0.25, Problem((0, 2)): -1.5}
    scores = np.zeros((1, 6), np.float32)
    for place, problem in enumerate(made.problems()):
        scores[0, 2 * place + 1] = leads[problem]
    [[first, second, third]] = made.class_scores(scores)  # margins 0.5, 0.25 and -0.75
    assert first > second > third


def test_without_any_lead_all_classes_score_alike():
    for kind, combine in HOW:
        made = decomposed(kind, 4, combine)
        expected = 3 * np.log(0.55) if combine == "soft" else 0
        found = made.class_scores(np.ones((2, made.n_groups()), np.float32))
        assert (found == np.float32(expected)).all()


def test_a_pair_that_is_sure_and_wrong_does_not_outweigh_all_others():
    """Class 0 is beaten by class 1 alone, and by as much as can be."""
    made = decomposed("ovo", 8, "soft")
    scores = np.zeros((1, made.n_groups()), np.float32)
    for place, (first, second) in enumerate(problem.classes for problem in made.problems()):
        if first == 0:
            scores[0, 2 * place] = -1e30 if second == 1 else 4
    [found] = made.class_scores(scores)
    assert found.argmax() == 0
    np.testing.assert_allclose(found[0], np.log(0.05) + 6 * np.log(0.05 + 1 / (1 + np.exp(-4))))


def test_scores_of_one_model_stay_as_they_are():
    scores = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert decomposed("joint", 3).class_scores(scores) is scores
    for kind in KINDS:
        assert decomposed(kind, 2).class_scores(scores[:, :2]).tolist() == [[0, 1], [3, 4]]


@pytest.mark.parametrize("size", [0.1, 3.0, 1e4, 1e30, 3e38])
@pytest.mark.parametrize("combine", ["margin", "vote", "soft"])
def test_pairs_of_any_size_give_finite_scores(combine, size):
    made = decomposed("ovo", 5, combine)
    scores = np.random.default_rng(0).choice([-size / 2, size / 2], (50, made.n_groups()))
    found = made.class_scores(scores.astype(np.float32))
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 1.001 * 4 * abs(np.log(0.05))


@pytest.mark.parametrize(("kind", "combine"), HOW)
def test_a_row_scores_to_the_last_bit_alike_in_any_company(kind, combine):
    """Sums of many rounded leads, in chunks of several sizes."""
    made = decomposed(kind, 12, combine)
    scores = np.random.default_rng(0).normal(size=(200, made.n_groups())).astype(np.float32)
    whole = made.class_scores(scores)
    for size in (1, 2, 7, 64):
        parts = [made.class_scores(part) for part in np.split(scores, range(size, 200, size))]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
