"""Replay published judgments: how few of them give nearly the ranking of all, by adaptive stopping and active order.

    python studies/rater_replay.py zhen_judged.jsonl
    python studies/rater_replay.py people.jsonl --judged models.jsonl --scores ngram/scores.jsonl

The first file is that of docs/howto/wmt_mqm.md (triples of ten translations, three raters), the second that of
docs/howto/pandalm.md (pairs, three annotators). With scores of models and verdicts of judges, as a queue by priority
takes them, the replay has these as evidence that decides who is asked; a ranking is that of people's answers alone.
With --authors the strength of a translation begins at the mean of its system's (`author_prior`).

Raters are known from a tenth of the items, which get all of their answers and count. Items are in ten parts: the limit
of a rule for one part is chosen on the other nine, by what it loses there.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from author_prior import authors_of, with_author_prior
from committee_evidence import Committee, committee_of, with_evidence
from rater_pool import Pool, one_judge, pool_of
from stopping_bounds import by_hindsight, can_enumerate, smallest_sets, turns, without_hindsight
from task_values import task_values

from steelyard.annotation.plackett_luce import Raters
from steelyard.annotation.stopping import sureness
from steelyard.annotation.strengths import ItemStrengths
from steelyard.core.numerics import Booleans, Floats, Integers, generator
from steelyard.core.types import Case
from steelyard.io.cases import read_cases

APP = typer.Typer(help=__doc__, add_completion=False)
SLACK = 0.01
"""The distance to Kendall's tau of all judgments that counts as the same."""
SHARES = np.round(np.arange(0.05, 1.0001, 0.05), 2)
RESAMPLES = 1000
NUM_PARTS = 10
"""Parts of the items: the limit for one is chosen on the others."""
LIMITS = {
    "sureness": (0.45, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.02),
    "gain": (0.7, 0.35, 0.18, 0.1, 0.05, 0.02, 3e-3, 3e-4, 3e-5, 1e-6),
}
"""By rule, from the fewest to the most answers: the expected share of pairs of a task in wrong order above which one
more person is asked, and the pairs of the item that one more answer is expected to set right."""


class Snapshot(NamedTuple):
    """The share of the answers used so far, and tau of each item."""

    share: float
    taus: Floats


class Stopped(NamedTuple):
    """The answers about each item that a rule asked for, and tau of each item, both (item,)."""

    used: Integers
    taus: Floats


class Trial(NamedTuple):
    """A pool with what its calibration says of the raters, and tau of each item by all answers.

    ``context``: what is known of each item before anybody is asked. ``authors`` (item, response) of responses, where
    strengths begin at their means; ``alone``: tau of each item by all answers without these means.
    """

    pool: Pool
    raters: Raters
    seed: int
    total: Floats
    context: Sequence[Hashable]
    authors: Integers | None = None
    alone: Floats | None = None

    def informed(self, is_used: Booleans) -> Pool:
        """Return the pool with what the answers used say of authors, where these count."""
        return self.pool if self.authors is None else with_author_prior(self.pool, self.raters, is_used, self.authors)


def in_random_order(trial: Trial) -> Iterator[Snapshot]:
    """Take all answers in random order. Its raters are known as well as those of the other orders, at no cost."""
    pool = trial.pool
    order = generator(trial.seed, "random order").permutation(len(pool.item))
    items: ItemStrengths | None = None
    for share in SHARES:
        is_used = np.zeros(len(order), np.bool_)
        is_used[order[: round(share * len(order))]] = True
        items = trial.informed(is_used).ranked(trial.raters, is_used, items)
        yield Snapshot(float(is_used.mean()), pool.taus(items))


def in_active_order(trial: Trial, rounds: int) -> Iterator[Snapshot]:
    """Take the answers that are expected to set most right, by what was answered so far; nobody's answer is looked at.

    The calibration counts. Each of the rounds takes at most one answer of an item; who answers a task is random.
    """
    pool = trial.pool
    luck = generator(trial.seed, "active order").random(len(pool.item))
    is_used = pool.calibration(trial.seed)
    items = trial.informed(is_used).believed(trial.raters, is_used)
    for share in SHARES[is_used.mean() < SHARES]:
        if trial.authors is not None:
            pool = trial.informed(is_used)
            items = pool.believed(trial.raters, is_used)
        while is_used.sum() < round(share * len(is_used)):
            missing = round(share * len(is_used)) - int(is_used.sum())
            values = gains(trial, items, ~is_used, trial.raters)
            best = _best_of_items(pool, values, luck, most=min(missing, max(1, len(is_used) // rounds)))
            is_used[best] = True
            items = pool.believed_after(trial.raters, is_used, items, np.unique(pool.item[best]))
        yield Snapshot(float(is_used.mean()), pool.taus(trial.informed(is_used).ranked(trial.raters, is_used)))


def _best_of_items(pool: Pool, values: Floats, luck: Floats, *, most: int) -> Integers:
    """Return one open answer of each of the items with the most valuable tasks; a random rater's of each task."""
    order = np.lexsort((luck, -np.round(values, 9)))
    order = order[np.isfinite(values[order])]
    _, first = np.unique(pool.item[order], return_index=True)
    return order[np.sort(first)][:most]


def gains(trial: Trial, items: ItemStrengths, is_open: Booleans, raters: Raters) -> Floats:
    """Return the pairs of its item that each open answer is expected to set right, (answer,); others have -inf."""
    values = np.full(len(is_open), -np.inf)
    for block in trial.pool.shown:
        waiting = block.where(is_open[block.item])
        tasks = waiting._replace(item=trial.pool.item[waiting.item])
        values[waiting.item] = task_values(tasks, raters, items)
    return values


def doubts(trial: Trial, items: ItemStrengths, is_open: Booleans) -> Floats:
    """Return the expected share of pairs in wrong order of the task of each open answer, (answer,)."""
    values, sure = np.full(len(is_open), -np.inf), sureness(items)
    for block in trial.pool.shown:
        waiting = block.where(is_open[block.item])
        values[waiting.item] = 1 - sure.of_tasks(trial.pool.item[waiting.item], waiting.places)
    return values


def with_stopping(trial: Trial, rule: str) -> list[Stopped]:
    """Ask one person about every task, then one more while the rule says more than its limit: for each limit.

    The workbench has the rule of sureness. The rule of gains does not know who comes next: an average person.
    """
    pool = trial.pool
    turn = turns(pool.task, generator(trial.seed, "stopping").random(len(pool.item)))
    begun = (turn < 1) | pool.calibration(trial.seed)
    pool = trial.informed(begun)
    first = pool.believed(trial.raters, begun)
    people = slice(pool.num_raters)
    average = trial.raters._replace(
        discrimination=np.full(len(trial.raters.tie), trial.raters.discrimination[people].mean()),
        tie=np.full(len(trial.raters.tie), trial.raters.tie[people].mean()),
    )
    stopped = []
    for limit in LIMITS[rule]:
        is_used, items = begun, first
        for number in range(1, int(turn.max()) + 1):
            # A task gets its next answer only if it has all those before it.
            reached = np.bincount(pool.task[is_used], minlength=int(pool.task.max()) + 1) >= number
            is_open = (turn == number) & reached[pool.task] & ~is_used
            values = doubts(trial, items, is_open) if rule == "sureness" else gains(trial, items, is_open, average)
            is_asked = is_open & (values > limit)
            is_used = is_used | is_asked
            items = pool.believed_after(trial.raters, is_used, items, np.unique(pool.item[is_asked]))
        is_final = not pool.free and trial.authors is None
        final = items if is_final else trial.informed(is_used).ranked(trial.raters, is_used)
        stopped.append(Stopped(np.bincount(pool.item[is_used], minlength=pool.num_items), pool.taus(final)))
    return stopped


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


def course_share(
    courses: Sequence[Sequence[Snapshot]], totals: Sequence[Floats], num_items: int
) -> tuple[float, float, float]:
    """Return the mean share needed over the seeds, with the 95 % bootstrap interval over the items.

    ``totals``: for each seed tau of each item, whose mean less the slack is the target.
    """

    def mean_share(weight: Floats) -> float:
        targets = [float(np.average(total, weights=weight)) - SLACK for total in totals]
        return float(np.mean([share_needed(*each, weight) for each in zip(courses, targets, strict=True)]))

    return resampled(mean_share, num_items)


def resampled(figure: Callable[[Floats], float], num_items: int) -> tuple[float, float, float]:
    """Return a figure of weighted items with its 95 % bootstrap interval over items, the same ones for all seeds."""
    rng = generator(0, "items")
    drawn = [
        figure(np.bincount(rng.integers(num_items, size=num_items), minlength=num_items).astype(np.float64))
        for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(drawn, (0.025, 0.975)).tolist()
    return figure(np.ones(num_items)), low, high


def chosen_on_others(trial: Trial, outcomes: Sequence[Stopped]) -> tuple[Stopped, list[int]]:
    """Return what each part of the items gets by the limit that the other parts chose, and these limits' numbers.

    The limit with the fewest answers of those that lose less than `SLACK`; the last one where none does.
    """
    number = len(trial.total)
    part = generator(trial.seed, "parts").permutation(number) % NUM_PARTS
    used, taus, chosen = np.zeros(number, np.int64), np.zeros(number), []
    for mine in (part == each for each in range(NUM_PARTS)):
        losses = [(trial.total - each.taus)[~mine].mean() for each in outcomes]
        enough = [place for place, loss in enumerate(losses) if loss <= SLACK] or [len(outcomes) - 1]
        best = min(enough, key=lambda place: outcomes[place].used[~mine].sum())
        used[mine], taus[mine] = outcomes[best].used[mine], outcomes[best].taus[mine]
        chosen.append(best)
    return Stopped(used, taus), chosen


@APP.command()
def replay(
    path: Path,
    *,
    scores: Annotated[list[Path] | None, typer.Option(help="Scores of a model; may be repeated.")] = None,
    judged: Annotated[list[Path] | None, typer.Option(help="Cases with verdicts of models; may be repeated.")] = None,
    seeds: int = 5,
    rounds: Annotated[int, typer.Option(help="Rounds in which active order takes all answers.")] = 100,
    authors: Annotated[bool, typer.Option("--authors", help="Strengths begin at the means of authors.")] = False,
) -> None:
    """Print the shares of judgments needed, against a person held out and against the consensus of all.

    With --authors against a person held out alone: the consensus is a ranking of each item by itself.
    """
    cases = list(read_cases(path))
    committee = committee_of(cases, scores or [], judged or [])
    references = {"a person held out": True} if authors else {"a person held out": True, "the consensus of all": False}
    for name, is_held_out in references.items():
        trials = [trial_of(cases, committee, seed, is_held_out=is_held_out) for seed in range(seeds)]
        if authors:
            trials = [with_authors(trial, cases) for trial in trials]
        report(name, trials, rounds)


def trial_of(cases: Sequence[Case], committee: Committee | None, seed: int, *, is_held_out: bool) -> Trial:
    """Return the pool of a seed, with its raters as the calibration shows them, and what all of its answers reach."""
    judges = [one_judge(case, seed, number) for number, case in enumerate(cases)]
    pool = pool_of(cases, judges if is_held_out else None, seed)
    raters = pool.fit(pool.calibration(seed)).raters
    total = pool.taus(pool.ranked(raters, np.ones(len(pool.item), np.bool_)))
    if committee is None:
        return Trial(pool, raters, seed, total, [0] * len(cases))
    probability = committee.probabilities(pool, raters, seed)
    pool, raters = with_evidence(pool, raters, committee, probability)
    return Trial(pool, raters, seed, total, committee.verdicts(probability))


def with_authors(trial: Trial, cases: Sequence[Case]) -> Trial:
    """Return the trial in which strengths begin at the means of authors."""
    pooled = trial._replace(authors=authors_of(cases, trial.pool.width), alone=trial.total)
    everything = np.ones(len(trial.pool.item), np.bool_)
    total = trial.pool.taus(pooled.informed(everything).ranked(trial.raters, everything))
    return pooled._replace(total=total)


def report(name: str, trials: Sequence[Trial], rounds: int) -> None:
    """Print one comparison: tau of all answers, and the shares needed by orders, by rules and by who knows more."""
    pool = trials[0].pool
    level = float(np.mean([trial.total.mean() for trial in trials]))
    print(f"\n{name}: {len(pool.item):,} answers about {pool.num_items}, tau of all {level:.4f}", flush=True)
    orders = {"random": in_random_order, "active": lambda trial: in_active_order(trial, rounds)}
    for label, order in orders.items():
        courses = [[*order(trial), Snapshot(1.0, trial.total)] for trial in trials]
        value, low, high = course_share(courses, [trial.total for trial in trials], pool.num_items)
        shown = " ".join(
            f"{course[0].share:.0%} {np.mean([one.taus.mean() for one in course]):.3f}"
            for course in list(zip(*courses, strict=True))[1::2]
        )
        print(f"  {label} order: {value:.1%} [{low:.1%}, {high:.1%}]\n    tau at {shown}", flush=True)
        alone = [trial.alone for trial in trials if trial.alone is not None]
        if alone:
            value, low, high = course_share(courses, alone, pool.num_items)
            level = np.mean([each.mean() for each in alone])
            print(f"    to tau without authors, {level:.4f}: {value:.1%} [{low:.1%}, {high:.1%}]", flush=True)
    for rule in LIMITS:
        _report_rule(trials, rule)
    bounds = {"the best moment of each item": [by_hindsight(*_known(trial)) for trial in trials]}
    if can_enumerate(pool):
        bounds["the best set of each item"] = [smallest_sets(each.pool, each.raters, _target(each)) for each in trials]
        bounds["all patterns of votes, no hindsight"] = [
            without_hindsight(each.pool, each.raters, _target(each), each.context) for each in trials
        ]
    for label, shares in bounds.items():
        print(f"  knowing {label}: {np.mean(shares):.1%} ({min(shares):.1%} to {max(shares):.1%})", flush=True)


def _target(trial: Trial) -> float:
    return float(trial.total.mean()) - SLACK


def _known(trial: Trial) -> tuple[Pool, Raters, int, float]:
    everything = np.ones(len(trial.pool.item), np.bool_)
    return trial.informed(everything), trial.raters, trial.seed, _target(trial)


def _report_rule(trials: Sequence[Trial], rule: str) -> None:
    """Print a rule at each limit, and at the limit that the other half of the items chose."""
    sizes = trials[0].pool.sizes
    outcomes = [with_stopping(trial, rule) for trial in trials]
    print(f"  stopping by {rule}", flush=True)
    for place, limit in enumerate(LIMITS[rule]):
        share = np.mean([each[place].used.sum() / sizes.sum() for each in outcomes])
        gain = np.mean([each[place].taus.mean() - one.total.mean() for each, one in zip(outcomes, trials, strict=True)])
        print(f"    above {limit}: {share:.1%} of the answers, tau {gain:+.4f}", flush=True)
    parts = [chosen_on_others(*each) for each in zip(trials, outcomes, strict=True)]
    share = resampled(
        lambda weight: float(np.mean([(each.used @ weight) / (sizes @ weight) for each, _ in parts])), len(sizes)
    )
    gain = resampled(
        lambda weight: float(
            np.mean(
                [
                    np.average(each.taus - one.total, weights=weight)
                    for (each, _), one in zip(parts, trials, strict=True)
                ]
            )
        ),
        len(sizes),
    )
    limits = sorted({LIMITS[rule][place] for _, chosen in parts for place in chosen})
    print("    chosen on the other items: {:.1%} [{:.1%}, {:.1%}]".format(*share), end="", flush=True)
    print(", tau {:+.4f} [{:+.4f}, {:+.4f}]".format(*gain), f"by limits {limits}", flush=True)


if __name__ == "__main__":
    APP()
