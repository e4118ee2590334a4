"""The bench's own headline in a comparison: each model's value, and the paired differences of every two."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from steelyard.evaluation.evaluations import Beside
from steelyard.evaluation.headlines import headline_of
from steelyard.statistics.comparison import holm
from steelyard.statistics.standings import draw_headlines


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
    drawn = draw_headlines(beside.layout, tables, headline.formula, num_resamples=num_resamples, seed=seed)
    differences = [drawn.minus(first, second, headline.n) for first, second in pairs]
    corrected = holm([one.p for one in differences])
    return Ranked(
        record,
        [
            one.estimate.record() | {"p": one.p, "p_corrected": p_corrected}
            for one, p_corrected in zip(differences, corrected, strict=True)
        ],
    )
