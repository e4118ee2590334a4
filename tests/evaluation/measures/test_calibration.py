import numpy as np
import pytest
from msgspec import to_builtins
from scipy.optimize import minimize_scalar
from scipy.special import expit

from evaluation_summaries import NOTHING, around, estimate
from reference_measures import reference_estimate
from report_figures import accepted, rows
from steelyard.evaluation.measures.calibration import (
    Bin,
    Calibration,
    Margins,
    Reliability,
    calibration,
    calibration_table,
    equal_mass_bins,
    out_of_fold,
    reliability_figure,
)
from steelyard.evaluation.tables import word
from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.groups import Cell, Label
from steelyard.statistics.temperature import fit_inverse_temperature


def blocks_of(number, num_resamples=200):
    return draw_blocks(
        [Label(f"p{index}", Cell("code")) for index in range(number)], num_resamples=num_resamples, seed=0
    )


def report(margin, prompts=None):
    margin = np.asarray(margin, float)
    prompt = np.arange(len(margin)) if prompts is None else np.asarray(prompts)
    return calibration(blocks_of(int(prompt.max()) + 1), Margins(prompt, margin), seed=0)


def simulated(number, temperature, seed=0):
    """Margins whose signs are right as often as sigmoid(|d| / temperature) says."""
    random = np.random.default_rng(seed)
    size = random.exponential(2.0, number)
    return np.where(random.random(number) < expit(size / temperature), size, -size)


def test_brier_and_log_loss_by_hand():
    margin = [np.log(3), -np.log(3), 0.0]  # probabilities of the better one: 3/4, 1/4, 1/2
    found = report(margin)
    assert found.brier.value == pytest.approx((1 / 16 + 9 / 16 + 1 / 4) / 3)
    assert found.log_loss.value == pytest.approx(-(np.log(3 / 4) + np.log(1 / 4) + np.log(1 / 2)) / 3)
    # confidence 3/4 is right once of two, confidence 1/2 half of once: the distances are 1/4, 1/4 and 0
    assert found.expected_calibration_error.value == pytest.approx(2 / 3 * 1 / 4)
    assert [(one.confidence, one.accuracy.value) for one in found.curve] == [
        (pytest.approx(0.5), 0.5),
        (pytest.approx(0.75), 0.5),
    ]


def test_a_bin_of_right_pairs_only_has_an_interval_and_ties_have_none_to_tell():
    # two prompts with two pairs each are sure and right, one is tied: two of two, and a half by what a tie is
    found = report([2.0, 2.0, 2.0, 2.0, 0.0], prompts=[0, 0, 1, 1, 2])
    tied, sure = (one.accuracy for one in found.curve)
    why = "all pairs are tied"
    assert tied == estimate(0.5, n=1, why=why)
    assert to_builtins(sure) == reference_estimate(1.0, 2, 4)


def test_the_temperature_is_scipys_minimum():
    margin = simulated(500, 2.5)
    expected = minimize_scalar(lambda a: np.logaddexp(0, -a * margin).mean(), bounds=(0.001, 10), method="bounded")
    assert fit_inverse_temperature(margin).value == pytest.approx(expected.x, abs=1e-4)
    assert fit_inverse_temperature(1000 * margin).value == pytest.approx(expected.x / 1000, abs=1e-7)


@pytest.mark.parametrize(
    ("margin", "inverse_temperature"),
    [
        ([-1.0, -2.0, 0.5], 0.0),
        ([1.0, -1.0], 0.0),
        ([0.0, 0.0], 0.0),
        # All right: the bound, 100 over the mean margin of 2.
        ([1.0, 2.0, 3.0], 50.0),
        ([0.0, 4.0], 50.0),
    ],
)
def test_without_a_best_temperature_it_is_a_bound(margin, inverse_temperature):
    assert fit_inverse_temperature(np.array(margin)) == (inverse_temperature, False)


@pytest.mark.parametrize("size", [5e-324, 1e-320, 1e-300])
def test_margins_without_a_finite_factor_have_the_temperature_of_ties(size):
    assert fit_inverse_temperature(size * np.array([1.0, 2.0, -1.0])) == (0.0, False)


def test_the_temperature_does_not_depend_on_its_start():
    # Two of three pairs of one margin are right: sigmoid(a / 2) = 2 / 3, so that a = 2 ln 2.
    margin = np.array([0.5, 0.5, -0.5])
    for start in (None, 0.01, 1.0, 50.0, 1e6):
        assert fit_inverse_temperature(margin, start) == (pytest.approx(2 * np.log(2)), True)


def test_a_temperature_is_found_again_and_calibrates_other_prompts():
    found = report(simulated(8000, 3.0))
    assert found.temperature.low < 3.0 < found.temperature.high
    assert found.temperature.high - found.temperature.low < 0.6
    before, after = (one.expected_calibration_error for one in (found, found.cross_validated))
    assert before.low > 0.1
    assert after.low < 0.02
    assert found.cross_validated.log_loss.value < found.log_loss.value


def test_calibrated_rewards_have_an_error_within_its_interval_of_zero():
    found = report(simulated(20_000, 1.0)).expected_calibration_error
    assert found.low < 0.005
    assert found.method == "triangle inequality"
    assert found.value < 0.02


def test_the_temperatures_interval_is_that_of_fitting_each_resample_anew():
    margin = simulated(400, 2.0, seed=4)
    found = calibration(blocks_of(400, 1000), Margins(np.arange(400), margin), seed=0).temperature
    random = np.random.default_rng(5)
    drawn = [1 / fit_inverse_temperature(margin[random.integers(400, size=400)]).value for _ in range(400)]
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert found.low == pytest.approx(low, rel=0.08)
    assert found.high == pytest.approx(high, rel=0.12)


def test_the_temperature_of_small_rewards_has_its_interval_in_their_unit():
    margin, blocks = simulated(400, 2.0, seed=4), blocks_of(400)
    plain, small = (
        calibration(blocks, Margins(np.arange(400), np.ldexp(margin, exponent)), seed=0).temperature
        for exponent in (0, -100)
    )
    assert np.ldexp([small.low, small.high], 100) == pytest.approx([plain.low, plain.high], rel=1e-6)


@pytest.mark.parametrize("margin", [[-1.0, -2.0, 0.5], [0.0, 0.0, 0.0], [1.0, 2.0, 0.5]])
def test_no_temperature_where_none_is_best(margin):
    found = report(margin)
    assert found.temperature == estimate(n=3)
    assert np.isfinite(found.cross_validated.log_loss.value)


@pytest.mark.parametrize(
    ("margin", "why"),
    [
        # A mean margin of half its standard error, and of two: the temperature may be infinite.
        (np.append(np.full(53, 1.0), np.full(47, -1.0)), "some resamples have no temperature"),
        (np.append(np.full(59, 1.0), np.full(41, -1.0)), "the resamples differ too much"),
    ],
)
def test_rewards_that_hardly_separate_answers_have_a_temperature_without_interval(margin, why):
    found = report(margin).temperature
    assert found == estimate(1 / fit_inverse_temperature(margin).value, n=100, why=why)


def test_a_pair_is_scaled_by_what_other_prompts_say():
    # Two prompts a fold, five folds; the pairs of one prompt share a factor, and it is the fit without their fold.
    margin, prompt = simulated(40, 2.0), np.repeat(np.arange(10), 4)
    blocks = blocks_of(10)
    factor = out_of_fold(blocks, Margins(prompt, margin), 1.0, seed=0) / margin
    by_prompt = factor.reshape(10, 4)
    assert np.ptp(by_prompt, axis=1) == pytest.approx(np.zeros(10))
    first = by_prompt[0, 0]
    others = margin[~np.isclose(factor, first)]
    assert len(others) == 32
    assert first == pytest.approx(fit_inverse_temperature(others).value, rel=1e-4)


def test_bins_hold_equally_many_and_equal_values_stay_together():
    place, number = equal_mass_bins(np.arange(100.0))
    assert number == 10
    assert np.bincount(place).tolist() == [10] * 10
    assert equal_mass_bins(np.full(9, 0.5))[1] == 1
    assert equal_mass_bins(np.array([])) == (pytest.approx([]), 0)


def test_huge_margins_do_not_overflow():
    found = report([1e6, -1e6, 1e300])
    assert found.log_loss.value == pytest.approx(1e6 / 3)
    assert found.brier.value == pytest.approx(1 / 3)


def reliability(error=NOTHING, curve=()):
    return {"brier": NOTHING, "log_loss": NOTHING, "expected_calibration_error": error, "curve": curve}


def summary(first, second, temperature=NOTHING):
    return Calibration(**first, cross_validated=Reliability(**second), temperature=temperature)


def test_the_table_before_and_after():
    first, second = calibration_table(summary(reliability(around(0.2)), reliability(around(0.1)), around(3.0))).rows
    assert (first[0], first[1]) == (word("raw_rewards"), "0.200")
    assert (second[0], second[1]) == (f"{word('with_temperature')} 3.000 (2.900 … 3.100)", "0.100")


def test_confidence_is_drawn_before_and_after():
    def bins(*pairs):
        return tuple(Bin(confidence=one, accuracy=estimate(two, two, two, 5)) for one, two in pairs)

    figure = reliability_figure(
        summary(reliability(curve=bins((0.6, 0.5), (0.9, 0.7))), reliability(curve=bins((0.55, 0.5))))
    )
    drawn = [row for row in rows(accepted(figure)) if row.get("series") == word("raw_rewards")]
    assert (drawn[0]["confidence"], drawn[0]["value"]) == (0.6, 0.5)
    assert {row["confidence"] for row in rows(figure.spec) if row.get("series") == word("with_temperature")} == {0.55}
    assert reliability_figure(summary(reliability(), reliability())) is None
