import json
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.statistics.bootstrap import draw_weights
from steelyard.statistics.intervals import Estimate, one_sample
from steelyard.statistics.prediction_powered import (
    Drawn,
    HumanSample,
    LabelSources,
    PPIEstimate,
    check_population,
    combine,
    labels_needed,
    mix_p,
    ppi_difference,
    ppi_estimate,
)

PEER = Path(__file__).parents[1] / "golden" / "peers" / "ppi_python.json"


def means_of(human, same, others, num_resamples=1000, seed=0):
    """The three means with their resamples: of the human-labelled items together, and of the others apart."""
    random = np.random.default_rng(seed)

    def drawn(values, weights):
        return Drawn(values.mean(), weights @ values / weights.sum(axis=1))

    def weights(size):
        return draw_weights(random, size, num_drawn=size, num_resamples=num_resamples).astype(float)

    of_both = weights(len(human))
    return LabelSources(drawn(human, of_both), drawn(same, of_both), drawn(others, weights(len(others))))


def labels(size, others, agreement, seed=0):
    random = np.random.default_rng(seed)
    human = random.integers(2, size=size + others).astype(float)
    judged = np.where(random.random(len(human)) < agreement, human, random.integers(2, size=len(human)))
    return human[:size], judged[:size], judged[size:]


@pytest.mark.parametrize("place", range(4))
def test_weight_and_width_are_those_of_ppi_python_but_for_the_small_sample(place):
    peer = json.loads(PEER.read_text())["drawn"][place]
    human, same, others = (np.array(peer[name]) / 2 for name in ("human", "same", "others"))
    size = len(human)
    powered = combine(means_of(human, same, others, 8000), one_sample(size))
    # It pools the variance of the judge's labels, and one prompt on which the judge knows nothing shrinks the weight.
    pooled = np.concatenate([same, others]).var() * (1 / size + 1 / len(others))
    apart = same.var(ddof=1) / size + others.var(ddof=1) / len(others)
    assert powered.weight == pytest.approx(peer["weight"] * pooled / apart * size / (size + 1), rel=0.06)
    assert powered.drawn.point == pytest.approx(human.mean() + powered.weight * (others.mean() - same.mean()))
    own = 2 * 1.96 * powered.drawn.resampled.std()
    assert (peer["high"] - peer["low"]) * 0.97 < own < (peer["high"] - peer["low"]) * (1.06 + 3 / size)


def test_the_weight_by_hand():
    # Four resamples: variances 1, 1 and 0, covariance 1; the weight would be 1, and a 30th prompt shrinks it.
    ups = np.array([1.0, -1.0, 1.0, -1.0]) * np.sqrt(3) / 2
    sources = LabelSources(Drawn(0.5, 0.5 + ups), Drawn(0.4, 0.4 + ups), Drawn(0.3, np.full(4, 0.3)))
    powered = combine(sources, one_sample(29)._replace(inflation=1.0))
    assert powered.weight == pytest.approx(29 / 30)
    assert powered.drawn.point == pytest.approx(0.5 - 0.1 * 29 / 30)
    assert powered.correlation == pytest.approx(1.0)
    fitted = (1 - 29 / 30) ** 2 * 28 / 27
    variance = (29 * fitted + 1 + (29 / 30) ** 2) / 30
    assert powered.effective_labels == pytest.approx(1 / variance)
    assert powered.drawn.resampled.var(ddof=1) == pytest.approx(variance)


def test_a_judge_that_guesses_and_one_that_always_errs_change_nothing():
    human, _, _ = labels(60, 600, 1.0)
    for same, others in (
        (np.ones(60), np.ones(600)),
        (1 - human, np.zeros(600)),
        (human, np.array([])),
    ):
        if not len(others):
            sources = means_of(human, same, np.zeros(2))._replace(judged_rest=Drawn(np.nan, np.full(1000, np.nan)))
        else:
            sources = means_of(human, same, others)
        found = ppi_estimate(sources, HumanSample(60, one_sample(60)))
        assert (found.weight, found.effective_labels) == (0.0, 1.0)
        assert found.estimate == found.human_only


@given(st.integers(12, 150), st.floats(0, 1), st.integers(0, 10_000))
def test_it_is_never_wider_than_the_human_labels_alone(size, agreement, seed):
    sources = means_of(*labels(size, 400, agreement, seed), num_resamples=300, seed=seed)
    found = ppi_estimate(sources, HumanSample(size, one_sample(size)))
    both, alone = found.estimate, found.human_only
    if both.low is None:
        return
    assert 0 <= both.low <= both.value <= both.high <= 1
    assert found.effective_labels >= 1
    # The score interval of a value nearer to one half is wider at the same variance: then the judge is left out.
    assert both.high - both.low <= alone.high - alone.low
    assert found.weight > 0 or found.effective_labels == 1


def test_where_both_would_be_wider_value_and_worth_are_those_of_the_human_labels():
    # The judge says yes to 13 of the 48 labelled items and hardly to others: the value moves toward one half.
    human, same = np.zeros(48), np.zeros(48)
    human[:3], same[1:14] = 1.0, 1.0
    others = np.repeat([1.0, 0.0], [3, 297])
    sources = means_of(human, same, others, 300)
    assert combine(sources, one_sample(48)).weight > 0
    found = ppi_estimate(sources, HumanSample(48, one_sample(48)))
    assert (found.estimate, found.weight, found.effective_labels) == (found.human_only, 0.0, 1.0)


def test_a_good_judge_is_worth_many_labels_and_a_biased_one_too():
    human, same, others = labels(100, 5000, 0.9)
    good = ppi_estimate(means_of(human, same, others), HumanSample(100, one_sample(100)))
    assert good.effective_labels > 3
    # A judge that turns a fifth of all labels up is biased by ten points; the value is not.
    random = np.random.default_rng(5)
    same, others = (np.where(random.random(len(part)) < 0.2, 1.0, part) for part in (same, others))
    biased = ppi_estimate(means_of(human, same, others), HumanSample(100, one_sample(100)))
    assert biased.judge_only > 0.57
    assert biased.estimate.low < 0.5 < biased.estimate.high


def test_a_difference_has_the_p_value_of_its_interval():
    random = np.random.default_rng(0)
    human = random.choice([-1.0, 0.0, 1.0], p=[0.2, 0.4, 0.4], size=150)
    judged = np.where(random.random(150) < 0.8, human, 0.0)
    others = random.choice([-1.0, 0.0, 1.0], p=[0.15, 0.55, 0.3], size=3000)
    found = ppi_difference(
        means_of(human, judged, others), HumanSample(150, one_sample(150)), discordance=float(np.abs(human).mean())
    )
    assert found.effective_labels > 1.5
    assert (found.p < 0.05) == (found.estimate.low > 0 or found.estimate.high < 0)
    assert found.estimate.high - found.estimate.low < found.human_only.high - found.human_only.low


def estimate_of(width, alone, effective_labels):
    return PPIEstimate(
        estimate=Estimate(0.5, 0.5 - width / 2, 0.5 + width / 2, 100),
        human_only=Estimate(0.5, 0.5 - alone / 2, 0.5 + alone / 2, 100),
        judge_only=0.5,
        correlation=0.7,
        weight=0.5,
        effective_labels=effective_labels,
    )


def test_labels_needed_by_hand():
    # Without a judge the number grows with the square of the width: 100 labels for 0.2, so 400 for 0.1.
    found = labels_needed(estimate_of(0.2, 0.2, 1.0), 0.1, num_labelled=100, num_judged=1000).needed
    assert (found.without_judge, found.with_judge, found.more) == (400, 400, 300)
    # The gain is explained by r² = 1/2 · 1000 / 900 = 5/9. (4/9 / 100 + 5/9 / 1000) / 2 = 0.0025 is the wanted sum for
    # half the variance: 4/9 / (0.0025 - 0.000556) = 228.6.
    found = labels_needed(estimate_of(0.2, 0.2 * 2**0.5, 2.0), 0.2 / 2**0.5, num_labelled=100, num_judged=1000).needed
    assert (found.without_judge, found.with_judge, found.more) == (400, 229, 129)


def test_more_labels_than_judged_prompts_are_null_and_a_reached_width_needs_none():
    found = labels_needed(estimate_of(0.2, 0.3, 2.0), 0.01, num_labelled=100, num_judged=300).needed
    assert found.with_judge is None
    assert found.more == found.without_judge - 100
    reached = labels_needed(estimate_of(0.2, 0.3, 2.0), 0.3, num_labelled=100, num_judged=300).needed
    assert reached.more == 0
    nothing = estimate_of(0.2, 0.3, 2.0)
    nothing = type(nothing)(
        estimate=Estimate(None, None, None, 0), human_only=nothing.human_only, judge_only=None, correlation=0.0,
        weight=0.0, effective_labels=1.0,
    )  # fmt: skip
    assert labels_needed(nothing, 0.1, num_labelled=3, num_judged=9).needed is None


def test_prompts_of_another_mix_are_found():
    assert mix_p(np.array([50, 50]), np.array([500, 500]), seed=0) > 0.5
    assert mix_p(np.array([80, 20]), np.array([500, 500]), seed=0) < 0.001
    assert mix_p(np.array([80]), np.array([500]), seed=0) is None
    assert mix_p(np.array([3, 4]), np.array([0, 0]), seed=0) is None


def test_the_test_of_the_mix_keeps_its_level():
    random = np.random.default_rng(0)
    total = np.array([30, 40, 2, 5, 100])
    ps = [mix_p(drawn := random.multivariate_hypergeometric(total, 40), total - drawn, seed=1) for _ in range(300)]
    assert 0.01 <= np.mean(np.array(ps) < 0.05) <= 0.09


def test_prompts_on_which_the_judge_scores_otherwise_are_found():
    human, same, others = labels(100, 2000, 0.9)
    sample = HumanSample(100, one_sample(100))
    alike = check_population(means_of(human, same, others), sample, labelled=[100], rest=[2000], seed=0)
    assert not alike.differs
    chosen = check_population(
        means_of(human, np.ones(100) * (same > inf) + 1, others), sample, labelled=[100], rest=[2000], seed=0
    )
    assert chosen.differs
    assert chosen.smallest_p == chosen.p_judged


def test_strata_without_prompts_say_nothing_about_the_mix():
    labelled, rest = np.array([10, 10, 0]), np.array([100, 100, 0])
    assert mix_p(labelled, rest, seed=0) == mix_p(labelled[:2], rest[:2], seed=0)
    assert mix_p(np.array([10, 0]), np.array([100, 0]), seed=0) is None


def test_a_difference_stays_within_its_bounds():
    random = np.random.default_rng(3)
    human = np.where(np.arange(60) == 0, 0.0, 1.0)
    sources = means_of(
        human, np.where(np.arange(60) < 3, human - 1, human), np.where(random.random(900) < 0.02, 0, 1.0)
    )
    shifted = sources._replace(judged_rest=Drawn(sources.judged_same.point + 0.5, sources.judged_rest.resampled))
    found = ppi_difference(shifted, HumanSample(60, one_sample(60)), discordance=59 / 60)
    assert found.weight > 0
    assert -1 <= found.estimate.low <= found.estimate.value <= found.estimate.high <= 1
