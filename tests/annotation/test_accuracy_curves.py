"""Intervals of accuracy: of people unlike the others, by a likelihood that is exact where it can be counted by hand."""

import numpy as np
import pytest

from steelyard.annotation.accuracy_curves import accuracy_intervals
from steelyard.annotation.marginal_likelihood import marginal_likelihood
from steelyard.annotation.plackett_luce import RankingAnswer, Raters
from steelyard.annotation.rater_reliability import accuracy_of, fit_panel, reliability_of

FIRST, SECOND, TIE = ((0,), (1,)), ((1,), (0,)), ((0, 1),)


def judged_by_all(discriminations, num_items, seed):
    """Pairs without ties that all raters judge, by the model."""
    rng = np.random.default_rng(seed)
    answers = []
    for item, difference in enumerate(rng.normal(0.0, np.sqrt(2), num_items)):
        for rater, discrimination in enumerate(discriminations):
            is_first = rng.random() < 1 / (1 + np.exp(-discrimination * difference))
            answers.append(RankingAnswer(item, rater, FIRST if is_first else SECOND))
    return answers


def intervals_of(discriminations, num_items, seed):
    names = [str(place) for place in range(len(discriminations))]
    panel = fit_panel(judged_by_all(discriminations, num_items, seed), names, num_items=num_items, width=2)
    return [reliability_of(rater).accuracy for rater in panel.raters.values()]


def accuracies(answers, number, *, fewest=10):
    raters = Raters(np.full(number, 1.5), np.full(number, -1.0))
    return accuracy_intervals(answers, raters, population=(1.5, 0.75), fewest=fewest)


def test_the_interval_of_somebody_nearly_perfect_among_others_contains_the_accuracy():
    """Intervals drawn toward the others contained it in none of 200 projects, and here in none of six."""
    truth = accuracy_of(np.array([6.0]))[0]
    found = [intervals_of([1.0, 1.4, 1.8, 2.2, 6.0], 100, seed)[-1] for seed in range(6)]
    assert sum(each.low <= truth <= each.high for each in found) >= 5
    assert all(each.high - each.low < 0.25 for each in found)


def test_two_people_alone_may_each_be_the_one_who_errs():
    """Who of two errs cannot be told: both may be perfect, and both at worst as often right as they agree."""
    for seed in range(3):
        first, second = intervals_of([2.0, 2.0], 200, seed)
        for each in (first, second):
            assert each.high == 1.0
            assert each.low < 0.76
        assert first.value == pytest.approx(second.value, abs=0.04)


def test_whoever_agrees_with_all_has_an_interval_that_is_open_above():
    """Three people who always agree on 30 pairs: at an accuracy of 0.83 one would in 30 pairs contradict the others."""
    answers = [RankingAnswer(item, rater, FIRST if item % 2 else SECOND) for item in range(30) for rater in range(3)]
    for each in accuracies(answers, 3):
        assert each.high == 1.0
        assert 0.8 < each.low < 0.95
        assert each.low < each.value < 1


@pytest.mark.parametrize(
    ("said", "probability"),
    [
        # Of two perfect raters without ties, both name the better response: a half for each of the two.
        ((FIRST, FIRST), 0.5),
        # One guesses, and the other is perfect.
        ((FIRST, SECOND), 0.25),
        ((SECOND, SECOND), 0.25),
    ],
)
def test_the_likelihood_is_that_of_counting(said, probability):
    best = 0.0 if probability == 0.25 else 1e5
    raters = Raters(np.array([1e5, best]), np.full(2, -60.0))
    likelihood = marginal_likelihood([RankingAnswer(0, rater, tiers) for rater, tiers in enumerate(said)], 2)
    assert np.exp(likelihood.slopes(raters)[0]) == pytest.approx(probability)


def test_all_that_two_raters_can_say_of_a_pair_has_a_probability_of_one():
    raters = Raters(np.array([0.7, 3.0]), np.array([-0.5, 0.3]))
    pairs = [(first, second) for first in (FIRST, SECOND, TIE) for second in (FIRST, SECOND, TIE)]
    total = sum(
        np.exp(
            marginal_likelihood([RankingAnswer(0, rater, each) for rater, each in enumerate(said)], 2).slopes(raters)[0]
        )
        for said in pairs
    )
    assert total == pytest.approx(1)


@pytest.mark.parametrize("shown", [(0, 1), (0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 3, 4)])
def test_the_gradient_is_that_of_the_likelihood(shown):
    rng = np.random.default_rng(0)
    answers = [
        RankingAnswer(item, rater, [[x] for x in rng.permutation(shown)]) for item in range(3) for rater in (0, 1)
    ]
    likelihood = marginal_likelihood([*answers, RankingAnswer(3, 0, [shown]), RankingAnswer(3, 1, [shown])], 2)
    values, step = np.array([1.2, 0.8, -0.7, -0.2]), 1e-5
    _, gradient, _ = likelihood.slopes(Raters(values[:2], values[2:]))
    for place in range(4):
        moved = step * np.eye(4)[place]
        up, down = (likelihood.slopes(Raters(*np.split(values + sign * moved, 2)))[0] for sign in (1, -1))
        assert (up - down) / (2 * step) == pytest.approx(gradient[place], abs=1e-5)
    assert likelihood.num_answers.tolist() == [4, 4]


def test_nothing_is_said_of_a_rater_who_ranked_what_nobody_else_did():
    rng = np.random.default_rng(1)
    answers = judged_by_all([1.5, 2.0], 20, 1)
    alone = [RankingAnswer(item, 2, [[2], [3]] if rng.random() < 0.5 else [[3], [2]]) for item in range(20)]
    first, second, third = accuracies([*answers, *alone], 3)
    assert (first.n, second.n, third) == (20, 20, None)
    assert accuracies(alone, 3) == [None, None, None]


def test_sets_that_are_not_taken_anew_hardly_change_an_interval(monkeypatch):
    rng = np.random.default_rng(2)
    answers = [each for each in judged_by_all([0.8, 1.2, 1.6, 2.0, 2.4, 6.0], 200, 2) if rng.random() < 0.5]
    whole = accuracies(answers, 6)
    monkeypatch.setattr("steelyard.annotation.accuracy_curves._WHOLE", 0)
    for one, other in zip(whole, accuracies(answers, 6), strict=True):
        assert (other.low, other.high) == pytest.approx((one.low, one.high), abs=0.02)
