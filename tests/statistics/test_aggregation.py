import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_measures import (
    CORRECT,
    EXACT,
    PAIRS,
    PROMPTS,
    reference_estimate,
    reference_macro,
    reference_row,
    reference_share,
)
from steelyard.statistics.aggregation import (
    ACCURACY,
    EXACT_MATCH,
    Share,
    all_cells,
    by_category,
    difference_of_shares,
    estimate,
    estimate_macro,
    evidence_of_formula,
    group_cells,
    macro,
    mean_accuracy,
    mean_over_groups,
    means,
    shares,
)
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of
from steelyard.statistics.intervals import Estimate, one_sample
from steelyard.statistics.significance import share_difference

few_scores = st.sampled_from([0.0, 0.5, 1.0])
benches = st.lists(
    st.tuples(
        st.sampled_from(["code", "chat", "数学"]), st.lists(st.tuples(few_scores, few_scores), min_size=1, max_size=5)
    ),
    min_size=1,
    max_size=12,
)


def totals_of(labelled_rows, num_resamples=50):
    labels = [Label(f"p{index}", Cell(category)) for index, (category, _) in enumerate(labelled_rows)]
    rows = np.array([row for _, row in labelled_rows], dtype=np.int64)
    return resample(Items(layout_of(labels), rows, num_resamples), seed=0)


@given(benches)
@settings(deadline=None)
def test_the_means_equal_a_plain_loop(bench):
    rows = [(category, reference_row(pairs)) for category, pairs in bench]
    found = means(totals_of(rows))
    plain = [row for _, row in rows]
    expected = {
        "accuracy": reference_macro(rows, CORRECT, PAIRS),
        "exact_match": reference_macro(rows, EXACT, PROMPTS),
        "accuracy_micro": reference_share(plain, CORRECT, PAIRS),
        "exact_match_micro": reference_share(plain, EXACT, PROMPTS),
    }
    for name, value in expected.items():
        assert found[name]["value"] == pytest.approx(value, abs=1e-12)
        assert 0 <= found[name]["low"] <= found[name]["value"] <= found[name]["high"] <= 1
        assert found[name]["low"] < found[name]["high"]
    assert found["accuracy"]["n"] == sum(row[PAIRS] for row in plain)
    assert found["exact_match"]["n"] == len(plain)
    for category, own in found["by_category"].items():
        mine = [row for name, row in rows if name == category]
        assert own["accuracy"]["value"] == pytest.approx(reference_share(mine, CORRECT, PAIRS), abs=1e-12)
        assert own["exact_match"]["n"] == len(mine)


def test_macro_and_micro_differ_as_they_must():
    # code: 1 of 10 pairs right; chat: 2 of 2. Macro (0.1 + 1) / 2 = 0.55, micro 3 / 12.
    rows = [("code", (10, 1, 1, 0)), ("chat", (1, 1, 1, 1)), ("chat", (1, 1, 1, 1))]
    found = means(totals_of(rows))
    assert found["accuracy"]["value"] == pytest.approx(0.55)
    assert found["accuracy_micro"]["value"] == pytest.approx(3 / 12)
    assert found["exact_match"]["value"] == pytest.approx(0.5)
    assert found["exact_match_micro"]["value"] == pytest.approx(2 / 3)


def test_a_share_is_never_a_mean_of_batch_means():
    # Trap: 5 prompts in batches of 4 and 1 give (0.75 + 0) / 2 in a mean of means; the plain share is 3 / 5.
    rows = [("c", (1, correct, 1, correct)) for correct in (1, 1, 1, 0, 0)]
    assert means(totals_of(rows))["accuracy"]["value"] == pytest.approx(0.6)


def test_a_category_without_pairs_has_no_accuracy_and_is_passed_over():
    totals = totals_of([("code", (2, 1, 1, 0)), ("chat", (0, 0, 1, 1))])
    found = means(totals)
    assert found["by_category"]["chat"]["accuracy"] == {"value": None, "low": None, "high": None, "n": 0}
    assert found["accuracy"]["value"] == pytest.approx(0.5)
    assert found["exact_match"]["value"] == pytest.approx(0.5)


def test_languages_are_reported_beside_categories():
    labels = [Label("p", Cell("c", None, "zh")), Label("p", Cell("c", None, None)), Label("q", Cell("c", None, "zh"))]
    rows = np.array([[2, 2, 1, 1], [2, 0, 1, 0], [2, 1, 1, 0]])
    found = means(resample(Items(layout_of(labels), rows, 10), seed=0))["by_language"]
    assert {name: own["accuracy"]["value"] for name, own in found.items()} == {"unknown": 0.0, "zh": 0.75}


def test_shares_of_groups_by_hand():
    cells = (Cell("a"), Cell("b"), Cell("b", "s"))
    groups = by_category(cells)
    assert groups.names == ("a", "b")
    totals = np.array([[4.0, 1.0, 1, 0], [2.0, 2.0, 1, 1], [2.0, 1.0, 1, 0]])
    assert shares(totals, groups, ACCURACY).tolist() == [0.25, 0.75]
    assert shares(totals, all_cells(cells), EXACT_MATCH).tolist() == [pytest.approx(1 / 3)]
    assert by_category(cells, subset="s").members.tolist() == [[0, 0, 1]]
    assert group_cells(cells, lambda cell: cell.subset).names == ("s",)


def test_mean_over_groups_passes_over_what_is_not_there():
    values = np.array([[0.2, np.nan, 0.8], [np.nan, np.nan, np.nan]])
    plain = mean_over_groups(values)
    assert plain[0] == pytest.approx(0.5)
    assert np.isnan(plain[1])


def test_an_estimate_without_resamples_has_no_interval():
    assert means(totals_of([("c", (2, 1, 1, 0))], num_resamples=0))["accuracy"] == {
        "value": 0.5,
        "low": None,
        "high": None,
        "n": 2,
    }
    assert Estimate(0.5, 0.4, 0.6, 7).withheld() == Estimate(None, None, None, 7)


def test_the_paired_difference_is_that_of_the_two_values_and_is_tighter():
    random = np.random.default_rng(0)
    pairs = random.integers(2, 10, size=300)
    good = random.binomial(pairs, 0.8)
    bad = np.maximum(good - 1, 0)  # almost the same model: independent intervals would be far wider
    one = np.stack([pairs, good, np.ones_like(pairs), good == pairs], axis=1).astype(np.int64)
    two = np.stack([pairs, bad, np.ones_like(pairs), bad == pairs], axis=1).astype(np.int64)
    layout = layout_of([Label(str(index), Cell("ab"[index % 2])) for index in range(300)])
    first, second = (means(resample(Items(layout, table), seed=0))["accuracy"] for table in (one, two))
    difference = share_difference(Items(layout, np.concatenate([one, two], axis=1)), ACCURACY, seed=0).estimate
    assert difference.value == pytest.approx(first["value"] - second["value"], abs=1e-12)
    assert difference.low is not None
    assert difference.high is not None
    assert difference.high - difference.low < (first["high"] - first["low"]) / 2
    assert difference.n == pairs.sum()


def test_a_shifted_share_reads_the_second_model():
    assert ACCURACY.shifted(4) == Share(5, 4)


def test_no_prompt_right_has_the_interval_of_its_prompts():
    # 0 of 10 prompts with 3 pairs each, whatever the number of pairs
    totals = totals_of([("code", reference_row([(0.0, 1.0)] * 3))] * 10)
    for share, n in ((ACCURACY, 30), (EXACT_MATCH, 10)):
        assert estimate_macro(totals, all_cells(totals.cells), share).record() == reference_estimate(0.0, 10, n)


def test_parallel_items_do_not_narrow_an_exact_interval():
    labels = [Label(f"p{index % 10}", Cell("code", None, "zh" if index < 10 else "he")) for index in range(20)]
    rows = np.array([reference_row([(1.0, 0.0)])] * 20, dtype=np.int64)
    totals = resample(Items(layout_of(labels), rows, 50), seed=0)
    assert estimate_macro(totals, all_cells(totals.cells), ACCURACY).record() == reference_estimate(1.0, 10, 20)


def test_a_mean_over_unlike_groups_tells_as_much_as_fewer_prompts():
    # variance of the mean of two groups of 10 and 40: (1/10 + 1/40) / 4 of one prompt's, as of 32 prompts
    rows = [("code", (1, 1, 1, 1))] * 10 + [("chat", (1, 1, 1, 1))] * 40
    found = totals_of(rows, num_resamples=0).evidence(by_category((Cell("chat"), Cell("code"))).members)
    assert found.units == pytest.approx(32)
    # Satterthwaite: the square of the sum, over the sum of squares by their degrees of freedom.
    assert found.freedom == pytest.approx(0.125**2 / (0.01 / 9 + 0.000625 / 39))
    assert found.inflation == 1.0


def test_categories_of_one_prompt_borrow_their_variance_from_each_other():
    right = [index % 2 for index in range(200)]
    each, together = (
        means(totals_of([(name(index), (1, own, 1, own)) for index, own in enumerate(right)], 2000))["accuracy"]
        for name in (lambda index: f"c{index:03}", lambda _: "c")
    )
    assert each["value"] == together["value"] == 0.5
    # A mean over 200 categories of one prompt is a mean over 200 prompts.
    assert each["high"] - each["low"] == pytest.approx(together["high"] - together["low"], rel=0.06)


def test_one_category_of_one_prompt_beside_a_large_one_borrows_from_it():
    rows = [("large", (1, index % 2, 1, index % 2)) for index in range(100)]
    found = means(totals_of([*rows, ("small", (1, 1, 1, 1))], 2000))
    # Half of the mean hangs on one prompt: it tells as much as 4 / (1 + 1/100) prompts.
    assert found["accuracy"]["value"] == 0.75
    assert found["accuracy"]["high"] - found["accuracy"]["low"] > 0.7
    assert found["by_category"]["large"]["accuracy"]["high"] < 0.61


def test_a_pair_of_prompts_is_resampled_without_loss_of_variance():
    # Categories of two prompts, one right and one wrong: the variance of each mean is 1/4, of which two draws of two
    # would have one half. Mean over 50: 0.25 / 50.
    rows = [(f"c{index // 2:02}", (1, index % 2, 1, index % 2)) for index in range(100)]
    totals = totals_of(rows, 4000)
    drawn = macro(totals.resampled, by_category(totals.cells), ACCURACY)
    assert drawn.var() == pytest.approx(0.25 / 50, rel=0.1)


def accuracy_of(right, pairs=28):
    """The accuracy of prompts of one category, of which each has so many right pairs."""
    columns = np.stack([np.full(len(right), pairs), right, np.ones(len(right), int), right == pairs], axis=1)
    layout = layout_of([Label(f"p{place}", Cell("c")) for place in range(len(right))])
    totals = resample(Items(layout, columns.astype(np.int64), 4000), seed=0)
    return estimate_macro(totals, all_cells(totals.cells), ACCURACY)


def test_wrong_pairs_of_many_prompts_show_that_pairs_are_independent():
    # 6 of 560 pairs are wrong: of 6 prompts one each, or all of one prompt.
    apart = accuracy_of(np.where(np.arange(20) < 6, 27, 28))
    together = accuracy_of(np.where(np.arange(20) < 1, 22, 28))
    assert apart.value == together.value
    # Wilson's interval of 6 wrong of 560 pairs.
    assert (apart.low, apart.high) == pytest.approx((0.977, 0.995), abs=0.006)
    assert together.low < 0.91


def test_a_headline_of_right_pairs_has_the_interval_of_accuracy():
    random = np.random.default_rng(0)
    pairs = random.integers(1, 29, 40)
    right = random.binomial(pairs, 0.9)
    columns = np.stack([pairs, right, np.ones_like(pairs), right == pairs], axis=1)
    layout = layout_of([Label(f"p{place}", Cell("ab"[place % 2])) for place in range(40)])
    totals = resample(Items(layout, columns, 1000), seed=0)
    categories = by_category(totals.cells)
    accuracy = estimate_macro(totals, categories, ACCURACY)
    headline = mean_accuracy(totals)
    found = estimate(totals, headline.formula, headline.n)
    assert (found.low, found.high) == pytest.approx((accuracy.low, accuracy.high))
    assert evidence_of_formula(totals, lambda sums: macro(sums, categories, EXACT_MATCH)).events is None


def test_a_difference_of_shares_has_no_interval_beyond_one():
    resampled = np.array([0.25, 1.0, 0.5, 1.0, 0.75])
    estimate = difference_of_shares(0.75, resampled, 4, one_sample(4))
    assert (estimate.value, estimate.high) == (0.75, 1.0)
    assert -1.0 <= estimate.low < 0.75
