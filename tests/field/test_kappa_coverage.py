"""Coverage of the intervals of kappa with English, of one language and of the mean over languages.

Run: PYTHONPATH=src python tests/field/test_kappa_coverage.py [--replications 1000]
(prints the lines of the table of kappa in docs/log/statistics.md)

A model has the preferred answer right in every language with the same probability. How hard an item is has a normal
distribution, whose share of the variance decides how far two languages agree. The mean over languages is resampled by
item, as `compare_languages` does it, within ten categories or without.
"""

import argparse
import sys
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from steelyard.statistics.agreement import NUM_CELLS, beyond_chance, kappa, linear_effect
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of

NUM_RESAMPLES = 300


class Setting(NamedTuple):
    """One cell of the table. ``shared``: the share of the variance that is the item's."""

    num_prompts: int
    num_languages: int
    accuracy: float
    shared: float
    num_categories: int = 1


def settings():
    """Every cell of the table."""
    for n, languages, accuracy, shared in product((30, 60, 200), (1, 5, 22), (0.5, 0.7, 0.9), (0.05, 0.5, 0.9)):
        yield Setting(n, languages, accuracy, shared)
    for languages, shared in product((1, 22), (0.05, 0.5, 0.9)):
        yield Setting(200, languages, 0.8, shared, 10)
        yield Setting(1000, languages, 0.95, shared)


def true_kappa(setting):
    """Kappa of the population, by the probability that both languages are right."""
    points, weights = np.polynomial.hermite_e.hermegauss(120)
    right = ndtr((ndtri(setting.accuracy) - np.sqrt(setting.shared) * points) / np.sqrt(1 - setting.shared))
    weights = weights / weights.sum()
    same = weights @ (right**2 + (1 - right) ** 2)
    chance = setting.accuracy**2 + (1 - setting.accuracy) ** 2
    return (same - chance) / (1 - chance)


def coverage(setting, num_replications, seed=0):
    """The percentages of intervals that hold the truth and of samples without one, and the mean width."""
    rng = np.random.default_rng([seed, *(int(1000 * value) for value in setting)])
    languages = [f"l{number:02}" for number in range(setting.num_languages)]
    category = np.arange(setting.num_prompts) % setting.num_categories
    labels = [
        Label(f"p{row}", Cell(f"c{group}", None, name)) for row, group in enumerate(category) for name in languages
    ]
    layout = layout_of(labels)
    places = [[at for at, cell in enumerate(layout.cells) if cell.language == name] for name in languages]
    members, truth = np.ones((1, len(layout.cells))), true_kappa(setting)
    hits, widths, absent = 0, [], 0
    for start in range(num_replications):
        item = np.sqrt(setting.shared) * rng.standard_normal((setting.num_prompts, 1))
        noise = np.sqrt(1 - setting.shared) * rng.standard_normal((setting.num_prompts, setting.num_languages + 1))
        is_wrong = (item + noise > ndtri(setting.accuracy)).astype(np.int64)
        rows = np.eye(NUM_CELLS, dtype=np.int64)[(3 * is_wrong[:, :1] + is_wrong[:, 1:]).reshape(-1)]
        totals = resample(Items(layout, rows, NUM_RESAMPLES), seed=start)
        tables, drawn = (
            np.stack([sums[..., place, :].sum(axis=-2) for place in places], axis=-2)
            for sums in (totals.point, totals.resampled)
        )
        value, evidence = float(kappa(tables).mean()), totals.evidence(members)
        n = len(places) if len(places) > 1 else tables.sum()
        found = beyond_chance(value, tables, n, evidence, linear_effect(value, tables, drawn, evidence))
        if found.low is None:
            absent += 1
            continue
        hits += found.low <= truth <= found.high
        widths.append(found.high - found.low)
    if not widths:
        return None, 100.0, None
    return 100 * hits / len(widths), 100 * absent / num_replications, float(np.mean(widths))


@pytest.mark.field
@pytest.mark.parametrize("setting", list(settings()), ids=str)
def test_intervals_of_kappa_hold_the_truth(setting):
    held, absent, _ = coverage(setting, 1000)
    assert held is None or absent > 90 or held >= 93 - 2 * 0.8


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--replications", type=int, default=1000)
    asked = options.parse_args()
    for setting in settings():
        held, absent, width = coverage(setting, asked.replications)
        told = "- | -" if held is None else f"{held:.1f} | {width:.2f}"
        sys.stdout.write(f"| {' | '.join(map(str, setting))} | {true_kappa(setting):.2f} | {told} | {absent:.1f} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
