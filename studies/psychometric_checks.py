"""How often what the pages of a workbench say of people and items is right, in simulated projects.

    python studies/psychometric_checks.py

Raters and answers are drawn from the model (`plackett_luce`), seconds and ties of honest people as people differ. Every
figure comes from the functions that the pages call.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
import typer

from steelyard.annotation.annotator_metrics import FALSE_ALARMS, AgreementOverTime, behaviour_flags, drifts
from steelyard.annotation.answer_counts import SCORES
from steelyard.annotation.excess_disagreement import disagreement_of
from steelyard.annotation.plackett_luce import (
    Choices,
    RankingAnswer,
    Raters,
    alternatives,
    draw_choices,
    first_choices,
)
from steelyard.annotation.rater_reliability import accuracy_of, fit_panel, reliability_of, ties_of
from steelyard.core.numerics import Booleans, Floats, generator
from steelyard.statistics.change_points import change_point
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.linearised import mean_of_sums

APP = typer.Typer(help=__doc__, add_completion=False)
FLAGS = ("fast", "ties", "first shown")
LEVEL = 0.05
"""The p-value from which the page counts an item as hard."""


PAIR = ((0, 1),)
TRIPLE = ((0, 1, 2),)
TRIPLES = ((0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1))
"""The tasks of an item: one pair, one triple, or five triples of five responses."""


class Team(NamedTuple):
    """A team of raters by discrimination, who all do the tasks of each item, and how many items its projects have."""

    name: str
    discrimination: tuple[float, ...]
    tie: float
    num_items: int
    tasks: tuple[tuple[int, ...], ...] = PAIR


TEAMS = (
    Team("two people", (1.4, 2.2), -1.0, 100),
    Team("two people, one of them nearly perfect", (1.2, 6.0), -1.0, 100),
    Team("three people", (1.2, 1.8, 2.4), -1.0, 100),
    Team("three people, many ties", (1.2, 1.8, 2.4), 0.5, 100),
    Team("three people, one of them a spammer", (0.0, 1.5, 2.5), -1.0, 100),
    Team("three people", (1.2, 1.8, 2.4), -1.0, 10),
    Team("three people", (1.2, 1.8, 2.4), -1.0, 15),
    Team("three people", (1.2, 1.8, 2.4), -1.0, 30),
    Team("three people", (1.2, 1.8, 2.4), -1.0, 400),
    Team("three people, triples", (1.2, 1.8, 2.4), -1.0, 40, TRIPLE),
    Team("five people", (1.0, 1.4, 1.8, 2.2, 2.6), -1.0, 100),
    Team("five people, one of them a spammer", (0.0, 1.4, 1.8, 2.2, 2.6), -1.0, 100),
    Team("five people, one of them nearly perfect", (1.0, 1.4, 1.8, 2.2, 6.0), -1.0, 100),
    Team("five people, one of them nearly perfect", (1.0, 1.4, 1.8, 2.2, 6.0), -1.0, 20),
    Team("five people, one of them nearly perfect, triples", (1.0, 1.4, 1.8, 2.2, 6.0), -1.0, 60, TRIPLE),
)


def answers_of(
    team: Team, rng: np.random.Generator, tasks: Sequence[tuple[int, ...]] = PAIR, divided: Floats | None = None
) -> list[list[RankingAnswer]]:
    """Draw everybody's answers to the tasks of each item, item by item.

    About ``divided`` items, (item,), each person sees an order of their own.
    """
    number, people, width = team.num_items, len(team.discrimination), max(map(max, tasks)) + 1
    # In the drawing everybody's view of an item is an item of its own.
    strength = np.repeat(rng.standard_normal((number, width)), people, axis=0)
    if divided is not None:
        alone = rng.standard_normal(strength.shape)
        strength = np.where(np.repeat(divided, people)[:, None] > 0, alone, strength)
    shown = [
        RankingAnswer(view, view % people, tuple((place,) for place in task))
        for view in range(number * people)
        for task in tasks
    ]
    numbered = [each._replace(item=place) for place, each in enumerate(shown)]
    raters = Raters(np.array(team.discrimination), np.full(people, team.tie))
    views = np.repeat(strength, len(tasks), axis=0)
    made: list[list[RankingAnswer]] = [[] for _ in range(number)]
    for place, tiers in enumerate(_drawn_tiers(first_choices(numbered), views, raters, rng)):
        item, rater = divmod(shown[place].item, people)
        made[item].append(RankingAnswer(item, rater, tiers))
    return made


def _drawn_tiers(
    firsts: Sequence[Choices], strength: Floats, raters: Raters, rng: np.random.Generator
) -> list[list[list[int]]]:
    """Return the tiers that were drawn for each answer: what was taken in turn, and what was left alone at last."""
    tiers: list[list[list[int]]] = [[] for _ in range(len(strength))]
    for block in draw_choices(firsts, strength, raters, rng):
        taken = alternatives(block.places.shape[1]).share[block.chosen] > 0
        for answer, places, mine in zip(block.item.tolist(), block.places, taken, strict=True):
            tiers[answer].append(places[mine].tolist())
            if (~mine).sum() == 1:
                tiers[answer].append(places[~mine].tolist())
    return tiers


@APP.command()
def reliability(projects: int = 2000, processes: int = 1, only: str = "") -> None:
    """Print how often the intervals of accuracy and ties contain them, for each rater of each team.

    Beside the interval of the page, the normal one of the fit, in which the best are drawn toward the others. ``only``:
    teams whose name has this.
    """
    print("| team | items | true accuracy | accuracy covered (below, above) | width | error | normal | ties |")
    print("|---|--:|--:|---|--:|--:|--:|--:|")
    for team in (each for each in TEAMS if only in each.name):
        raters = Raters(np.array(team.discrimination), np.full(len(team.discrimination), team.tie))
        truth = np.stack([accuracy_of(raters.discrimination), accuracy_of(raters.discrimination), ties_of(raters)], -1)
        with ProcessPoolExecutor(processes) as pool:
            found = np.array(list(pool.map(_found_raters, [team] * projects, range(projects), chunksize=4)))
        below, above = truth > found[..., 2], truth < found[..., 1]
        covered = 1 - (below | above).mean(axis=0)
        error = np.sqrt(((found[..., 0] - truth) ** 2).mean(axis=0))
        for place, (accuracy, *_) in enumerate(truth):
            print(
                f"| {team.name} | {team.num_items} | {accuracy:.0%} | {covered[place, 0]:.1%} "
                f"({below[:, place, 0].mean():.1%}, {above[:, place, 0].mean():.1%}) "
                f"| {(found[:, place, 0, 2] - found[:, place, 0, 1]).mean():.2f} | {error[place, 0]:.3f} "
                f"| {covered[place, 1]:.1%} | {covered[place, 2]:.1%} |",
                flush=True,
            )


def _found_raters(team: Team, seed: int) -> Floats:
    """Return value and ends of a project's raters, (rater, 3, 3): accuracy, its normal interval, and ties."""
    drawn = answers_of(team, generator(seed, "reliability", team.name), team.tasks)
    answers = [each for of_item in drawn for each in of_item]
    names = [str(place) for place in range(len(team.discrimination))]
    panel = fit_panel(answers, names, num_items=team.num_items, width=max(map(max, team.tasks)) + 1)
    rows = []
    for rater in panel.raters.values():
        found = reliability_of(rater)
        reach = 1.96 * rater.discrimination_error
        normal = accuracy_of(rater.discrimination + np.array([0.0, -reach, reach]))
        rows.append([[each.value, each.low, each.high] for each in (found.accuracy, found.ties)])
        rows[-1].insert(1, normal.tolist())
    return np.array(rows, np.float64)


def contains(interval: Estimate, truth: float) -> bool:
    """Tell whether an interval contains a number."""
    if interval.low is None or interval.high is None:
        return False
    return interval.low <= truth <= interval.high


@APP.command()
def hard_items(projects: int = 10) -> None:
    """Print precision and recall of hard items: of 200 items a tenth is read in a way of their own by everybody."""
    for people in (2, 3, 5):
        team = Team("", tuple(np.linspace(1.5, 3.0, people).tolist()), -1.0, 200)
        found = [_found_items(team, generator(seed, "hard items", people)) for seed in range(projects)]
        is_divided, p = (np.concatenate(column) for column in list(zip(*found, strict=True))[:2])
        worst = np.concatenate([np.argsort(np.argsort(-excess, kind="stable")) < 20 for _, _, excess in found])
        is_low = p <= LEVEL
        print(
            f"{people} people: p <= {LEVEL}: precision {is_divided[is_low].mean():.1%}, recall "
            f"{is_low[is_divided].mean():.1%}, of sound items {is_low[~is_divided].mean():.1%}; the worst 20 of 200: "
            f"precision {is_divided[worst].mean():.1%}, recall {worst[is_divided].mean():.1%}",
            flush=True,
        )


def _found_items(team: Team, rng: np.random.Generator) -> tuple[Booleans, Floats, Floats]:
    """Return for each item whether it is divided, the p-value and the excess of its disagreement, all (item,)."""
    divided = rng.permutation(team.num_items) < team.num_items // 10
    raters = Raters(np.array(team.discrimination), np.full(len(team.discrimination), team.tie))
    rows = []
    for item, answers in enumerate(answers_of(team, rng, TRIPLES, divided.astype(np.float64))):
        found = disagreement_of(answers, raters, seed=item)
        assert found is not None, "several people ranked every pair"
        rows.append((found.p, found.excess))
    p, excess = np.array(rows).T
    return divided, p, excess


@APP.command()
def gold(people: int = 4000) -> None:
    """Print how often the interval of gold accuracy contains it, one value for each answer: right or wrong."""
    rng = generator(0, "gold")
    for number in (10, 20, 50, 100, 400):
        shares = []
        for truth in (0.6, 0.8, 0.9, 0.95, 0.99):
            right = rng.binomial(number, truth, people)
            found = {each: mean_of_sums(number, each, each, low=0.0, high=1.0) for each in np.unique(right).tolist()}
            shares.append(f"{truth}: {np.mean([contains(found[each], truth) for each in right.tolist()]):.1%}")
        print(f"{number} gold answers: {', '.join(shares)}", flush=True)


@APP.command()
def drift(people: int = 1000) -> None:
    """Print how many of 100 steady people are ever marked when the page is read every day, and who changes is found."""
    for days, a_day, truth in ((30, 3, 0.8), (60, 5, 0.6), (60, 5, 0.8), (60, 5, 0.95), (250, 5, 0.8)):
        right = (generator(0, "steady", days, str(truth)).random((people, days * a_day)) < truth).astype(float)
        looked, daily = (marked(right, a_day, each) for each in (is_marked, is_marked_by_one_test))
        print(f"steady {truth}, {days} days of {a_day}: {looked:.1%}; one test every day: {daily:.1%}", flush=True)
    for later in (0.75, 0.6, 0.4):
        rng = generator(0, "changed", str(later))
        right = (rng.random((people, 300)) < np.where(np.arange(300) < 100, 0.9, later)).astype(float)
        print(f"0.9 to {later} after 100 of 300: found {marked(right, 5, is_marked):.1%}", flush=True)


def marked(right: Floats, a_day: int, test: Callable[[Floats], bool]) -> float:
    """Return the share of people, (person, answer), whom a test marks on any day."""
    days = range(a_day, right.shape[1] + 1, a_day)
    return float(np.mean([any(test(answers[:number]) for number in days) for answers in right]))


def is_marked(answers: Floats) -> bool:
    """Tell whether the page marks somebody with these answers."""
    return any(each.is_real for each in drifts({0: AgreementOverTime(answers.tolist())}).values())


def is_marked_by_one_test(answers: Floats) -> bool:
    """Tell whether the same test of the latest 400 answers would, without a correction for looks."""
    change = change_point(answers[-400:], np.arange(len(answers[-400:])))
    return change is not None and change.p < FALSE_ALARMS


@APP.command()
def behaviour(teams: int = 1000) -> None:
    """Print the share of teams of honest people in which anybody is marked with a flag, at the end and ever."""
    for size in (6, 12, 30):
        once, ever = np.zeros((teams, 3)), np.zeros((teams, 3))
        for seed in range(teams):
            for flags in honest_days(size, generator(seed, "behaviour", size)):
                once[seed] = flags
                ever[seed] = np.maximum(ever[seed], flags)
        shown = (
            f"{name} {at_end:.1%} at the end, {on_any:.1%} on any of 30 days"
            for name, at_end, on_any in zip(FLAGS, once.mean(axis=0), ever.mean(axis=0), strict=True)
        )
        print(f"{size} people: {'; '.join(shown)}", flush=True)


def honest_days(size: int, rng: np.random.Generator) -> list[list[bool]]:
    """Return for each of 30 days whether anybody has each of the flags: 20 answers a day, one pair each.

    The best response was shown first in a third of the answers, as by chance in triples. People differ in pace by a
    fifth, and call 10 to 20% of the pairs equal.
    """
    pace, ties = rng.normal(0.0, 0.2, size), rng.uniform(0.1, 0.2, size)
    names = (
        "num_answers",
        "sum_length",
        "sum_time",
        "sum_length_squared",
        "sum_length_time",
        "num_pairs",
        "num_tied",
        "num_best",
        "num_first_best",
        "first_chance",
    )
    sums = {person: dict.fromkeys((*names, *SCORES), 0.0) for person in range(size)}
    days = []
    for _ in range(30):
        for person, mine in sums.items():
            length = np.log(rng.integers(200, 5000, 20))
            time = 3.0 + pace[person] + length / 2 + rng.normal(0.0, 0.5, 20)
            parts = (20, length.sum(), time.sum(), (length**2).sum(), (length * time).sum(), 20)
            counts = (rng.binomial(20, ties[person]), 20, rng.binomial(20, 1 / 3), 20 / 3)
            for name, part in zip(names, (*parts, *counts), strict=True):
                mine[name] += float(part)
        raised = [flag for flags in behaviour_flags(sums).values() for flag in flags if flag.is_raised]
        days.append([any(flag.question == name for flag in raised) for name in FLAGS])
    return days


if __name__ == "__main__":
    APP()
