"""How often the forecast of an annotation project, made half-way, covers its true end: many simulated projects.

Run: python studies/simulated_progress.py --projects 1000

Each project has people who work on some days with a pace of their own, weekends off or not, items that are rejected at
a rate of their own, and waits for review. With stopping, a task asks two people at first, and a third where its order
is not sure; a tenth of the items asks three. How often it is not sure, each project and item has of its own.
Nothing here is measured on people.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.annotation.progress import FurtherPeople, ProjectForecast, WorkDone, WorkLeft, WorkPrice, forecast

ANSWERS_A_ROUND = 10
TASKS = 5
CALIBRATION = 0.1
MINUTE_PRICE = WorkPrice(20.0, "hour")


@dataclass
class SimulatedProject:
    """The days of a project: answers and seconds, and for each day what was left at its end."""

    answers: list[float]
    seconds: list[float]
    left: list[WorkLeft]
    end: float
    """Days from the start until the last item was finished."""


@dataclass
class Item:
    """An item in its round: the answers that it asks for now, and those that it may ask for once these are given."""

    needed: int
    possible: int
    unsure: float
    answers: int = 0


@dataclass
class Decisions:
    """What has happened to rounds so far."""

    accepted: int = 0
    rejected: int = 0
    gates: int = 0
    answers: int = 0
    asked: int = 0
    saved: int = 0


def simulate(
    seed: int, *, num_items: int = 300, num_people: int = 12, has_weekends: bool = True, is_stopping: bool = False
) -> SimulatedProject:
    """Let people work on the items until all are finished. Items are answered in the order of their queue."""
    random = np.random.default_rng(seed)
    paces = random.gamma(8, 40 / 8, num_people)
    presence = random.uniform(0.6, 1.0, num_people)
    rejection, wait = random.uniform(0.02, 0.15), random.uniform(0.5, 3.0)
    time = random.uniform(30, 90)
    queue = _items(num_items, np.random.default_rng([seed, 1]), is_stopping=is_stopping)
    luck = np.random.default_rng([seed, 2])
    due: list[tuple[float, float, Item]] = []
    waits: list[tuple[float, float]] = []
    made = Decisions()
    project = SimulatedProject([], [], [], 0.0)
    day = 0
    while queue or due:
        works = not has_weekends or day % 7 < 5
        capacity = sum(random.poisson(paces[random.random(num_people) < presence])) if works else 0
        given, at = 0, float(day)
        while queue and given < capacity:
            item = queue.pop(0)
            taken = min(item.needed, capacity - given)
            given, item.needed, item.answers = given + taken, item.needed - taken, item.answers + taken
            if not item.needed and item.possible:
                _decide(item, made, luck)
            if item.needed:
                queue.insert(0, item)
            else:
                at = day + given / capacity
                made.gates, made.answers = made.gates + 1, made.answers + item.answers
                due.append((at + random.gamma(2, wait / 2), at, item))
        project.answers.append(given)
        project.seconds.append(given * time * random.uniform(0.9, 1.1))
        day += 1
        finishing = [each for each in due if each[0] <= day]
        due = [each for each in due if each[0] > day]
        for end, gate, item in sorted(finishing, key=lambda each: each[:2]):
            if random.random() < rejection:
                made.rejected += 1
                queue.append(_again(item, is_stopping=is_stopping))
            else:
                made.accepted += 1
                waits.append((end, gate))
                project.end = end
        waiting = [day - gate for _, gate, _ in due]
        project.left.append(_left(queue, len(queue) + len(due), made, waits, waiting, is_stopping=is_stopping))
    return project


def _items(number: int, random: np.random.Generator, *, is_stopping: bool) -> list[Item]:
    """Return the items of a project. How often their tasks are unsure varies around a share of the project's own."""
    if not is_stopping:
        return [Item(ANSWERS_A_ROUND, 0, 0.0) for _ in range(number)]
    share = random.uniform(0.1, 0.9)
    unsure = random.beta(2 * share, 2 * (1 - share), number)
    is_calibration = random.random(number) < CALIBRATION
    return [
        Item(ANSWERS_A_ROUND + TASKS, 0, 0.0) if is_all else Item(ANSWERS_A_ROUND, TASKS, float(each))
        for each, is_all in zip(unsure, is_calibration, strict=True)
    ]


def _decide(item: Item, made: Decisions, random: np.random.Generator) -> None:
    """Ask one more person about the tasks of a complete item that are not sure."""
    item.needed, item.possible = int(random.binomial(item.possible, item.unsure)), 0
    made.asked += item.needed
    made.saved += TASKS - item.needed


def _again(item: Item, *, is_stopping: bool) -> Item:
    is_all = is_stopping and not item.unsure
    needed = ANSWERS_A_ROUND + (TASKS if is_all else 0)
    return Item(needed, TASKS if is_stopping and not is_all else 0, item.unsure)


def _left(
    queue: Sequence[Item],
    num_items: int,
    made: Decisions,
    waits: Sequence[tuple[float, float]],
    waiting: Sequence[float],
    *,
    is_stopping: bool,
) -> WorkLeft:
    # A task that asks two people may ask a third; what was decided is among the answers that are asked for.
    further = FurtherPeople({2: sum(item.possible for item in queue)}, {2: made.saved, 3: made.asked}, 3)
    return WorkLeft(
        num_answers=sum(item.needed for item in queue),
        num_items=num_items,
        answers_a_round=made.answers / made.gates if made.gates else ANSWERS_A_ROUND,
        waste=1.0,
        num_accepted=made.accepted,
        num_rejected=made.rejected,
        waits=[end - gate for end, gate in waits[-1000:]],
        waiting=waiting,
        further=further if is_stopping else None,
    )


def forecast_half_way(project: SimulatedProject, *, seed: int) -> tuple[ProjectForecast, int]:
    """Return the forecast at the end of the day on which half of all answers were given, and that day's number."""
    total = np.cumsum(project.answers)
    half = int(np.argmax(total >= total[-1] / 2)) + 1
    done = WorkDone(project.answers[:half], project.seconds[:half])
    return forecast(done, project.left[half - 1], MINUTE_PRICE, seed=seed), half


def coverage(
    seeds: Iterable[int],
    *,
    num_items: int,
    num_people: int,
    has_weekends: bool,
    is_stopping: bool = False,
    is_further_known: bool = True,
) -> tuple[int, float, float, float, float]:
    """Return how often the intervals of end and cost cover the truth, and the mean width of the end's in days.

    ``is_further_known``: whether the forecast counts what tasks ask for once they are found unsure.
    """
    ends, costs, widths, lengths = [], [], [], []
    for seed in seeds:
        sizes = {"num_items": num_items, "num_people": num_people}
        project = simulate(seed, **sizes, has_weekends=has_weekends, is_stopping=is_stopping)
        if not is_further_known:
            project.left = [left._replace(further=None) for left in project.left]
        made, half = forecast_half_way(project, seed=seed)
        if made.days is None or made.days.low is None or made.days.high is None or made.cost is None:
            continue
        ends.append(made.days.low <= project.end - half <= made.days.high)
        true_cost = MINUTE_PRICE.amount * sum(project.seconds) / 3600
        costs.append(made.cost.low <= true_cost <= made.cost.high)
        widths.append(made.days.high - made.days.low)
        lengths.append(project.end)
    end, cost, width, length = (float(np.mean(values)) for values in (ends, costs, widths, lengths))
    return len(ends), end, cost, width, length


def main() -> None:
    """Print the coverage for projects of two sizes, with and without weekends, and with and without stopping."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--projects", type=int, default=1000)
    number = parser.parse_args().projects
    print("items people weekends stopping |    n  end covered  cost covered  width (days)  length (days)")
    for num_items, num_people in ((300, 12), (1000, 12)):
        for has_weekends in (True, False):
            for stopping in ("off", "counted", "ignored"):
                made = coverage(
                    range(number),
                    num_items=num_items,
                    num_people=num_people,
                    has_weekends=has_weekends,
                    is_stopping=stopping != "off",
                    is_further_known=stopping == "counted",
                )
                n, end, cost, width, length = made
                sizes = f"{num_items:5d} {num_people:6d} {has_weekends!s:>8} {stopping:>8}"
                print(f"{sizes} | {n:4d} {end:12.1%} {cost:13.1%} {width:13.1f} {length:14.1f}", flush=True)


if __name__ == "__main__":
    main()
