"""Looks at growing figures: where they lie, and that their shares of the level sum to one."""

import pytest

from steelyard.statistics.interim_analysis import latest_interim_analysis


@pytest.mark.parametrize(
    ("number", "size", "factor"),
    # 20 * 2 ** (1 / 4) = 23.8, 20 * 2 ** (9 / 4) = 95.1; the third doubling has 4 * 3 * 4 shares.
    [(20, 20, 8), (23, 20, 8), (24, 24, 8), (39, 34, 8), (40, 40, 24), (100, 96, 48), (5120, 5120, 4 * 9 * 10)],
)
def test_a_look_holds_until_the_next_one(number, size, factor):
    assert latest_interim_analysis(number, first=20) == (size, factor)


def test_before_the_first_values_there_is_none():
    assert latest_interim_analysis(19, first=20) is None


def test_all_looks_together_have_no_more_than_the_level():
    looks = {latest_interim_analysis(number, first=20) for number in range(20, 20 * 2**9)}
    # Nine whole doublings of the sum 1/2 + 1/6 + 1/12 + ... = 1 - 1/10.
    assert sum(1 / look.factor for look in looks) == pytest.approx(1 - 1 / 10)
