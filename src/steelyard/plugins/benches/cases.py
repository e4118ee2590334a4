"""A plain benchmark: any case file with rankings or pairs; its headline is the stage's own."""

from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Case
from steelyard.methods.measures.resampling import Items


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

    def summarise(self, items: Items, *, seed: int) -> dict[str, Any]:
        """Nothing beyond accuracy and exact match."""
        return {}


def build(config: Config) -> Bench:
    """The bench."""
    return Bench()
