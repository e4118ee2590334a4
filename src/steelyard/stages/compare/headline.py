"""The bench's own headline in a comparison: each model's value, and the paired differences of every two."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.files.evaluations import Beside
from steelyard.methods.measures.comparison import bootstrap_p, holm
from steelyard.methods.measures.estimates import interval
from steelyard.methods.measures.standings import draw_headlines
from steelyard.plugins.headlines import headline_of


class Ranked(NamedTuple):
    """What models are ranked by. ``differences``: of each comparison, null where the headline is accuracy itself.

    ``record``: for the summary; its ``headline`` is null where the bench is incomplete, and ranks go by accuracy.
    """

    record: dict[str, Any]
    differences: list[dict[str, Any]] | None = None

    @property
    def name(self) -> str:
        """The measure by which models are ranked, under which it stands in an evaluation's summary."""
        return self.record["headline"] or "accuracy"


def compare_headlines(beside: Beside, pairs: Sequence[tuple[int, int]], *, num_resamples: int, seed: int) -> Ranked:
    """The headline of the bench, and of each pair the first model's minus the second's in resamples of the prompts."""
    headline = headline_of(beside)
    if headline.missing:
        return Ranked({"headline": None, "missing": dict(headline.missing)})
    record = {"headline": headline.name, "about": headline.about}
    if headline.name == "accuracy":
        return Ranked(record)
    tables = [own.statistics for own in beside.evaluated]
    point, drawn = draw_headlines(beside.layout, tables, headline.formula, num_resamples=num_resamples, seed=seed)
    p_values = [bootstrap_p(np.asarray(drawn[:, first] - drawn[:, second])) for first, second in pairs]
    return Ranked(
        record,
        [
            interval(float(point[first] - point[second]), drawn[:, first] - drawn[:, second], headline.n).record()
            | {"p": p_value, "p_corrected": corrected}
            for (first, second), p_value, corrected in zip(pairs, p_values, holm(p_values), strict=True)
        ],
    )
