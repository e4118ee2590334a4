import numpy as np
import pytest

from evaluation_summaries import scored_item
from report_figures import accepted, rows
from steelyard.evaluation.tables import word
from steelyard.report.distributions import margin_figure, score_figure, tier_figure
from steelyard.report.rewards import rewards_of, tier_spreads

ITEMS = [
    scored_item(str(n), scores={"a": n + 1.0, "b": n, "c": n - 1.0}, ranking=(("a",), ("b",), ("c",)))
    for n in range(12)
]
REWARDS = rewards_of(ITEMS)


def test_tiers_are_drawn_with_their_quantiles():
    drawn = [row for row in rows(accepted(tier_figure(tier_spreads(REWARDS)))) if "median" in row]
    assert [(row["median"], row["n"]) for row in drawn] == [(1.0, 12), (0.0, 12), (-1.0, 12)]


def test_the_bars_of_each_group_add_up_to_it():
    figure = score_figure(REWARDS)
    drawn = rows(accepted(figure))
    assert [mark.name for mark in figure.legend] == [word("tier_best"), word("tier_middle"), word("tier_last")]
    for mark in figure.legend:
        own = [row for row in drawn if row["series"] == mark.name]
        assert sum(row["n"] for row in own) == 12
        assert sum(row["share"] for row in own) == pytest.approx(1.0, abs=1e-4)


def test_margins_left_of_zero_are_wrong_and_none_is_lost():
    drawn = rows(accepted(margin_figure(np.array([-2.0, -0.5, 0.0, 1.0, 2.0]))))
    assert sum(row["n"] for row in drawn) == 5
    assert sum(row["n"] for row in drawn if row["series"] == word("wrong")) == 2


def test_equal_scores_alone_can_be_drawn():
    assert sum(row["n"] for row in rows(accepted(margin_figure(np.zeros(3))))) == 3
