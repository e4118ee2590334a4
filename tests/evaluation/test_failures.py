from math import sqrt

import numpy as np
import pytest

from evaluation_summaries import scored_item
from steelyard.evaluation.failures import (
    LENGTHS,
    WrongPair,
    compared_lengths,
    error_groups,
    errors_by_prompt,
    item_pairs,
    most_confident_errors,
    pair_columns,
)
from steelyard.evaluation.items import JudgedPair

SHORTER, EQUAL, LONGER = range(3)


def two(prompt, margin, *, lengths=(10, 10), **fields):
    """An item of one pair with this margin, null for a pair without a score."""
    scores = {"a": margin, "b": None if margin is None else 0.0}
    return scored_item(prompt, num_pairs=1, scores=scores, ranking=(("a",), ("b",)), lengths=lengths, **fields)


def columns_of(*items):
    return pair_columns(enumerate(items))


def test_the_pairs_of_an_item_are_those_across_tiers_with_margin_and_length():
    item = scored_item(
        "p",
        num_pairs=2,
        scores={"a": 1.0, "b": 3.0, "c": 0.5},
        ranking=(("a",), ("b", "c")),
        lengths=(100, 110, 111),
    )
    # 110 is at most 1.1 times 100, and 111 is more.
    assert item_pairs(item) == (("a", "b", -2.0, EQUAL), ("a", "c", 0.5, SHORTER))


def test_chosen_pairs_replace_the_tiers_and_verdicts_replace_the_scores():
    fields = {"num_pairs": 1, "scores": {"a": 1.0, "b": 3.0, "c": None}, "ranking": (("a",), ("b", "c"))}
    assert item_pairs(scored_item("p", pairs=(("b", "a"),), **fields)) == (("b", "a", 2.0, -1),)
    assert item_pairs(scored_item("p", pairs=(("a", "c"),), **fields)) == (("a", "c", None, -1),)
    verdicts = [JudgedPair(better="a", worse="b", outcome=name) for name in ("win", "loss", "tie", "refused")]
    margins = [item_pairs(scored_item("p", outcomes=(verdict,), **fields))[0].margin for verdict in verdicts]
    assert margins == [1.0, -1.0, 0.0, None]


def test_an_item_that_does_not_state_its_pairs_has_none():
    # Two pairs across tiers, but three were counted: an older run with listed pairs.
    item = scored_item("p", num_pairs=3, scores={"a": 1.0, "b": 3.0}, ranking=(("a",), ("b",)))
    assert item_pairs(item) == ()


@pytest.mark.parametrize(
    ("better", "worse", "expected"),
    [(50, 100, SHORTER), (100, 50, LONGER), (0, 0, EQUAL), (0, 1, SHORTER), (11, 10, EQUAL), (None, 3, -1)],
)
def test_lengths_are_compared_by_ratio(better, worse, expected):
    assert compared_lengths(better, worse) == expected


def test_confidence_is_the_margin_over_the_root_mean_square_of_all_margins():
    pairs = columns_of(two("p", 3.0), two("q", -4.0), two("r", 0.0), two("s", None))
    scale = sqrt((9 + 16 + 0) / 3)
    assert pairs.scale == pytest.approx(scale)
    np.testing.assert_allclose(pairs.confidence, [-3 / scale, 4 / scale, 0.0, np.nan])
    # A tie is wrong, a pair without a score is not counted as wrong here.
    assert pairs.is_wrong.tolist() == [False, True, True, False]
    assert most_confident_errors(pairs, 5) == (WrongPair(1, 0, pytest.approx(4 / scale)), WrongPair(2, 0, 0.0))
    assert most_confident_errors(pairs, 1) == (WrongPair(1, 0, pytest.approx(4 / scale)),)


def test_a_model_that_ties_everything_is_wrong_without_confidence():
    pairs = columns_of(two("p", 0.0), two("q", 0.0))
    assert pairs.confidence.tolist() == [0.0, 0.0]
    assert [error.position for error in most_confident_errors(pairs, 5)] == [0, 1]


def test_every_prompt_is_listed_with_its_most_confident_error_only():
    item = scored_item(
        "p", num_pairs=3, scores={"a": 0.0, "b": 1.0, "c": 5.0}, ranking=(("a",), ("b",), ("c",)), lengths=(5, 9, 5)
    )
    pairs = pair_columns([(7, item), (2, two("q", -2.0))])
    scale = sqrt((1 + 25 + 16 + 4) / 4)
    # The pairs of p: a-b wrong by 1, a-c by 5, b-c by 4.
    assert most_confident_errors(pairs, 9) == (
        WrongPair(7, 1, pytest.approx(5 / scale)),
        WrongPair(2, 0, pytest.approx(2 / scale)),
    )
    errors = errors_by_prompt(pairs, 8)
    assert errors.worst[[7, 2]].tolist() == pytest.approx([5 / scale, 2 / scale])
    assert np.isnan(errors.worst[[0, 1, 3, 4, 5, 6]]).all()
    # p: the better answer is shorter, of equal length, and longer; q: equal.
    assert errors.lengths[[7, 2, 0]].tolist() == [0b111, 0b010, 0]


def test_an_error_of_unknown_lengths_is_in_no_division_of_lengths():
    errors = errors_by_prompt(columns_of(two("p", -1.0, lengths=()), two("q", -1.0, lengths=(1, 9))), 2)
    assert errors.lengths.tolist() == [0, 0b001]


def groups_by_key(found):
    return {group.key: group for group in found.groups}


def test_error_rates_of_every_group_by_hand():
    items = [
        two("p", -1.0, category="math", language="zh", lengths=(10, 90)),
        two("q", 1.0, category="math", language="zh", lengths=(10, 90)),
        two("r", 1.0, category="code", language="en", lengths=(10, 90)),
        two("s", 0.0, category="code", language="zh", lengths=(90, 10)),
        two("t", None, category="code", language="en", lengths=(90, 10)),
    ]
    found = error_groups(columns_of(*items))
    assert found is not None
    assert (found.overall.value, found.overall.n, found.num_unscored) == (0.5, 4, 1)
    counts = {key: (group.num_wrong, group.rate.n) for key, group in groups_by_key(found).items()}
    assert counts == {
        ("math", None, None): (1, 2),
        ("code", None, None): (1, 2),
        (None, "shorter", None): (1, 3),
        (None, "longer", None): (1, 1),
        (None, None, "zh"): (2, 3),
        (None, None, "en"): (0, 1),
        ("math", "shorter", None): (1, 2),
        ("code", "shorter", None): (0, 1),
        ("code", "longer", None): (1, 1),
        ("math", None, "zh"): (1, 2),
        ("code", None, "zh"): (1, 1),
        ("code", None, "en"): (0, 1),
        (None, "shorter", "zh"): (1, 2),
        (None, "longer", "zh"): (1, 1),
        (None, "shorter", "en"): (0, 1),
        ("math", "shorter", "zh"): (1, 2),
        ("code", "longer", "zh"): (1, 1),
        ("code", "shorter", "en"): (0, 1),
    }
    # Groups of fewer than ten prompts are not tested.
    assert found.num_tested == 0
    assert found.worst is None


def test_divisions_with_one_value_and_runs_without_lengths_are_left_out():
    found = error_groups(columns_of(two("p", -1.0, lengths=()), two("q", 1.0, lengths=())))
    assert found is not None
    assert found.groups == ()
    assert error_groups(columns_of(two("p", None))) is None


def test_a_group_with_far_more_errors_stands_out_and_is_the_worst():
    items = [
        two(f"{category}{number}", -1.0 if number < num_wrong else 1.0, category=category)
        for category, num_wrong in (("math", 80), ("code", 20), ("chat", 20))
        for number in range(100)
    ]
    found = error_groups(columns_of(*items))
    assert found is not None
    assert {group.category: group.stands_out for group in found.groups} == {"math": 1, "code": -1, "chat": -1}
    assert (found.worst.category, found.num_above, found.num_tested) == ("math", 1, 3)
    # Wilson's interval of 80 of 100 with Student's quantile, 1.984, for 99 degrees of freedom.
    middle, half = (0.8 + 1.984**2 / 200) / (1 + 1.984**2 / 100), 1.984 * sqrt(0.8 * 0.2 / 100 + 1.984**2 / 40000)
    half /= 1 + 1.984**2 / 100
    assert (found.worst.rate.low, found.worst.rate.high) == (
        pytest.approx(middle - half, abs=2e-3),
        pytest.approx(middle + half, abs=2e-3),
    )


def test_the_worst_group_comes_first_of_equal_ones_the_larger_and_untested_ones_last():
    wrong_and_all = {"small": (9, 9), "bad": (60, 100), "worse": (90, 100), "good": (0, 100), "fine": (0, 200)}
    items = [
        two(f"{category}{number}", -1.0 if number < num_wrong else 1.0, category=category)
        for category, (num_wrong, num_all) in wrong_and_all.items()
        for number in range(num_all)
    ]
    found = error_groups(columns_of(*items))
    assert found is not None
    assert [(group.category, group.stands_out) for group in found.groups] == [
        ("worse", 1), ("bad", 1), ("fine", -1), ("good", -1), ("small", None)
    ]  # fmt: skip
    assert (found.worst.category, found.num_above) == ("worse", 2)


@pytest.mark.parametrize(("num_each", "num_tested"), [(9, 0), (10, 2)])
def test_a_group_of_ten_prompts_is_tested_and_one_of_nine_is_not(num_each, num_tested):
    items = [
        two(f"{category}{number}", -1.0 if category == "math" else 1.0, category=category)
        for category in ("math", "code")
        for number in range(num_each)
    ]
    found = error_groups(columns_of(*items))
    assert found is not None
    assert found.num_tested == num_tested
    assert [group.stands_out for group in found.groups] == ([1, -1] if num_tested else [None, None])


def test_pairs_of_one_prompt_that_err_together_are_no_independent_evidence():
    def item(prompt, *, is_wrong, category):
        scores = {name: float(place if is_wrong else -place) for place, name in enumerate("abcde")}
        return scored_item(
            prompt, num_pairs=10, scores=scores, ranking=tuple((name,) for name in "abcde"), category=category
        )

    items = [
        item(f"{name}{at}", is_wrong=at < wrong, category=name)
        for name, wrong in (("x", 8), ("y", 4))
        for at in range(12)
    ]
    found = error_groups(columns_of(*items))
    assert found is not None
    # 80 of 120 pairs against 40 of 120 would stand out; 8 of 12 prompts against 4 of 12 do not.
    assert found.worst is None
    assert {group.rate.n for group in found.groups} == {120}


@pytest.mark.parametrize(("rate", "num_groups"), [(0.3, 12), (0.01, 30)])
def test_random_errors_rarely_stand_out(rate, num_groups):
    random = np.random.default_rng(0)
    num_alarms = 0
    for _ in range(100):
        margins = np.where(random.random(360) < rate, -1.0, 1.0)
        items = [two(str(at), float(margin), category=str(at % num_groups)) for at, margin in enumerate(margins)]
        found = error_groups(columns_of(*items))
        assert found is not None
        num_alarms += any(group.stands_out for group in found.groups)
    # Five are expected at most; twelve or more have a probability below 0.5% then.
    assert num_alarms < 12


def test_the_words_of_lengths_are_those_of_the_better_answer():
    assert LENGTHS[compared_lengths(10, 100)] == "shorter"
    assert LENGTHS[compared_lengths(100, 10)] == "longer"


def test_prompts_without_a_language_are_a_group_with_a_name():
    items = [two("p", -1.0, language="zh"), two("q", 1.0, language=None), two("r", -1.0, language=None)]
    found = error_groups(columns_of(*items))
    assert found is not None
    counts = {key: (group.num_wrong, group.rate.n) for key, group in groups_by_key(found).items()}
    assert counts == {(None, None, "zh"): (1, 1), (None, None, "unspecified"): (1, 2)}


def test_pairs_of_unknown_length_belong_to_no_group_by_length():
    items = [two("p", -1.0, lengths=(10, 90)), two("q", 1.0, lengths=(90, 10)), two("r", -1.0, lengths=())]
    found = error_groups(columns_of(*items))
    assert found is not None
    assert found.overall.n == 3
    assert {key: group.rate.n for key, group in groups_by_key(found).items()} == {
        (None, "shorter", None): 1,
        (None, "longer", None): 1,
    }


def test_two_rare_errors_in_a_small_group_do_not_stand_out():
    # Two or more of ten at a rate of 1% have a probability of 0.4%: of 34 groups one has them in every seventh report.
    small = [two(f"s{at}", -1.0 if at < 2 else 1.0, category="small") for at in range(10)]
    rest = [two(f"r{at}", -1.0 if at % 122 == 0 else 1.0, category=str(at % 33)) for at in range(990)]
    found = error_groups(columns_of(*small, *rest))
    assert found is not None
    assert (found.num_tested, found.overall.value) == (34, pytest.approx(0.011))
    assert found.worst is None
    # Five of ten have a probability of one in 40 million.
    many = [two(f"s{at}", -1.0 if at < 5 else 1.0, category="small") for at in range(10)]
    assert error_groups(columns_of(*many, *rest)).worst.category == "small"
