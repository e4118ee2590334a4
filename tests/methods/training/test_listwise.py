import math
from itertools import permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import softplus

from steelyard.methods.training.listwise import choice_prompts, plackett_luce

rewards = st.lists(st.floats(-5, 5), min_size=2, max_size=4)


def log_likelihood(scores, tiers, prompts=None):
    scores = torch.tensor(scores, dtype=torch.float64)
    prompts = torch.zeros(len(scores), dtype=torch.long) if prompts is None else torch.tensor(prompts)
    return -plackett_luce(scores, torch.tensor(tiers), prompts).losses.sum().item()


@given(rewards)
def test_the_orders_of_some_answers_are_all_there_is(scores):
    chances = [math.exp(log_likelihood(scores, list(order))) for order in permutations(range(len(scores)))]
    assert sum(chances) == pytest.approx(1, abs=1e-12)


@given(st.floats(-9, 9), st.floats(-9, 9))
def test_of_two_answers_it_is_bradley_terry(better, worse):
    expected = softplus(torch.tensor(worse - better, dtype=torch.float64)).item()
    assert -log_likelihood([better, worse], [0, 1]) == pytest.approx(expected, abs=1e-12)


def test_tiers_by_hand():
    # Rewards log 1, log 2, log 3, log 4; the first two share the best tier, the others the last.
    scores = [math.log(value) for value in (1, 2, 3, 4)]
    assert log_likelihood(scores, [0, 0, 1, 1]) == pytest.approx(math.log(1 / 8) + math.log(2 / 9))


def test_prompts_do_not_meet():
    scores, tiers, prompts = [1.0, 0.5, 2.0, -1.0, 0.0], [0, 1, 1, 0, 2], [0, 0, 1, 1, 1]
    both = log_likelihood(scores, tiers, prompts)
    assert both == pytest.approx(log_likelihood(scores[:2], tiers[:2]) + log_likelihood(scores[2:], tiers[2:]))
    found = plackett_luce(torch.tensor(scores), torch.tensor(tiers), torch.tensor(prompts)).prompt.tolist()
    assert found == [0, 1, 1] == choice_prompts(torch.tensor(tiers), torch.tensor(prompts)).tolist()


def test_a_single_tier_is_no_choice():
    assert log_likelihood([1.0, 2.0], [0, 0]) == 0
