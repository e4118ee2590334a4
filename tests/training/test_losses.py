import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.training.losses import (
    PairBatch,
    bradley_terry_loss,
    centring_sum,
    reduced_sum,
    reduced_weight,
)


def pairs(*rows):
    """Rows of (better, worse, weight, margin, prompt)."""
    better, worse, weight, margin, prompt = zip(*rows, strict=True)
    return PairBatch(
        torch.tensor(better),
        torch.tensor(worse),
        torch.tensor(weight, dtype=torch.float64),
        torch.tensor(margin, dtype=torch.float64),
        torch.tensor(prompt),
    )


def log_loss(difference):
    return math.log1p(math.exp(-difference))


def test_equal_scores_cost_ln_2():
    loss = bradley_terry_loss(torch.zeros(3, dtype=torch.float64), pairs((0, 1, 1.0, 0.0, 0), (0, 2, 1.0, 0.0, 0)))
    assert loss.item() == pytest.approx(math.log(2), abs=1e-15)


def test_pair_and_prompt_reduction_by_hand():
    # Prompt 0 has the differences 1 and 3, prompt 1 has the difference -2.
    scores = torch.tensor([3.0, 2.0, 0.0, 1.0, 3.0], dtype=torch.float64)
    batch = pairs((0, 1, 1.0, 0.0, 0), (0, 2, 1.0, 0.0, 0), (3, 4, 1.0, 0.0, 1))
    first, second, third = log_loss(1), log_loss(3), log_loss(-2)
    assert bradley_terry_loss(scores, batch).item() == pytest.approx((first + second + third) / 3, abs=1e-15)
    by_prompt = bradley_terry_loss(scores, batch, "prompt").item()
    assert by_prompt == pytest.approx(((first + second) / 2 + third) / 2, abs=1e-15)


def test_weights_and_margins_by_hand():
    scores = torch.tensor([1.0, 0.0], dtype=torch.float64)
    batch = pairs((0, 1, 3.0, 0.5, 0), (1, 0, 1.0, 0.0, 1))
    expected = (3 * log_loss(0.5) + log_loss(-1)) / 4
    assert bradley_terry_loss(scores, batch).item() == pytest.approx(expected, abs=1e-15)
    by_prompt = bradley_terry_loss(scores, batch, "prompt").item()
    assert by_prompt == pytest.approx((log_loss(0.5) + log_loss(-1)) / 2, abs=1e-15)


def test_a_pair_of_weight_zero_counts_for_nothing():
    scores = torch.tensor([1.0, 0.0, 5.0], dtype=torch.float64)
    batch = pairs((0, 1, 1.0, 0.0, 0), (1, 2, 0.0, 0.0, 1))
    for reduction in ("pair", "prompt"):
        assert bradley_terry_loss(scores, batch, reduction).item() == pytest.approx(log_loss(1), abs=1e-15)


def test_extreme_differences_stay_finite():
    scores = torch.tensor([-1e4, 1e4], dtype=torch.float64)
    assert bradley_terry_loss(scores, pairs((0, 1, 1.0, 0.0, 0))).item() == pytest.approx(2e4)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=3, max_size=6), st.floats(-5, 5))
def test_only_differences_matter(values, shift):
    scores = torch.tensor(values, dtype=torch.float64)
    batch = pairs(*[(0, index, 1.0, 0.0, 0) for index in range(1, len(values))])
    moved = bradley_terry_loss(scores + shift, batch).item()
    assert moved == pytest.approx(bradley_terry_loss(scores, batch).item(), abs=1e-9)


def test_centring_by_hand():
    scores = torch.tensor([1.0, 2.0, -4.0], dtype=torch.float64)
    found = centring_sum(scores, pairs((0, 1, 2.0, 0.0, 0), (1, 2, 1.0, 0.0, 0)))
    assert found.item() == 2 * 9 + 4


@pytest.mark.parametrize("reduction", ["pair", "prompt"])
def test_no_pairs_sum_to_nothing(reduction):
    none, prompt = torch.zeros(0, dtype=torch.float64), torch.zeros(0, dtype=torch.long)
    assert reduced_sum(none, none, prompt, reduction) == reduced_weight(none, prompt, reduction) == 0
