"""Prompts without a wrong label: probabilities by hand for two and three responses, and the limits of agreement."""

import numpy as np
import pytest
from scipy.optimize import brentq

from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.groups import Cell, Label
from steelyard.statistics.whole_prompts import (
    _PHI,
    TOO_FEW_ANSWERED,
    AnsweredPrompts,
    chances_of_right,
    expected_contradiction,
    right_prompts,
)

# Pairs of three responses: ab, ac, bc. Both people say abc; the second says bac.
SAME, SWAPPED = [[2, 0], [2, 0], [2, 0]], [[1, 1], [2, 0], [2, 0]]


def prompts(votes, labels, *, among=3, is_right=True):
    number, num_pairs = len(votes), len(votes[0])
    return AnsweredPrompts(
        {1: 2, 3: 3}[num_pairs],
        np.arange(number),
        np.array(votes),
        np.array(labels),
        np.full((number, num_pairs), among),
        np.full(number, is_right),
    )


def estimate(answered, categories=("chat",)):
    labels = [Label(f"p{at}", Cell(categories[at % len(categories)], None, None)) for at in range(len(answered.prompt))]
    return right_prompts(draw_blocks(labels, num_resamples=200, seed=0), [answered])


def test_the_label_of_two_answers_to_a_pair_is_wrong_by_the_rule_of_bayes():
    agreed, contradicted = chances_of_right(prompts([[[2, 0]], [[1, 1]]], [[0], [0]]))
    np.testing.assert_allclose(agreed, 1 / (1 + _PHI**2))
    np.testing.assert_allclose(contradicted, 0.5)
    error = _PHI / (1 + _PHI)
    np.testing.assert_allclose(expected_contradiction(np.array([[2]]))[0], 2 * error * (1 - error))


def test_whole_rankings_by_hand():
    same, swapped, tiers = chances_of_right(prompts([SAME, SWAPPED, SWAPPED], [[0, 0, 0], [0, 0, 0], [-1, 0, 0]]))
    square = _PHI**2
    np.testing.assert_allclose(same, 1 / (1 + 2 * square + 2 * square**2 + square**3))
    np.testing.assert_allclose(swapped, 1 / (2 + 2 * square + 2 * square**2))
    np.testing.assert_allclose(tiers, 2 * swapped, err_msg="either order of the first two is right")
    assert expected_contradiction(np.array([[3, 3, 3]]))[0, -1] == pytest.approx(0.5)


def test_labels_in_a_circle_are_wrong_with_certainty():
    (chance,) = chances_of_right(prompts([SAME], [[0, 1, 0]]))
    np.testing.assert_array_equal(chance, 0)


def test_a_bench_by_hand():
    def contradicted(phi):
        total = 1 + 2 * phi + 2 * phi**2 + phi**3
        near, far = (phi + phi**2 + phi**3) / total, (2 * phi**2 + phi**3) / total
        return (4 * near * (1 - near) + 2 * far * (1 - far)) / 3

    square = brentq(lambda phi: contradicted(phi) - 10 / 120, 0, 1) ** 2
    expected = 0.75 / (1 + 2 * square + 2 * square**2 + square**3) + 0.25 / (2 + 2 * square + 2 * square**2)
    found = estimate(prompts([SWAPPED if at < 10 else SAME for at in range(40)], [[0, 0, 0]] * 40))
    exact = found.exact_match.micro
    assert exact.value == pytest.approx(expected, abs=1e-3)
    assert exact.low < exact.value < exact.high
    assert found.exact_distance.micro.value == pytest.approx(expected - 1, abs=1e-3)


def test_prompts_that_lost_their_labels_count_for_the_contradictions():
    votes = [SWAPPED if at < 20 else SAME for at in range(60)]
    with_all = estimate(prompts(votes, [[0, 0, 0]] * 60)).exact_match.micro.value
    without = estimate(prompts(votes, [[-1, -1, -1] if at < 20 else [0, 0, 0] for at in range(60)]))
    assert without.exact_match.micro.value > with_all
    assert without.exact_match.micro.value < estimate(prompts([SAME] * 60, [[0, 0, 0]] * 60)).exact_match.micro.value


def test_agreement_everywhere_bounds_the_share_from_below():
    exact = estimate(prompts([SAME] * 40, [[0, 0, 0]] * 40)).exact_match.micro
    assert (exact.value, exact.high) == (1.0, 1.0)
    assert 0.9 < exact.low < 1


def test_few_prompts_have_no_value():
    assert estimate(prompts([SAME] * 19, [[0, 0, 0]] * 19)) is None
    found = estimate(prompts([SAME] * 39, [[0, 0, 0]] * 39), ("chat", "code"))
    assert [each.why for each in found.exact_match.estimates] == [None, TOO_FEW_ANSWERED]
    assert found.exact_match.macro.value == 1.0


def test_a_category_without_a_label_is_left_out():
    # Prompts of both categories alternate.
    votes, labels = [SAME, SWAPPED] * 30, [[0, 0, 0], [-1, -1, -1]] * 30
    found = estimate(prompts(votes, labels), ("chat", "code"))
    assert found.groups == ("chat",)
    assert found.exact_match.macro.value == 1.0


def test_nothing_labelled_has_no_value():
    assert estimate(prompts([SWAPPED] * 30, [[-1, -1, -1]] * 30)) is None
