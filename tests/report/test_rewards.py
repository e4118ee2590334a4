import numpy as np
import pytest

from evaluation_summaries import scored_item
from report_figures import accepted, rows
from steelyard.evaluation.tables import word
from steelyard.report.rewards import (
    margin_figure,
    margin_table,
    rewards_of,
    rewards_section,
    score_figure,
    tier_figure,
    tier_spreads,
    tier_table,
)

ITEMS = [
    scored_item("p", scores={"a": 3.0, "b": 1.0, "c": -1.0}, ranking=(("a",), ("b", "c"))),
    scored_item("q", scores={"a": 0.0, "b": None, "c": 2.0}, ranking=(("a",), ("b",), ("c",))),
    scored_item("r", scores={"a": 9.0}, ranking=None),
]


def test_scores_margins_and_centring_by_hand():
    rewards = rewards_of(ITEMS)
    assert rewards.scores.tolist() == [3.0, 1.0, -1.0, 0.0, 2.0]
    assert rewards.centred.tolist() == [2.0, 0.0, -2.0, -1.0, 1.0]
    assert rewards.tier.tolist() == [1, 2, 2, 1, 3]
    assert rewards.last.tolist() == [2, 2, 2, 3, 3]
    assert sorted(rewards.margins.tolist()) == [-2.0, 2.0, 4.0]


def test_tiers_are_spread_out_by_quantiles():
    spreads = tier_spreads(rewards_of(ITEMS))
    assert [(one.tier, one.n) for one in spreads] == [(1, 2), (2, 2), (3, 1)]
    assert spreads[0].quantiles[2] == 0.5
    assert spreads[2].quantiles == (1.0,) * 5
    assert tier_table(spreads).rows[2] == ("3", "1", "1.000", "1.000", "1.000", "1.000", "1.000")


def test_margins_are_counted_right_tied_and_wrong():
    assert [row[1:] for row in margin_table(np.array([2.0, 1.0, 0.0, -1.0])).rows] == [
        ("2", "50.0%"),
        ("1", "25.0%"),
        ("1", "25.0%"),
    ]


def test_nothing_ranked_is_nothing():
    empty = rewards_of([])
    assert empty.scores.size == empty.margins.size == 0
    assert tier_spreads(empty) == ()


def test_a_section_of_nothing_has_no_panels():
    assert rewards_section({"m": [scored_item("p", scores={"a": None}, ranking=(("a",),))]}, []).panels == ()


def test_rewards_have_margins_only_where_tiers_differ():
    one_tier = [scored_item("p", scores={"a": 1.0, "b": 2.0}, ranking=(("a", "b"),))]
    assert len(rewards_section({"m": one_tier}, []).panels) == 2
    two_tiers = [scored_item("p", scores={"a": 1.0, "b": 2.0}, ranking=(("a",), ("b",)))]
    assert len(rewards_section({"m": two_tiers}, []).panels) == 3
    assert all(
        panel.title.startswith(("m · ", "n · "))
        for panel in rewards_section({"m": two_tiers, "n": two_tiers}, []).panels
    )


TWELVE_ITEMS = [
    scored_item(str(n), scores={"a": n + 1.0, "b": n, "c": n - 1.0}, ranking=(("a",), ("b",), ("c",)))
    for n in range(12)
]
TWELVE_REWARDS = rewards_of(TWELVE_ITEMS)


def test_tiers_are_drawn_with_their_quantiles():
    drawn = [row for row in rows(accepted(tier_figure(tier_spreads(TWELVE_REWARDS)))) if "median" in row]
    assert [(row["median"], row["n"]) for row in drawn] == [(1.0, 12), (0.0, 12), (-1.0, 12)]


def test_the_bars_of_each_group_add_up_to_it():
    figure = score_figure(TWELVE_REWARDS)
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
