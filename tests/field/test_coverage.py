"""Coverage of the intervals and family-wise error of the tests, simulated through the functions that stages call.

Run: PYTHONPATH=src python tests/field/test_coverage.py [--replications 2000] [--prompts 20] [--categories alike]
or with --unequal for unequal categories and numbers of pairs
(prints the lines of the tables in docs/measures.md)

Prompts are drawn anew in each replication, in categories of fixed sizes: nearly equal, or as Zipf's law has them. A
prompt has 1 or 10 pairs, or one of 1 to 28 (two to eight responses) that is drawn for each hundred replications; with a
correlation of 0.3, its share right is beta-distributed around its category's. Categories are alike, or their
accuracies are drawn from a beta distribution whose variance is a sixteenth of p (1 - p). All replications of a cell
stand side by side as columns of one table, so that one drawing of the prompts serves them all.
"""

import argparse
import sys
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pytest

from steelyard.statistics.aggregation import Share, all_cells, by_category, macro
from steelyard.statistics.bootstrap import Items, cell_sums, resample
from steelyard.statistics.groups import Cell, Label, layout_of
from steelyard.statistics.intervals import interval
from steelyard.statistics.significance import Headlines, holm

NUM_RESAMPLES, AT_A_TIME, NUM_MODELS, CONCENTRATION = 1000, 100, 6, 15.0
SIZES = [(n, c) for n, c in product((20, 60, 200), (1, 10, 30, 50)) if c <= n]
UNEQUAL = 28
"""The pairs of eight responses: the most of a prompt whose number of pairs is drawn."""


class Setting(NamedTuple):
    """One cell of the table. ``num_pairs``: of every prompt, or `UNEQUAL`. ``is_macro``: the mean over categories."""

    num_prompts: int
    num_categories: int
    accuracy: float
    num_pairs: int
    correlation: float = 0.0
    differing: bool = False
    is_zipf: bool = False
    is_macro: bool = True

    @property
    def category(self):
        """The category of each prompt."""
        if not self.is_zipf:
            return np.arange(self.num_prompts) % self.num_categories
        weights = 1 / np.arange(1, self.num_categories + 1)
        sizes = np.maximum(2, np.floor(self.num_prompts * weights / weights.sum())).astype(int)
        sizes[0] += self.num_prompts - sizes.sum()
        return np.repeat(np.arange(self.num_categories), sizes)

    @property
    def layout(self):
        """The layout of the prompts, as `evaluate` forms it."""
        return layout_of([Label(f"p{row}", Cell(f"c{own:02}")) for row, own in enumerate(self.category)])


def settings(accuracies=(0.5, 0.9, 0.97)):
    """Every cell of the table."""
    for (n, c), accuracy, (pairs, correlation) in product(SIZES, accuracies, ((1, 0.0), (10, 0.0), (10, 0.3))):
        for differing in (False, True) if c > 1 else (False,):
            yield Setting(n, c, accuracy, pairs, correlation, differing)


def unequal_settings(accuracies=(0.5, 0.9, 0.97)):
    """Cells with unequal categories or unequal numbers of pairs."""
    for n, accuracy in product((20, 60, 200), accuracies):
        for correlation in (0.0, 0.3, 0.9):
            yield Setting(n, 1, accuracy, UNEQUAL, correlation)
            if n > 20:
                yield Setting(n, 10, accuracy, UNEQUAL, correlation, True, False, False)
                yield Setting(n, 10, accuracy, UNEQUAL, correlation, True)
        for c in (5, 10, 20) if n > 60 else (5, 10) if n > 20 else (5,):
            yield Setting(n, c, accuracy, 1, 0.0, False, True)
            yield Setting(n, c, accuracy, 1, 0.0, True, True)
            yield Setting(n, c, accuracy, 10, 0.3, True, True)
            yield Setting(n, c, accuracy, UNEQUAL, 0.3, True, True)


def category_accuracies(setting, rng):
    """The accuracy of each category, whose plain mean is exactly the setting's."""
    mean = setting.accuracy
    if not setting.differing:
        return np.full(setting.num_categories, mean)
    found = rng.beta(mean * CONCENTRATION, (1 - mean) * CONCENTRATION, setting.num_categories)
    for _ in range(500):
        found = np.clip(found + mean - found.mean(), 1e-3, 1 - 1e-3)
    return found


def pairs_by_prompt(setting, rng):
    """The number of pairs of each prompt, (prompt, 1)."""
    if setting.num_pairs != UNEQUAL:
        return np.full((setting.num_prompts, 1), setting.num_pairs)
    responses = rng.integers(2, 9, (setting.num_prompts, 1))
    return responses * (responses - 1) // 2


def right_pairs(setting, share, pairs, rng, size):
    """How many pairs are right: (prompt, size)."""
    share = np.repeat(share[setting.category][:, None], size, axis=1)
    if setting.num_pairs > 1 and setting.correlation:
        spread = 1 / setting.correlation - 1
        share = rng.beta(share * spread, (1 - share) * spread)
    return rng.binomial(pairs, share)


def drawn_columns(setting, pairs, columns, num_resamples, seed):
    """The mean over categories, or over pairs, of each column, of the prompts and of every resample; their evidence.

    These are the calls of `aggregation.estimate`, and of `standings.HeadlineBootstrap`, for many columns at once.
    """
    totals = resample(Items(setting.layout, np.concatenate([pairs, columns], axis=1), num_resamples), seed=seed)
    groups = by_category(totals.cells) if setting.is_macro else all_cells(totals.cells)

    def means(sums):
        sums = sums if setting.is_macro else sums.sum(axis=-2, keepdims=True)
        return np.moveaxis((sums[..., 1:] / sums[..., :1]).mean(axis=-2), -1, 0)

    # Each category is one cell, so that the mean over cells is `macro`; of one column it is the function itself.
    own = macro(totals.resampled[:, :, :2], groups, Share(1, 0))
    resampled = means(totals.resampled)
    assert np.allclose(own, resampled[0])
    evidence = [
        totals.evidence(groups.members, denominator=0, numerator=column) for column in range(1, columns.shape[1] + 1)
    ]
    return means(totals.point), resampled, evidence


def coverage(setting, num_replications, seed=0, around=0.0):
    """The share of intervals that hold the truth, and their mean width.

    ``around``: each hundred replications have another accuracy, at most this far from the setting's. The values of few
    prompts are few, so that the coverage at one accuracy is that of one of its steps.
    """
    rng = np.random.default_rng([seed, *(int(1000 * value) for value in setting)])
    share = category_accuracies(setting, rng)
    hits, width = 0, 0.0
    for start in range(0, num_replications, AT_A_TIME):
        if around:
            own = setting.accuracy + rng.uniform(-around, min(around, 1 - setting.accuracy))
            share = category_accuracies(setting._replace(accuracy=own), rng)
        pairs = pairs_by_prompt(setting, rng)
        right = right_pairs(setting, share, pairs, rng, AT_A_TIME)
        values, drawn, evidence = drawn_columns(setting, pairs, right, NUM_RESAMPLES, start)
        for value, own, effective in zip(values.tolist(), drawn, evidence, strict=True):
            found = interval(value, own, 1, effective)
            truth = share.mean() if setting.is_macro else share[setting.category].mean()
            hits += found.low - 1e-12 <= truth <= found.high + 1e-12
            width += found.high - found.low
    return hits / num_replications, width / num_replications


def family_error(setting, num_replications, seed=0):
    """How often any of six equal models is told apart after Holm, and how often one difference's interval holds 0."""
    rng = np.random.default_rng([seed, 1, *(int(1000 * value) for value in setting)])
    share = category_accuracies(setting, rng)
    two = list(combinations(range(NUM_MODELS), 2))
    errors = hits = 0
    for start in range(0, num_replications, AT_A_TIME):
        pairs = pairs_by_prompt(setting, rng)
        right = [right_pairs(setting, share, pairs, rng, AT_A_TIME) for _ in range(NUM_MODELS)]
        values, drawn, evidence = drawn_columns(
            setting, pairs, np.concatenate(right, axis=1), NUM_RESAMPLES // 2, start
        )
        gaps = np.concatenate([np.abs(right[one] - right[other]) for one, other in two], axis=1)
        apart, below = cell_sums(setting.layout, gaps), cell_sums(setting.layout, pairs)
        apart = (apart / below).mean(axis=0) if setting.is_macro else apart.sum(axis=0) / below.sum()
        apart = apart.reshape(len(two), AT_A_TIME)
        for place in range(AT_A_TIME):
            discordance = np.zeros((NUM_MODELS, NUM_MODELS))
            discordance[tuple(np.transpose(two))] = apart[:, place]
            models = Headlines(values[place::AT_A_TIME], drawn[place::AT_A_TIME].T, discordance, evidence[0])
            found = [models.minus(one, other, 1) for one, other in two]
            errors += min(holm([one.p for one in found])) < 0.05
            hits += sum(one.estimate.low <= 0 <= one.estimate.high for one in found)
    return errors / num_replications, hits / num_replications / len(two)


@pytest.mark.field
@pytest.mark.parametrize("setting", list(settings()), ids=str)
def test_intervals_hold_the_truth_and_equal_models_are_not_told_apart(setting):
    assert coverage(setting, 2000)[0] >= 0.93 - 2 * 0.005
    assert family_error(setting, 2000)[0] <= 0.06 + 2 * 0.005


@pytest.mark.field
@pytest.mark.parametrize("setting", list(unequal_settings()), ids=str)
def test_intervals_hold_the_truth_with_unequal_categories_and_unequal_numbers_of_pairs(setting):
    assert coverage(setting, 2000)[0] >= 0.93 - 2 * 0.006


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--replications", type=int, default=2000)
    options.add_argument("--prompts", type=int, help="only settings of so many prompts")
    options.add_argument(
        "--categories", choices=["alike", "differing"], help="only settings of several such categories"
    )
    options.add_argument(
        "--unequal", action="store_true", help="unequal categories and numbers of pairs; coverage only"
    )
    options.add_argument(
        "--around",
        type=float,
        default=0.0,
        help="also print the coverage over accuracies at most this far away; of one pair a prompt",
    )
    asked = options.parse_args()
    for setting in unequal_settings() if asked.unequal else settings():
        kind = None if setting.num_categories == 1 else "differing" if setting.differing else "alike"
        if asked.prompts not in (None, setting.num_prompts) or asked.categories not in (None, kind):
            continue
        share, width = coverage(setting, asked.replications)
        near = asked.around and setting.num_pairs == 1
        shares = [share, coverage(setting, asked.replications, around=asked.around)[0]] if near else [share]
        errors = () if asked.unequal else family_error(setting, asked.replications)
        numbers = [*map(str, setting), f"{width:.3f}", *(f"{100 * own:.1f}" for own in (*shares, *errors))]
        sys.stdout.write(f"| {' | '.join(numbers)} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
