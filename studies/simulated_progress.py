"""How often the forecast of an annotation project, made half-way, covers its true end: many simulated projects.

Run: python studies/simulated_progress.py --projects 1000

Each project has people who work on some days with a pace of their own, weekends off or not, items that are rejected at
a rate of their own, and waits for review. Nothing here is measured on people.
"""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from steelyard.annotation.progress import ProjectForecast, WorkDone, WorkLeft, WorkPrice, forecast

ANSWERS_A_ROUND = 10
MINUTE_PRICE = WorkPrice(20.0, "hour")


@dataclass
class SimulatedProject:
    """The days of a project: answers and seconds, and for each day what was left at its end."""

    answers: list[float]
    seconds: list[float]
    left: list[WorkLeft]
    end: float
    """Days from the start until the last item was finished."""


def simulate(seed: int, *, num_items: int = 300, num_people: int = 12, has_weekends: bool = True) -> SimulatedProject:
    """Let people work on the items until all are finished. Items are answered in the order of their queue."""
    random = np.random.default_rng(seed)
    paces = random.gamma(8, 40 / 8, num_people)
    presence = random.uniform(0.6, 1.0, num_people)
    rejection, wait = random.uniform(0.02, 0.15), random.uniform(0.5, 3.0)
    time = random.uniform(30, 90)
    queue = [(ANSWERS_A_ROUND, 1)] * num_items
    due, decided, waits = [], [], []
    project = SimulatedProject([], [], [], 0.0)
    day = 0
    while queue or due:
        works = not has_weekends or day % 7 < 5
        capacity = sum(random.poisson(paces[random.random(num_people) < presence])) if works else 0
        given, at = 0, float(day)
        while queue and given < capacity:
            needed, number = queue.pop(0)
            taken = min(needed, capacity - given)
            given += taken
            if taken < needed:
                queue.insert(0, (needed - taken, number))
            else:
                at = day + given / capacity
                due.append((at + random.gamma(2, wait / 2), at, number))
        project.answers.append(given)
        project.seconds.append(given * time * random.uniform(0.9, 1.1))
        day += 1
        finishing = [each for each in due if each[0] <= day]
        due = [each for each in due if each[0] > day]
        for end, gate, number in sorted(finishing):
            if random.random() < rejection:
                decided.append(True)
                queue.append((ANSWERS_A_ROUND, number + 1))
            else:
                decided.append(False)
                waits.append((end, gate))
                project.end = end
        open_answers = sum(needed for needed, _ in queue)
        project.left.append(
            WorkLeft(
                num_answers=open_answers,
                num_items=len(queue) + len(due),
                answers_a_round=ANSWERS_A_ROUND,
                waste=1.0,
                num_accepted=decided.count(False),
                num_rejected=decided.count(True),
                waits=[end - gate for end, gate in waits[-1000:]],
                waiting=[day - gate for _, gate, _ in due],
            )
        )
    return project


def forecast_half_way(project: SimulatedProject, *, seed: int) -> tuple[ProjectForecast, int]:
    """Return the forecast at the end of the day on which half of all answers were given, and that day's number."""
    total = np.cumsum(project.answers)
    half = int(np.argmax(total >= total[-1] / 2)) + 1
    done = WorkDone(project.answers[:half], project.seconds[:half])
    return forecast(done, project.left[half - 1], MINUTE_PRICE, seed=seed), half


def coverage(
    seeds: Iterable[int], *, num_items: int, num_people: int, has_weekends: bool
) -> tuple[int, float, float, float, float]:
    """Return how often the intervals of end and cost cover the truth, and the mean width of the end's in days."""
    ends, costs, widths, lengths = [], [], [], []
    for seed in seeds:
        project = simulate(seed, num_items=num_items, num_people=num_people, has_weekends=has_weekends)
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
    """Print the coverage for projects of four sizes, with and without weekends."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--projects", type=int, default=1000)
    number = parser.parse_args().projects
    print("items people weekends |    n  end covered  cost covered  width (days)  length (days)")
    for num_items, num_people in ((300, 12), (1000, 12), (3000, 29), (600, 4)):
        for has_weekends in (True, False):
            made = coverage(range(number), num_items=num_items, num_people=num_people, has_weekends=has_weekends)
            n, end, cost, width, length = made
            sizes = f"{num_items:5d} {num_people:6d} {has_weekends!s:>8}"
            print(f"{sizes} | {n:4d} {end:12.1%} {cost:13.1%} {width:13.1f} {length:14.1f}")


if __name__ == "__main__":
    main()
