from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_measures import every_resample
from steelyard.statistics import bootstrap
from steelyard.statistics.bootstrap import (
    MOST_BLOCKS,
    Items,
    Terms,
    add_up,
    difference_items,
    draw_blocks,
    one_group,
    resample,
)
from steelyard.statistics.groups import Cell, Label, layout_of
from steelyard.statistics.unique_rows import _ROWS_AT_A_TIME, row_codes, unique_rows


def items(rows, categories=None, prompts=None, num_resamples=1000, languages=None):
    categories = categories or ["c"] * len(rows)
    prompts = prompts or [f"p{index}" for index in range(len(rows))]
    languages = languages or [None] * len(rows)
    labels = [
        Label(prompt, Cell(category, None, language))
        for prompt, category, language in zip(prompts, categories, languages, strict=True)
    ]
    return Items(layout_of(labels), np.array(rows, dtype=np.int64), num_resamples)


tables = st.integers(1, 5).flatmap(
    lambda width: st.lists(
        st.lists(st.one_of(st.integers(-2, 3), st.integers(-(2**40), 2**40)), min_size=width, max_size=width),
        min_size=1,
        max_size=12,
    )
)


@given(tables)
def test_distinct_rows_equal_a_counter(table):
    found = unique_rows(np.array(table, dtype=np.int64))
    assert dict(zip(map(tuple, found.rows.tolist()), found.counts.tolist(), strict=True)) == Counter(map(tuple, table))


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(5, 9), st.integers(0, 2), st.just(1), st.booleans()), min_size=1
    )
)
def test_counting_codes_finds_the_rows_that_a_counter_finds(drawn):
    given_items = items([row[1:] for row in drawn], [row[0] for row in drawn])
    codes = row_codes(given_items.statistics)
    assert codes is not None
    for stratum in given_items.layout.strata:
        found = codes.count_rows(stratum.rows)
        expected = Counter(row[1:] for row in drawn if row[0] == stratum.name[0])
        assert dict(zip(map(tuple, found.rows.tolist()), found.counts.tolist(), strict=True)) == expected


def test_more_prompts_than_one_block_and_codes_too_many_to_count():
    number = 2 * _ROWS_AT_A_TIME + 5
    rows = [[3, index % 3, 7] for index in range(number)]
    totals = resample(items(rows, num_resamples=2), seed=0)
    assert totals.point.tolist() == [[3 * number, sum(row[1] for row in rows), 7 * number]]
    assert row_codes(np.array([[0, 0], [2**40, 2**20]])) is None
    assert resample(items([[0, 0], [2**40, 2**20]], num_resamples=1), seed=0).point.tolist() == [[2**40, 2**20]]


def test_point_totals_are_plain_sums_by_cell():
    totals = resample(items([[3, 1], [4, 4], [5, 0]], ["b", "a", "b"], num_resamples=2), seed=0)
    assert [cell.category for cell in totals.cells] == ["a", "b"]
    assert totals.point.tolist() == [[4, 4], [8, 1]]


@pytest.mark.parametrize("rows", [[[3, 2], [1, 0]], [[3, 2], [1, 0], [1, 1]], [[2, 1], [2, 1], [5, 0], [1, 1]]])
def test_resamples_are_distributed_as_the_enumeration_of_all(rows):
    num_resamples = 40_000
    totals = resample(items(rows, num_resamples=num_resamples), seed=1)
    drawn = Counter(map(tuple, totals.resampled[:, 0].round(9).tolist()))
    exact = Counter(every_resample(rows))
    assert set(drawn) <= set(exact)
    for outcome, times in exact.items():
        share = times / len(rows) ** (len(rows) - 1)
        noise = 5 * np.sqrt(share * (1 - share) / num_resamples)
        assert abs(drawn[outcome] / num_resamples - share) < noise


def test_every_resample_keeps_the_size_of_every_stratum():
    rows = [[1, 1], [1, 0], [1, 1], [1, 0], [1, 0]]
    totals = resample(items(rows, ["a", "a", "b", "b", "b"]), seed=3)
    assert np.allclose(totals.resampled[:, :, 0], [2, 3])


def test_parallel_items_of_one_prompt_are_drawn_together():
    # Two prompts in two languages each: whatever is drawn, both languages have drawn the same prompts.
    rows = [[1, 0], [1, 0], [1, 1], [1, 1]]
    totals = resample(items(rows, prompts=list("ppqq"), languages=["en", "zh"] * 2), seed=0)
    english, chinese = totals.resampled[:, 0], totals.resampled[:, 1]
    assert np.array_equal(english, chinese)
    assert set(english[:, 1].tolist()) == {0, 2}  # one of the two, in place of both


def test_two_models_are_drawn_together():
    # The second model is the first shifted by one correct pair in every prompt: the difference never varies.
    rows = [[9, correct, 9, correct + 1] for correct in (0, 3, 5, 8, 2)]
    resampled = resample(items(rows), seed=0).resampled[:, 0]
    assert np.allclose(resampled[:, 3] - resampled[:, 1], 5)


def test_differences_are_distributed_as_the_enumeration_of_both_models_says():
    # Pairs, and correct pairs of each of two models: every resample's difference of accuracies, by enumeration.
    rows = [[3, 2, 3, 1], [1, 0, 1, 1], [2, 2, 2, 0]]
    number = 40_000
    totals = resample(difference_items(items(rows, num_resamples=number), shared=[0], compared=[1]), seed=1)
    assert totals.point.tolist() == [[6, 2, 4]]
    drawn = Counter(round(up / pairs, 6) for pairs, up, _ in totals.resampled[:, 0].tolist())
    exact = Counter(round((one - other) / pairs, 6) for pairs, one, _, other in every_resample(rows))
    assert set(drawn) <= set(exact)
    for outcome, times in exact.items():
        share = times / len(rows) ** (len(rows) - 1)
        assert abs(drawn[outcome] / number - share) < 5 * np.sqrt(share * (1 - share) / number)


def test_a_difference_of_models_that_count_other_pairs_is_a_defect_of_the_caller():
    with pytest.raises(AssertionError, match="the same pairs"):
        difference_items(items([[3, 2, 4, 2]]), shared=[0], compared=[1])


def test_intervals_equal_those_of_a_gather_bootstrap_within_noise():
    random = np.random.default_rng(0)
    pairs = random.integers(1, 11, size=400)
    correct = random.binomial(pairs, 0.7)
    own = resample(items(np.stack([pairs, correct], axis=1).tolist(), num_resamples=20_000), seed=0).resampled[:, 0]
    drawn = random.integers(0, 400, size=(20_000, 400))
    gathered = correct[drawn].sum(axis=1) / pairs[drawn].sum(axis=1)
    multinomial = own[:, 1] / own[:, 0]
    # the standard error of a 2.5 % quantile of 20,000 draws is about 2.7 standard deviations / sqrt(20,000)
    tolerance = 5 * 2.7 * gathered.std() / np.sqrt(20_000)
    for level in (2.5, 50, 97.5):
        assert abs(np.percentile(multinomial, level) - np.percentile(gathered, level)) < tolerance


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=10), st.randoms())
@settings(deadline=None)
def test_the_order_of_the_prompts_does_not_matter(rows, random):
    names = [f"p{index % 7}" for index in range(len(rows))]
    categories = ["ab"[index % 7 % 2] for index in range(len(rows))]
    order = list(range(len(rows)))
    random.shuffle(order)
    one = resample(items(rows, categories, names, num_resamples=20), seed=5)
    other = resample(
        items(*([column[index] for index in order] for column in (rows, categories, names)), num_resamples=20), seed=5
    )
    assert np.array_equal(one.resampled, other.resampled)


def test_the_seed_decides_and_a_new_stratum_leaves_the_others_as_they_were():
    rows = [[1, 0], [1, 1], [2, 1]]
    one, again, other = (resample(items(rows), seed=seed).resampled for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    more = resample(items([*rows, [7, 7]], ["c", "c", "c", "a"]), seed=0)
    assert np.array_equal(more.resampled[:, 1], one[:, 0])


def test_drawing_in_portions_changes_nothing(monkeypatch):
    rows = [[1, 0], [1, 1], [2, 1], [5, 3]]
    whole = resample(items(rows, num_resamples=50), seed=2).resampled
    monkeypatch.setattr(bootstrap, "_COUNTS_AT_A_TIME", 12)
    assert np.array_equal(resample(items(rows, num_resamples=50), seed=2).resampled, whole)


def test_no_resamples_give_the_point_alone():
    totals = resample(items([[2, 1]], num_resamples=0), seed=0)
    assert totals.point.tolist() == [[2, 1]]
    assert totals.resampled.shape == (0, 1, 2)


def labels_of(number, category=lambda index: "code"):
    return [Label(f"p{index:05}", Cell(category(index))) for index in range(number)]


def total(blocks, values):
    rows = np.arange(len(values))
    return add_up(blocks, Terms(rows, one_group(len(values)), [np.asarray(values, float)]), 1)


def test_sums_by_hand():
    blocks = draw_blocks(labels_of(4), num_resamples=20, seed=0)
    terms = Terms(np.array([0, 0, 1, 3]), np.array([0, 1, 1, -1]), [np.array([1.0, 2.0, 4.0, 8.0]), np.ones(4)])
    sums = add_up(blocks, terms, 2)
    assert sums.point.tolist() == [[1.0, 1.0], [6.0, 2.0]]
    weights = blocks.weights[:, blocks.block]  # how often each prompt was drawn
    assert np.array_equal(sums.resampled[:, 0, 0], weights[:, 0])
    assert np.array_equal(sums.resampled[:, 1, 0], 2 * weights[:, 0] + 4 * weights[:, 1])


@pytest.mark.parametrize("exponent", [-1000, -140, 140, 1000])
def test_sums_in_other_units_have_the_same_digits(exponent):
    # Single precision alone ends at 2 to the power of 128.
    blocks, values = draw_blocks(labels_of(30), num_resamples=20, seed=0), np.arange(30.0) / 7
    plain, other = total(blocks, values), total(blocks, np.ldexp(values, exponent))
    assert np.array_equal(other.point, np.ldexp(plain.point, exponent))
    assert np.array_equal(other.resampled, np.ldexp(plain.resampled, exponent))


def test_every_resample_keeps_the_size_of_each_category():
    blocks = draw_blocks(labels_of(30, lambda index: "code" if index < 10 else "chat"), num_resamples=50, seed=1)
    is_code = np.arange(30) < 10
    assert np.allclose(blocks.weights[:, blocks.block[is_code]].sum(axis=1), 10)
    assert np.allclose(blocks.weights[:, blocks.block[~is_code]].sum(axis=1), 20)


def test_parallel_items_are_drawn_together():
    labels = [Label(f"p{index // 2}", Cell("code", None, "zh" if index % 2 else "he")) for index in range(10)]
    blocks = draw_blocks(labels, num_resamples=5, seed=0)
    assert (blocks.block[::2] == blocks.block[1::2]).all()
    assert (blocks.unit[::2] == blocks.unit[1::2]).all()
    assert blocks.num_blocks == 5


def test_the_order_of_prompts_does_not_matter():
    labels, values = labels_of(3000, lambda index: "code" if index % 3 else "chat"), np.arange(3000)
    order = np.random.default_rng(0).permutation(3000)
    one = total(draw_blocks(labels, num_resamples=30, seed=4), values)
    other = total(draw_blocks([labels[index] for index in order], num_resamples=30, seed=4), values[order])
    assert np.allclose(one.resampled, other.resampled)
    assert not np.allclose(one.resampled, total(draw_blocks(labels, num_resamples=30, seed=5), values).resampled)


@pytest.mark.parametrize("number", [400, 6 * MOST_BLOCKS])
def test_the_spread_is_that_of_the_bootstrap_over_prompts(number):
    values = np.random.default_rng(3).integers(0, 3, number)
    labels = labels_of(number)
    blocks = draw_blocks(labels, num_resamples=2000, seed=0)
    assert blocks.num_blocks <= MOST_BLOCKS
    own = total(blocks, values).resampled[:, 0, 0]
    other = resample(Items(blocks.layout, values[:, None], 2000), seed=0).resampled[:, 0, 0]
    assert own.mean() == pytest.approx(values.sum(), rel=0.01)
    assert own.std() == pytest.approx(other.std(), rel=0.08)
