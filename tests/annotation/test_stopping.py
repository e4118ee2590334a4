"""Sureness of a ranking, and what one more answer is expected to set right."""

import numpy as np
import pytest

from steelyard.annotation.plackett_luce import Choices, RankingAnswer, Raters, choices_of, draw_choices, first_choices
from steelyard.annotation.stopping import sureness, task_values
from steelyard.annotation.strengths import item_strengths, pair_beliefs

RATERS = Raters(np.array([2.0, 0.1]), np.array([-1.0, -1.0]))


def strengths(answers, width: int = 3):
    return item_strengths(choices_of(answers), RATERS, num_items=1, width=width)


def test_agreeing_answers_make_sure_and_contradicting_ones_do_not():
    ranking = RankingAnswer(0, 0, [[0], [1], [2]])
    pair, other = RankingAnswer(0, 0, [[0], [1]]), RankingAnswer(0, 0, [[1], [0]])
    one, two, against = (sureness(strengths(each)) for each in ([ranking], [ranking] * 2, [pair, other]))
    assert (two.of_pairs > one.of_pairs).all()
    assert (one.of_pairs > 0.5).all()
    assert against.of_pairs == pytest.approx(np.full((1, 3), 0.5), abs=1e-3)


def test_nothing_is_known_without_answers():
    assert sureness(strengths([])).of_pairs == pytest.approx(np.full((1, 3), 0.5))


def test_the_sureness_of_a_task_is_that_of_its_pairs():
    sure = sureness(strengths([RankingAnswer(0, 0, [[0], [1]])], width=4))
    for places, pairs in (((0, 1), [0]), ((2, 3), [5]), ((0, 1, 2), [0, 1, 3]), ((3, 0, 2), [1, 2, 5])):
        [found] = sure.of_tasks(np.zeros(1, np.int64), np.array([places]))
        assert found == pytest.approx(sure.of_pairs[0, pairs].mean())
    assert sure.of_pairs[0, 5] == pytest.approx(0.5)


def test_a_good_rater_tells_more_and_a_task_that_is_settled_less():
    items = strengths([RankingAnswer(0, 0, [[0], [1, 2]])] * 3)
    firsts = [
        first_choices([RankingAnswer(0, rater, [list(places)])])[0]
        for rater, places in ((0, (1, 2)), (1, (1, 2)), (0, (0, 1)))
    ]
    good, guessing, settled = (float(task_values(each, RATERS, items)[0]) for each in firsts)
    assert good > 10 * max(guessing, 1e-6)
    assert good > 2 * settled > 0


def test_the_expected_gain_is_the_mean_gain_over_simulated_answers():
    rng = np.random.default_rng(0)
    number = 4000
    known = [RankingAnswer(item, 0, [[0], [1]]) for item in range(number)]
    items = item_strengths(choices_of(known), RATERS, num_items=number, width=2)
    zeros = np.zeros(number, np.int64)
    tasks = Choices(np.arange(number), zeros, np.tile([0, 1], (number, 1)), zeros)
    expected = task_values(tasks, RATERS, items)[0]
    drawn = items.mean + np.einsum("ijk,ik->ij", np.linalg.cholesky(items.covariance), rng.normal(size=(number, 2)))
    after = item_strengths(
        [*choices_of(known), *draw_choices([tasks], drawn, RATERS, rng)], RATERS, num_items=number, width=2
    )
    truth = drawn[:, 0] > drawn[:, 1]
    wrong = [((pair_beliefs(each).difference[:, 0] > 0) != truth).mean() for each in (items, after)]
    assert expected == pytest.approx(wrong[0] - wrong[1], abs=0.03)
