"""When a project ends and what it costs, with 95% intervals, from its own days, rejections and waits.

Three things are uncertain, and each is drawn from what the project has shown so far:

- **answers to come**: those that open tasks still ask for, a little more for tasks that retire when people take
  responses out, and whole new rounds for items that will be rejected. The share of rejections is drawn from its Beta
  distribution (Jeffreys' prior), because a handful of decisions says little about it.
- **answers a day**: the mean of the last days with Student's t for its error, each future day with the deviation of the
  past ones. Days of the week on which nobody works are known once they were seen: before the first
  weekend, half of the draws have it free. From two weeks on each day of the week has its own level.
- **the wait after the last answer**: alignment and reviews of the last items, from the waits of items that finished,
  with another round for those that are rejected.

Not in the interval: a team that grows or shrinks, a batch that is rejected whole, reviewers who fall behind.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats, generator
from steelyard.core.types import Record

FEWEST_DAYS = 4
"""Days with answers below which nothing is forecast."""
_MOST_DAYS = 28
"""The latest days that say how fast people are: a team changes."""
_WEEKEND = (5, 6)
_WEEKS_FROM = 14
"""Days from which each day of the week has its own level."""
_HORIZON = 2000
"""Days beyond which the end is not looked for."""
_NUM_DRAWS = 1000
_MOST_ROUNDS = 4
_MOST_LAST_ITEMS = 400
_WAITS_BACK = 4
"""Usual waits before the last answer whose items may be the last ones to finish."""
_ENDS = (0.025, 0.5, 0.975)


class WorkDone(NamedTuple):
    """Work of people by day, all days in a row up to the last whole one: answers, and seconds spent on them.

    ``first_weekday`` is 0 for a Monday.
    """

    answers: Sequence[float]
    seconds: Sequence[float]
    first_weekday: int = 0


class WorkLeft(NamedTuple):
    """Work that is left, and the waste that the project has shown so far.

    ``num_answers``: answers that open tasks still ask for. ``num_items``: items that are neither finished nor dropped.
    ``answers_a_round``: those that an item takes in one round. ``waste``: all answers over those of tasks that remain.
    ``num_accepted`` and ``num_rejected``: rounds of items that reviews decided on. ``waits`` and ``waiting`` are
    of the items that came to the gate lately: days to the end of those that finished, and days so far of the others.
    """

    num_answers: int
    num_items: int
    answers_a_round: float
    waste: float
    num_accepted: int
    num_rejected: int
    waits: Sequence[float]
    waiting: Sequence[float] = ()


class WorkPrice(NamedTuple):
    """The price of work: ``amount`` for an hour of active time, or for an answer."""

    amount: float
    unit: str


class ForecastRange(Record, frozen=True, kw_only=True):
    """The median of a forecast and the ends of its 95% interval; a null end lies beyond what was looked at."""

    low: float | None
    median: float | None
    high: float | None


class ProjectForecast(Record, frozen=True, kw_only=True):
    """Work and cost to come. ``days`` until the end, ``answers`` and ``hours`` to come; ``cost`` of the whole project.

    ``why``: the reason for having no forecast. ``num_days``: the days that it is drawn from.
    """

    days: ForecastRange | None = None
    answers: ForecastRange | None = None
    hours: ForecastRange | None = None
    cost: ForecastRange | None = None
    num_days: int = 0
    why: str | None = None


def forecast(done: WorkDone, left: WorkLeft, price: WorkPrice, *, seed: int = 0) -> ProjectForecast:
    """ProjectForecast the end and the cost of a project at the end of its last whole day."""
    answers = np.array(done.answers[-_MOST_DAYS:], np.float64)
    if left.num_items == 0:
        return ProjectForecast(why="finished", num_days=len(answers))
    if (answers > 0).sum() < FEWEST_DAYS:
        return ProjectForecast(why="few days", num_days=len(answers))
    if not len(left.waits):
        return ProjectForecast(why="nothing finished", num_days=len(answers))
    random = generator(seed, "forecast of a project")
    rejected = random.beta(left.num_rejected + 0.5, left.num_accepted + 0.5, _NUM_DRAWS)
    weekday = (done.first_weekday + max(0, len(done.answers) - _MOST_DAYS)) % 7
    pace = _pace(answers, weekday, random)
    tail = _Tail(_wait_sampler(left), pace.mean / max(left.answers_a_round, 1.0), left.num_items)
    of_tasks = left.num_answers * left.waste
    to_come = of_tasks + left.answers_a_round * _new_rounds(left.num_items, rejected, random)
    # New rounds of the last items come after everybody else is done: they are part of the wait.
    early = max(0, left.num_items - tail.num_items)
    in_turn = of_tasks + left.answers_a_round * _new_rounds(early, rejected, random)
    last_answer = _days_until(in_turn, pace, random)
    days = last_answer + _last_waits(last_answer, tail, rejected, pace, random)
    seconds = _seconds_an_answer(np.array(done.answers), np.array(done.seconds), to_come, random)
    hours = to_come * seconds / 3600
    spent = sum(done.seconds) / 3600 if price.unit == "hour" else sum(done.answers)
    cost = price.amount * (spent + (hours if price.unit == "hour" else to_come))
    return ProjectForecast(
        days=_range(days),
        answers=_range(to_come),
        hours=_range(hours),
        cost=_range(cost) if price.amount else None,
        num_days=len(answers),
    )


class _Pace(NamedTuple):
    """Answers a day: their mean and its error, the deviation of a day, and the level of each of the next seven days.

    ``levels`` has shape (draws, 7).
    """

    mean: float
    error: float
    deviation: float
    freedom: int
    levels: Floats


def _new_rounds(num_items: int, rejected: Floats, random: np.random.Generator) -> Floats:
    """Draw the number of new rounds: a share of the items is rejected, and may be rejected again."""
    rounds, sent_back = np.zeros(_NUM_DRAWS), np.full(_NUM_DRAWS, num_items)
    for _ in range(_MOST_ROUNDS):
        sent_back = random.binomial(sent_back, rejected)
        rounds += sent_back
    return rounds


def _pace(answers: Floats, first_weekday: int, random: np.random.Generator) -> _Pace:
    number = len(answers)
    weekdays = (first_weekday + np.arange(number)) % 7
    of_weekday = [answers[weekdays == day] for day in range(7)]
    levels = np.array([1.0 if not len(values) else values.mean() / answers.mean() for values in of_weekday])
    if number < _WEEKS_FROM:
        # One or two of each weekday: only that nobody works on it can be known.
        levels = np.where(levels > 0, 1.0, 0.0)
    mean = float(answers.mean() / levels[weekdays].mean())
    worked = int((levels[weekdays] > 0).sum())
    freedom = max(1, worked - 1 - int(number >= _WEEKS_FROM) * (int((levels > 0).sum()) - 1))
    # Days of a higher level vary more, as counts do: the deviation is that of a day of level 1.
    residual = (answers - mean * levels[weekdays]) / np.sqrt(np.maximum(levels[weekdays], 0.05))
    deviation = float(np.sqrt((residual**2).sum() / freedom))
    drawn = np.tile(levels, (_NUM_DRAWS, 1))
    unseen = [day for day in _WEEKEND if not len(of_weekday[day])]
    drawn[:, unseen] *= random.random((_NUM_DRAWS, 1)) < 0.5
    following = drawn[:, (first_weekday + number + np.arange(7)) % 7]
    return _Pace(mean, deviation / np.sqrt(worked), deviation, freedom, following)


def _days_until(to_come: Floats, pace: _Pace, random: np.random.Generator) -> Floats:
    """Draw the days until the answers are given; infinity beyond the horizon."""
    # A pace of a tenth of the mean is the least: a t of few degrees of freedom would draw negative ones.
    mean = np.maximum(pace.mean + pace.error * random.standard_t(pace.freedom, _NUM_DRAWS), 0.1 * pace.mean)
    size = int(min(_HORIZON, np.ceil(1.5 * np.max(to_come / mean)) + 14))
    levels = pace.levels[:, np.arange(size) % 7]
    # The sum of deviations is a random walk whose steps have the variance of a day of that level.
    walk = np.cumsum(random.standard_normal((_NUM_DRAWS, size)) * pace.deviation * np.sqrt(levels), axis=1)
    answered = np.maximum.accumulate(mean[:, None] * np.cumsum(levels, axis=1) + walk, axis=1)
    reached = answered >= to_come[:, None]
    place = reached.argmax(axis=1)
    before = np.where(place > 0, answered[np.arange(_NUM_DRAWS), np.maximum(place - 1, 0)], 0.0)
    step = np.maximum(answered[np.arange(_NUM_DRAWS), place] - before, 1e-9)
    part = np.clip((to_come - before) / step, 0.0, 1.0)
    return np.where(reached.any(axis=1), np.where(to_come > 0, place + part, 0.0), np.inf)


class _Waits(NamedTuple):
    """Waits with their probabilities; their mean, and by how much a wait beyond the longest exceeds it on average."""

    values: Floats
    probabilities: Floats
    mean: float
    beyond: float

    def draw(self, random: np.random.Generator, size: tuple[int, int]) -> Floats:
        """Draw waits: one that was seen, or a longer one."""
        place = np.searchsorted(np.cumsum(self.probabilities), random.random(size), side="right")
        beyond = self.values[-1] + random.exponential(self.beyond, size)
        return np.where(place < len(self.values), self.values[np.minimum(place, len(self.values) - 1)], beyond)


def _wait_sampler(left: WorkLeft) -> _Waits:
    """Return the distribution of waits by Kaplan and Meier (1958): those that still last are at least as long.

    Beyond the longest wait seen it goes on exponentially, at the rate at which the longer half of the waits ended.
    """
    values, number = np.unique(np.array(left.waits, np.float64), return_counts=True)
    waiting = np.sort(np.array(left.waiting, np.float64))
    at_risk = np.cumsum(number[::-1])[::-1] + len(waiting) - np.searchsorted(waiting, values, side="left")
    surviving = np.cumprod(1 - number / at_risk)
    probabilities = np.concatenate([[1.0], surviving[:-1]]) - surviving
    mean = (sum(left.waits) + float(waiting.sum())) / len(left.waits)
    middle = values[min(np.searchsorted(1 - surviving, 0.5), len(values) - 1)]
    past = values > middle
    exposed = float((number * np.maximum(values - middle, 0)).sum() + np.maximum(waiting - middle, 0).sum())
    beyond = exposed / number[past].sum() if past.any() else mean
    return _Waits(values, np.asarray(probabilities, np.float64), mean, beyond)


class _Tail(NamedTuple):
    """The end of a project: the waits, and how many items a day come to the gate, of how many in all."""

    waits: _Waits
    items_a_day: float
    num_left: int

    @property
    def num_items(self) -> int:
        """The items whose reviews are still open when the last answer of the queue is given."""
        return int(np.clip(self.items_a_day * self.waits.mean, 1, self.num_left))


def _last_waits(last_answer: Floats, tail: _Tail, rejected: Floats, pace: _Pace, random: np.random.Generator) -> Floats:
    """Draw the days from the last answer of the queue to the end: the longest wait of the items of the last days.

    A rejected item is answered again on the next working day, and waits again.
    """
    number = int(np.clip(tail.num_left, 1, min(_WAITS_BACK * tail.num_items, _MOST_LAST_ITEMS)))
    size = (_NUM_DRAWS, number)
    gate = -np.arange(number) / max(tail.items_a_day, number / _HORIZON)
    end = gate + tail.waits.draw(random, size)
    start = np.where(np.isfinite(last_answer), last_answer, 0.0)[:, None]
    is_back = random.random(size) < rejected[:, None]
    # The days from each of the next seven days to the first one with any work, by draw.
    is_worked = np.tile(pace.levels > 0, (1, 2))
    to_work = np.stack([is_worked[:, day:].argmax(axis=1).astype(np.float64) for day in range(7)], axis=1)
    for _ in range(_MOST_ROUNDS):
        if not is_back.any():
            break
        morning = np.ceil(start + end)
        wait = np.take_along_axis(to_work, morning.astype(np.int64) % 7, axis=1)
        answered = morning + wait + random.random(size) / 2 - start
        end = np.where(is_back, np.maximum(answered, 0.0) + tail.waits.draw(random, size), end)
        is_back &= random.random(size) < rejected[:, None]
    return np.maximum(end.max(axis=1), 0.0)


def _seconds_an_answer(answers: Floats, seconds: Floats, to_come: Floats, random: np.random.Generator) -> Floats:
    """Draw the mean time of the answers to come: the ratio of the days' sums, with its error and that of new days."""
    used = answers > 0
    number, mean = int(used.sum()), float(seconds.sum() / answers.sum())
    residual = seconds[used] - mean * answers[used]
    error = np.sqrt(number / max(number - 1, 1) * (residual**2).sum()) / answers.sum()
    ahead = np.sqrt(1 + answers.sum() / np.maximum(to_come, 1.0))
    return np.maximum(mean + error * ahead * random.standard_t(max(number - 1, 1), _NUM_DRAWS), 0.0)


def _range(draws: Floats) -> ForecastRange:
    ends = [float(end) if np.isfinite(end) else None for end in np.quantile(draws, _ENDS, method="nearest")]
    return ForecastRange(low=ends[0], median=ends[1], high=ends[2])
