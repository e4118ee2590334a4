import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.statistics.tolerance import compare_scores, rounding_error

SCORES = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8)


def test_rounding_is_a_share_of_the_spread_and_of_the_largest():
    assert rounding_error([1.0, 3.0, -2.0], "float32") == pytest.approx(1e-3 * 5 + 1e-5 * 3)
    assert rounding_error([1.0, 3.0, -2.0], "bfloat16") == pytest.approx(0.05 * 5 + 0.01 * 3)
    assert rounding_error([1.0, 3.0], None) == rounding_error([1.0, 3.0], "int4") == pytest.approx(0.05 * 2 + 0.01 * 3)
    assert rounding_error([], "float32") == 0.0


def test_the_largest_difference_is_named_with_its_place():
    found = compare_scores([1.0, 5.0, 2.0], [1.0, 5.5, 2.25], dtype="float32")
    assert (found.largest, found.position, found.is_rounding) == (0.5, 1, False)
    assert compare_scores([1.0, 5.0], [1.001, 5.0], dtype="float32").is_rounding


def test_coarse_types_have_room_for_a_remark_and_exact_ones_have_none():
    # Spread 1 and largest 2: 0.05 + 0.02 is expected of bfloat16, and four times that is the bound.
    for moved, is_same, is_remarked in ((0.06, True, False), (0.2, True, True), (0.3, False, False)):
        found = compare_scores([1.0, 2.0], [1.0, 2.0 + moved], dtype="bfloat16")
        assert (found.is_rounding, found.remark is not None) == (is_same, is_remarked)
    exact = compare_scores([1.0, 2.0], [1.0, 2.002], dtype="float32")
    assert (exact.is_rounding, exact.remark) == (False, None)


def test_a_score_that_only_one_way_gives_is_no_rounding():
    found = compare_scores([1.0, None, 3.0], [1.0, 2.0, 3.0], dtype="bfloat16")
    assert (math.isinf(found.largest), found.position, found.is_rounding) == (True, 1, False)
    both = compare_scores([1.0, None], [1.0, None], dtype=None)
    assert (both.largest, both.is_rounding) == (0.0, True)
    assert compare_scores([None], [None], dtype=None).position is None


@given(SCORES, st.sampled_from(["float32", "bfloat16"]))
def test_a_run_is_the_same_as_itself_and_scaling_changes_no_verdict(scores, dtype):
    assert compare_scores(scores, scores, dtype=dtype).is_rounding
    moved = [one + 1.0 for one in scores]
    assert (
        compare_scores(scores, moved, dtype=dtype).is_rounding
        == compare_scores([4 * one for one in scores], [4 * one for one in moved], dtype=dtype).is_rounding
    )
