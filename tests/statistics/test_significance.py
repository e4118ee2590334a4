import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student_t

from steelyard.statistics.groups import Cell, Label, layout_of
from steelyard.statistics.pair_counts import CORRECT, EXACT
from steelyard.statistics.significance import compare, holm, significant_ranks, trend


def layout(number, categories=("a",)):
    return layout_of([Label(f"p{index}", Cell(categories[index % len(categories)])) for index in range(number)])


def table(num_correct, num_pairs=3):
    return np.array([[num_pairs, own, 1, int(own == num_pairs)] for own in num_correct])


def test_the_difference_is_that_of_the_means_over_categories():
    # Category a: 3/3, 1/3 against 2/3, 2/3: no difference. Category b: 3/3 against 0/3: one. The mean is 1/2.
    first, second = table([3, 3, 1, 3]), table([2, 0, 2, 0])
    found = compare(layout(4, "ab"), first, second, num_resamples=200, seed=0)
    assert found.accuracy.value == pytest.approx(0.5)
    # Exact: a: 1 of 2 against none, b: 2 of 2 against none.
    assert found.exact_match.value == pytest.approx(0.75)
    assert (found.only_first, found.only_second) == (3, 0)
    assert found.accuracy.n == 12


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=12))
@settings(deadline=None)
def test_exchanging_the_models_changes_the_sign_alone(rows):
    first, second = (table(column) for column in zip(*rows, strict=True))
    forward, backward = (
        compare(layout(len(rows), "ab"), *tables, num_resamples=50, seed=0)
        for tables in ((first, second), (second, first))
    )
    for measure, column in (("accuracy", CORRECT), ("exact_match", EXACT)):
        gains = (first - second)[:, column]
        if not (gains[::2].sum() or gains[1::2].sum()):
            continue
        difference, opposite = getattr(forward, measure), getattr(backward, measure)
        assert (difference.low, difference.value, difference.high) == (
            pytest.approx(-opposite.high), pytest.approx(-opposite.value), pytest.approx(-opposite.low)
        )  # fmt: skip
    assert forward.p_accuracy == pytest.approx(backward.p_accuracy)


def test_a_model_against_itself_differs_in_nothing():
    own = table([0, 1, 2, 3] * 5)
    found = compare(layout(20), own, own, num_resamples=100, seed=0)
    # Twenty prompts without a difference leave room for one of t^2 / (20 + t^2), with 19 degrees of freedom.
    room = student_t.ppf(0.975, 19) ** 2
    room = pytest.approx(room / (20 + room), rel=1e-3)
    assert (found.accuracy.value, -found.accuracy.low, found.accuracy.high) == (0, room, room)
    assert (found.p_accuracy, found.p_exact_match) == (1.0, 1.0)
    assert found.detectable > 0


def test_other_pairs_are_a_defect_of_the_caller():
    with pytest.raises(AssertionError, match="the same pairs"):
        compare(layout(1), table([1], 3), table([1], 4), num_resamples=10, seed=0)


def of_seeds(num_exact, num_seeds=3):
    """Statistics of single pairs, summed over seeds: how many of the seeds have each prompt right."""
    return np.array([[num_seeds, right, num_seeds, right] for right in num_exact])


def test_seeds_count_by_how_many_have_a_prompt_right():
    # Fifteen prompts that one seed of three more has right, five that three seeds more have wrong: 15 - 15 = 0. A test
    # of prompts alone would count fifteen against five.
    first, second = of_seeds([1] * 15 + [0] * 5), of_seeds([0] * 15 + [3] * 5)
    found = compare(layout(20), first, second, num_resamples=500, seed=0)
    assert (found.exact_match.value, found.p_exact_match) == (0.0, 1.0)
    assert (found.only_first, found.only_second) == (15, 5)


def test_equal_seeds_are_no_further_evidence():
    right, wrong = of_seeds([1] * 9 + [0] * 11, 1), of_seeds([0] * 9 + [1, 1] + [0] * 9, 1)
    once = compare(layout(20), right, wrong, num_resamples=500, seed=0)
    thrice = compare(layout(20), 3 * right, 3 * wrong, num_resamples=500, seed=0)
    assert once.exact_match.value == pytest.approx(7 / 20)
    for field in ("value", "low", "high"):
        assert getattr(thrice.exact_match, field) == pytest.approx(getattr(once.exact_match, field))
    assert thrice.p_exact_match == pytest.approx(once.p_exact_match)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=6, max_size=30))
@settings(deadline=None)
def test_a_p_value_is_below_5_percent_where_the_interval_excludes_0(rows):
    tables = [of_seeds(column) for column in zip(*rows, strict=True)]
    found = compare(layout(len(rows)), *tables, num_resamples=200, seed=0)
    for difference, p in ((found.accuracy, found.p_accuracy), (found.exact_match, found.p_exact_match)):
        ends = (difference.low, difference.high)
        if min(abs(end) for end in ends) > 1e-3:
            assert (p < 0.05) == (ends[0] > 0 or ends[1] < 0), (difference, p)


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.04 times 3, 2, 1: 0.03, 0.04, 0.04, never falling.
    assert holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_corrected_values_lie_between_the_plain_ones_and_bonferroni(values):
    found = holm(values)
    assert all(own <= other <= min(1.0, own * len(values)) + 1e-12 for own, other in zip(values, found, strict=True))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000))
def test_two_equal_models_are_rarely_told_apart(seed):
    # Of 60 comparisons of coins, a level of 5 % calls 3 different; 12 or more has a chance below one in 10^4.
    rng = np.random.default_rng(seed)
    values = [
        compare(layout(80), table(rng.binomial(3, 0.6, 80)), table(rng.binomial(3, 0.6, 80)), num_resamples=200, seed=0)
        for _ in range(60)
    ]
    assert sum(one.p_accuracy < 0.05 for one in values) < 12


def test_what_is_detectable_is_detected_four_times_out_of_five():
    rng = np.random.default_rng(5)
    found = []
    for _ in range(200):
        first, second = rng.binomial(3, 0.70, 300), rng.binomial(3, 0.639, 300)
        found.append(compare(layout(300), table(first), table(second), num_resamples=300, seed=1))
    # The true difference is 0.061; the standard error of the difference of two such means of 300 is 0.0221.
    assert np.mean([one.detectable for one in found]) == pytest.approx(0.0221 * 2.8016, rel=0.05)
    share = np.mean([one.p_accuracy < 0.05 for one in found])
    assert 0.70 < share < 0.90


def test_ranks_are_as_wide_as_the_doubt():
    # The first beats the third; nothing else is sure.
    differs = np.zeros((3, 3), dtype=bool)
    differs[0, 2] = True
    assert significant_ranks(differs) == [(1, 2), (1, 3), (2, 3)]


def single_pairs(right):
    """A prompt with one pair each, right or wrong."""
    return np.array([(1, one, 1, one) for one in right], dtype=np.int64)


def one_category(number):
    return layout_of([Label(f"p{index}", Cell("one")) for index in range(number)])


def test_the_slope_is_that_of_least_squares_over_doublings():
    # 40 prompts; sizes 1, 2, 8: doublings 0, 1, 3. Accuracies 0.5, 0.6, 0.9.
    tables = [single_pairs([index < number for index in range(40)]) for number in (20, 24, 36)]
    found = trend(one_category(40), tables, [100, 200, 800], num_resamples=500)
    assert found.per_doubling.value == pytest.approx(np.polyfit([0, 1, 3], [0.5, 0.6, 0.9], 1)[0])
    assert found.per_doubling.low < found.per_doubling.value < found.per_doubling.high
    assert found.per_doubling.low > 0
    assert found.p < 0.01
    assert found.sizes == (100, 200, 800)


def test_models_that_answer_alike_have_no_slope_and_no_spread():
    same = single_pairs([index % 2 == 0 for index in range(30)])
    found = trend(one_category(30), [same, same, same], [1, 2, 4], num_resamples=200)
    assert found.per_doubling.value == pytest.approx(0, abs=1e-12)
    assert found.per_doubling.low < 0 < found.per_doubling.high  # thirty prompts leave room for some
    assert found.p == 1.0


@pytest.mark.parametrize("sizes", [[2, 2], [0, 2], [1]])
def test_a_slope_needs_two_sizes(sizes):
    with pytest.raises(AssertionError):
        trend(one_category(3), [single_pairs([1, 0, 1])] * 2, sizes, num_resamples=10)
