"""Plans of pairs: what is covered, how often each response is shown, and what is doubtful."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.errors import ConfigError
from steelyard.judging.pair_plans import (
    PairPlan,
    choose_pairs,
    random_pairs,
)
from strategies import case, judgment

LETTERS = "abcdefghijklmnopqrstuvwxyz1234"


def shown_how_often(groups, number):
    counts = Counter(dict.fromkeys(range(number), 0))
    counts.update(place for group in groups for place in group)
    return sorted(counts.values())


@given(st.data())
def test_random_pairs_show_each_response_equally_often(data):
    number = data.draw(st.integers(2, 14))
    num_pairs = data.draw(st.integers(1, number * (number - 1) // 2))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    pairs = random_pairs(number, num_pairs, rng=rng)
    assert len(set(pairs)) == len(pairs) == num_pairs
    assert all(one < other for one, other in pairs)
    counts = shown_how_often(pairs, number)
    assert counts[-1] - counts[0] <= 1
    if num_pairs >= number - 1:
        reached = {0}
        for _ in range(number):
            reached |= {place for pair in pairs if reached & set(pair) for place in pair}
        assert len(reached) == number


def test_random_pairs_differ_by_prompt_and_not_by_run():
    plan = PairPlan("random", 2)
    drawn = [choose_pairs(case(str(number), "abcd"), plan, seed=0) for number in range(60)]
    assert drawn == [choose_pairs(case(str(number), "abcd"), plan, seed=0) for number in range(60)]
    # Two pairs of four responses that show each once: three ways.
    assert len(set(drawn)) == 3
    assert choose_pairs(case("p", "abc"), PairPlan("random", 9), seed=0) == ((0, 1), (0, 2), (1, 2))


def test_unsure_pairs_have_the_smallest_margins():
    one, scores = case(responses="abcd"), {"a": 0.0, "b": 0.3, "c": 1.0, "d": None}
    # Margins: ab 0.3, bc 0.7, ac 1.0; every pair with d has none, which counts as 0.
    with_d = ((0, 3), (1, 3), (2, 3))
    assert choose_pairs(one, PairPlan("unsure", max_margin=0.3), seed=0, scores=scores) == with_d
    assert choose_pairs(one, PairPlan("unsure", max_margin=0.31), seed=0, scores=scores) == ((0, 1), *with_d)
    assert choose_pairs(one, PairPlan("unsure", 5), seed=0, scores=scores) == ((0, 1), (0, 3), (1, 2), (1, 3), (2, 3))
    assert choose_pairs(one, PairPlan("unsure", 1, 0.5), seed=0, scores={**scores, "d": 9.0}) == ((0, 1),)


def test_pairs_on_which_a_judge_is_unsure_or_two_judges_differ():
    judgments = (
        judgment("a>b", "x"), judgment("b<a", "y"),  # agree: b<a also says that a is better
        judgment("a>c", "x"), judgment("c>a", "x"),  # x contradicts itself
        judgment("b>c", "x"), judgment("b<c", "y"),  # the judges differ
        judgment("a?d", "y"), judgment("a>d", "x"),  # y has no verdict
        judgment("b=d", "x"),
    )  # fmt: skip
    one = case(responses="abcd", judgments=judgments)
    assert choose_pairs(one, PairPlan("unsure"), seed=0) == ((0, 2), (0, 3), (1, 3))
    assert choose_pairs(one, PairPlan("unsure", judges=("y",)), seed=0) == ((0, 3),)
    assert choose_pairs(one, PairPlan("disputed"), seed=0) == ((1, 2),)
    assert choose_pairs(one, PairPlan("disputed", judges=("x", "y")), seed=0) == ((1, 2),)


def test_a_reply_without_a_verdict_takes_no_verdict_back():
    failed_once = (judgment("a>b", "x"), judgment("a?b", "x"), judgment("a?b", "y"), judgment("b<a", "y"))
    one = case(responses="ab", judgments=failed_once)
    assert choose_pairs(one, PairPlan("unsure"), seed=0) == ()
    assert choose_pairs(one, PairPlan("disputed"), seed=0) == ()
    silent = case(responses="ab", judgments=(judgment("a?b", "x"), judgment("a?b", "x")))
    assert choose_pairs(silent, PairPlan("unsure"), seed=0) == ((0, 1),)


@pytest.mark.parametrize(
    ("plan", "has_scores", "problem"),
    [
        (PairPlan("random"), False, "needs a number"),
        (PairPlan("unsure"), True, "needs a number"),
        (PairPlan("all", 3), False, "num_pairs has no effect"),
        (PairPlan("unsure", 3), False, "num_pairs has no effect"),
        (PairPlan("unsure", max_margin=1.0), False, "max_margin has no effect"),
        (PairPlan("random", 3, 1.0), False, "max_margin has no effect"),
        (PairPlan("all", judges=("x",)), False, "judges has no effect"),
        (PairPlan("all"), True, "scores has no effect"),
        (PairPlan("disputed", judges=("x",)), False, "two judges or more"),
    ],
)
def test_a_plan_with_a_number_too_few_or_too_many_is_refused(plan, has_scores, problem):
    with pytest.raises(ConfigError, match=problem):
        plan.check(has_scores=has_scores)


@pytest.mark.parametrize(
    ("plan", "has_scores"),
    [(PairPlan(), False), (PairPlan("random", 2), False), (PairPlan("unsure"), False), (PairPlan("disputed"), False),
     (PairPlan("unsure", 2), True), (PairPlan("unsure", max_margin=0.1), True)],
)  # fmt: skip
def test_a_whole_plan_is_accepted(plan, has_scores):
    plan.check(has_scores=has_scores)
