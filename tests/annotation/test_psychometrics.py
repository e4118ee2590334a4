"""Strengths and raters: exact formulas, derivatives, simulated truths that are recovered, and honest intervals."""

import warnings
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from steelyard.annotation.plackett_luce import (
    Choices,
    RankingAnswer,
    Raters,
    alternatives,
    choice_gradients,
    choice_odds,
    choices_of,
    draw_choices,
    first_choices,
    strength_slopes,
)
from steelyard.annotation.psychometrics import PanelFit, fit_raters
from steelyard.annotation.rater_reliability import accuracy_of, ties_of
from steelyard.annotation.strengths import ItemStrengths, RaterUtilities
from steelyard.core.errors import EvidenceError

CIRCLE = tuple((place, (place + 1) % 5, (place + 2) % 5) for place in range(5))
STEP = 1e-6


def log_likelihood(choices: Choices, strength: np.ndarray, raters: Raters) -> np.ndarray:
    """Return the logarithm of the probability of each choice that was made, (…, choice)."""
    odds = choice_odds(choices, strength, raters)
    return np.log(np.maximum(odds[..., np.arange(len(choices.chosen)), choices.chosen], 1e-300))


def simulated(num_items: int, num_raters: int, people: int, shown: tuple[tuple[int, ...], ...], seed: int):
    """Return true raters, true strengths, and the choices of ``people`` raters a task, drawn from the model."""
    rng = np.random.default_rng(seed)
    raters = Raters(rng.normal(1.8, 0.5, num_raters), rng.normal(-0.8, 0.5, num_raters))
    width = 1 + max(map(max, shown))
    strength = rng.normal(size=(num_items, width))
    # Nobody answers two tasks of an item while there are others.
    order = np.argsort(rng.random((num_items, num_raters)), axis=1)
    who = order[:, np.arange(len(shown) * people) % num_raters].reshape(-1)
    item = np.repeat(np.arange(num_items), len(shown) * people)
    places = np.repeat(np.tile(np.array(shown), (num_items, 1)), people, axis=0)
    firsts = Choices(item, who, places, np.zeros(len(item), np.int64))
    return raters, strength, firsts, draw_choices([firsts], strength, raters, rng)


def fitted(choices: list[Choices], strength: np.ndarray, num_raters: int) -> PanelFit:
    return fit_raters(choices, num_raters=num_raters, num_items=len(strength), width=strength.shape[1])


def item_strengths(choices, raters: Raters, *, num_items: int, width: int, start: ItemStrengths | None = None):
    """Return the strengths of items given the raters, by steps from nothing or from other strengths."""
    views = RaterUtilities(choices, raters, num_items, width)
    if start is not None:
        views.items, views.is_near = start, True
        views.mean, views.covariance = start.mean[views.item], start.covariance[views.item]
    views.converge(raters, most_steps=60)
    return views.items


def one_answer(tiers) -> tuple[Choices, ...]:
    return choices_of([RankingAnswer(0, 0, tiers)])


def weak_orders(names: tuple[int, ...]):
    """Return every ranking with ties of the names, once each."""
    orders = set()
    for order in permutations(names):
        for cuts in range(2 ** (len(names) - 1)):
            tiers, tier = [], [order[0]]
            for place, name in enumerate(order[1:]):
                if cuts >> place & 1:
                    tiers.append(tuple(sorted(tier)))
                    tier = []
                tier.append(name)
            orders.add((*tiers, tuple(sorted(tier))))
    return orders


def test_two_responses_give_the_model_of_davidson():
    raters, strength = Raters(np.array([1.3]), np.array([-0.4])), np.array([[0.5, -0.2]])
    odds = choice_odds(one_answer([[0], [1]])[0], strength[None], raters)[0, 0]
    worth = np.exp(1.3 * strength[0])
    tie = np.exp(-0.4) * np.sqrt(worth[0] * worth[1])
    assert odds == pytest.approx(np.array([*worth, tie]) / (worth.sum() + tie))


@pytest.mark.parametrize("number", [2, 3, 4])
def test_the_probabilities_of_all_rankings_sum_to_one(number: int):
    raters = Raters(np.array([0.9]), np.array([0.3]))
    strength = np.linspace(-1, 1.5, number)
    total = 0.0
    for tiers in weak_orders(tuple(range(number))):
        blocks = one_answer(tiers)
        total += np.exp(sum(log_likelihood(each, strength[each.places], raters).sum() for each in blocks))
    assert total == pytest.approx(1)


@given(
    st.integers(2, 5),
    st.integers(0, 2**32 - 1),
    st.floats(-2, 4),
    st.floats(-3, 2),
)
@settings(max_examples=30, deadline=None)
def test_derivatives_are_those_of_the_likelihood(size: int, seed: int, discrimination: float, tie: float):
    rng = np.random.default_rng(seed)
    chosen = rng.integers(len(alternatives(size).ties), size=3)
    zeros = np.zeros(3, np.int64)
    choices = Choices(zeros, zeros, np.tile(np.arange(size), (3, 1)), chosen)
    strength, raters = rng.normal(size=(3, size)), Raters(np.array([discrimination]), np.array([tie]))
    gradient, curvature = strength_slopes(choices, strength[None], raters)
    values, by_rater = (each[0] for each in choice_gradients(choices, strength[None], raters))
    assert values == pytest.approx(log_likelihood(choices, strength, raters))
    for place in range(size):
        moved = STEP * np.eye(size)[place]
        rise = log_likelihood(choices, strength + moved, raters) - log_likelihood(choices, strength - moved, raters)
        assert rise / (2 * STEP) == pytest.approx(gradient[:, place], abs=1e-4)
        after, before = (strength_slopes(choices, (strength + sign * moved)[None], raters)[0] for sign in (1, -1))
        bend = (before - after) / (2 * STEP)
        assert bend == pytest.approx(curvature[:, place], abs=1e-4)
    for parameter in (0, 1):
        up, down = np.array([[discrimination], [tie]]), np.array([[discrimination], [tie]])
        up[parameter] += STEP
        down[parameter] -= STEP
        rise = log_likelihood(choices, strength, Raters(*up)) - log_likelihood(choices, strength, Raters(*down))
        assert rise / (2 * STEP) == pytest.approx(by_rater[:, parameter], abs=1e-4)


def test_rankings_are_drawn_as_often_as_the_model_says():
    rng = np.random.default_rng(1)
    raters, strength = Raters(np.array([1.2]), np.array([-0.5])), np.array([[0.6, 0.0, -0.8]])
    number = 20_000
    firsts = Choices(
        np.zeros(number, int), np.zeros(number, int), np.tile([0, 1, 2], (number, 1)), np.zeros(number, int)
    )
    first, *rest = draw_choices([firsts], strength, raters, rng)
    expected = choice_odds(first.where(slice(1)), strength[None, [0]], raters)[0, 0]
    shares = np.bincount(first.chosen, minlength=7) / number
    assert shares == pytest.approx(expected, abs=4 * np.sqrt(0.25 / number))
    # Who took one response has two left to choose from; who took two or three has none.
    assert sum(len(block.item) for block in rest) == np.isin(first.chosen, [0, 1, 3]).sum()


def test_too_long_rankings_are_refused():
    with pytest.raises(EvidenceError, match="a ranking of 6 responses"):
        one_answer([[place] for place in range(6)])


def test_one_answer_gives_finite_strengths_and_nothing_those_of_the_prior():
    raters = Raters(np.array([4.0]), np.array([-2.0]))
    items = item_strengths(one_answer([[0], [1]]), raters, num_items=1, width=3)
    assert np.isfinite(items.mean).all()
    assert items.mean[0, 0] > 0 > items.mean[0, 1]
    assert items.mean[0, 2] == 0
    assert items.covariance[0, 2] == pytest.approx([0, 0, 1])


def pair_beliefs(items):
    """Return the difference of every two responses of each item, and its standard deviation."""
    first, second = np.triu_indices(items.mean.shape[1], 1)
    variance = np.diagonal(items.covariance, axis1=1, axis2=2)
    spread = variance[:, first] + variance[:, second] - 2 * items.covariance[:, first, second]
    return items.mean[:, first] - items.mean[:, second], np.sqrt(spread)


@pytest.mark.parametrize("tiers", [((0,), (1,)), ((0, 1),)])
@pytest.mark.parametrize("answers", [1, 3])
def test_strengths_of_two_responses_are_those_of_the_exact_posterior(tiers, answers: int):
    raters = Raters(np.array([2.0]), np.array([-0.7]))
    items = item_strengths(choices_of([RankingAnswer(0, 0, tiers)] * answers), raters, num_items=1, width=2)
    # Only the difference enters: its prior variance is 2.
    grid = np.linspace(-12, 12, 6001)
    choices = one_answer(tiers)[0]
    strength = np.stack([grid / 2, -grid / 2], axis=-1)[:, None]
    density = np.exp(answers * log_likelihood(choices, strength, raters)[:, 0] - grid**2 / 4)
    density /= density.sum()
    mean = (density * grid).sum()
    difference, deviation = pair_beliefs(items)
    assert difference[0, 0] == pytest.approx(mean, abs=0.06)
    assert deviation[0, 0] == pytest.approx(np.sqrt((density * (grid - mean) ** 2).sum()), rel=0.08)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_strengths_depend_neither_on_the_order_of_answers_nor_of_responses(seed: int):
    rng = np.random.default_rng(seed)
    raters, _, _, choices = simulated(6, 4, 2, CIRCLE, seed)
    items = item_strengths(choices, raters, num_items=6, width=5)
    shuffled = [block.where(rng.permutation(len(block.item))) for block in reversed(choices)]
    again = item_strengths(shuffled, raters, num_items=6, width=5)
    assert again.mean == pytest.approx(items.mean, abs=1e-9)
    order = rng.permutation(5)
    renamed = [block._replace(places=order[block.places]) for block in choices]
    other = item_strengths(renamed, raters, num_items=6, width=5)
    assert other.mean[:, order] == pytest.approx(items.mean, abs=1e-3)


def test_the_largest_discriminations_end_without_overflow():
    raters = Raters(np.array([30.0, -30.0]), np.array([5.0, -20.0]))
    answers = [RankingAnswer(0, 0, [[0], [1], [2]]), RankingAnswer(0, 1, [[0], [1], [2]])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        items = item_strengths(choices_of(answers), raters, num_items=1, width=3)
    assert np.isfinite(items.mean).all()
    assert np.isfinite(items.covariance).all()


def test_simulated_truths_are_recovered_and_intervals_cover_them():
    raters, strength, _, choices = simulated(500, 12, 2, CIRCLE, 3)
    fit = fitted(choices, strength, 12)
    error = fit.standard_errors()
    z = np.concatenate(
        [
            (fit.raters.discrimination - raters.discrimination) / error.discrimination,
            (fit.raters.tie - raters.tie) / error.tie,
        ]
    )
    assert np.abs(z).mean() < 1.3
    assert np.abs(z).max() < 4
    assert np.corrcoef(fit.raters.discrimination, raters.discrimination)[0, 1] > 0.9
    items = item_strengths(choices, fit.raters, num_items=500, width=5)
    (difference, deviation), (first, second) = pair_beliefs(items), np.triu_indices(5, 1)
    truth = strength[:, first] - strength[:, second]
    assert 0.93 <= (np.abs(difference - truth) < 1.96 * deviation).mean() <= 0.97
    # A probability of 0.8 is right in 80 % of the cases.
    sure = ndtr(np.abs(difference) / deviation)
    is_right = np.sign(difference) == np.sign(truth)
    for low, high in ((0.5, 0.7), (0.7, 0.9), (0.9, 1.0)):
        inside = (sure >= low) & (sure < high)
        assert is_right[inside].mean() == pytest.approx(sure[inside].mean(), abs=0.04)


def test_a_rater_who_guesses_and_one_who_reverses_are_found():
    raters, strength, firsts, _ = simulated(300, 15, 3, CIRCLE, 4)
    raters.discrimination[:2] = 0.0, -1.5
    choices = draw_choices([firsts], strength, raters, np.random.default_rng(5))
    fit = fitted(choices, strength, 15)
    accuracy = accuracy_of(fit.raters.discrimination)
    assert accuracy[0] == pytest.approx(0.5, abs=0.05)
    assert accuracy[1] < 0.35
    assert accuracy[2:].min() > 0.6


@pytest.mark.slow
def test_standard_errors_are_those_of_a_bootstrap_over_items():
    num_items = 300
    _, strength, _, choices = simulated(num_items, 6, 3, ((0, 1, 2),), 6)
    fit = fitted(choices, strength, 6)
    rng = np.random.default_rng(7)
    draws = []
    for _ in range(25):
        times = np.bincount(rng.integers(num_items, size=num_items), minlength=num_items)
        start = np.cumsum(times) - times
        parts = []
        for block in choices:
            rows = np.repeat(np.arange(len(block.item)), times[block.item])
            copy = np.concatenate([np.arange(times[item]) for item in block.item])
            parts.append(block.where(rows)._replace(item=start[block.item[rows]] + copy))
        draws.append(np.concatenate(fitted(parts, strength, 6).raters[:2]))
    ratio = np.concatenate(fit.standard_errors()[:2]) / np.std(draws, axis=0, ddof=1)
    # Shrinkage narrows the bootstrap a little, and 25 resamples know a deviation to 14 %.
    assert 0.75 < np.median(ratio) < 1.4


def test_a_rater_without_answers_is_an_average_one():
    *_, choices = simulated(100, 10, 2, CIRCLE, 8)
    fit = fit_raters(choices, num_raters=11, num_items=100, width=5)
    assert fit.raters.discrimination[10] == pytest.approx(fit.population[0], abs=0.15)
    assert fit.standard_errors().discrimination[10] > 0.7


def test_raters_who_answer_many_tasks_of_an_item_repeat_one_view_of_it():
    answers = [
        RankingAnswer(item, rater, [[place] for place in shown])
        for item in range(40)
        for rater in (0, 1)
        for shown in CIRCLE
    ]
    fit = fit_raters(choices_of(answers), num_raters=2, num_items=40, width=5)
    assert fit.raters.rater_item_variance > 0
    once = choices_of(answers[:1])
    ten_times = choices_of([answers[0]] * 10)
    sure, surer = (
        item_strengths(each, fit.raters, num_items=1, width=5).covariance[0, 0, 0] for each in (once, ten_times)
    )
    # Two responses of one rater's view: never surer than the prior and one view of the rater-item variance.
    assert sure > surer > fit.raters.rater_item_variance / (1 + fit.raters.rater_item_variance) / 2


def test_strengths_do_not_depend_on_where_the_steps_begin():
    # Raters who hardly err, of different views: whole steps go to and fro by 0.07 and end on either side.
    raters, rng = Raters(np.full(3, 6.0), np.full(3, 0.5), 0.5), np.random.default_rng(11)
    answers = [
        RankingAnswer(item, rater, [[place] for place in rng.permutation(shown)])
        for item in range(20)
        for rater in (0, 1, 2)
        for shown in CIRCLE
    ]
    choices = choices_of(answers)
    elsewhere = item_strengths(choices_of(answers[::2]), raters, num_items=20, width=5)
    found, again = (item_strengths(choices, raters, num_items=20, width=5, start=start) for start in (None, elsewhere))
    assert again.mean == pytest.approx(found.mean, abs=1e-3)
    assert again.covariance == pytest.approx(found.covariance, abs=1e-3)


def test_accuracy_and_ties_are_those_of_random_responses():
    rng = np.random.default_rng(10)
    difference = rng.normal(size=400_000) * np.sqrt(2)
    assert accuracy_of(np.array([0.0]))[0] == pytest.approx(0.5)
    expected = (1 / (1 + np.exp(-1.7 * np.abs(difference)))).mean()
    assert accuracy_of(np.array([1.7]))[0] == pytest.approx(expected, abs=0.002)
    raters = Raters(np.array([1.7]), np.array([-0.5]))
    half = 1.7 * difference / 2
    tie = np.exp(-0.5) / (np.exp(-0.5) + np.exp(half) + np.exp(-half))
    assert ties_of(raters)[0] == pytest.approx(tie.mean(), abs=0.002)


def test_who_was_shown_what_does_not_depend_on_the_answer():
    shown = [first_choices([RankingAnswer(3, 1, tiers)])[0] for tiers in ([[2], [0, 1]], [[0, 1, 2]], [[1], [2], [0]])]
    assert all(each.places.tolist() == [[0, 1, 2]] and each.item.tolist() == [3] for each in shown)


def test_an_item_without_choices_keeps_its_prior():
    items = item_strengths([], Raters(np.ones(1), np.zeros(1)), num_items=2, width=4)
    assert isinstance(items, ItemStrengths)
    assert not items.mean.any()
