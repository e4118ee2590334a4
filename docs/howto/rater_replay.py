"""Replay published judgments: how few of them give nearly the ranking of all, by adaptive stopping and active order.

    python docs/howto/rater_replay.py zhen_judged.jsonl
    python docs/howto/rater_replay.py people.jsonl --models models.jsonl

The first file is that of docs/howto/wmt_mqm.md (triples of ten translations, three raters), the second that of
docs/howto/pandalm.md (pairs, three annotators, and the verdicts of two language models as further raters).
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
import typer

from steelyard.annotation.case_answers import answers_of_cases
from steelyard.annotation.plackett_luce import Choices, RankingAnswer, Raters, choices_of, first_choices
from steelyard.annotation.psychometrics import PanelFit, fit_raters
from steelyard.annotation.stopping import sureness, task_values
from steelyard.annotation.strengths import ItemStrengths, item_strengths
from steelyard.annotation.triple_designs import covering_triples
from steelyard.core.numerics import Booleans, Floats, Integers, generator
from steelyard.core.types import Case, Judgment
from steelyard.io.cases import read_cases

APP = typer.Typer(help=__doc__, add_completion=False)
SLACK = 0.01
"""The distance to Kendall's tau of all judgments that counts as the same."""
SHARES = np.round(np.arange(0.05, 1.0001, 0.05), 2)
CALIBRATION = 0.1
RESAMPLES = 1000
DIGITS = 6
THRESHOLDS = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98)


class Pool(NamedTuple):
    """Answers to draw from: ``choices`` and ``shown`` number the answer where they have an item; arrays by answer.

    ``free`` are the choices of language models, which cost nothing; ``reference`` (item, response) orders each item.
    """

    choices: tuple[Choices, ...]
    shown: tuple[Choices, ...]
    free: tuple[Choices, ...]
    item: Integers
    task: Integers
    rater: Integers
    num_items: int
    num_raters: int
    width: int
    reference: Floats

    def chosen(self, is_used: Booleans) -> list[Choices]:
        """Return the choices of the answers used, and those of the language models."""
        used = [block.where(is_used[block.item]) for block in self.choices]
        return [*self.free, *(block._replace(item=self.item[block.item]) for block in used)]

    def fit(self, is_used: Booleans) -> PanelFit:
        """Fit raters and items to the answers used."""
        choices = self.chosen(is_used)
        return fit_raters(choices, num_raters=self.num_raters, num_items=self.num_items, width=self.width)

    def items(self, raters: Raters, is_used: Booleans, start: ItemStrengths | None = None) -> ItemStrengths:
        """Return the strengths that the answers used give, with known raters."""
        return item_strengths(self.chosen(is_used), raters, num_items=self.num_items, width=self.width, start=start)

    def taus(self, items: ItemStrengths) -> Floats:
        """Return Kendall's tau-b of each item's mean strengths with the reference; 1 where both order nothing."""
        first, second = np.triu_indices(self.width, 1)
        signs = [np.sign(np.round(each[:, first] - each[:, second], DIGITS)) for each in (items.mean, self.reference)]
        sizes = [(sign**2).sum(axis=1) for sign in signs]
        scale = np.sqrt(sizes[0] * sizes[1])
        nothing = (sizes[0] == 0) & (sizes[1] == 0)
        return np.where(nothing, 1.0, (signs[0] * signs[1]).sum(axis=1) / np.where(scale > 0, scale, 1.0))


class Snapshot(NamedTuple):
    """The share of the answers used so far, and tau of each item."""

    share: float
    taus: Floats


def triples_of(case: Case) -> Case:
    """Return the case with the judgments of each judge as answers to the triples of the covering design."""
    if len(case.responses) < 3:
        return case
    verdict = {(each.judge, frozenset((each.left, each.right))): each for each in case.judgments}
    names = [response.id for response in case.responses]
    judgments: list[Judgment] = []
    for judge in dict.fromkeys(each.judge for each in case.judgments):
        for number, triple in enumerate(covering_triples(len(names))):
            pairs = [frozenset((names[one], names[other])) for one, other in combinations(triple, 2)]
            if all((judge, pair) in verdict for pair in pairs):
                judgments += [_with_task(verdict[judge, pair], str(number)) for pair in pairs]
    return _with_judgments(case, judgments)


def _with_task(judgment: Judgment, task: str) -> Judgment:
    return msgspec.structs.replace(judgment, task=task)


def _with_judgments(case: Case, judgments: Sequence[Judgment]) -> Case:
    return msgspec.structs.replace(case, judgments=tuple(judgments))


def pool_of(cases: Sequence[Case], models: Sequence[Case], held_out: Sequence[str] | None, seed: int) -> Pool:
    """Return the answers of all people, or of all but one of each case, who is then the reference."""
    people = [
        case
        if held_out is None
        else _with_judgments(case, [own for own in case.judgments if own.judge != held_out[number]])
        for number, case in enumerate(cases)
    ]
    of_people, of_models = answers_of_cases(map(triples_of, people)), answers_of_cases(models)
    number_of_people = len(of_people.raters)
    free = [each._replace(rater=each.rater + number_of_people) for each in of_models.answers]
    answers = of_people.answers
    tasks: dict[tuple[int, frozenset[int]], int] = {}
    keys = [(each.item, frozenset(place for tier in each.tiers for place in tier)) for each in answers]
    numbered = [RankingAnswer(number, each.rater, each.tiers) for number, each in enumerate(answers)]
    pool = Pool(
        choices=choices_of(numbered),
        shown=first_choices(numbered),
        free=choices_of(free),
        item=np.array([each.item for each in answers]),
        task=np.array([tasks.setdefault(key, len(tasks)) for key in keys]),
        rater=np.array([each.rater for each in answers]),
        num_items=len(cases),
        num_raters=number_of_people + len(of_models.raters),
        width=of_people.width,
        reference=np.zeros((len(cases), of_people.width)),
    )
    if held_out is None:
        people_only = pool._replace(free=())
        raters = people_only.fit(calibration_of(pool, seed)).raters
        return pool._replace(reference=people_only.items(raters, np.ones(len(answers), np.bool_)).mean)
    return pool._replace(
        reference=np.stack([_values(*each, of_people.width) for each in zip(cases, held_out, strict=True)])
    )


def _values(case: Case, judge: str, width: int) -> Floats:
    """Return how many responses each one beats by one judge, minus how many beat it: the judge's ranking with ties."""
    place = {response.id: number for number, response in enumerate(case.responses)}
    values = np.zeros(width)
    for each in case.judgments:
        if each.judge == judge and each.verdict in ("left", "right"):
            sign = 1 if each.verdict == "left" else -1
            values[place[each.left]] += sign
            values[place[each.right]] -= sign
    return values


def in_random_order(pool: Pool, raters: Raters, seed: int) -> Iterator[Snapshot]:
    """Take all answers in random order."""
    order = generator(seed, "random order").permutation(len(pool.item))
    items: ItemStrengths | None = None
    for share in SHARES:
        is_used = np.zeros(len(order), np.bool_)
        is_used[order[: round(share * len(order))]] = True
        items = pool.items(raters, is_used, items)
        yield Snapshot(float(is_used.mean()), pool.taus(items))


def in_active_order(pool: Pool, raters: Raters, seed: int) -> Iterator[Snapshot]:
    """Take the answers that are expected to set most right, by what was answered so far; nobody's answer is looked at.

    The calibration counts. A hundred rounds; who answers a task is random.
    """
    luck = generator(seed, "active order").random(len(pool.item))
    is_used = calibration_of(pool, seed)
    items = pool.items(raters, is_used)
    for share in SHARES[SHARES > CALIBRATION]:
        while is_used.sum() < round(share * len(is_used)):
            missing = round(share * len(is_used)) - int(is_used.sum())
            values = np.full(len(is_used), -np.inf)
            for block in pool.shown:
                waiting = block.where(~is_used[block.item])
                tasks = waiting._replace(item=pool.item[waiting.item])
                values[waiting.item] = task_values(tasks, raters, items)
            best = _best_of_items(pool, values, luck, most=min(missing, max(1, len(is_used) // 100)))
            is_used[best] = True
            items = pool.items(raters, is_used, items)
        yield Snapshot(float(is_used.mean()), pool.taus(items))


def _best_of_items(pool: Pool, values: Floats, luck: Floats, *, most: int) -> Integers:
    """Return one open answer of each of the items with the most valuable tasks; a random rater's of each task."""
    order = np.lexsort((luck, -np.round(values, 5)))
    order = order[np.isfinite(values[order])]
    _, first = np.unique(pool.item[order], return_index=True)
    return order[np.sort(first)][:most]


def with_stopping(pool: Pool, raters: Raters, seed: int, threshold: float, *, fewest: int) -> Snapshot:
    """Ask ``fewest`` people about every task, then one more while the order of its responses is not sure enough.

    The rule of the workbench. The calibration counts.
    """
    luck = generator(seed, "stopping").random(len(pool.item))
    turn = _turns(pool.task, luck)
    is_used = (turn < fewest) | calibration_of(pool, seed)
    items = pool.items(raters, is_used)
    for number in range(fewest, int(turn.max()) + 1):
        sure = sureness(items)
        sure_of = np.ones(len(is_used))
        for block in pool.shown:
            pairs = [
                sure.of_pairs[pool.item[block.item], _pair_number(one, other, pool.width)]
                for one, other in combinations(block.places.T, 2)
            ]
            sure_of[block.item] = np.mean(pairs, axis=0)
        # A task gets its next answer only if it has all those before it.
        reached = np.bincount(pool.task[is_used], minlength=int(pool.task.max()) + 1) >= number
        is_used = is_used | ((turn == number) & reached[pool.task] & (sure_of < threshold))
        items = pool.items(raters, is_used, items)
    return Snapshot(float(is_used.mean()), pool.taus(items))


def calibration_of(pool: Pool, seed: int) -> Booleans:
    """Return the answers about a tenth of the items, drawn at random: they get all of them, to know the raters by."""
    items = generator(seed, "calibration").permutation(pool.num_items)[: round(CALIBRATION * pool.num_items)]
    return np.isin(pool.item, items)


def _turns(group: Integers, luck: Floats) -> Integers:
    """Return for each answer its number among those of its group, in random order."""
    order = np.lexsort((luck, group))
    turn = np.empty(len(order), np.int64)
    turn[order] = np.arange(len(order)) - np.searchsorted(group[order], group[order])
    return turn


def _pair_number(one: Integers, other: Integers, width: int) -> Integers:
    low, high = np.minimum(one, other), np.maximum(one, other)
    return low * (2 * width - low - 1) // 2 + high - low - 1


def by_oracle(pool: Pool, raters: Raters, seed: int, target: float) -> float:
    """Return the share of answers that stopping each item at the best moment needs, known only in hindsight.

    The order within an item is random. No rule that decides when to stop can need fewer in this order.
    """
    turn = _turns(pool.item, generator(seed, "oracle").random(len(pool.item)))
    most = int(turn.max()) + 1
    taus = np.empty((most + 1, pool.num_items))
    items: ItemStrengths | None = None
    for number in range(most + 1):
        items = pool.items(raters, turn < number, items)
        taus[number] = pool.taus(items)
    used = np.minimum(np.arange(most + 1)[:, None], np.bincount(pool.item, minlength=pool.num_items))
    columns = np.arange(pool.num_items)
    low, high = 0.0, 1.0
    for _ in range(60):
        # A price for every answer: the highest at which the target is still reached.
        price = (low + high) / 2
        stops = np.argmax(taus - price * used, axis=0)
        low, high = (price, high) if taus[stops, columns].mean() >= target else (low, price)
    stops = np.argmax(taus - low * used, axis=0)
    return float(used[stops, columns].sum() / len(turn))


def share_needed(snapshots: Sequence[Snapshot], target: float, weight: Floats) -> float:
    """Return the share of answers from which on the weighted mean of tau stays at the target, linear in between."""
    share = np.array([each.share for each in snapshots])
    level = np.array([np.average(each.taus, weights=weight) for each in snapshots])
    below = np.flatnonzero(level < target - 1e-9)
    if not len(below):
        return float(share[0])
    last = int(below[-1])
    if last + 1 == len(share):
        return 1.0
    rise = (target - level[last]) / (level[last + 1] - level[last])
    return float(share[last] + rise * (share[last + 1] - share[last]))


def interval_of(courses: Sequence[Sequence[Snapshot]], totals: Sequence[Floats]) -> tuple[float, float, float]:
    """Return the mean share over the seeds, with the 95 % bootstrap interval over the items."""
    number = len(totals[0])

    def mean_share(weight: Floats) -> float:
        return float(
            np.mean(
                [
                    share_needed(course, float(np.average(total, weights=weight)) - SLACK, weight)
                    for course, total in zip(courses, totals, strict=True)
                ]
            )
        )

    rng = generator(0, "items")
    drawn = [mean_share(np.bincount(rng.integers(number, size=number), minlength=number)) for _ in range(RESAMPLES)]
    return mean_share(np.ones(number)), *(float(end) for end in np.quantile(drawn, (0.025, 0.975)))


@APP.command()
def replay(
    path: Path,
    models: Annotated[Path | None, typer.Option(help="Cases of the same prompts with verdicts of models.")] = None,
    seeds: int = 5,
    fewest: int = 1,
) -> None:
    """Print the shares of judgments needed, against the consensus of all and against a person held out."""
    cases = list(read_cases(path))
    free = [] if models is None else list(read_cases(models))
    for name in ("the consensus of all", "a person held out"):
        pools = []
        for seed in range(seeds):
            judges = [_one_judge(case, seed, number) for number, case in enumerate(cases)]
            pools.append(pool_of(cases, free, judges if name == "a person held out" else None, seed))
        report(name, pools, fewest)


def _one_judge(case: Case, seed: int, number: int) -> str:
    names = sorted({each.judge for each in case.judgments})
    return names[int(generator(seed, "held out", number).integers(len(names)))]


def report(name: str, pools: Sequence[Pool], fewest: int) -> None:
    """Print one comparison: tau of all answers, and the shares needed by random and active order, rules and oracle."""
    raters = [pool.fit(calibration_of(pool, seed)).raters for seed, pool in enumerate(pools)]
    totals = [
        pool.taus(pool.items(each, np.ones(len(pool.item), np.bool_))) for pool, each in zip(pools, raters, strict=True)
    ]
    level = float(np.mean([total.mean() for total in totals]))
    print(f"\n{name}: {len(pools[0].item):,} answers about {pools[0].num_items}, tau of all {level:.4f}", flush=True)
    together = list(zip(pools, raters, range(len(pools)), totals, strict=True))
    orders = {"random": in_random_order, "active": in_active_order}
    for label, order in orders.items():
        courses = [[*order(pool, each, seed), Snapshot(1.0, total)] for pool, each, seed, total in together]
        value, low, high = interval_of(courses, totals)
        shown = " ".join(
            f"{course[0].share:.0%} {np.mean([one.taus.mean() for one in course]):.3f}"
            for course in list(zip(*courses, strict=True))[1::2]
        )
        print(f"  {label} order: {value:.1%} [{low:.1%}, {high:.1%}]\n    tau at {shown}", flush=True)
    for threshold in THRESHOLDS:
        stopped = [with_stopping(pool, each, seed, threshold, fewest=fewest) for pool, each, seed, _ in together]
        share = np.mean([each.share for each in stopped])
        loss = np.mean([total.mean() - each.taus.mean() for each, total in zip(stopped, totals, strict=True)])
        print(f"  stopping at {threshold:.2f}: {share:.1%} of the answers, tau {-loss:+.4f}", flush=True)
    needed = [by_oracle(pool, each, seed, total.mean() - SLACK) for pool, each, seed, total in together]
    print(f"  oracle stopping: {np.mean(needed):.1%} ({min(needed):.1%} to {max(needed):.1%})", flush=True)


if __name__ == "__main__":
    APP()
