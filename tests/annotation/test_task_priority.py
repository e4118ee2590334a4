"""The priority of items: by hand for few pairs, and the random share as a sample of all items."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.annotation.task_priority import (
    consensus,
    deciles,
    item_means,
    probabilities_of_margins,
    probabilities_of_verdicts,
    queue_order,
)

NAN = float("nan")
UNLABELLED = np.full(4, NAN)


def test_the_priority_is_uncertainty_and_disagreement():
    # Both sure and agreed; sure and opposed; both at a half; one silent; both silent.
    members = np.array([[1.0, 1.0, 0.5, 0.75, NAN], [1.0, 0.0, 0.5, NAN, NAN]])
    found = consensus(members)
    quarter = -(0.25 * np.log2(0.25) + 0.75 * np.log2(0.75))
    np.testing.assert_allclose(found.priority, [0, 1, 1, quarter, NAN])
    np.testing.assert_allclose(found.uncertainty, [0, 0, 1, quarter, NAN])
    np.testing.assert_allclose(found.disagreement, [0, 1, 0, 0, NAN])


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=4))
def test_the_disagreement_is_the_mean_divergence_from_the_mean(rows):
    members = np.array(rows)
    found = consensus(members)
    mean = members.mean(axis=0)

    def terms(own, of_all):
        return np.where(own > 0, own * np.log2(np.where(own > 0, own, 1) / np.where(of_all > 0, of_all, 1)), 0.0)

    divergence = (terms(members, mean) + terms(1 - members, 1 - mean)).mean(axis=0)
    np.testing.assert_allclose(found.disagreement, divergence, atol=1e-9)
    np.testing.assert_allclose(found.uncertainty + found.disagreement, found.priority, atol=1e-9)


def test_without_labels_margins_keep_their_order_alone():
    margin = np.array([10.0, -1.0, 0.0, NAN])
    found = probabilities_of_margins(margin, UNLABELLED)
    # Shares of smaller margins, the own one half: 2.5 / 3, 1.5 / 3, and 0.5 / 3 of a margin without a sign.
    np.testing.assert_allclose(found.probability, [0.5 + 2.5 / 6, 0.5 - 1.5 / 6, 0.5, NAN])
    assert (found.num_labels, found.fitted) == (0, None)
    np.testing.assert_array_equal(probabilities_of_margins(margin / 7, UNLABELLED).probability, found.probability)


def test_labels_give_margins_their_scale():
    # 75 of 100 margins of 2 are right, and Laplace's pair adds one of each: 76 of 102.
    margin, label = np.full(101, 2.0), np.array([1.0] * 75 + [-1.0] * 25 + [NAN])
    found = probabilities_of_margins(margin, label)
    np.testing.assert_allclose(found.probability, 76 / 102, atol=1e-6)
    assert found.num_labels == 100
    # People who found all of them wrong leave a model that says nothing.
    opposed = probabilities_of_margins(margin, -np.ones(101))
    np.testing.assert_array_equal(opposed.probability, 0.5)


def test_verdicts_of_both_orders_are_one_opinion():
    counts = np.array([[1, 0, 0], [0, 2, 0], [1, 1, 0], [0, 0, 0]])
    found = probabilities_of_verdicts(counts, UNLABELLED)
    np.testing.assert_allclose(found.probability, [0.75, 0.5 / 3, 0.5, NAN])


def test_labels_say_what_a_verdict_is_worth():
    counts = np.array([[2, 0, 0]] * 40 + [[0, 1, 0], [1, 1, 0], [0, 0, 2]])
    label = np.array([1.0] * 30 + [-1.0] * 10 + [NAN] * 3)
    found = probabilities_of_verdicts(counts, label)
    np.testing.assert_allclose(found.probability[[0, 40, 41, 42]], [31 / 42, 11 / 42, 0.5, 0.5])
    assert found.num_labels == 40


def test_an_item_has_the_mean_of_its_pairs():
    found = item_means(np.array([1.0, 0.5, NAN, NAN]), np.array([0, 0, 0, 1]), 3)
    np.testing.assert_allclose(found, [0.75, NAN, NAN])


def test_the_queue_goes_by_priority_with_a_share_by_chance():
    priority = np.array([0.1, 0.9, NAN, 0.5, 0.7, 0.3])
    draw = np.array([0.9, 0.8, 0.7, 0.6, 0.05, 0.1])
    # Two of six by chance (places 0.5 / 0.2 and 1.5 / 0.2), the smaller draw first; unknown last.
    found = queue_order(priority, draw, random_share=0.2)
    assert found.items.tolist() == [1, 3, 4, 0, 2, 5]
    assert found.is_random.tolist() == [False, False, False, False, True, True]
    assert queue_order(priority, draw, random_share=0.0).items.tolist() == [1, 4, 3, 5, 0, 2]
    assert queue_order(priority, draw, random_share=1.0).items.tolist() == [4, 5, 3, 2, 1, 0]


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_every_beginning_of_the_queue_has_the_random_share(share):
    draw = np.random.default_rng(0).random(2000)
    found = queue_order(np.random.default_rng(1).random(2000), draw, random_share=share)
    for length in (50, 200, 1000):
        assert abs(found.is_random[found.items[:length]].mean() - share) < 0.03


def test_the_random_part_estimates_the_mean_of_all_items():
    # What is measured goes with the priority: the first items are far from typical, those by chance are not.
    rng = np.random.default_rng(2)
    priority = rng.random(300)
    chosen, by_chance = [], []
    for _ in range(300):
        order = queue_order(priority, rng.random(300), random_share=0.2)
        done = order.items[:150]
        chosen.append(priority[done].mean())
        by_chance.append(priority[done[order.is_random[done]]].mean())
    error = np.std(by_chance) / np.sqrt(len(by_chance))
    assert abs(np.mean(by_chance) - priority.mean()) < 3 * error
    assert np.mean(chosen) > priority.mean() + 0.15


def test_deciles_count_from_the_highest():
    assert deciles(np.array([0.1, NAN, 0.9])).tolist() == [6, 0, 1]
    assert deciles(np.arange(20.0)).tolist() == sorted([*range(1, 11)] * 2, reverse=True)
