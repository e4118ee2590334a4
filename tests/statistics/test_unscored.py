import numpy as np

from steelyard.statistics.pair_counts import UnscoredPairs, with_unscored_right

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
