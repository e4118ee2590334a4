"""Two models by a measure that is one sum over another: the difference of their means over the same prompts."""

from typing import Any, NamedTuple

import numpy as np

from steelyard.statistics.aggregation import mean_over_groups
from steelyard.statistics.blocks import Blocks, Terms, add_up, evidence_of
from steelyard.statistics.estimates import Estimate, difference
from steelyard.statistics.prompt_means import Ratio, by_category
from steelyard.statistics.tallies import ratio


class PairedMean(NamedTuple):
    """The first model's mean over categories minus the second's; ``p`` is two-sided, of the test whose interval
    stands beside it.

    Prompts for which one of the two has no value are left out for both; n says what is left. ``p`` is null with them.
    """

    difference: Estimate
    p: float | None

    def record(self) -> dict[str, Any]:
        """The difference as it is written."""
        return {"difference": self.difference.record(), "p": self.p}


def paired_mean(blocks: Blocks, first: Ratio, second: Ratio) -> PairedMean:
    """The paired difference over the prompts that have a value of both."""
    both = (first.below > 0) & (second.below > 0)
    grouping = by_category(blocks)
    assert (first.below[both] == second.below[both]).all(), "the same things of the same prompts"
    apart = np.abs(first.above - second.above)
    columns = [first.above, second.above, apart, first.below]
    terms = Terms(np.flatnonzero(both), grouping.group[both], [column[both] for column in columns])
    sums = add_up(blocks, terms, len(grouping.names))
    point, drawn = (
        mean_over_groups(ratio(own[..., 0], own[..., 3])) - mean_over_groups(ratio(own[..., 1], own[..., 3]))
        for own in sums
    )
    tested = difference(
        float(point),
        np.asarray(drawn),
        first.below[both].sum(),
        evidence_of(blocks, grouping.group, both),
        discordance=float(mean_over_groups(ratio(sums.point[:, 2], sums.point[:, 3]))),
        largest=float((apart[both] / first.below[both]).max(initial=0.0)) or 1.0,
    )
    return PairedMean(tested.estimate, None if tested.estimate.value is None else tested.p)
