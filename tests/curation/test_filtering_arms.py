import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.curation.filtering import Asked
from steelyard.curation.filtering_arms import (
    ALL,
    BY_LENGTH,
    FILTERED,
    HUMAN,
    ORACLE,
    RANDOM,
    SELF,
    SURE,
    Columns,
    arm_pairs,
    splits,
)


@settings(max_examples=40, deadline=None)
@given(st.integers(6, 60), st.integers(2, 5), st.floats(0.05, 0.9), st.integers(0, 5))
def test_every_prompt_is_tested_once_a_repetition_and_nothing_is_in_two_parts(num_prompts, num_folds, share, seed):
    found = list(splits(num_prompts, num_folds, share, 2, seed=seed))
    for repetition in range(2):
        own = [split for split in found if split.repetition == repetition]
        assert sorted(np.concatenate([split.test for split in own]).tolist()) == list(range(num_prompts))
    for split in found:
        parts = np.concatenate([split.human, split.judged, split.test])
        assert sorted(parts.tolist()) == list(range(num_prompts))
        assert len(split.human) >= 2


def test_a_smaller_share_has_prompts_of_a_larger_one_and_the_same_tests():
    for small, large in zip(splits(40, 4, 0.1, 2, seed=3), splits(40, 4, 0.5, 2, seed=3), strict=True):
        assert set(small.human.tolist()) < set(large.human.tolist())
        assert small.test.tolist() == large.test.tolist()


def columns(*rows):
    return Columns(*(np.array(column) for column in zip(*rows, strict=True)))


def rows(pairs):
    return [tuple(row) for row in np.stack(pairs, axis=1).tolist()]


def arms(has_key=(True, True, True, True)):
    human = columns((9, 0, 1))
    judged = columns((0, 0, 1), (1, 1, 0), (2, 0, 1), (3, 0, 1))
    asked = Asked(np.arange(4), np.array([2.0, -1.0, -4.0, 0.0]), np.array([3.0, -1, 1, 0]))
    right = np.array([True, True, False, True])
    return arm_pairs(human, judged, asked, (np.array(has_key), right & np.array(has_key)), names=("x",))


def test_what_each_arm_learns_by_hand():
    found = {name: rows(pairs) for name, pairs in arms().items()}
    assert all(own[0] == (9, 0, 1) for own in found.values())
    other = {name: own[1:] for name, own in found.items()}
    assert other[HUMAN] == []
    assert other[ALL] == [(0, 0, 1), (1, 1, 0), (2, 0, 1), (3, 0, 1)]
    assert other[FILTERED] == [(0, 0, 1)]
    assert len(other[RANDOM]) == 1
    assert set(other[RANDOM]) < set(other[ALL])
    assert other[BY_LENGTH] == [(0, 0, 1), (2, 0, 1)]
    # absolute margins 0, 1, 2, 4: their median is 1.5, and only -4 is below its negative
    assert other[SURE] == [(0, 0, 1), (1, 1, 0), (3, 0, 1)]
    assert other[ORACLE] == [(0, 0, 1), (1, 1, 0), (3, 0, 1)]
    # the model's own labels: verdicts that it is against are turned, and where it says nothing there is none
    assert other[SELF] == [(0, 0, 1), (1, 0, 1), (2, 1, 0)]


def test_without_a_key_there_is_no_oracle():
    assert ORACLE not in arms((False,) * 4)


@pytest.mark.parametrize("seed", range(3))
def test_the_random_arm_is_as_large_as_the_filtered_one(seed):
    draws = np.random.default_rng(seed)
    judged = columns(*((number, 0, 1) for number in range(30)))
    asked = Asked(np.arange(30), draws.normal(size=30), draws.normal(size=30))
    found = arm_pairs(columns((99, 0, 1)), judged, asked, (np.ones(30, bool), np.ones(30, bool)), names=(seed,))
    assert len(found[RANDOM].case) == len(found[FILTERED].case)
