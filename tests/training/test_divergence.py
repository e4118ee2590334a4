from math import log

from hypothesis import given
from hypothesis import strategies as st

from steelyard.training.diagnostics import has_diverged, has_not_begun, usual_loss


def test_losses_far_over_the_median_for_long_enough_are_a_divergence():
    good = [2.0, 1.0, 3.0, 2.0]  # the median is 2
    assert not has_diverged([*good, 7.0, 7.0], factor=3.0, num_steps=3)
    assert has_diverged([*good, 7.0, 7.0, 7.0], factor=3.0, num_steps=3)
    assert not has_diverged([*good, 7.0, 5.0, 7.0], factor=3.0, num_steps=3)


def test_what_begins_badly_or_is_known_by_heart_is_none():
    assert not has_diverged([9.0, 9.0, 9.0], factor=3.0, num_steps=3)
    assert not has_diverged([0.01] * 50 + [1.0] * 10, factor=3.0, num_steps=10)
    assert usual_loss([0.01] * 50 + [1.0] * 10, 10) == log(2)
    assert not has_diverged([1.0] * 50 + [1e9] * 50, factor=3.0, num_steps=0)


def test_only_the_last_hundred_count():
    assert usual_loss([50.0] * 100 + [1.0] * 100 + [9.0] * 5, 5) == 1.0


@given(st.lists(st.floats(0, 100), max_size=60), st.integers(1, 20))
def test_no_loss_within_the_bound_is_ever_a_divergence(losses, steps):
    assert not has_diverged([*losses, 0.5], factor=3.0, num_steps=steps)


def test_a_loss_that_stays_where_equal_scores_are_is_seen_once_after_a_quarter():
    flat = [0.6931] * 100
    seen = [number for number in range(1, 101) if has_not_begun(flat[:number], 100, equal=0.6931)]
    assert seen == [25]
    assert [number for number in range(1, 13) if has_not_begun(flat[:number], 12, equal=0.6931)] == [12]
    falling = [0.6931 - 0.002 * step for step in range(100)]
    assert not any(has_not_begun(falling[:number], 100, equal=0.6931) for number in range(1, 101))
