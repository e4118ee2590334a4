import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_measures import reference_estimate, reference_score
from steelyard.core.numerics import ratio
from steelyard.statistics.intervals import Estimate, one_sample
from steelyard.statistics.unit_bootstrap import (
    FEWEST_UNITS,
    MOST_UNITS,
    Entries,
    Tally,
    area,
    estimate_shares,
    number_units,
    selection_shares,
    share_of,
    weighted_sample,
)


def entries(groups, unit, column, amount=None):
    amount = None if amount is None else np.array(amount, np.float64)
    return Entries(tuple(groups), np.array(unit, np.uint16), np.array(column, np.int32), amount)


def test_entries_are_summed_by_group_and_column_whatever_the_batch_calls_them():
    tally = Tally(2)
    tally.add(entries([("a",), ("b",)], [0, 0, 2047], [0, 3, 0]))
    tally.add(entries([("b",), ("a",)], [5, 5, 0], [0, 1, 2], [0.5, 2.0, 1.0]))
    draws = tally.draw(seed=0, num_resamples=10)
    assert tally.groups == draws.groups == (("a",), ("b",))
    assert draws.point([("a",), ("b",)]).tolist() == [[3, 0], [0.5, 3.0]]
    assert draws.totals([("a",), ("b",)]).point.tolist() == [3.5, 3.0]
    table = draws.table([("b",), ("a",)])
    assert table.point.tolist() == [[0.5, 3.0], [3, 0]]
    assert table.resampled.shape == (10, 2, 2)
    both = draws.totals([("a",), ("b",)]).resampled
    assert np.allclose(table.resampled.sum(axis=1), both)


def test_an_interval_is_that_of_drawing_the_units():
    """Twelve units of one judgment each, of which three are wrong: drawn sums are binomial(12, 1/4)."""
    tally = Tally(2)
    tally.add(entries([("a",)], range(12), [0] * 3 + [1] * 9))
    totals = tally.draw(seed=1, num_resamples=20_000).totals([("a",)])
    wrong = totals.resampled[:, 0]
    assert np.all(totals.resampled.sum(axis=1) == 12)
    assert wrong.mean() == pytest.approx(3, abs=0.04)
    assert wrong.var() == pytest.approx(12 * 0.25 * 0.75, rel=0.04)


def test_many_lists_of_groups_at_once_are_what_each_is_alone():
    random = np.random.default_rng(3)
    tally = Tally(200)
    groups = [(str(index),) for index in range(7)]
    tally.add(entries(groups, random.integers(40, size=3000), random.integers(7 * 200, size=3000)))
    draws = tally.draw(seed=4, num_resamples=20)
    asked = [groups[:1], groups[1:4], groups, groups[6:], [groups[0], groups[5]]]
    for own, found in zip(asked, draws.totals_each(asked), strict=True):
        alone = draws.totals(own)
        assert np.array_equal(found.point, alone.point)
        assert np.allclose(found.resampled, alone.resampled, rtol=1e-6, atol=0)
    assert list(draws.totals_each([])) == []


def test_units_are_drawn_whole():
    """Both columns of a unit go together, in every group: sums of equal columns are equal in every resample."""
    tally = Tally(1)
    tally.add(entries([("a",), ("b",)], [*range(9), *range(9)], [0] * 9 + [1] * 9))
    draws = tally.draw(seed=2)
    one, other = (draws.totals([(name,)]).resampled for name in "ab")
    assert np.array_equal(one, other)


def test_a_table_that_would_grow_too_large_folds_its_units_and_loses_nothing():
    random = np.random.default_rng(0)
    tally, num_groups, width = Tally(50, most_groups=3000), 200, 50
    kept = np.zeros((num_groups, width))
    for start in range(0, num_groups, 20):
        groups = [(f"judge {start + index}",) for index in range(20)]
        unit, column = random.integers(MOST_UNITS, size=5000), random.integers(20 * width, size=5000)
        tally.add(entries(groups, unit, column))
        np.add.at(kept[start : start + 20].reshape(-1), column, 1)
    draws = tally.draw(seed=0, num_resamples=2)
    assert FEWEST_UNITS <= len(draws.cells) < MOST_UNITS
    assert draws.cells.nbytes <= 16_000_000
    assert np.array_equal(draws.point([(f"judge {index}",) for index in range(num_groups)]), kept)


def test_groups_beyond_the_bound_are_counted_together():
    tally = Tally(1, most_groups=2, rest=lambda group: ("rest", group[1]))
    tally.add(entries([("a", "human"), ("b", "llm"), ("c", "llm"), ("d", "llm")], [0, 1, 2, 3], [0, 1, 2, 3]))
    tally.add(entries([("d", "llm"), ("a", "human")], [1, 1], [0, 1]))
    assert tally.groups == (("a", "human"), ("b", "llm"), ("rest", "llm"))
    assert tally.num_rest == 3
    assert tally.draw(seed=0).point(tally.groups).ravel().tolist() == [2, 1, 3]


def test_an_empty_tally_can_be_drawn():
    tally = Tally(3)
    tally.add(entries([], [], []))
    assert tally.draw(seed=0).groups == ()


def test_a_ratio_of_nothing_is_nan():
    assert np.isnan(ratio(np.array([0.0]), np.array([0.0])))[0]
    assert ratio(np.array([1.0]), np.array([4.0]))[0] == 0.25


def test_a_share_without_spread_has_an_interval_over_the_units_that_count():
    tally = Tally(4)
    # Ten units have three judgments each, of which none is wrong; two units have only something else, in column 3.
    tally.add(entries([("a",)], [*range(10), *range(12)], [0] * 10 + [3] * 12, [3.0] * 10 + [1.0] * 12))
    totals = tally.draw(seed=0).totals([("a",)])
    wrong, right, none = estimate_shares(totals, lambda sums: (sums[..., [1, 0, 1]], sums[..., [0, 0, 2]]))
    assert wrong.record() == reference_estimate(0.0, 10, 30)
    assert right.record() == reference_estimate(1.0, 10, 30)
    assert none == Estimate(None, None, None, 0)


def test_a_share_with_spread_has_the_score_interval():
    tally = Tally(2)
    tally.add(entries([("a",)], range(400), [0] * 100 + [1] * 300))
    totals = tally.draw(seed=1, num_resamples=20_000).totals([("a",)])
    (found,) = estimate_shares(totals, lambda sums: (sums[..., :1], sums.sum(axis=-1, keepdims=True)))
    low, high = reference_score(0.25, 400)
    assert (found.value, found.n) == (0.25, 400)
    assert (found.low, found.high) == (low, high)


def test_shares_and_differences_by_hand():
    unit = np.array([0, 0, 1, 2])
    counted = np.array([[1, 1], [1, 0], [1, 1], [1, 0]])
    right = np.array([True, False, True, False])
    found = selection_shares(unit, counted, right, seed=0)
    assert (found.of(0).value, found.of(0).n) == (0.5, 4)
    assert (found.of(1).value, found.of(1).n) == (1.0, 2)
    assert found.minus(1, 0).value == 0.5
    assert found.minus(0, 0).value == 0.0


def test_a_fraction_of_right_counts_as_such_and_each_column_may_have_its_own():
    counted, right = np.ones((2, 2)), np.array([[0.25, 1.0], [0.75, 0.0]])
    found = selection_shares(np.array([0, 1]), counted, right, seed=0)
    assert (found.of(0).value, found.of(1).value) == (0.5, 0.5)


def test_a_selection_of_nothing_has_no_share():
    found = selection_shares(np.array([0, 1]), np.array([[1, 0], [1, 0]]), np.array([True, False]), seed=0)
    assert found.of(1) == Estimate(None, None, None, 0)
    assert found.minus(0, 1).value is None


def test_entries_of_one_unit_are_drawn_together():
    # One unit of 50 right and one of 50 wrong entries tell as little as two outcomes.
    # A hundred units of one entry each give about 0.5 +- 0.1.
    right = np.arange(100) < 50
    whole = selection_shares((~right).astype(int), np.ones((100, 1)), right, seed=0).of(0)
    assert (whole.low, whole.high) == (pytest.approx(0.0, abs=0.02), pytest.approx(1.0, abs=0.02))
    apart = selection_shares(np.arange(100), np.ones((100, 1)), right, seed=0).of(0)
    assert 0.38 <= apart.low < apart.high <= 0.62


def test_the_interval_has_the_width_of_the_binomial():
    draws = np.random.default_rng(0)
    right = draws.random(400) < 0.8
    found = selection_shares(np.arange(400), np.ones((400, 1)), right, seed=1).of(0)
    deviation = (found.value * (1 - found.value) / 400) ** 0.5
    assert found.high - found.low == pytest.approx(2 * 1.96 * deviation, rel=0.1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30))
def test_the_area_counts_pairs_of_right_and_wrong(entries):
    margin = np.array([value for value, _ in entries], float)
    right = np.array([is_right for _, is_right in entries])
    found = area(np.arange(len(entries)), margin, right, seed=0)
    # every right entry against every wrong one, a tie counting half
    won = [(a > b) + 0.5 * (a == b) for a, good in entries if good for b, bad in entries if not bad]
    if won:
        assert found.value == pytest.approx(sum(won) / len(won))
        assert 0 <= found.low <= found.high <= 1
    else:
        assert found.value is None


def test_all_right_of_three_units_is_no_certainty():
    counted = np.array([[1, 0], [1, 0], [1, 1], [1, 1], [0, 1]])
    found = selection_shares(np.array([0, 0, 1, 2, 3]), counted, np.ones(5, bool), seed=0)
    # Units of 2, 1 and 1 entries are as many as 16 / 6 equal ones (Kish), with 8 / 5 degrees of freedom.
    assert found.of(0).record() == reference_estimate(1.0, 16 / 6, 4, 8 / 5)
    assert found.of(1).record() == reference_estimate(1.0, 3, 3)
    gap = found.minus(0, 1)
    assert (gap.value, gap.n) == (0.0, 4)
    assert gap.low < 0 < gap.high


NOTHING = Estimate(None, None, None, 0)


def test_a_share_of_entries_drawn_by_unit():
    unit = np.array([0, 0, 1, 1, 2])
    counted, right = np.array([1, 1, 1, 0, 1], bool), np.array([1, 0, 1, 1, 1], bool)
    found = share_of(unit, counted, right, seed=0)
    assert (found.value, found.n) == (0.75, 4)
    assert 0 < found.low < 0.5  # three units tell less than their own extremes, a half and one, would have it
    assert found.high > 0.95
    assert share_of(unit, counted, right, seed=0) == found


def test_units_of_one_entry_have_the_binomial_s_spread():
    right = np.arange(400) % 4 != 0
    found = share_of(np.arange(400), np.ones(400, bool), right, seed=1)
    spread = 1.96 * (0.75 * 0.25 / 400) ** 0.5
    assert found.low == pytest.approx(0.75 - spread, abs=0.01)
    assert found.high == pytest.approx(0.75 + spread, abs=0.01)
    # One unit says nothing of the spread between units: 400 entries of one prompt are no more than one outcome.
    whole = share_of(np.zeros(400, int), np.ones(400, bool), right, seed=1)
    assert (whole.value, whole.n) == (0.75, 400)
    assert whole.high - whole.low > 0.9


@pytest.mark.parametrize("right", [True, False])
def test_all_or_none_of_four_units_is_no_certainty(right):
    # Six entries of four units count, 2, 2, 1 and 1: 36 / 10 equal units. The sum of their squares over n - 1 has the
    # degrees of freedom 9/16 / (34/100 · 1/2 + 1/16).
    unit, counted = np.array([0, 0, 1, 1, 2, 3, 4]), np.array([1, 1, 1, 1, 1, 1, 0], bool)
    assert share_of(unit, counted, np.full(7, right), seed=0).record() == reference_estimate(
        float(right), 36 / 10, 6, 75 / 31
    )


def test_nothing_counted_has_no_share():
    assert share_of(np.array([0]), np.array([False]), np.array([True]), seed=0) == NOTHING
    empty = np.array([], int)
    assert share_of(empty, empty.astype(bool), empty.astype(bool), seed=0) == NOTHING


def test_names_are_numbered_as_they_come():
    assert number_units(["b", "a", "b", "ג"]).tolist() == [0, 1, 0, 2]


def test_a_sample_of_equal_weights_is_a_plain_one_and_unequal_weights_are_fewer_units():
    equal, plain = weighted_sample(np.full(10, 3.0)), one_sample(10)
    assert equal == pytest.approx(plain)
    # Weights 3, 1, 1, 1: 36 / 12 units. The residuals of the heavy one are drawn to 0: of the sum of squares
    # 1/4 + 3/36 = 1/3 there remain 1 - 2 (1/8 + 3/216) / (1/3) + 1/3 = 1/2.
    found = weighted_sample(np.array([3.0, 1.0, 1.0, 1.0, 0.0]))
    assert found.units == pytest.approx(3)
    assert found.inflation == pytest.approx(2)
    # Of the heavy unit and one light unit right, two are events at most: the light one's part is that of four equal.
    events = weighted_sample(np.array([3.0, 1.0, 1.0, 1.0]), np.array([3.0, 1.0, 0.0, 0.0])).events
    assert events is not None
    part = (np.array([3, 1, 1, 1]) / 6 * np.array([3, 5, 5, 5]) / 6) ** 2
    assert events[0] / events[1] == pytest.approx((part[0] + part[1]) / (part[2] + part[3]))
    fourth = (1 / 16 + 3 / 1296) / (1 / 3) ** 2
    assert found.freedom == pytest.approx(min((9 / 16) / (fourth / 2 + 1 / 16), 2))
