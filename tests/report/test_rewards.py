import numpy as np

from evaluation_summaries import scored_item
from steelyard.report.rewards import margin_table, rewards_of, tier_spreads, tier_table

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
