import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.statistics.bootstrap import draw_blocks, evidence_of
from steelyard.statistics.groups import Cell, Label
from steelyard.statistics.intervals import SHARE, interval, one_sample
from steelyard.statistics.relabelled import TOO_FEW_RELABELLED, RelabelledBench, relabelled_shares

NO_VERDICT = np.nan


def estimated(rows, *, num_resamples=400):
    """``rows``: category, whether it was relabelled, whether the label is wrong, a judge's verdicts, whether the model
    is right; a prompt each.
    """
    labels = [Label(f"p{at}", Cell(category)) for at, (category, *_) in enumerate(rows)]
    blocks = draw_blocks(labels, num_resamples=num_resamples, seed=0)
    _, is_checked, is_wrong, against, is_right = (np.array(column) for column in zip(*rows, strict=True))
    bench = RelabelledBench(np.arange(len(rows)), is_checked, is_wrong, against.astype(float), is_right)
    return relabelled_shares(blocks, bench)


def sampled(category, size, *, num_checked, num_wrong, num_right=0):
    """Prompts of one category: the first were relabelled, the first of them with a wrong label."""
    return [(category, at < num_checked, at < num_wrong, NO_VERDICT, at < num_right) for at in range(size)]


def test_a_sample_by_hand():
    found = estimated(sampled("a", 400, num_checked=100, num_wrong=10, num_right=260))
    assert found.label.micro.value == pytest.approx(0.1)
    assert found.label.micro.n == 100
    assert found.perfect.micro.value == pytest.approx(0.9)
    assert found.model.micro.value == pytest.approx(0.65)
    assert found.distance.micro.value == pytest.approx(0.25)
    assert found.effective_labels == 1
    # Wilson's interval of 10 in 100 with the normal quantile: 5.52 to 17.44%; Student's t makes it a little wider.
    assert found.label.micro.low == pytest.approx(0.0552, abs=0.01)
    assert found.label.micro.high == pytest.approx(0.1744, abs=0.01)
    assert found.perfect.micro.low == pytest.approx(1 - found.label.micro.high)


def test_categories_count_by_their_size_in_the_bench_and_not_in_the_sample():
    rows = sampled("large", 900, num_checked=50, num_wrong=5) + sampled("small", 100, num_checked=50, num_wrong=25)
    found = estimated(rows)
    # 0.9 x 0.1 + 0.1 x 0.5, where the sample itself has 30 wrong of 100.
    assert found.label.micro.value == pytest.approx(0.14)
    assert found.label.macro.value == pytest.approx(0.3)
    assert [each.value for each in found.label.estimates] == pytest.approx([0.1, 0.5])


def test_a_category_with_few_relabelled_prompts_has_no_value_but_counts_in_the_means():
    rows = sampled("a", 300, num_checked=60, num_wrong=6) + sampled("b", 100, num_checked=10, num_wrong=5)
    found = estimated(rows)
    assert (found.label.estimates[1].value, found.label.estimates[1].why) == (None, TOO_FEW_RELABELLED)
    assert found.distance.estimates[1].value is None
    # 3/4 x 0.1 + 1/4 x 0.5.
    assert found.label.micro.value == pytest.approx(0.2)
    assert found.label.macro.value == pytest.approx(0.3)


def test_categories_without_enough_relabelled_prompts_are_pooled_with_the_next_larger():
    rows = [
        *sampled("a", 200, num_checked=50, num_wrong=5),
        *sampled("b", 100, num_checked=20, num_wrong=8),
        *sampled("c", 100, num_checked=0, num_wrong=0),
    ]
    found = estimated(rows)
    # c was not relabelled: it has the error of b, the smallest other one. 1/2 x 0.1 + 1/2 x 0.4.
    assert found.label.micro.value == pytest.approx(0.25)


def test_no_wrong_label_has_an_upper_end():
    found = estimated(sampled("a", 200, num_checked=50, num_wrong=0))
    assert found.label.micro.value == 0
    assert found.label.micro.low == 0
    assert 0.05 < found.label.micro.high < 0.1
    assert found.perfect.micro.high == 1


def test_without_a_relabelled_pair_there_is_no_value():
    assert estimated(sampled("a", 50, num_checked=0, num_wrong=0)) is None


def test_a_good_judge_makes_the_interval_narrower_and_a_bad_one_does_no_harm():
    random = np.random.default_rng(5)
    is_wrong = random.random(1000) < 0.2
    is_checked = np.arange(1000) < 200

    def found(against):
        return estimated(list(zip(["a"] * 1000, is_checked, is_wrong, against, is_wrong, strict=True)))

    alone = found(np.full(1000, NO_VERDICT))
    good = found(np.where(random.random(1000) < 0.95, is_wrong, ~is_wrong))
    useless = found(random.random(1000) < 0.5)

    def width(shares):
        return shares.label.micro.high - shares.label.micro.low

    assert width(good) < 0.75 * width(alone)
    assert good.effective_labels > 1.8
    assert good.label.micro.value == pytest.approx(is_wrong.mean(), abs=0.02)
    assert width(useless) <= width(alone) * 1.01


def test_a_judge_whose_verdicts_are_the_labels_adds_nothing():
    rows = [("a", at < 100, at < 10, 0.0, True) for at in range(400)]
    found, alone = estimated(rows), estimated(sampled("a", 400, num_checked=100, num_wrong=10))
    assert found.effective_labels == 1
    assert found.label.micro == alone.label.micro


def test_the_labels_of_a_prompt_are_wrong_if_one_is_and_checked_if_all_are():
    #               a prompt of three labels      of two               of one
    prompt = np.array([0, 0, 0, 4, 4, 7])
    is_checked = np.array([True, True, True, True, False, True])
    is_wrong = np.array([False, True, False, True, False, False])
    against = np.array([0.0, 1.0, 0.0, 0.0, np.nan, 0.5])
    is_right = np.array([True, True, False, True, True, True])
    by_prompt = RelabelledBench(prompt, is_checked, is_wrong, against, is_right).by_prompt()
    assert by_prompt.prompt.tolist() == [0, 4, 7]
    assert by_prompt.is_checked.tolist() == [True, False, True]
    assert (by_prompt.is_wrong & by_prompt.is_checked).tolist() == [True, False, False]
    np.testing.assert_array_equal(by_prompt.against, [1.0, np.nan, 0.0])
    assert by_prompt.is_right.tolist() == [False, True, True]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_values_are_in_their_intervals_and_between_0_and_1(drawn):
    rows = [(name, is_checked, is_wrong, NO_VERDICT, is_wrong) for name, is_checked, is_wrong in drawn]
    found = estimated(rows, num_resamples=30)
    if not any(is_checked for _, is_checked, _ in drawn):
        assert found is None
        return
    for shares in (found.label, found.perfect):
        for each in (shares.macro, shares.micro, *shares.estimates):
            if each.low is not None:
                assert 0 <= each.low <= each.value <= each.high <= 1


def test_one_category_has_the_interval_of_a_plain_share():
    rows = sampled("a", 60, num_checked=60, num_wrong=12)
    draws = np.random.default_rng(1).binomial(60, 0.2, size=4000) / 60
    plain = interval(0.2, draws, 60, one_sample(60), SHARE)
    found = estimated(rows, num_resamples=4000).label.micro
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=0.003)


@pytest.mark.parametrize(("num_prompts", "added"), [(30, 0.75), (72, 1.2), (300, 1.5)])
def test_prompts_wrong_as_a_whole_are_added_for_the_relabelled_ones(num_prompts, added):
    # Every second prompt has one wrong label of five: single wrong labels, as of pairs that are independent.
    prompt = np.repeat(np.arange(num_prompts), 5)
    is_wrong = (np.arange(5 * num_prompts) % 10) == 0
    is_checked = np.ones(len(prompt), dtype=bool)
    blocks = draw_blocks([Label(f"p{at}", Cell("a")) for at in range(num_prompts)], num_resamples=400, seed=0)
    found = relabelled_shares(
        blocks, RelabelledBench(prompt, is_checked, is_wrong, np.full(len(prompt), NO_VERDICT), ~is_wrong)
    )
    wrong, every = (blocks.weights @ np.bincount(blocks.block[prompt], each, blocks.num_blocks)
                    for each in (is_wrong, is_checked))  # fmt: skip
    drawn = wrong / every
    evidence = evidence_of(blocks, np.zeros(num_prompts, np.int64), np.full(num_prompts, 5))
    wider = interval(0.1, drawn, len(prompt), evidence._replace(prior=added))
    assert found.label.micro.low == pytest.approx(wider.low, abs=1e-6)
    assert found.label.micro.high == pytest.approx(wider.high, abs=1e-6)
    assert wider.high > interval(0.1, drawn, len(prompt), evidence).high + 1e-4
