import numpy as np
import pytest

from steelyard.curation.filter_study import (
    VerdictMargins,
    apply_filters,
    area_under_curve,
    draw_random,
    pick_longest,
    precision_by_preference,
    precision_of_filters,
)
from steelyard.statistics.intervals import Estimate

NAN = float("nan")
# absolute margins 1, 1, 2, 3, 4: their median is 2
VERDICTS = VerdictMargins(np.arange(6), np.array([1.0, -1, 2, -3, 4, NAN]), np.array([5.0, 5, -5, 1, -1, 0]))
RIGHT = np.array([True, False, True, False, True, True])


def kept_by(name):
    return np.flatnonzero(apply_filters(VERDICTS, (0.0, 0.5))[name]).tolist()


def test_what_each_filter_keeps_by_hand():
    assert kept_by("all") == [0, 1, 2, 3, 4, 5]
    assert kept_by("agrees") == [0, 2, 4]
    assert kept_by("agrees, margin above 50%") == [2, 4]
    assert kept_by("not confidently against") == [0, 1, 2, 4, 5]
    assert kept_by("longer") == [0, 1, 3]


def test_the_table_by_hand():
    rows = {row.filter: row for row in precision_of_filters(VERDICTS, RIGHT, apply_filters(VERDICTS, (0.0,)), seed=0)}
    agrees = rows["agrees"]
    assert (agrees.num_kept, agrees.coverage) == (3, 0.5)
    assert agrees.precision.value == 1.0
    assert agrees.precision_of_dropped.value == pytest.approx(1 / 3)
    assert agrees.gain.value == pytest.approx(1 - 4 / 6)
    # the three that are longer by most are 0, 1 and 3, of which one is right
    assert agrees.over_length.value == pytest.approx(1 - 1 / 3)
    assert rows["all"].gain.value == rows["all"].over_random.value == 0
    assert rows["all"].precision_of_dropped == Estimate(None, None, None, 0)


def test_controls_keep_as_many_as_asked():
    assert draw_random(3, 10, 0, "a").sum() == 3
    assert (draw_random(3, 10, 0, "a") == draw_random(3, 10, 0, "a")).all()
    assert any((draw_random(3, 10, 0, "a") != draw_random(3, 10, seed, "a")).any() for seed in range(1, 5))
    assert np.flatnonzero(pick_longest(VERDICTS, 3)).tolist() == [0, 1, 3]
    assert pick_longest(VERDICTS, 0).sum() == 0


def test_discrimination_leaves_out_what_has_no_margin():
    found = area_under_curve(VERDICTS, RIGHT, seed=0)
    # right 1, 2, 4 against wrong -1, -3: every right one is above; in length 5, -5, -1 against 5, 1: one tie of six
    assert found.margin.value == 1.0
    assert found.length.value == pytest.approx((0.5 + 1) / 6)
    assert found.margin.n == 5


def test_the_two_groups_of_verdicts_share_all_of_them():
    longer, other = precision_by_preference(VERDICTS, RIGHT, apply_filters(VERDICTS, ())["all"], seed=0)
    assert (longer.all.n, other.all.n) == (3, 3)
    assert (longer.all.value, other.all.value) == (pytest.approx(1 / 3), 1.0)
    assert longer.gain.value == other.gain.value == 0
