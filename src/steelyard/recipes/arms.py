"""Arms of an experiment: models trained on different things with the same seeds, and measured on the same prompts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.arrays import Integers
from steelyard.core.types import Run
from steelyard.evaluation.evaluations import read_beside
from steelyard.io.run_folder import read_run
from steelyard.recipes.experiments import model_name, run_name
from steelyard.statistics.aggregation import ACCURACY, EXACT_MATCH, by_category, estimate_macro
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Layout
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.significance import Comparison, compare, holm

NUM_RESAMPLES = 2000


class Arm(NamedTuple):
    """One arm over all its seeds: what it was trained on, its measures, and how far its seeds lie apart.

    Accuracy and exact match are those of a seed drawn at random: statistics are summed over seeds before prompts are
    redrawn. ``num_prompts`` and ``num_pairs`` are means of what was trained on.
    """

    name: str
    num_prompts: float
    num_pairs: float
    num_weights: int
    accuracy: Estimate
    exact_match: Estimate
    by_seed: tuple[float, ...]

    @property
    def spread(self) -> float:
        """The standard deviation of the accuracy over seeds."""
        return float(np.std(self.by_seed, ddof=1))

    def record(self) -> dict[str, Any]:
        """The arm as it is written."""
        estimates = {"accuracy": self.accuracy.record(), "exact_match": self.exact_match.record()}
        own = self._asdict() | estimates
        own["accuracy_by_seed"] = list(own.pop("by_seed"))
        return own | {"spread": self.spread}


class Against(NamedTuple):
    """An arm minus another, paired by prompt over the same seeds."""

    first: str
    second: str
    comparison: Comparison
    p_corrected: float

    def record(self) -> dict[str, Any]:
        """The difference as it is written."""
        named = {"first": self.first, "second": self.second}
        return {**named, **self.comparison.record(), "p_corrected": self.p_corrected}


class Measured(NamedTuple):
    """All arms, their statistics summed over seeds (shape (prompt, 4) each), and how the prompts are laid out."""

    arms: tuple[Arm, ...]
    statistics: Mapping[str, Integers]
    layout: Layout


def read_arms(names: Sequence[str], seeds: Sequence[int], out: Path) -> Measured:
    """The arms that were trained and evaluated below ``out``. Raises as reading evaluations side by side does."""
    beside = read_beside([out / run_name(arm, seed) for arm in names for seed in seeds])
    groups = [beside.evaluated[start : start + len(seeds)] for start in range(0, len(beside.evaluated), len(seeds))]
    statistics = {arm: np.sum([one.statistics for one in own], axis=0) for arm, own in zip(names, groups, strict=True)}
    arms = tuple(
        _arm(
            arm,
            statistics[arm],
            beside.layout,
            trained=[read_run(out / model_name(arm, seed)) for seed in seeds],
            evaluated=[one.run for one in own],
        )
        for arm, own in zip(names, groups, strict=True)
    )
    return Measured(arms, statistics, beside.layout)


def differences(measured: Measured, pairs: Sequence[tuple[str, str]]) -> tuple[Against, ...]:
    """The first arm minus the second of each pair, corrected for how many pairs there are (Holm)."""
    tables = measured.statistics
    found = [
        compare(measured.layout, tables[first], tables[second], num_resamples=NUM_RESAMPLES, seed=0)
        for first, second in pairs
    ]
    corrected = holm([one.p_accuracy for one in found])
    return tuple(Against(*pair, one, p) for pair, one, p in zip(pairs, found, corrected, strict=True))


def _arm(name: str, table: Integers, layout: Layout, *, trained: Sequence[Run], evaluated: Sequence[Run]) -> Arm:
    totals = resample(Items(layout, table, NUM_RESAMPLES), seed=0)
    categories = by_category(totals.cells)
    # Sums over seeds divide away in a share; only n has to be counted once.
    accuracy, exact = (estimate_macro(totals, categories, share) for share in (ACCURACY, EXACT_MATCH))
    return Arm(
        name,
        float(np.mean([one.summary["num_prompts"] for one in trained])),
        float(np.mean([one.summary["num_pairs"] for one in trained])),
        trained[0].summary["num_weights"],
        replace(accuracy, n=accuracy.n // len(evaluated)),
        replace(exact, n=exact.n // len(evaluated)),
        tuple(one.summary["accuracy"]["value"] for one in evaluated),
    )
