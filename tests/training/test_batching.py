from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.core.numerics import generator
from steelyard.networks.packing import forward_groups
from steelyard.training.batching import Slot, greedy_steps, packed_steps, share_in_steps, whole_steps

sizes = st.lists(st.integers(0, 9), max_size=30)


def every_slot(sizes):
    return Counter(Slot(prompt, response) for prompt, size in enumerate(sizes) for response in range(size))


@given(sizes, st.integers(1, 8))
def test_whole_steps_split_no_prompt_and_repeat_no_response(sizes, batch_size):
    steps = whole_steps(sizes, batch_size, generator(0, "t"))
    assert Counter(slot for step in steps for slot in step) == every_slot(sizes)
    for step in steps:
        present = Counter(slot.prompt for slot in step)
        assert len(present) <= batch_size
        assert all(present[prompt] == sizes[prompt] for prompt in present)


@settings(deadline=2000)
@given(sizes, st.integers(2, 16))
def test_greedy_steps_end_and_place_every_response_once(sizes, slots):
    steps = greedy_steps(sizes, slots, generator(0, "t"))
    assert Counter(slot for step in steps for slot in step) == every_slot(sizes)
    assert all(len(step) == slots for step in steps[:-1])


@given(sizes, st.integers(1, 8))
def test_whole_steps_keep_every_pair(sizes, batch_size):
    pairs = [[(a, b) for a in range(size) for b in range(a + 1, size)] for size in sizes]
    kept = share_in_steps(whole_steps(sizes, batch_size, generator(0, "t")), pairs)
    assert kept == (1.0 if any(pairs) else 0.0)


def test_the_share_that_greedy_keeps_by_hand():
    # One prompt of five in steps of three and two: 3 + 1 of its 10 pairs stay together.
    pairs = [[(a, b) for a in range(5) for b in range(a + 1, 5)]]
    assert share_in_steps(greedy_steps([5], 3, generator(0, "t")), pairs) == pytest.approx(0.4)
    assert share_in_steps(greedy_steps([5], 5, generator(0, "t")), pairs) == 1.0


def test_epochs_differ_and_seeds_repeat():
    first = whole_steps([2] * 20, 4, generator(0, "order", 0))
    assert first == whole_steps([2] * 20, 4, generator(0, "order", 0))
    assert first != whole_steps([2] * 20, 4, generator(0, "order", 1))


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(10, 100), st.none() | st.integers(1, 5))
def test_forward_groups_hold_the_budget(lengths, max_tokens, max_rows):
    groups = forward_groups(lengths, max_tokens=max_tokens, max_rows=max_rows)
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    for group in groups:
        assert len(group) == 1 or len(group) * max(lengths[index] for index in group) <= max_tokens
        assert max_rows is None or len(group) <= max_rows


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
