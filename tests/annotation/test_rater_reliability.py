"""Reliability of raters: recovered from simulated answers, with intervals that cover, and withheld where little is."""

import numpy as np
import pytest

from steelyard.annotation.accuracy_curves import AccuracyInterval
from steelyard.annotation.plackett_luce import RankingAnswer, Raters
from steelyard.annotation.rater_reliability import (
    FEWEST_SHARED,
    RaterParameters,
    accuracy_of,
    fit_panel,
    one_answer_each,
    reliability_of,
    ties_of,
)


def simulated(num_items, discriminations, seed):
    """Pairs that two of the raters judge each, by the model without ties."""
    rng = np.random.default_rng(seed)
    answers = []
    for item in range(num_items):
        difference = rng.normal() * np.sqrt(2)
        for rater in rng.permutation(len(discriminations))[:2].tolist():
            is_first = rng.random() < 1 / (1 + np.exp(-discriminations[rater] * difference))
            answers.append(RankingAnswer(item, rater, [[0], [1]] if is_first else [[1], [0]]))
    return answers


def panel(answers, number, num_items):
    return fit_panel(answers, [f"rater {place}" for place in range(number)], num_items=num_items, width=2)


@pytest.mark.slow
def test_intervals_cover_the_accuracy_of_simulated_raters():
    truth = np.array([0.0, 0.8, 1.5, 1.5, 2.0, 2.5])
    covered = []
    for seed in range(8):
        made = panel(simulated(400, truth, seed), 6, 400)
        for rater, accuracy in zip(made.raters.values(), accuracy_of(truth), strict=True):
            found = reliability_of(rater).accuracy
            covered.append(found.low <= accuracy <= found.high)
    assert np.mean(covered) >= 0.9


@pytest.mark.slow
def test_raters_who_hardly_err_are_not_made_worse_by_items_with_two_answers():
    truth = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 3.0])
    found = panel(simulated(3000, truth, 0), 6, 3000).raters.values()
    errors = [rater.discrimination_error for rater in found]
    z = (np.array([rater.discrimination for rater in found]) - truth) / errors
    assert np.abs(z).max() < 2
    assert np.mean([rater.discrimination for rater in found][-2:]) > 2.3


@pytest.mark.slow
def test_several_answers_to_an_item_do_not_bend_the_accuracy_or_make_it_too_sure():
    """Five triples of an item by each of two raters, whose views of it differ not at all, or much."""
    truth = np.array([0.8, 1.6, 2.0, 3.0])
    for rater_item_variance in (0.0, 1.5):
        rng = np.random.default_rng(5)
        answers = []
        for item in range(200):
            strengths = rng.normal(size=5)
            for rater in rng.permutation(4)[:2].tolist():
                seen = truth[rater] * (strengths + np.sqrt(rater_item_variance) * rng.normal(size=5))
                for first in range(5):
                    shown = [(first + place) % 5 for place in range(3)]
                    noisy = seen[shown] + rng.gumbel(size=3)
                    answers.append(RankingAnswer(item, rater, [[shown[place]] for place in np.argsort(-noisy)]))
        made = fit_panel(answers, ["a", "b", "c", "d"], num_items=200, width=5)
        found = [reliability_of(rater.of_one_answer).accuracy for rater in made.raters.values()]
        wanted = accuracy_of(truth, rater_item_variance)
        assert np.abs(np.mean([each.value for each in found] - wanted)) < 0.03
        # Of 95% intervals some miss by chance, and then by little: with this seed one and two.
        misses = [max(each.low - value, value - each.high) for each, value in zip(found, wanted, strict=True)]
        assert sum(miss > 0 for miss in misses) <= 2
        assert max(misses) < 0.05
        assert all(each.n < 200 for each in found)


def with_items(number, per_item):
    """Return four raters and their reliability; two of them rank ``per_item`` triples of five responses each."""
    rng = np.random.default_rng(8)
    answers = []
    for item in range(number):
        strengths = rng.normal(size=5)
        for rater in rng.permutation(4)[:2].tolist():
            for first in range(per_item):
                shown = [(first + place) % 5 for place in range(3)]
                noisy = 2 * strengths[shown] + rng.gumbel(size=3)
                answers.append(RankingAnswer(item, rater, [[shown[place]] for place in np.argsort(-noisy)]))
    made = fit_panel(answers, ["a", "b", "c", "d"], num_items=number, width=5)
    return made.raters, [reliability_of(rater) for rater in made.raters.values()]


@pytest.mark.parametrize(("per_item", "is_shown"), [(1, True), (2, False), (5, False)])
def test_an_estimate_from_at_most_half_of_the_answers_is_withheld_with_the_numbers(per_item, is_shown):
    raters, found = with_items(60, per_item)
    for rater, reliability in zip(raters.values(), found, strict=True):
        for each in reliability:
            assert (each.value is not None, each.low is not None, each.high is not None) == (is_shown,) * 3
            assert (each.why is None) == is_shown
            if not is_shown:
                # One triple of an item can be used, and all others are answers to shared items, too.
                assert rater.num_answers == per_item * each.n
                assert f"{each.n} of {rater.num_answers}" in each.why


def test_one_answer_of_each_rater_is_about_the_responses_that_most_ranked():
    few = [RankingAnswer(0, 0, [[0], [1]]), RankingAnswer(0, 0, [[2], [1]]), RankingAnswer(0, 1, [[1], [2]])]
    assert one_answer_each([*few, RankingAnswer(1, 2, [[0], [1]])]) == [few[1], few[2], RankingAnswer(1, 2, [[0], [1]])]


def test_the_number_of_a_rater_is_that_of_answers_to_shared_items():
    answers = [RankingAnswer(item, rater, [[0], [1]]) for item in range(12) for rater in (0, 1)]
    answers += [RankingAnswer(item, 2, [[1], [0]]) for item in range(12, 40)]
    made = panel(answers, 3, 40)
    assert [rater.num_answers for rater in made.raters.values()] == [12, 12, 0]
    assert (made.num_answers, made.num_shared_items) == (24, 12)
    alone = reliability_of(made.raters["rater 2"])
    assert alone.accuracy.value is None
    assert f"{FEWEST_SHARED} answers" in (alone.ties.why or "")


def test_an_estimate_follows_from_the_parameters_by_hand():
    known = {"tie_error": 0.3, "parameter_covariance": 0.0, "num_answers": 50}
    held = AccuracyInterval(value=0.8, low=0.7, high=0.9, n=40)
    rater = RaterParameters(discrimination=1.7, tie=-30.0, discrimination_error=0.2, accuracy=held, **known)
    accuracy, ties = reliability_of(rater)
    assert (accuracy.value, accuracy.low, accuracy.high, accuracy.n) == (0.8, 0.7, 0.9, 40)
    # The odds of a tie are proportional to exp(tie) where it is rare: its logarithm has the deviation of the tie.
    assert ties.value == pytest.approx(0, abs=1e-9)
    # Without a shared set of responses the accuracy is that of the fit.
    of_fit = reliability_of(RaterParameters(discrimination=1.7, tie=-3.0, discrimination_error=0.2, **known)).accuracy
    ends = accuracy_of(np.array([1.7, 1.7 - 1.96 * 0.2, 1.7 + 1.96 * 0.2]))
    assert (of_fit.value, of_fit.low, of_fit.high) == pytest.approx(tuple(ends), abs=1e-4)
    often = reliability_of(RaterParameters(discrimination=0.0, tie=-3.0, discrimination_error=0.0, **known)).ties
    share = np.exp(-3.0) / (2 + np.exp(-3.0))
    logit = np.log(share / (1 - share))
    assert often.value == pytest.approx(share)
    assert often.high == pytest.approx(1 / (1 + np.exp(-(logit + 1.96 * 0.3))), rel=1e-3)


def test_what_a_rater_sees_otherwise_than_all_counts_against_the_accuracy_and_for_fewer_ties():
    rng = np.random.default_rng(12)
    truth, own = (scale * rng.normal(size=400_000) * np.sqrt(2) for scale in (1, np.sqrt(0.5)))
    likely = 1 / (1 + np.exp(-2.0 * (truth + own)))
    expected = np.where(truth > 0, likely, 1 - likely).mean()
    assert accuracy_of(np.array([2.0]), 0.5)[0] == pytest.approx(expected, abs=0.002)
    tie = np.exp(-1.0)
    rest = 2 * np.cosh(truth + own)  # exp(d x / 2) + exp(-d x / 2) with d = 2
    assert ties_of(Raters(np.array([2.0]), np.array([-1.0]), 0.5))[0] == pytest.approx(
        (tie / (rest + tie)).mean(), abs=0.002
    )


def test_the_rater_item_variance_of_a_fit_goes_with_its_raters():
    circle = [(place, (place + 1) % 5, (place + 2) % 5) for place in range(5)]
    answers = [
        RankingAnswer(item, rater, [[place] for place in shown])
        for item in range(12)
        for rater in (0, 1)
        for shown in circle
    ]
    repeating = fit_panel(answers, ["one", "two"], num_items=12, width=5)
    [variance] = {rater.rater_item_variance for rater in repeating.raters.values()}
    assert variance > 0
    [once, _] = panel(simulated(20, [1.0, 1.0], 0), 2, 20).raters.values()
    assert once.rater_item_variance == 0
