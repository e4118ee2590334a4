"""The forecast of a project: what is certain, what arithmetic by hand says, and how often the truth is covered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_progress import coverage

from steelyard.annotation.progress import WorkDone, WorkLeft, WorkPrice, forecast

HOUR = WorkPrice(30.0, "hour")


def left(**changes):
    """Ten items of ten answers each, of which none was ever sent back, that wait for no time at all."""
    work = WorkLeft(100, 10, 10.0, 1.0, num_accepted=10**9, num_rejected=0, waits=(0.0, 0.0), waiting=())
    return work._replace(**changes)


def test_steady_work_ends_when_division_says():
    made = forecast(WorkDone([20.0] * 10, [1200.0] * 10), left(), HOUR)
    # 100 answers at 20 a day, 60 seconds each; 200 are given: (200 + 100) / 60 hours at 30.
    assert (made.days.low, made.days.median, made.days.high) == pytest.approx((5, 5, 5), abs=1e-6)
    assert made.answers.median == 100
    assert made.hours.median == pytest.approx(100 / 60)
    assert made.cost.median == pytest.approx(30 * 300 / 60)
    by_answer = forecast(WorkDone([20.0] * 10, [1200.0] * 10), left(), WorkPrice(0.5, "answer"))
    assert by_answer.cost.median == pytest.approx(0.5 * 300)


def test_nobody_works_at_weekends():
    # Twelve days from a Monday: the next day is a Saturday, and 100 answers are five more days of work.
    week = [20.0] * 5 + [0.0, 0.0]
    made = forecast(WorkDone((week + week)[:12], [20.0] * 12), left(), HOUR)
    assert made.days.median == pytest.approx(2 + 5, abs=1e-6)


def test_rejections_bring_new_rounds_and_waits_delay_the_end():
    done = WorkDone([20.0] * 10, [1200.0] * 10)
    plain = forecast(done, left(num_items=200), HOUR)
    rejected = forecast(done, left(num_items=200, num_accepted=500, num_rejected=500), HOUR)
    # Half of the items, then half of these, and so on: 200 new rounds, less what is beyond the fourth.
    assert rejected.answers.median == pytest.approx(100 + 10 * 200 * (1 - 0.5**4), rel=0.05)
    assert rejected.days.median > plain.days.median + 5
    slow = forecast(done, left(waits=(3.0,) * 50), HOUR)
    assert slow.days.median == pytest.approx(5 + 3, abs=1e-6)
    # Items that have waited for long say that waits are long.
    stuck = forecast(done, left(waits=(1.0,) * 20, waiting=(30.0,) * 20), HOUR)
    assert stuck.days.high > slow.days.high


@pytest.mark.parametrize(
    ("days", "changes", "why"),
    [
        ([20.0] * 3, {}, "few days"),
        ([20.0] * 3 + [0.0] * 30, {}, "few days"),
        ([], {}, "few days"),
        ([20.0] * 9, {"waits": ()}, "nothing finished"),
        ([20.0] * 9, {"num_items": 0}, "finished"),
    ],
)
def test_no_forecast_without_evidence(days, changes, why):
    made = forecast(WorkDone(days, days), left(**changes), HOUR)
    assert (made.why, made.days, made.cost) == (why, None, None)


@pytest.mark.slow
@given(
    days=st.lists(st.integers(0, 500), min_size=1, max_size=40),
    answers=st.integers(0, 10**7),
    items=st.integers(1, 10**6),
    rejected=st.integers(0, 50),
    waits=st.lists(st.floats(0, 400), min_size=1, max_size=30),
    waiting=st.lists(st.floats(0, 400), max_size=30),
)
def test_any_history_has_ordered_ends_or_a_reason(days, answers, items, rejected, waits, waiting):
    work = WorkLeft(answers, items, 10.0, 1.0, num_accepted=5, num_rejected=rejected, waits=waits, waiting=waiting)
    made = forecast(WorkDone(days, [7.0 * day for day in days]), work, HOUR)
    if made.why:
        assert made.days is None
        return
    for ends in (made.days, made.answers, made.hours, made.cost):
        finite = [end for end in (ends.low, ends.median, ends.high) if end is not None]
        assert finite == sorted(finite)
        assert all(end >= 0 for end in finite)


@pytest.mark.slow
def test_intervals_made_half_way_cover_the_true_end():
    number, end, cost, _, length = coverage(range(40), num_items=600, num_people=4, has_weekends=True)
    assert number == 40
    assert length > 40
    # 38 of 40 expected; 33 or fewer have a probability of 0.03 % at 95 %.
    assert end > 33 / 40
    assert cost > 33 / 40
