"""How often the intervals of a bench's label error contain the planted one.

    python studies/label_error.py [--replays 500] [--only heterogeneous] [--rows 0,4] [--first-seed 500]

A truth is drawn for each pair, people answer it with planted errors, and a rule makes the label of their answers. The
planted label error is computed from binomial probabilities, or by a large sample where pairs differ in difficulty.
Nothing here uses the estimator's formulas.
"""

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

import numpy as np
import typer
from msgspec.structs import replace

from steelyard.core.numerics import Booleans, Integers
from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.groups import Cell, Label
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.label_error import AnsweredPairs, LabelErrors, label_errors
from steelyard.statistics.relabelled import RelabelledBench, relabelled_shares

APP = typer.Typer(help=__doc__, add_completion=False)
RIGHT_IF_TRUE, RIGHT_IF_FALSE = 0.85, 0.3
"""How often the simulated model agrees with a right label, and with a wrong one."""
_LARGE = 400_000
_ROUNDING = 1e-12
_COLUMNS = (
    *("people", "label", "pairs", "error", "twice", "tosses", "one answer", "label error", "mean of categories"),
    *("distance", "between the ends", "a category", "planted", "mean", "mean of the other end", "width"),
)
RULES = {2: ("first", "unanimous"), 3: ("first", "majority")}


class Setting(NamedTuple):
    """A bench: pairs a category, people a pair, the planted error of one answer in each category, and the label's rule.

    ``spread``: the share of the pairs on which people toss a coin; the error of the others is then such that the mean
    is as planted. ``num_twice``: pairs a category that more than the first person answered; None for all.
    """

    sizes: tuple[int, ...]
    num_people: int
    errors: tuple[float, ...]
    rule: str
    spread: float = 0.0
    num_twice: int | None = None
    pairs_per_prompt: int = 1


class Sample(NamedTuple):
    """Answers, each pair's number that agree with its label or not, and what is true; shape (pair,)."""

    category: Integers
    agreeing: Integers
    contrary: Integers
    is_labelled: Booleans
    is_wrong: Booleans
    is_right: Booleans


def sample_of(setting: Setting, rng: np.random.Generator) -> Sample:
    """Draw a bench. The truth of a pair is that its first response is better, or its second, at random."""
    category = np.repeat(np.arange(len(setting.sizes)), setting.sizes)
    error = np.array(setting.errors)[category]
    if setting.spread:
        is_hard = rng.random(len(category)) < setting.spread
        error = np.where(is_hard, 0.5, (error - setting.spread / 2) / (1 - setting.spread))
    truth = rng.random(len(category)) < 0.5
    is_slip = rng.random((len(category), setting.num_people)) < error[:, None]
    answer = truth[:, None] ^ is_slip
    has_answer = np.ones(answer.shape, dtype=bool)
    if setting.num_twice is not None:
        place = np.concatenate([np.arange(size) for size in setting.sizes])
        has_answer[place >= setting.num_twice, 1:] = False
    first = (answer & has_answer).sum(axis=1)
    second = (~answer & has_answer).sum(axis=1)
    if setting.rule == "first":
        label, is_labelled = answer[:, 0], np.ones(len(category), dtype=bool)
    elif setting.rule == "unanimous":
        label, is_labelled = first > 0, (first == 0) | (second == 0)
    else:
        label, is_labelled = first > second, first != second
    is_wrong = is_labelled & (label != truth)
    chance = np.where(is_wrong, RIGHT_IF_FALSE, RIGHT_IF_TRUE)
    return Sample(
        category,
        np.where(label, first, second),
        np.where(label, second, first),
        is_labelled,
        is_wrong,
        rng.random(len(category)) < chance,
    )


def planted(setting: Setting, error: float) -> float:
    """Return the label error of a category by summing over the answers of all people."""
    if setting.num_twice is not None:
        assert setting.rule == "first", "other rules label pairs of one answer differently"
    shares = [(setting.spread, 0.5), (1 - setting.spread, (error - setting.spread / 2) / (1 - setting.spread))]
    wrong = labelled = 0.0
    for share, each in shares:
        for slips in range(setting.num_people + 1):
            mass = share * comb(setting.num_people, slips) * each**slips * (1 - each) ** (setting.num_people - slips)
            if setting.rule == "first":
                wrong, labelled = wrong + mass * slips / setting.num_people, labelled + mass
            elif setting.rule == "unanimous":
                wrong += mass * (slips == setting.num_people)
                labelled += mass * (slips in {0, setting.num_people})
            else:
                wrong += mass * (2 * slips > setting.num_people)
                labelled += mass * (2 * slips != setting.num_people)
    return wrong / labelled


def estimated(setting: Setting, sample: Sample, *, seed: int, num_resamples: int = 200) -> LabelErrors | None:
    """Estimate the label error of a sample."""
    prompt = np.arange(len(sample.category)) // setting.pairs_per_prompt
    first = np.flatnonzero(np.diff(prompt, prepend=-1))
    labels = [Label(f"p{row}", Cell(f"c{name:03}")) for row, name in enumerate(sample.category[first].tolist())]
    blocks = draw_blocks(labels, num_resamples=num_resamples, seed=seed)
    pairs = AnsweredPairs(prompt, sample.agreeing, sample.contrary, sample.is_labelled, sample.is_right)
    return label_errors(blocks, pairs)


class Coverage(NamedTuple):
    """Shares of the replays whose interval contains the truth, and the mean of values and ends.

    ``held``: of one answer's error, of the label error of all pairs and as the mean over categories, of the distance,
    and of the range from the lower end of the first model to the upper end of the second.
    """

    held: Sequence[float]
    categories: float
    planted: float
    mean: float
    mean_of_most: float
    width: float
    num_refused: int


def coverage(setting: Setting, seeds: range) -> Coverage:
    """Replay a setting."""
    truths = [planted(setting, error) for error in setting.errors]
    large = sample_of(setting._replace(sizes=(_LARGE,) * len(setting.sizes), num_twice=None), np.random.default_rng(1))
    labelled = [large.is_labelled & (large.category == at) for at in range(len(truths))]
    accuracies = [large.is_right[members].mean() for members in labelled]
    shares = np.array([members.mean() for members in labelled]) * np.array(setting.sizes)
    shares /= shares.sum()
    micro, macro = float(shares @ truths), float(np.mean(truths))
    person = float(np.mean(setting.errors))
    distance = float(shares @ (1 - np.array(truths) - np.array(accuracies)))
    rows, groups, refused = [], [], 0
    for seed in seeds:
        result = estimated(setting, sample_of(setting, np.random.default_rng([seed, 17])), seed=seed)
        if result is None:
            refused += 1
            continue
        label, most = result.label.micro, result.most.micro
        rows.append(
            [
                *(_holds(result.person.macro, person), _holds(label, micro), _holds(result.label.macro, macro)),
                *(_holds(result.distance.micro, distance), _holds(replace(label, high=most.high), micro)),
                *(float(label), float(most), (label.high or 0.0) - (label.low or 0.0)),
            ]
        )
        groups += [
            _holds(each, truths[int(name[1:])])
            for name, each in zip(result.groups, result.label.estimates, strict=True)
            if each.value is not None
        ]
    means = np.mean(rows, axis=0)
    held, values = means[:5].tolist(), means[5:].tolist()
    mean, mean_of_most, width = values
    return Coverage(held, float(np.mean(groups)), micro, mean, mean_of_most, width, refused)


def _holds(estimate: Estimate, truth: float) -> bool:
    low, high = estimate.low, estimate.high
    return low is not None and high is not None and low - _ROUNDING <= truth <= high + _ROUNDING


def settings(name: str) -> Sequence[Setting]:
    """Return the settings of a table."""
    if name == "heterogeneous":
        return [
            Setting((size,), people, (error,), rule, spread=spread * 2 * error)
            for people in (2, 3)
            for rule in RULES[people]
            for error in (0.1, 0.2)
            for spread in (0.5, 0.9)
            for size in (500,)
        ]
    if name == "categories":
        return [
            Setting(sizes, people, errors, rule)
            for people in (2, 3)
            for rule in RULES[people]
            for sizes, errors in (
                ((25, 50, 100, 400), (0.2, 0.1, 0.05, 0.1)),
                ((30,) * 10, (0.05, 0.1, 0.2, 0.1, 0.05, 0.2, 0.1, 0.1, 0.05, 0.2)),
                ((1000, 200, 50), (0.05, 0.2, 0.1)),
            )
        ]
    if name == "sampled":
        return [
            Setting((1000,), 2, (error,), "first", num_twice=twice) for error in (0.05, 0.2) for twice in (100, 300)
        ]
    return [
        Setting((size,), people, (error,), rule)
        for size in (100, 500, 2000)
        for people in (2, 3)
        for rule in RULES[people]
        for error in (0.05, 0.1, 0.2)
    ]


class Check(NamedTuple):
    """A bench whose labels better judges make again on a random share of the prompts.

    ``sizes``: prompts a category, of ``pairs_per_prompt`` pairs each. ``errors``: planted, by category. ``judge``: how
    often a judge with verdicts on all pairs is right; 0 for none. ``together``: the share of the prompts whose pairs
    are all wrong together or all right.
    """

    sizes: tuple[int, ...]
    pairs_per_prompt: int
    errors: tuple[float, ...]
    share: float
    judge: float = 0.0
    together: float = 0.0


def checked_coverage(check: Check, seeds: range) -> Sequence[float]:
    """Replay a check: coverage of the error of all pairs, the mean of categories, each category, the distance, and the
    error of whole prompts; then the planted error of all pairs, the mean estimate, its width, and effective labels.
    """
    category = np.repeat(np.arange(len(check.sizes)), check.sizes)
    names = [Label(f"p{row}", Cell(f"c{at:03}")) for row, at in enumerate(category.tolist())]
    prompt = np.repeat(np.arange(len(category)), check.pairs_per_prompt)
    errors, sizes = np.array(check.errors), np.array(check.sizes) / sum(check.sizes)
    micro, macro = float(sizes @ errors), float(errors.mean())
    apart = 1 - (1 - errors) ** check.pairs_per_prompt
    of_prompts = float(sizes @ (check.together * errors + (1 - check.together) * apart))
    accuracy = (1 - micro) * RIGHT_IF_TRUE + micro * RIGHT_IF_FALSE
    rows, groups = [], []
    for seed in seeds:
        rng = np.random.default_rng([seed, 19])
        chance = rng.random(len(prompt))
        if check.together:
            is_together = (rng.random(len(category)) < check.together)[prompt]
            chance = np.where(is_together, rng.random(len(category))[prompt], chance)
        is_wrong = chance < errors[category[prompt]]
        is_checked = (rng.random(len(category)) < check.share)[prompt]
        against = is_wrong ^ (rng.random(len(prompt)) > check.judge) if check.judge else np.full(len(prompt), np.nan)
        is_right = rng.random(len(prompt)) < np.where(is_wrong, RIGHT_IF_FALSE, RIGHT_IF_TRUE)
        bench = RelabelledBench(prompt, is_checked, is_wrong & is_checked, against.astype(float), is_right)
        blocks = draw_blocks(names, num_resamples=200, seed=seed)
        pairs, prompts = relabelled_shares(blocks, bench), relabelled_shares(blocks, bench.by_prompt())
        assert pairs is not None, "a part of the bench is relabelled"
        assert prompts is not None, "and so are some whole prompts"
        label = pairs.label.micro
        rows.append(
            [
                *(_holds(label, micro), _holds(pairs.label.macro, macro)),
                *(_holds(pairs.distance.micro, 1 - micro - accuracy), _holds(prompts.label.micro, of_prompts)),
                *(float(label), (label.high or 0.0) - (label.low or 0.0), pairs.effective_labels),
            ]
        )
        groups += [
            _holds(each, errors[int(name[1:])])
            for name, each in zip(pairs.groups, pairs.label.estimates, strict=True)
            if each.value is not None
        ]
    held_all, held_mean, distance, exact, mean, width, effective = np.mean(rows, axis=0).tolist()
    covered = [held_all, held_mean, float(np.mean(groups)) if groups else float("nan"), distance, exact]
    return [*(100 * each for each in (*covered, micro, mean, width)), effective]


_CHECK_COLUMNS = (
    *(
        "prompts",
        "pairs a prompt",
        "errors",
        "together",
        "relabelled",
        "judge",
        "label error",
        "mean of categories",
        "a category",
    ),
    *("distance", "whole prompts", "planted", "mean", "width", "effective"),
)


def checks() -> Sequence[Check]:
    """Return the settings of the table of relabelled benches."""
    plain = [
        Check((size,), pairs, (error,), share, judge)
        for size, pairs, share in ((1000, 1, 0.1), (1000, 1, 0.3), (300, 5, 0.3))
        for error in (0.05, 0.1, 0.2)
        for judge in (0.0, 0.85)
    ]
    mixed = [
        Check(sizes, 1, errors, share, judge)
        for sizes, errors, share in (
            ((600, 300, 150, 50), (0.05, 0.1, 0.2, 0.1), 0.2),
            ((100,) * 10, (0.05, 0.1, 0.2, 0.1, 0.05, 0.2, 0.1, 0.1, 0.05, 0.2), 0.3),
            ((40,) * 10, (0.05, 0.1, 0.2, 0.1, 0.05, 0.2, 0.1, 0.1, 0.05, 0.2), 0.2),
        )
        for judge in (0.0, 0.85)
    ]
    sampled = ((300, 1, 0.1, 0.0), (500, 1, 0.1, 0.0), (100, 5, 0.3, 0.0), (300, 5, 0.3, 0.5), (100, 5, 0.3, 0.5))
    hard = [
        Check((size,), pairs, (error,), share, judge, together)
        for size, pairs, share, together in sampled
        for error in (0.05, 0.1, 0.2)
        for judge in (0.0, 0.85)
    ]
    return [*plain, *mixed, *hard]


@APP.command()
def main(replays: int = 500, only: str = "", rows: str = "", first_seed: int = 0) -> None:
    """Print a row for each setting: coverage in percent, the planted label error, and mean estimates.

    ``rows``: the numbers of some rows of a table, from 0. ``first_seed``: another one for samples of their own.
    """
    seeds, chosen = range(first_seed, first_seed + replays), {int(each) for each in rows.split(",") if each}
    if only in {"", "relabelled"}:
        print(f"\nrelabelled\n| {' | '.join(_CHECK_COLUMNS)} |\n|{'--|' * len(_CHECK_COLUMNS)}")
        for number, check in enumerate(checks()):
            if chosen and number not in chosen:
                continue
            *percents, effective = checked_coverage(check, seeds)
            planted = " ".join(f"{each:g}" for each in dict.fromkeys(check.errors))
            start = (
                " ".join(map(str, check.sizes)),
                check.pairs_per_prompt,
                planted,
                check.together,
                check.share,
                check.judge or "none",
            )
            shown = [
                *map(str, start),
                *(f"{each:.1f}" for each in percents[:5]),
                *(f"{each:.2f}" for each in percents[5:]),
            ]
            print(f"| {' | '.join(shown)} | {effective:.2f} |", flush=True)
    for name in ("equal", "categories", "sampled", "heterogeneous"):
        if only and only != name:
            continue
        print(f"\n{name}\n| {' | '.join(_COLUMNS)} |\n|{'--|' * len(_COLUMNS)}")
        for number, setting in enumerate(settings(name)):
            if chosen and number not in chosen:
                continue
            row = coverage(setting, seeds)
            shown = [
                *(setting.num_people, setting.rule, " ".join(map(str, dict.fromkeys(setting.sizes)))),
                *(" ".join(f"{each:g}" for each in dict.fromkeys(setting.errors)), setting.num_twice or "all"),
                *(f"{setting.spread:.2f}", *(f"{100 * each:.1f}" for each in (*row.held, row.categories))),
                *(f"{100 * each:.2f}" for each in (row.planted, row.mean, row.mean_of_most, row.width)),
            ]
            print("| " + " | ".join(map(str, shown)) + " |", flush=True)


if __name__ == "__main__":
    APP()
