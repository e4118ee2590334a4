"""A plain benchmark: any case file with rankings or pairs; its headline is the stage's own."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Case, Scores
from steelyard.statistics.aggregation import ACCURACY, Groups, by_category, macro
from steelyard.statistics.headline import NONE_LEFT_OUT, Breakdown, Headline, LeftOut, Part, mean_accuracy
from steelyard.statistics.pair_counts import PAIRS, Integers
from steelyard.statistics.resampling import Totals


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Bench:
    """Cases as they are. It reads no foreign rows: convert them first."""

    source_format: str | None = None
    counts_halves = False

    def subset_of(self, file_name: str) -> str | None:
        """A file's name says nothing here."""
        return None

    def normalize(self, case: Case, file_name: str) -> Case:
        """The case itself."""
        return case

    def resample_ids(self, case: Case) -> tuple[str, ...]:
        """A prompt's id says what it is: its parallel items share it, and equal texts may be meant as two prompts."""
        return (case.prompt.id,)

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """None of its own."""
        return np.zeros((len(cases), 0), dtype=np.int64)

    def breakdown(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Breakdown:
        """Accuracy of each first-tier category and their plain mean."""
        groups = by_category(totals.cells)
        sections = {name: _accuracy(totals, groups.only(name)) for name in groups.names}
        return Breakdown(sections, _accuracy(totals, groups), {})

    def headline(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Headline:
        """Accuracy itself."""
        return mean_accuracy(totals)

    def summarise(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> dict[str, Any]:
        """Nothing beyond accuracy and exact match: the stage's own accuracy is the headline."""
        return {"headline": self.headline(totals).name}


def build(config: Config) -> Bench:
    """The bench."""
    return Bench()


def _accuracy(totals: Totals, groups: Groups) -> Part:
    n = (groups.members @ totals.point)[:, PAIRS].sum()
    return Part(lambda sums: macro(sums, groups, ACCURACY), float(n))
