"""Two models on the same prompts: the paired difference, what chance alone would give, and what n could show at all."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.statistics.aggregation import ACCURACY, EXACT_MATCH, Estimate, share_difference
from steelyard.statistics.groups import Layout
from steelyard.statistics.pair_counts import EXACT, Booleans, Integers
from steelyard.statistics.resampling import Items

_POWER_AND_LEVEL = 1.959964 + 0.841621
"""The normal quantiles of a two-sided level of 5 % and of a power of 80 %."""


class Comparison(NamedTuple):
    """The first model minus the second.

    ``p_accuracy``: two-sided, of the test whose interval stands beside the difference. ``p_exact_match``: McNemar's
    exact test on the prompts that only one of the two has right, ``only_first`` and ``only_second``. ``detectable``:
    the smallest true difference in accuracy that this many prompts would show in four cases out of five.
    """

    accuracy: Estimate
    exact_match: Estimate
    p_accuracy: float
    p_exact_match: float
    only_first: int
    only_second: int
    detectable: float

    def record(self) -> dict[str, Any]:
        """The comparison as it is written."""
        named = {"accuracy": self.accuracy.record(), "exact_match": self.exact_match.record()}
        return self._asdict() | named


def compare(layout: Layout, first: Integers, second: Integers, *, num_resamples: int, seed: int) -> Comparison:
    """Compare two tables of statistics, shape (prompt, 4), over the same prompts in the same order.

    Prompts are drawn once for both (a paired bootstrap), within category and subset, parallel items together.
    Each measure has drawings of its own. Asserts that both count the same pairs and prompts.
    """
    both = Items(layout, np.concatenate([first, second], axis=1), num_resamples)
    accuracy = share_difference(both, ACCURACY, seed=seed)
    exact_match = share_difference(both, EXACT_MATCH, seed=seed)
    only_first = int((first[:, EXACT] > second[:, EXACT]).sum())
    only_second = int((second[:, EXACT] > first[:, EXACT]).sum())
    return Comparison(
        accuracy.estimate,
        exact_match.estimate,
        accuracy.p,
        mcnemar_p(only_first, only_second),
        only_first,
        only_second,
        accuracy.error * _POWER_AND_LEVEL,
    )


def mcnemar_p(only_first: int, only_second: int) -> float:
    """The exact two-sided McNemar test: whether the prompts that one model alone has right fall evenly to both."""
    from scipy.stats import binomtest

    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for how many there are (Holm, 1979), in the order given."""
    order = np.argsort(p_values, kind="stable")
    corrected = np.empty(len(p_values))
    so_far = 0.0
    for place, index in enumerate(order):
        so_far = max(so_far, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = so_far
    return corrected.tolist()


def ranks_beyond_doubt(differs: Booleans) -> list[tuple[int, int]]:
    """The best and the worst rank of each model, from 1: those it surely beats are below, those that beat it above.

    ``differs``: shape (model, model), true where the row is better beyond doubt.
    """
    number = len(differs)
    return [(1 + int(differs[:, one].sum()), number - int(differs[one].sum())) for one in range(number)]
