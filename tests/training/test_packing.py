import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.training.batching import packed_steps


def epoch(sizes, budget, seed=0):
    return packed_steps(sizes, budget, np.random.default_rng(seed))


@given(st.lists(st.integers(1, 60), max_size=200), st.integers(1, 50))
def test_every_prompt_is_in_one_step_within_the_budget_or_alone(sizes, budget):
    steps = epoch(sizes, budget)
    assert sorted(one for step in steps for one in step) == list(range(len(sizes)))
    assert all(len(step) == 1 or sum(sizes[one] for one in step) <= budget for step in steps)


def lengths(number, seed=0):
    """Prompts of five answers with the lengths of CHEEMS: log-normal, 138 and 264 tokens on the mean."""
    rng = np.random.default_rng(seed)
    prompts = np.maximum(8, rng.lognormal(np.log(138) - 0.18, 0.6, number)).astype(int)
    return (prompts + np.maximum(4, rng.lognormal(np.log(264) - 0.18, 0.6, (number, 5))).astype(int).sum(1)).tolist()


@pytest.mark.parametrize(("budget", "most"), [(8192, 0.005), (16_384, 0.005), (32_768, 0.005)])
def test_little_is_left_unused(budget, most):
    sizes = lengths(10_000)
    steps = epoch(sizes, budget)
    used = [sum(sizes[one] for one in step) for step in steps]
    assert 1 - sum(used) / (budget * len(used)) < most


def test_an_epoch_follows_from_its_seed_and_is_shuffled():
    sizes = lengths(2000)
    assert epoch(sizes, 8192, 1) == epoch(sizes, 8192, 1)
    assert epoch(sizes, 8192, 1) != epoch(sizes, 8192, 2)
    means = [np.mean(step) for step in epoch(sizes, 8192)]
    # Prompts of the whole file meet in a step: the order of the file says nothing of the step.
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.2
