from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.annotation.simulated_annotators import assign_annotators, plan_tasks
from steelyard.core.comparison import circular_triples
from steelyard.core.errors import ConfigError


def compared(num_responses):
    return Counter(frozenset(pair) for triple in circular_triples(num_responses) for pair in combinations(triple, 2))


def test_five_responses_make_five_tasks_and_fifteen_verdicts_with_the_neighbours_compared_twice():
    assert circular_triples(5) == ((0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1))
    counted = compared(5)
    assert counted.total() == 15
    assert len(counted) == 10
    neighbours = {frozenset((index, (index + 1) % 5)) for index in range(5)}
    assert {pair for pair, times in counted.items() if times == 2} == neighbours


@pytest.mark.parametrize(("number", "times"), [(3, {3}), (4, {2})])
def test_few_responses_are_compared_more_often(number, times):
    assert set(compared(number).values()) == times
    assert len(compared(number)) == number * (number - 1) // 2


@given(st.integers(6, 20))
def test_from_six_on_each_response_meets_two_on_either_side(number):
    counted = compared(number)
    assert len(counted) == 2 * number
    for pair in counted:
        low, high = sorted(pair)
        assert min(high - low, low + number - high) <= 2


def test_two_responses_make_no_triple():
    with pytest.raises(ConfigError, match="2 responses"):
        circular_triples(2)


@given(st.integers(1, 30), st.integers(3, 8), st.integers(0, 5), st.integers(0, 2**32))
def test_nobody_sees_a_prompt_twice_and_loads_are_even(num_prompts, num_tasks, more, seed):
    chosen = assign_annotators(num_prompts, num_tasks, num_tasks + more, np.random.default_rng(seed))
    assert chosen.shape == (num_prompts, num_tasks)
    assert all(len(set(row)) == num_tasks for row in chosen.tolist())
    loads = Counter(chosen.ravel().tolist())
    assert set(loads) <= set(range(num_tasks + more))
    assert max(loads.values()) - min(loads[one] for one in range(num_tasks + more)) <= 1


def test_too_few_annotators_are_refused():
    with pytest.raises(ConfigError, match="4 annotators for 5 tasks"):
        assign_annotators(1, 5, 4, np.random.default_rng(0))


@given(st.integers(3, 9), st.integers(0, 2**32))
def test_tasks_show_the_triples_each_in_some_order(number, seed):
    tasks = plan_tasks(number, np.arange(number) + 10, np.random.default_rng(seed))
    assert [task.number for task in tasks] == list(range(1, number + 1))
    assert [task.annotator for task in tasks] == list(range(10, 10 + number))
    assert [sorted(task.shown) for task in tasks] == [sorted(triple) for triple in circular_triples(number)]


def test_every_order_of_showing_occurs_about_equally_often():
    rng = np.random.default_rng(0)
    seen = Counter(plan_tasks(3, np.arange(3), rng)[0].shown for _ in range(3000))
    # 500 expected of each of six, standard deviation sqrt(3000 * 1/6 * 5/6) = 20.4
    assert len(seen) == 6
    assert all(abs(times - 500) < 5 * 20.5 for times in seen.values())
