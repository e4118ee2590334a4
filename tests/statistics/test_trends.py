import numpy as np
import pytest

from steelyard.statistics.groups import Cell, Label, layout_of
from steelyard.statistics.significance import trend


def table(right):
    """A prompt with one pair each, right or wrong."""
    return np.array([(1, one, 1, one) for one in right], dtype=np.int64)


def layout(number):
    return layout_of([Label(f"p{index}", Cell("one")) for index in range(number)])


def test_the_slope_is_that_of_least_squares_over_doublings():
    # 40 prompts; sizes 1, 2, 8: doublings 0, 1, 3. Accuracies 0.5, 0.6, 0.9.
    tables = [table([index < number for index in range(40)]) for number in (20, 24, 36)]
    found = trend(layout(40), tables, [100, 200, 800], num_resamples=500, seed=0)
    assert found.per_doubling.value == pytest.approx(np.polyfit([0, 1, 3], [0.5, 0.6, 0.9], 1)[0])
    assert found.per_doubling.low < found.per_doubling.value < found.per_doubling.high
    assert found.per_doubling.low > 0
    assert found.p < 0.01
    assert found.sizes == (100, 200, 800)


def test_models_that_answer_alike_have_no_slope_and_no_spread():
    same = table([index % 2 == 0 for index in range(30)])
    found = trend(layout(30), [same, same, same], [1, 2, 4], num_resamples=200, seed=0)
    assert found.per_doubling.value == pytest.approx(0, abs=1e-12)
    assert found.per_doubling.low < 0 < found.per_doubling.high  # thirty prompts leave room for some
    assert found.p == 1.0


@pytest.mark.parametrize("sizes", [[2, 2], [0, 2], [1]])
def test_a_slope_needs_two_sizes(sizes):
    with pytest.raises(AssertionError):
        trend(layout(3), [table([1, 0, 1])] * 2, sizes, num_resamples=10, seed=0)
