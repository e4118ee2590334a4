"""Disagreement beyond noise: about none by the model itself, and found where good raters read an item in two ways."""

import numpy as np
import pytest

from steelyard.annotation.excess_disagreement import NUM_SIMULATIONS, disagreement_of
from steelyard.annotation.plackett_luce import RankingAnswer, Raters, draw_choices, first_choices

GOOD = Raters(np.array([3.0, 3.0, 0.0]), np.array([-3.0, -3.0, -3.0]))
ORDER = [[0], [1], [2]]


def opposed(*raters):
    return [RankingAnswer(0, rater, ORDER if place % 2 else ORDER[::-1]) for place, rater in enumerate(raters)]


def test_good_raters_in_opposite_order_are_surprising_and_one_who_guesses_is_not():
    found, guessing = (disagreement_of(opposed(0, other), GOOD, seed=1) for other in (1, 2))
    assert (found.num_compared, found.num_different) == (3, 3)
    assert found.expected < 1.2
    assert found.excess > 1.5
    assert found.p < 0.15
    assert guessing.expected == pytest.approx(1.5, abs=0.3)
    assert guessing.excess < found.excess


def test_raters_who_see_items_otherwise_are_expected_to_differ_more():
    own = disagreement_of(opposed(0, 1), GOOD._replace(rater_item_variance=0.5), seed=1)
    assert own.num_different == 3
    assert own.expected > disagreement_of(opposed(0, 1), GOOD, seed=1).expected + 0.2


def test_more_evidence_is_more_surprising():
    twice = disagreement_of([*opposed(0, 1), *opposed(0, 1)], GOOD, seed=1)
    assert (twice.num_compared, twice.num_different) == (12, 12)
    assert twice.p < disagreement_of(opposed(0, 1), GOOD, seed=1).p + 1 / NUM_SIMULATIONS


def test_verdicts_differ_also_where_one_is_a_tie():
    answers = [RankingAnswer(0, 0, [[0], [1, 2]]), RankingAnswer(0, 1, ORDER)]
    found = disagreement_of(answers, GOOD, seed=1)
    assert (found.num_compared, found.num_different) == (3, 1)


def test_pairs_that_only_one_ranked_are_not_compared():
    answers = [RankingAnswer(0, 0, [[0], [1]]), RankingAnswer(0, 1, [[1], [2]])]
    assert disagreement_of(answers, GOOD, seed=1) is None
    assert disagreement_of([answers[0], answers[0]], GOOD, seed=1) is None
    assert disagreement_of([], GOOD, seed=1) is None


def test_the_model_itself_has_no_excess_disagreement():
    rng = np.random.default_rng(0)
    raters = Raters(np.array([1.5, 2.5]), np.array([-1.0, -0.5]))
    excess, p = [], []
    for _ in range(150):
        shown = [RankingAnswer(place, place, ORDER) for place in (0, 1)]
        strength = np.repeat(rng.standard_normal((1, 3)), 2, axis=0)
        levels = np.ones((2, 3))
        for block in draw_choices(first_choices(shown), strength, raters, rng):
            size = block.places.shape[1]
            for item, places, chosen in zip(block.item, block.places, block.chosen + 1, strict=True):
                levels[item, [place for bit, place in enumerate(places) if chosen >> bit & 1]] = size
        answers = [
            RankingAnswer(0, rater, [np.flatnonzero(row == level).tolist() for level in sorted(set(row))[::-1]])
            for rater, row in enumerate(levels)
        ]
        found = disagreement_of(answers, raters, seed=2)
        excess.append(found.excess)
        p.append(found.p)
    assert np.mean(excess) == pytest.approx(0, abs=0.3)
    assert np.mean(np.array(p) <= 0.05) <= 0.1
