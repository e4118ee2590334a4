import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.statistics.tolerance import sameness, tolerance

SCORES = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8)


def test_rounding_is_a_share_of_the_spread_and_of_the_largest():
    assert tolerance([1.0, 3.0, -2.0], "float32") == pytest.approx(1e-3 * 5 + 1e-5 * 3)
    assert tolerance([1.0, 3.0, -2.0], "bfloat16") == pytest.approx(0.05 * 5 + 0.01 * 3)
    assert tolerance([1.0, 3.0], None) == tolerance([1.0, 3.0], "int4") == pytest.approx(0.05 * 2 + 0.01 * 3)
    assert tolerance([], "float32") == 0.0


def test_the_largest_difference_is_named_with_its_place():
    found = sameness([1.0, 5.0, 2.0], [1.0, 5.5, 2.25], dtype="float32")
    assert (found.largest, found.place, found.is_same) == (0.5, 1, False)
    assert sameness([1.0, 5.0], [1.001, 5.0], dtype="float32").is_same


def test_coarse_types_have_room_for_a_remark_and_exact_ones_have_none():
    # Spread 1 and largest 2: 0.05 + 0.02 is expected of bfloat16, and four times that is the bound.
    for moved, is_same, is_remarked in ((0.06, True, False), (0.2, True, True), (0.3, False, False)):
        found = sameness([1.0, 2.0], [1.0, 2.0 + moved], dtype="bfloat16")
        assert (found.is_same, found.remark is not None) == (is_same, is_remarked)
    exact = sameness([1.0, 2.0], [1.0, 2.002], dtype="float32")
    assert (exact.is_same, exact.remark) == (False, None)


def test_a_score_that_only_one_way_gives_is_no_rounding():
    found = sameness([1.0, None, 3.0], [1.0, 2.0, 3.0], dtype="bfloat16")
    assert (math.isinf(found.largest), found.place, found.is_same) == (True, 1, False)
    both = sameness([1.0, None], [1.0, None], dtype=None)
    assert (both.largest, both.is_same) == (0.0, True)
    assert sameness([None], [None], dtype=None).place is None


@given(SCORES, st.sampled_from(["float32", "bfloat16"]))
def test_a_run_is_the_same_as_itself_and_scaling_changes_no_verdict(scores, dtype):
    assert sameness(scores, scores, dtype=dtype).is_same
    moved = [one + 1.0 for one in scores]
    assert (
        sameness(scores, moved, dtype=dtype).is_same
        == sameness([4 * one for one in scores], [4 * one for one in moved], dtype=dtype).is_same
    )
