import numpy as np
import pytest
from msgspec import to_builtins

from reference_measures import reference_estimate
from steelyard.evaluation.measures.rewards import Rewards, reward_distributions, reward_table
from steelyard.evaluation.tables import DASH
from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.groups import Cell, Label


def report(labels, prompt, score, reason=None, num_resamples=500):
    blocks = draw_blocks(labels, num_resamples=num_resamples, seed=0)
    reasons = dict(enumerate(reason or ()))
    return reward_distributions(blocks, Rewards(np.asarray(prompt), np.asarray(score, float), reasons))


def plain_labels(number):
    return [Label(f"p{index}", Cell("code")) for index in range(number)]


def test_each_group_by_hand():
    labels = [Label("p", Cell("code", None, "zh")), Label("q", Cell("chat", None, "he"))]
    found = report(labels, [0, 0, 0, 1, 1], [1.0, 2.0, 6.0, 5.0, np.nan], ["", "", "", "", "too long"])
    assert found.overall.mean.value == pytest.approx(14 / 4)
    assert found.by_category["code"].mean.value == pytest.approx(3.0)
    assert found.by_language["zh"].standard_deviation.value == pytest.approx(np.std([1, 2, 6], ddof=1))
    assert found.by_language["zh"].quantiles["0.5"].value == 2.0
    assert found.by_language["he"].share_unscored.value == 0.5
    assert found.by_language["he"].unscored == {"too long": 1}
    assert found.by_language["he"].standard_deviation.value is None
    assert found.overall.share_unscored.value == pytest.approx(1 / 5)
    assert to_builtins(found.by_language["zh"].share_unscored) == reference_estimate(0.0, 1, 3)


def test_the_spread_survives_a_large_mean():
    score = 1e7 + np.tile([0.0, 1.0, 2.0, 3.0], 6)
    found = report(plain_labels(24), np.arange(24), score).overall
    assert found.standard_deviation.value == pytest.approx(np.std(score, ddof=1))
    assert 1e7 < found.mean.low < found.mean.value < found.mean.high < 1e7 + 3


@pytest.mark.parametrize("exponent", [-600, -100, 70, 500])
def test_rewards_in_other_units_have_the_same_digits(exponent):
    score = np.random.default_rng(1).normal(2.0, 3.0, 220)
    plain = report(plain_labels(220), np.arange(220), score).overall
    other = report(plain_labels(220), np.arange(220), np.ldexp(score, exponent)).overall
    pairs = [
        *((plain.mean, other.mean), (plain.standard_deviation, other.standard_deviation)),
        *((plain.quantiles[name], other.quantiles[name]) for name in plain.quantiles),
    ]
    for one, two in pairs:
        assert one.low < one.value < one.high
        assert [two.low, two.value, two.high] == np.ldexp([one.low, one.value, one.high], exponent).tolist()


def test_a_large_offset_moves_the_mean_and_no_width():
    score = np.random.default_rng(2).integers(0, 64, 220) / 64
    plain, other = (report(plain_labels(220), np.arange(220), score + offset).overall for offset in (0.0, 1e8))
    assert other.mean.low - 1e8 == pytest.approx(plain.mean.low, abs=1e-6)
    assert other.mean.high - 1e8 == pytest.approx(plain.mean.high, abs=1e-6)
    assert other.standard_deviation.low == pytest.approx(plain.standard_deviation.low, rel=1e-6)


def test_equal_rewards_have_no_interval_whatever_their_mean_rounds_to():
    for value in (0.1, 1e8 / 3, 1e-30):
        found = report(plain_labels(220), np.arange(220), np.full(220, value)).overall
        assert (found.mean.value, found.mean.why) == (value, "all resamples are equal")
        assert found.standard_deviation.value == 0.0


def test_intervals_are_those_of_drawing_the_prompts_themselves():
    random = np.random.default_rng(1)
    score = random.normal(2.0, 3.0, 600) + np.repeat(random.normal(0, 2.0, 200), 3)
    prompt = np.repeat(np.arange(200), 3)
    found = report(plain_labels(200), prompt, score, num_resamples=2000).overall
    drawn = [score.reshape(200, 3)[random.integers(200, size=200)].reshape(-1) for _ in range(2000)]
    for name, measured in (("mean", np.mean), ("standard_deviation", lambda own: np.std(own, ddof=1))):
        low, high = np.percentile([measured(own) for own in drawn], [2.5, 97.5])
        assert (getattr(found, name).low, getattr(found, name).high) == (
            pytest.approx(low, abs=0.05),
            pytest.approx(high, abs=0.05),
        )
    for quantile in (0.05, 0.5, 0.75):
        low, high = np.percentile([np.quantile(own, quantile) for own in drawn], [2.5, 97.5])
        own = found.quantiles[f"{quantile:g}"]
        assert own.value == pytest.approx(np.quantile(score, quantile))
        assert (own.low, own.high) == (pytest.approx(low, abs=0.25), pytest.approx(high, abs=0.25))


def test_a_group_without_any_score_says_so():
    found = report(plain_labels(2), [0, 1], [np.nan, np.nan], ["empty", "empty"]).overall
    assert found.mean.value is found.quantiles["0.5"].value is None
    assert found.share_unscored.value == 1.0
    assert found.unscored == {"empty": 2}
    (row,) = reward_table({"zh": found}).rows
    assert (row[0], row[2], row[-1]) == ("zh", DASH, "100.0%")
