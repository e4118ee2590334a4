"""Sureness of a ranking."""

import numpy as np
import pytest

from steelyard.annotation.plackett_luce import RankingAnswer, Raters, choices_of
from steelyard.annotation.stopping import sureness
from steelyard.annotation.strengths import item_strengths

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
