"""The label error that a benchmark states of itself in its ``bench.toml``.

It stands for people's first answers where these are not in the cases: an export of what people decided has only the
answers that stand, which show no disagreement. It holds for the cases that it was estimated on, and for no others.
"""

from collections.abc import Iterator
from math import isfinite
from typing import Annotated, Literal, Self

import msgspec

from steelyard.core.config import Config, Positive
from steelyard.core.errors import ConfigError
from steelyard.core.types import JsonObject
from steelyard.statistics.intervals import Estimate

_DIGITS = 6
ShareOfPairs = Annotated[float, msgspec.Meta(ge=0, le=1)]


class StatedShare(Config, frozen=True):
    """A share of pairs or prompts with its 95% interval, and the number that it was computed from."""

    value: ShareOfPairs
    n: Positive
    low: ShareOfPairs | None = None
    high: ShareOfPairs | None = None

    @property
    def estimate(self) -> Estimate:
        """The share as an estimate."""
        return Estimate(self.value, self.low, self.high, self.n)


class StatedMeans(Config, frozen=True):
    """The mean over first-tier categories (``macro``) and over all pairs or prompts (``micro``)."""

    macro: StatedShare
    micro: StatedShare

    @classmethod
    def of(cls, macro: Estimate, micro: Estimate) -> Self:
        """Return the means as they are written. Both have a value."""
        shares = (
            StatedShare(
                value=round(float(each), _DIGITS),
                low=None if each.low is None else round(each.low, _DIGITS),
                high=None if each.high is None else round(each.high, _DIGITS),
                n=each.n,
            )
            for each in (macro, micro)
        )
        return cls(**dict(zip(("macro", "micro"), shares, strict=True)))

    def estimates(self) -> dict[str, Estimate]:
        """Return both means by name."""
        return {"macro": self.macro.estimate, "micro": self.micro.estimate}


class StatedLabelError(Config, frozen=True):
    """The share of wrong labels of a benchmark, as its makers estimated it from people's answers to the same pairs."""

    method: Literal["people"]
    """The way in which it was estimated: by how often people contradict each other (docs/measures.md)."""
    items: Positive
    """The number of cases that it was estimated on."""
    files: dict[str, str]
    """The case files that it was estimated on by name, with their SHA-256."""
    label: StatedMeans
    """The label error if people err independently."""
    most: StatedMeans
    """The label error if all errors are on hard pairs."""
    exact_match: StatedMeans | None = None
    """The share of prompts without a wrong label if people err independently; prompts have several pairs."""

    def check(self) -> None:
        """Raise ConfigError for an interval that does not contain its value."""
        for key, share in self._shares():
            ends = (share.low, share.value, share.high)
            known = [end for end in ends if end is not None]
            if not all(map(isfinite, known)) or sorted(known) != known:
                problem = f"the value {share.value} and its interval {share.low} to {share.high}"
                raise ConfigError(problem, where=f"label_error.{key}", allowed="low <= value <= high, from 0 to 1")

    def holds_for(self, files: dict[str, str], num_items: int) -> bool:
        """Return whether it was estimated on these files, by name with their SHA-256, and on this number of cases."""
        known = {name: sha256.lower() for name, sha256 in self.files.items()}
        return num_items == self.items and files == known

    def record(self) -> JsonObject:
        """Return it as it is written, without ends of intervals that are not known."""
        return _without_nulls(msgspec.to_builtins(self))

    def _shares(self) -> Iterator[tuple[str, StatedShare]]:
        for name, means in (("label", self.label), ("most", self.most), ("exact_match", self.exact_match)):
            if means is not None:
                yield f"{name}.macro", means.macro
                yield f"{name}.micro", means.micro


def _without_nulls(tree: JsonObject) -> JsonObject:
    return {
        key: _without_nulls(value) if isinstance(value, dict) else value
        for key, value in tree.items()
        if value is not None
    }
