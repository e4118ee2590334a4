"""What one more answer is expected to set right."""

import numpy as np
import pytest
from task_values import task_values

from steelyard.annotation.plackett_luce import Choices, RankingAnswer, Raters, choices_of, draw_choices, first_choices
from steelyard.annotation.strengths import item_strengths, pair_beliefs

RATERS = Raters(np.array([2.0, 0.1]), np.array([-1.0, -1.0]))


def test_a_good_rater_tells_more_and_a_task_that_is_settled_less():
    items = item_strengths(choices_of([RankingAnswer(0, 0, [[0], [1, 2]])] * 3), RATERS, num_items=1, width=3)
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
