import math
from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import softplus

from steelyard.training.losses import PairBatch, choice_weights, plackett_luce_losses

rewards = st.lists(st.floats(-5, 5), min_size=2, max_size=4)


def batch(rows):
    """Pairs from (better, worse, weight, margin, prompt)."""
    better, worse, weight, margin, prompt = zip(*rows, strict=True) if rows else ((),) * 5
    numbers = [torch.tensor(column, dtype=torch.long) for column in (better, worse, prompt)]
    values = [torch.tensor(column, dtype=torch.float64) for column in (weight, margin)]
    return PairBatch(*numbers[:2], *values, numbers[2])


def across(tiers, prompts=None):
    """Every pair across tiers, within a prompt."""
    prompts = prompts or [0] * len(tiers)
    ends = [(one, other) for one in range(len(tiers)) for other in range(len(tiers))]
    rows = [(b, w, 1.0, 0.0, prompts[b]) for b, w in ends if tiers[b] < tiers[w] and prompts[b] == prompts[w]]
    return batch(rows)


def total(scores, pairs):
    losses = plackett_luce_losses(torch.tensor(scores, dtype=torch.float64), pairs)
    return (losses * choice_weights(pairs).weight).sum().item()


@settings(deadline=None)
@given(rewards)
def test_the_orders_of_some_answers_are_all_there_is(scores):
    chances = [math.exp(-total(scores, across(list(order)))) for order in permutations(range(len(scores)))]
    assert sum(chances) == pytest.approx(1, abs=1e-12)


@settings(deadline=None)
@given(st.floats(-9, 9), st.floats(-9, 9), st.floats(0.01, 5), st.floats(-3, 3), st.integers(1, 3))
def test_of_two_answers_it_is_the_weighted_bradley_terry_loss(better, worse, weight, margin, times):
    expected = times * weight * softplus(torch.tensor(worse + margin - better, dtype=torch.float64)).item()
    assert total([better, worse], batch([(0, 1, weight, margin, 0)] * times)) == pytest.approx(expected, abs=1e-12)


def test_tiers_by_hand():
    # Rewards log 1, log 2, log 3, log 4; the first two share the best tier, the others the last.
    scores = [math.log(value) for value in (1, 2, 3, 4)]
    assert total(scores, across([0, 0, 1, 1])) == pytest.approx(-math.log(1 / 8) - math.log(2 / 9))


def test_only_listed_pairs_are_alternatives():
    # 0 is chosen before 1, 1 before 2; the pair of 0 and 2 was left out, so that 2 is no alternative to 0.
    scores = [math.log(value) for value in (1, 2, 3)]
    listed = batch([(0, 1, 1.0, 0.0, 0), (1, 2, 1.0, 0.0, 0)])
    assert total(scores, listed) == pytest.approx(-math.log(1 / 3) - math.log(2 / 5))


def test_weights_by_hand():
    # Alternatives of weight 1 and 3 count as 1/2 and 3/2 of one, and the choice weighs their mean, 2.
    scores = [math.log(value) for value in (1, 2, 3)]
    weighed = batch([(0, 1, 1.0, 0.0, 0), (0, 2, 3.0, 0.0, 0)])
    assert total(scores, weighed) == pytest.approx(-2 * math.log(1 / (1 + 0.5 * 2 + 1.5 * 3)))
    doubled = weighed._replace(weight=2 * weighed.weight)
    assert total(scores, doubled) == pytest.approx(2 * total(scores, weighed))


def test_a_pair_of_weight_0_is_as_good_as_absent():
    scores, pairs = [1.0, 0.5, 2.0], [(0, 1, 2.0, 0.5, 0)]
    assert total(scores, batch([*pairs, (0, 2, 0.0, 0.0, 0), (1, 2, 0.0, 0.0, 0)])) == total(scores, batch(pairs))
    assert choice_weights(batch([(0, 1, 0.0, 0.0, 0)])).weight.tolist() == []


def test_prompts_do_not_meet():
    scores, tiers, prompts = [1.0, 0.5, 2.0, -1.0, 0.0], [0, 1, 1, 0, 2], [0, 0, 1, 1, 1]
    both = total(scores, across(tiers, prompts))
    assert both == pytest.approx(total(scores[:2], across(tiers[:2])) + total(scores[2:], across(tiers[2:])))
    assert choice_weights(across(tiers, prompts)).prompt.tolist() == [0, 1, 1]


def test_no_pair_is_no_choice_and_far_rewards_stay_finite():
    assert total([1.0, 2.0], across([0, 0])) == 0
    assert total([0.0, 1e4, -1e4], across([0, 1, 2])) == pytest.approx(1e4)
