import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_measures import reference_row
from steelyard.statistics.pair_counts import (
    UnscoredPairs,
    count_unscored,
    exact_matches,
    half_credit,
    prompt_statistics,
    statistics_table,
    with_policy,
    with_unscored_right,
)

few_scores = st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 3.0])
any_scores = st.floats(allow_nan=False, allow_infinity=False)
prompts_of_pairs = st.lists(st.lists(st.tuples(few_scores, few_scores), max_size=6), min_size=1, max_size=8)


def statistics_of(prompts):
    flat = [(index, better, worse) for index, pairs in enumerate(prompts) for better, worse in pairs]
    prompt, better, worse = (np.array(column) for column in zip(*flat, strict=True)) if flat else ([], [], [])
    return prompt_statistics(
        np.asarray(prompt, dtype=np.int64), np.asarray(better, float), np.asarray(worse, float), len(prompts)
    )


def test_by_hand():
    # prompt 0: right, wrong, tied; prompt 1: two right; prompt 2: no pair; prompt 3: one tied
    found = statistics_of([[(2, 1), (1, 2), (1, 1)], [(3, 2), (3, 1)], [], [(0, 0)]])
    assert found.num_correct.tolist() == [1, 2, 0, 0]
    assert found.num_tied.tolist() == [1, 0, 0, 1]
    assert found.num_reversed.tolist() == [1, 0, 0, 0]
    assert found.num_pairs.tolist() == [3, 2, 0, 1]
    assert exact_matches(found).tolist() == [False, True, False, False]
    assert exact_matches(found, "cheems").tolist() == [False, True, True, True]


@given(prompts_of_pairs, st.sampled_from(["strict", "cheems"]))
def test_equals_a_plain_loop(prompts, rule):
    included = np.array([rule == "cheems" or bool(pairs) for pairs in prompts])
    table = statistics_table(statistics_of(prompts), included, rule)
    assert [tuple(row) for row in table.tolist()] == [reference_row(pairs, rule) for pairs in prompts]


@given(st.lists(st.tuples(any_scores, any_scores), min_size=1, max_size=20))
def test_extreme_scores_are_compared_and_never_subtracted(pairs):
    # 1e308 - -1e308 overflows and 5e-324 - 0 is subnormal; the order of the two is plain all the same
    found = statistics_of([pairs])
    assert found.num_correct[0] == sum(better > worse for better, worse in pairs)
    assert found.num_tied[0] == sum(better == worse for better, worse in pairs)


@given(prompts_of_pairs, st.sampled_from([lambda x: 3 * x + 7, lambda x: x**3, np.arctan, np.exp]))
def test_an_increasing_transform_changes_nothing(prompts, transform):
    moved = [[(float(transform(better)), float(transform(worse))) for better, worse in pairs] for pairs in prompts]
    assert np.array_equal(np.array(statistics_of(prompts)), np.array(statistics_of(moved)))


@given(prompts_of_pairs)
def test_negated_scores_swap_right_and_wrong_and_keep_ties(prompts):
    there = statistics_of(prompts)
    back = statistics_of([[(-better, -worse) for better, worse in pairs] for pairs in prompts])
    assert np.array_equal(there.num_correct, back.num_reversed)
    assert np.array_equal(there.num_tied, back.num_tied)
    if not there.num_tied.any():
        assert np.array_equal(there.num_correct + back.num_correct, there.num_pairs)


@pytest.mark.parametrize(("rule", "exact"), [("strict", 0), ("cheems", 1)])
def test_a_constant_model_is_never_right_and_exact_only_in_the_published_code(rule, exact):
    found = statistics_of([[(5.0, 5.0)] * 3, [(5.0, 5.0)]])
    assert found.num_correct.sum() == 0
    assert found.num_tied.tolist() == [3, 1]
    assert exact_matches(found, rule).tolist() == [bool(exact)] * 2


def test_unscored_pairs_are_apart_until_the_caller_says_how_they_count():
    found = statistics_of([[(2, 1), (np.nan, 1)], [(np.nan, np.nan)], [(1, 2), (1, np.nan)]])
    assert found.num_unscored.tolist() == [1, 1, 1]
    assert found.num_pairs.tolist() == [2, 1, 2]
    wrong, right, left_out = (count_unscored(found, how) for how in ("wrong", "right", "left_out"))
    assert (wrong.num_correct.tolist(), wrong.num_pairs.tolist()) == ([1, 0, 0], [2, 1, 2])
    assert (right.num_correct.tolist(), right.num_pairs.tolist()) == ([2, 1, 1], [2, 1, 2])
    assert (left_out.num_correct.tolist(), left_out.num_pairs.tolist()) == ([1, 0, 0], [1, 0, 1])
    assert exact_matches(wrong).tolist() == [False, False, False]
    assert exact_matches(right).tolist() == [True, True, False]
    for rule in ("strict", "cheems"):
        assert not (exact_matches(wrong, rule) & ~exact_matches(right, rule)).any()


def test_both_rules_have_the_same_denominators_for_every_model():
    # Trap: one code path counted prompts without a comparable pair and another left them out.
    pairs = [[(1, 0)], [], [(0, 1)]]
    included = np.array([True, False, True])
    good = statistics_table(statistics_of(pairs), included)
    bad = statistics_table(statistics_of([[(0, 1)], [], [(0, 0)]]), included)
    assert good[:, [0, 2]].tolist() == bad[:, [0, 2]].tolist() == [[1, 1], [0, 0], [1, 1]]


def test_what_is_neither_right_nor_wrong_follows_a_policy():
    # prompt 0: right, tied, no verdict; prompt 1: wrong, tied
    nan = float("nan")
    found = statistics_of([[(2, 1), (1, 1), (nan, nan)], [(0, 1), (0, 0)]])
    wrong, right = with_policy(found, "wrong"), with_policy(found, "right")
    assert (wrong.num_correct.tolist(), right.num_correct.tolist()) == ([1, 0], [3, 1])
    assert wrong.num_pairs.tolist() == right.num_pairs.tolist() == found.num_pairs.tolist() == [3, 2]
    assert (exact_matches(wrong).tolist(), exact_matches(right).tolist()) == ([False, False], [True, False])
    # 1 + 1/2 + 1/2 and 0 + 1/2, doubled
    assert half_credit(found).tolist() == [[4], [1]]


@given(prompts_of_pairs)
def test_half_credit_lies_midway_between_the_policies(prompts):
    found = statistics_of(prompts)
    midway = with_policy(found, "wrong").num_correct + with_policy(found, "right").num_correct
    assert half_credit(found)[:, 0].tolist() == midway.tolist()


TABLE = np.array([[2, 1, 1, 0, 7], [2, 0, 1, 0, 8], [1, 1, 1, 1, 9]])
"""Pairs, correct, prompts, exact, and a bench's own column."""
OWN = UnscoredPairs({0: frozenset({("a", "b")}), 1: frozenset({("a", "b"), ("a", "c")})}, {0: (1, 70), 1: (1, 80)})


def test_what_one_model_alone_has_no_score_for_is_right():
    found = with_unscored_right(TABLE, OWN, UnscoredPairs())
    assert found.tolist() == [[2, 2, 1, 1, 70], [2, 2, 1, 1, 80], [1, 1, 1, 1, 9]]
    assert TABLE[0].tolist() == [2, 1, 1, 0, 7]


def test_what_neither_has_scored_stays_as_it_is():
    assert with_unscored_right(TABLE, OWN, OWN) is None
    other = UnscoredPairs({0: frozenset({("a", "b")}), 1: frozenset({("a", "c")})}, {0: (1, 70), 1: (1, 80)})
    assert with_unscored_right(TABLE, OWN, other)[:, 1].tolist() == [1, 1, 1]


def test_nothing_unscored_is_nothing_to_favour():
    assert with_unscored_right(TABLE, UnscoredPairs(), OWN) is None
