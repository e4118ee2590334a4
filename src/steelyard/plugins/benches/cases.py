"""A plain benchmark: any case file with rankings or pairs; its headline is the stage's own."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Case, Scores
from steelyard.methods.measures.accuracy import Integers
from steelyard.methods.measures.headlines import Headline, mean_accuracy
from steelyard.methods.measures.resampling import Totals


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Bench:
    """Cases as they are. It reads no foreign rows: convert them first."""

    foreign: str | None = None

    def subset_of(self, file_name: str) -> str | None:
        """A file's name says nothing here."""
        return None

    def prepared(self, case: Case, file_name: str) -> Case:
        """The case itself."""
        return case

    def names_of(self, case: Case) -> tuple[str, ...]:
        """A prompt's id says what it is: its parallel items share it, and equal texts may be meant as two prompts."""
        return (case.prompt.id,)

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """None of its own."""
        return np.zeros((len(cases), 0), dtype=np.int64)

    def headline(self, totals: Totals) -> Headline:
        """Accuracy itself."""
        return mean_accuracy(totals)

    def summarise(self, totals: Totals) -> dict[str, Any]:
        """Nothing beyond accuracy and exact match: the stage's own accuracy is the headline."""
        return {"headline": self.headline(totals).name}


def build(config: Config) -> Bench:
    """The bench."""
    return Bench()
