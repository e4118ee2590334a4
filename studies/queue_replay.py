"""Replay published judgments in the order of a queue by priority: how few of them are enough, against random order.

    python studies/queue_replay.py people.jsonl --judged models.jsonl --scores ngram/scores.jsonl

The first file has the judgments of people, which are revealed item by item; the others are what `steelyard workbench
import` takes. An item that is not revealed yet keeps the order of the committee (``filled``), or is left out of the
training of a reward model (``revealed``).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rater_replay import RESAMPLES, SHARES, SLACK, Snapshot, share_needed

from steelyard.annotation.task_priority import consensus, item_means, queue_order
from steelyard.core.numerics import Floats, Integers, generator
from steelyard.core.text import response_text
from steelyard.core.types import Case
from steelyard.io.cases import read_cases
from steelyard.plugins.models.ngram import Config, fit_ngrams
from steelyard.workbench.pipeline.queue_sources import (
    CommitteeMember,
    ComparedPair,
    key_of,
    read_committee,
    verdict_counts,
)

APP = typer.Typer(help=__doc__, add_completion=False)
TEST_SHARE = 0.3
DIGITS = 6
"""Digits of a committee's sum within which it has no order."""
SHOWN = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
ORDERS = {"random order": (1.0, 0.0), "by priority, 20% by chance": (0.2, 0.0), "by priority alone": (0.0, 0.0),
          "10% by chance, then fitted to them": (0.0, 0.1)}  # fmt: skip
"""By name: the share by chance, and the share of items whose judgments give scores and verdicts their scale."""


Committee = Sequence[CommitteeMember]
Courses = list[tuple[list[Snapshot], Integers]]
"""For each seed the figures of some items at each share of the judgments, and these items."""


class Replay(NamedTuple):
    """Items with the pairs that people compared; ``first`` and ``second`` are positions of responses in ``texts``.

    ``human`` (pair, judge): 1 where a person found the first response better, -1 the second, 0 a tie, NaN not asked.
    ``answers`` (item,): the judgments by people that an item costs, one for each person.
    """

    texts: Sequence[str]
    pairs: Sequence[ComparedPair]
    item: Integers
    first: Integers
    second: Integers
    human: Floats
    answers: Integers

    def signs(self, judges: Floats | None = None) -> Floats:
        """Return the sign of the sum over people, (pair,); ``judges`` (item, judge) has 0 for people left out."""
        human = np.nan_to_num(self.human)
        return np.sign(human.sum(axis=1) if judges is None else (human * judges[self.item]).sum(axis=1))

    def taus(self, signs: Floats, reference: Floats) -> Floats:
        """Return Kendall's tau-b of each item's pairs with the reference, 1 where both order nothing."""
        size = len(self.answers)
        products, own, other = (
            np.bincount(self.item, weights=values, minlength=size)
            for values in (signs * reference, signs**2, reference**2)
        )
        scale = np.sqrt(own * other)
        return np.where((own == 0) & (other == 0), 1.0, products / np.where(scale > 0, scale, 1.0))


def replay_of(cases: Sequence[Case]) -> Replay:
    """Return the judgments of people as arrays."""
    texts: list[str] = []
    rows: list[tuple[ComparedPair, int, int, int]] = []
    votes: list[dict[str, float]] = []
    for number, case in enumerate(cases):
        position = {response.id: len(texts) + place for place, response in enumerate(case.responses)}
        texts += [response_text(response) for response in case.responses]
        by_judge = {judge: [each for each in case.judgments if each.judge == judge] for judge in judges_of(case)}
        for two in combinations(sorted(position), 2):
            pair = ComparedPair(key_of(case), *two)
            counts = {judge: verdict_counts(of_judge, pair) for judge, of_judge in by_judge.items()}
            said = {
                judge: float(np.sign(won - lost)) for judge, (won, lost, tied) in counts.items() if won + lost + tied
            }
            if said:
                rows.append((pair, number, position[two[0]], position[two[1]]))
                votes.append(said)
    width = max(len(judges_of(case)) for case in cases)
    human = np.full((len(rows), width), np.nan)
    for place, ((_, number, _, _), said) in enumerate(zip(rows, votes, strict=True)):
        for column, judge in enumerate(judges_of(cases[number])):
            human[place, column] = said.get(judge, np.nan)
    pairs, item, first, second = zip(*rows, strict=True)
    answers = np.array([len(judges_of(case)) for case in cases])
    return Replay(texts, pairs, np.array(item), np.array(first), np.array(second), human, answers)


def judges_of(case: Case) -> list[str]:
    """Return the people of a case."""
    return sorted({each.judge for each in case.judgments if each.kind == "human"})


class Course(NamedTuple):
    """The items in the order of a queue, their priorities, and the sign of the committee on each pair."""

    order: Integers
    committee: Floats


def course_of(replay: Replay, committee: Committee, order: tuple[float, float], among: Integers, seed: int) -> Course:
    """Order the items ``among`` all: by chance, by priority, or by priority after labels of some have given scales."""
    random_share, fitted_share = order
    draw = generator(seed, "queue").random(len(replay.answers))
    begun = among[np.argsort(draw[among])][: round(fitted_share * len(among))]
    label = np.where(np.isin(replay.item, begun), replay.signs(), np.nan)
    probability = np.stack([member.probabilities(replay.pairs, label).probability for member in committee])
    priority = item_means(consensus(probability).priority, replay.item, len(replay.answers))
    rest = np.setdiff1d(among, begun)
    queue = queue_order(priority[rest], draw[rest], random_share=random_share)
    said = np.isfinite(probability)
    total = np.where(said, probability - 0.5, 0.0).sum(axis=0)
    return Course(np.concatenate([begun, rest[queue.items]]), np.sign(np.round(total, DIGITS)))


def revealed_at(replay: Replay, order: Integers, share: float) -> Integers:
    """Return the first items of an order that together cost a share of the judgments."""
    cost = np.cumsum(replay.answers[order])
    return order[: int(np.searchsorted(cost, share * cost[-1] + 1e-9, side="right"))]


def tau_courses(
    replay: Replay, committee: Committee, order: tuple[float, float], *, is_held_out: bool, seeds: int
) -> Courses:
    """Return for each seed the taus at each share, of revealed items by people and of others by the committee."""
    courses = []
    everything = np.arange(len(replay.answers))
    for seed in range(seeds):
        judges = np.ones((len(replay.answers), replay.human.shape[1]))
        reference = replay.signs()
        if is_held_out:
            person = generator(seed, "held out").integers(replay.answers)
            judges[everything, person] = 0
            reference = replay.signs(1 - judges)
        course = course_of(replay, committee, order, everything, seed)
        by_people = replay.signs(judges)
        snapshots = []
        for share in (0.0, *SHARES):
            is_revealed = np.isin(replay.item, revealed_at(replay, course.order, share))
            snapshots.append(
                Snapshot(share, replay.taus(np.where(is_revealed, by_people, course.committee), reference))
            )
        courses.append((snapshots, everything))
    return courses


def accuracy_courses(
    replay: Replay, committee: Committee, order: tuple[float, float], *, is_filled: bool, seeds: int
) -> Courses:
    """Return for each seed the accuracy on each test item of n-grams trained on what is revealed at each share."""
    courses = []
    signs = replay.signs()
    for seed in range(seeds):
        items = generator(seed, "split").permutation(len(replay.answers))
        test, pool = np.sort(items[: round(TEST_SHARE * len(items))]), np.sort(items[round(TEST_SHARE * len(items)) :])
        course = course_of(replay, committee, order, pool, seed)
        is_test = np.isin(replay.item, test) & (signs != 0)
        tested = np.intersect1d(test, replay.item[is_test])
        snapshots = []
        for share in SHARES:
            is_revealed = np.isin(replay.item, revealed_at(replay, course.order, share))
            others = course.committee if is_filled else np.zeros(len(signs))
            wanted = np.where(is_revealed, signs, np.where(np.isin(replay.item, pool), others, 0.0))
            right = accuracy(replay, wanted, signs, is_test)
            snapshots.append(Snapshot(share, item_means(right, replay.item[is_test], len(replay.answers))[tested]))
        courses.append((snapshots, tested))
    return courses


def accuracy(replay: Replay, wanted: Floats, signs: Floats, is_test: np.ndarray) -> Floats:
    """Return for each test pair whether n-grams trained on the wanted order of the others are right, 0.5 for a tie."""
    used = np.flatnonzero(wanted)
    better = np.where(wanted[used] > 0, replay.first[used], replay.second[used])
    worse = np.where(wanted[used] > 0, replay.second[used], replay.first[used])
    # Texts that are learned from alone: others would change the features.
    known = np.unique(np.concatenate([better, worse]))
    texts = [replay.texts[int(each)] for each in known]
    fitted = fit_ngrams(
        texts,
        np.searchsorted(known, better).tolist(),
        np.searchsorted(known, worse).tolist(),
        [1.0] * len(used),
        Config(),
    )
    assert fitted is not None
    scores = np.zeros(len(replay.texts))
    needed = np.unique(np.concatenate([replay.first[is_test], replay.second[is_test]]))
    scores[needed] = fitted.score([replay.texts[int(each)] for each in needed])
    margin = scores[replay.first[is_test]] - scores[replay.second[is_test]]
    return (1 + np.sign(margin) * signs[is_test]) / 2


def needed(courses: Courses, num_items: int) -> tuple[float, float, float]:
    """Return the mean share over the seeds from which on it stays within `SLACK` of the last mean, and its interval."""

    def mean_share(weight: Floats) -> float:
        shares = []
        for snapshots, items in courses:
            target = float(np.average(snapshots[-1].taus, weights=weight[items])) - SLACK
            shares.append(share_needed(snapshots, target, weight[items]))
        return float(np.mean(shares))

    return resampled(mean_share, num_items)


def gain_at_half(courses: Courses, random: Courses, num_items: int) -> tuple[float, float, float]:
    """Return by how much half of the judgments in an order give more than half in random order, with its interval."""

    def mean_gain(weight: Floats) -> float:
        gains = []
        for (snapshots, items), (others, _) in zip(courses, random, strict=True):
            levels = [next(each.taus for each in of if each.share == 0.5) for of in (snapshots, others)]
            gains.append(np.average(levels[0] - levels[1], weights=weight[items]))
        return float(np.mean(gains))

    return resampled(mean_gain, num_items)


def resampled(figure: Callable[[Floats], float], num_items: int) -> tuple[float, float, float]:
    """Return a figure of weighted items with its 95 % bootstrap interval over items, the same ones for all seeds."""
    rng = generator(0, "items")
    drawn = [
        figure(np.bincount(rng.integers(num_items, size=num_items), minlength=num_items).astype(np.float64))
        for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return figure(np.ones(num_items)), float(low), float(high)


def report(name: str, found: Mapping[str, Courses], num_items: int) -> None:
    """Print the shares needed in each order, the gain over random order at half, and the means at some shares."""
    print(f"\n{name}", flush=True)
    for label, courses in found.items():
        value, low, high = needed(courses, num_items)
        gain = "{:+.3f} [{:+.3f}, {:+.3f}]".format(*gain_at_half(courses, found["random order"], num_items))
        print(f"  {label}: {value:.1%} [{low:.1%}, {high:.1%}]; at half {gain}", flush=True)
        shares = [each.share for each in courses[0][0]]
        levels = np.mean([[each.taus.mean() for each in snapshots] for snapshots, _ in courses], axis=0)
        shown = [f"{share:.0%} {level:.3f}" for share, level in zip(shares, levels, strict=True) if share in SHOWN]
        print(f"    {' '.join(shown)}", flush=True)


@APP.command()
def replay(
    path: Path,
    scores: Annotated[list[Path] | None, typer.Option(help="Scores of a model; may be repeated.")] = None,
    judged: Annotated[list[Path] | None, typer.Option(help="Cases with verdicts of models; may be repeated.")] = None,
    seeds: int = 5,
) -> None:
    """Print the shares of people's judgments needed for the ranking, and for a reward model trained on them."""
    cases = [case for case in read_cases(path) if judges_of(case)]
    made = replay_of(cases)
    committee = read_committee(scores or [], judged or [], {key_of(case): case for case in cases}, is_complete=False)
    print(
        f"{made.answers.sum():,} answers about {len(cases):,} items; {', '.join(member.name for member in committee)}"
    )
    for name, held_out in (("tau, the consensus of all", False), ("tau, a person held out", True)):
        if not held_out or made.answers.min() > 1:
            found = {
                label: tau_courses(made, committee, order, is_held_out=held_out, seeds=seeds)
                for label, order in ORDERS.items()
            }
            report(name, found, len(cases))
    for name, is_filled in (("accuracy, revealed alone", False), ("accuracy, filled by the committee", True)):
        found = {
            label: accuracy_courses(made, committee, order, is_filled=is_filled, seeds=seeds)
            for label, order in ORDERS.items()
        }
        report(name, found, len(cases))


if __name__ == "__main__":
    APP()
