from math import log, sqrt

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm
from scipy.stats import t as student_t

from steelyard.statistics.intervals import (
    POSITIVE,
    SHARE,
    UNBOUNDED,
    Estimate,
    Evidence,
    Scale,
    difference,
    exact_interval,
    interval,
    one_sample,
    score_interval,
    shrink_effect,
    student,
)

MANY = 1e6


@pytest.mark.parametrize(("right", "n"), [(0, 10), (7, 20), (20, 20), (1, 500)])
def test_with_independent_outcomes_and_a_known_variance_it_is_wilsons(right, n):
    share = right / n
    expected = binomtest(right, n).proportion_ci(0.95, "wilson")
    found = score_interval(share, share * (1 - share) / n, Evidence(n, MANY))
    assert found == (pytest.approx(expected.low, abs=1e-6), pytest.approx(expected.high, abs=1e-6))


def test_none_of_n_by_hand():
    # All p with p^2 <= t^2 p (1 - p) / n: up to t^2 / (n + t^2), with t of n - 1 degrees of freedom.
    t = student_t.ppf(0.975, 19)
    found = interval(0.0, np.zeros(50), 20, one_sample(20))
    assert msgspec.structs.astuple(found) == (0.0, 0.0, pytest.approx(t**2 / (20 + t**2), rel=1e-3), 20, None, None)
    assert interval(1.0, np.ones(50), 20, one_sample(20)).low == pytest.approx(1 - found.high)


def test_clusters_that_agree_within_tell_less():
    # Ten pairs a prompt: alike within the prompt they are twenty outcomes, else two hundred.
    alike, apart = (score_interval(0.5, 0.25 / n, one_sample(20)) for n in (20, 200))
    assert alike[1] - alike[0] > 2.5 * (apart[1] - apart[0])


def test_one_wrong_pair_is_no_proof_that_pairs_of_a_prompt_are_independent():
    # One wrong pair of 200, of 20 prompts with ten each: the variance alone would put 200 outcomes behind it.
    found = score_interval(0.995, 0.1**2 * 0.05 * 0.95 / 19, one_sample(20))
    as_if_independent = binomtest(199, 200).proportion_ci(0.95, "wilson")
    assert found[0] < as_if_independent.low - 0.02


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 500))
def test_a_share_always_has_an_interval_with_width_that_holds_it(value, part, n):
    found = interval(value, np.array([value - part, value + part]) / 2, n, one_sample(n))
    assert 0 <= found.low <= value <= found.high <= 1
    assert found.low < found.high


def test_a_value_between_other_bounds_is_a_share_stretched():
    drawn = np.array([0.1, 0.3])
    share = interval(0.6, (drawn + 1) / 2, 9, one_sample(30), SHARE)
    found = interval(0.2, drawn, 9, one_sample(30), Scale(-1.0, 1.0))
    assert (found.low, found.high) == (pytest.approx(2 * share.low - 1), pytest.approx(2 * share.high - 1))


def test_an_unbounded_value_has_students_interval():
    drawn = np.array([1.0, 3.0, np.nan])  # a variance of 2, and 31 / 30 of it
    half = student_t.ppf(0.975, 30) * sqrt(2 * 31 / 30)
    found = interval(2.0, drawn, 31, one_sample(31), UNBOUNDED)
    assert msgspec.structs.astuple(found) == (
        2.0,
        pytest.approx(2 - half, rel=1e-4),
        pytest.approx(2 + half, rel=1e-4),
        31,
        None,
        None,
    )
    positive = interval(2.0, drawn, 31, one_sample(31), POSITIVE)
    assert log(positive.high) - log(2) == pytest.approx(half / 2, rel=1e-4)
    assert positive.low * positive.high == pytest.approx(4)


def test_too_few_prompts_and_no_spread_have_a_reason_and_no_interval():
    few = interval(2.0, np.array([1.0, 3.0]), 19, one_sample(19), UNBOUNDED)
    assert few == Estimate(2.0, None, None, 19, why="an interval needs 20 prompts")
    flat = interval(2.0, np.full(9, 2.0), 40, one_sample(40), UNBOUNDED)
    assert flat.record() == {"value": 2.0, "low": None, "high": None, "n": 40, "why": "all resamples are equal"}
    assert interval(0.5, np.array([np.nan]), 7, one_sample(7)) == Estimate(0.5, None, None, 7)
    assert interval(float("nan"), np.array([0.5, 0.6]), 7, one_sample(7)).record()["value"] is None


@pytest.mark.parametrize(("value", "unit"), [(0.0, 1e-30), (1e-30, 1e-30), (1e8, 1.0), (1e30, 1e20)])
def test_the_spread_of_values_in_any_unit_has_an_interval(value, unit):
    # With 31 prompts, the standard error is that of the resamples times sqrt(31 / 30).
    drawn = value + 0.01 * unit * np.tile([-1.0, 1.0], 500)
    found = interval(value, drawn, 31, one_sample(31), UNBOUNDED._replace(unit=unit))
    assert (found.high - value) / unit == pytest.approx(
        student_t.ppf(0.975, 30) * 0.01 * sqrt(31 / 30), rel=1e-3, abs=1e-15 * value / unit
    )
    flat = interval(value, np.full(9, value), 31, one_sample(31), UNBOUNDED._replace(unit=unit))
    assert flat.why == "all resamples are equal"


@pytest.mark.parametrize(("first", "second"), [(8, 2), (9, 1), (30, 20), (5, 0)])
def test_the_test_of_no_difference_is_mcnemars(first, second):
    # (b - c)^2 / (b + c), of b + c discordant prompts of 400; the degrees of freedom are many.
    n, value, apart = 400, (first - second) / 400, (first + second) / 400
    spread = sqrt((apart - value**2) / n)
    drawn = value + spread * np.array([-1, 1]) / sqrt(2)
    found = difference(value, drawn, n, Evidence(n, MANY), discordance=apart)
    assert found.p == pytest.approx(2 * norm.sf((first - second) / sqrt(first + second)), rel=1e-3)


@given(st.integers(0, 20), st.integers(0, 20))
def test_the_interval_of_a_difference_leaves_out_zero_where_its_p_is_below_the_level(first, second):
    n, value, apart = 60, (first - second) / 60, (first + second) / 60
    spread = sqrt(max(apart - value**2, 0.0) / (n - 1))
    found = difference(value, value + spread * np.array([-1, 1]) / sqrt(2), n, one_sample(n), discordance=apart)
    assert found.estimate.low < found.estimate.high
    assert found.estimate.low <= value <= found.estimate.high
    if abs(found.p - 0.05) > 1e-3:
        assert (found.p < 0.05) == (not found.estimate.low <= 0 <= found.estimate.high)


def test_two_models_that_never_differ_may_differ_a_little():
    # No discordant prompt of n: up to t^2 / (n + t^2), as a share of none.
    t = student(19)
    for discordance in (0.0, None):
        found = difference(0.0, np.zeros(50), 20, one_sample(20), discordance=discordance)
        assert found.estimate.high == -found.estimate.low == pytest.approx(t**2 / (20 + t**2))
        assert found.p == 1.0
        assert found.error > 0


def test_a_difference_of_unknown_discordance_has_students_interval():
    drawn = np.array([0.1, 0.3])
    half = student(39) * sqrt(0.02 * 40 / 39)
    found = difference(0.2, drawn, 40, one_sample(40))
    assert msgspec.structs.astuple(found.estimate)[:3] == (0.2, pytest.approx(0.2 - half), pytest.approx(0.2 + half))
    assert found.p == pytest.approx(2 * student_t.sf(0.2 / sqrt(0.02 * 40 / 39), 39), rel=1e-6)


@pytest.mark.parametrize(("events", "number"), [(0, 10), (2, 10), (50, 100), (199, 200)])
def test_the_exact_interval_of_independent_outcomes_is_that_of_clopper_and_pearson(events, number):
    share = events / number
    evidence = Evidence(number, 1e6)
    for num_intervals in (1, 30):
        expected = binomtest(events, number).proportion_ci(1 - 0.05 / num_intervals, method="exact")
        found = exact_interval(share, share * (1 - share) / number, evidence, num_intervals=num_intervals)
        assert found == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_the_exact_interval_is_wider_for_entries_that_err_together_and_for_few_degrees_of_freedom():
    def width(variance, freedom):
        low, high = exact_interval(0.3, variance, Evidence(100, freedom))
        return high - low

    assert width(0.0021, 99) < width(0.0063, 99) < width(0.0063, 9)


def test_a_design_effect_is_that_of_the_data_with_many_rare_prompts_and_of_whole_prompts_with_none():
    many, few = Evidence(10_000, 9_999), Evidence(20, 19)
    assert shrink_effect(0.1, 0.5, many) == pytest.approx(0.1, abs=1e-3)
    assert shrink_effect(3.0, 0.5, many) == pytest.approx(3.0, abs=2e-2)
    assert shrink_effect(0.1, 0.0, few) == 1.0
    assert shrink_effect(0.1, 0.0, few._replace(concentration=2.5)) == 2.5
    # One rare prompt, half a prompt of prior: the effect e solves e = (0.5 / e + 0.5) / (1 / e + 0.5).
    effect = shrink_effect(0.5, 0.05, few)
    assert effect == pytest.approx((0.5 / effect + 0.5) / (1 / effect + 0.5))
