from math import sqrt

import pytest
from scipy.stats import t as student_t

from evaluation_summaries import scored_item
from steelyard.evaluation.disagreements import DisagreedPair, disagreements
from steelyard.evaluation.failures import pair_columns


def model(margins):
    """An evaluation with one prompt for each margin; null for a pair without a score."""
    items = [
        scored_item(
            str(at),
            num_pairs=1,
            scores={"a": margin, "b": None if margin is None else 0.0},
            ranking=(("a",), ("b",)),
        )
        for at, margin in enumerate(margins)
    ]
    return pair_columns(enumerate(items))


def test_the_four_counts_and_the_largest_gaps_by_hand():
    first = model([1.0, 1.0, -1.0, 0.0, None, 2.0, -1.0, 0.0])
    second = model([10.0, -10.0, 10.0, 0.0, 10.0, -30.0, 0.0, -10.0])
    (found,) = disagreements([first, second], most=2)
    counts = (found.num_both, found.num_only_first, found.num_only_second, found.num_neither)
    assert counts == (1, 2, 1, 3)  # the pair without a score of the first model is not shared
    assert found.difference.estimate.value == pytest.approx(1 / 7)
    assert found.difference.estimate.n == 7
    assert found.only_first_prompts.tolist() == [1, 5]
    assert found.only_second_prompts.tolist() == [2]
    scales = sqrt((1 + 1 + 1 + 0 + 4 + 1 + 0) / 7), sqrt((5 * 100 + 900 + 0 + 0) / 8)
    assert found.largest == (
        DisagreedPair(5, 0, True, pytest.approx(2 / scales[0] + 30 / scales[1])),
        DisagreedPair(1, 0, True, pytest.approx(1 / scales[0] + 10 / scales[1])),
    )


def test_with_one_pair_a_prompt_the_test_is_mcnemars():
    # 30 pairs only the first has right, 10 only the second, 60 both.
    first, second = model([1.0] * 90 + [-1.0] * 10), model([1.0] * 60 + [-1.0] * 30 + [1.0] * 10)
    (found,) = disagreements([first, second], most=1)
    z = (30 - 10) / sqrt(30 + 10)
    assert found.difference.p == pytest.approx(2 * student_t.sf(z, 99), rel=0.1)
    estimate = found.difference.estimate
    assert (estimate.value, estimate.low > 0) == (pytest.approx(0.2), True)


def test_models_are_compared_on_pairs_that_both_evaluations_count():
    one = model([1.0, -1.0])
    swapped = pair_columns([(1, scored_item("1", num_pairs=1, scores={"a": 0.0, "b": 1.0}, ranking=(("b",), ("a",))))])
    assert disagreements([one, swapped], most=3) == ()
    assert [(each.first, each.second) for each in disagreements([one, swapped, one], most=3)] == [(0, 2)]


def test_a_pair_that_is_listed_twice_is_shared_twice():
    def listed(margin):
        item = scored_item(
            "p", num_pairs=3, scores={"a": margin, "b": 0.0, "c": -9.0}, pairs=(("a", "b"), ("a", "b"), ("a", "c"))
        )
        return pair_columns([(0, item)])

    (found,) = disagreements([listed(1.0), listed(-1.0)], most=1)
    assert (found.num_both, found.num_only_first, found.num_only_second, found.num_neither) == (1, 2, 0, 0)
    assert found.difference.estimate.value == pytest.approx(2 / 3)
