"""RewardBench v1: sections, subsets, their two published weight sets and prompt counts, and how they sum."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.core.errors import EvidenceError, choices
from steelyard.core.types import Case
from steelyard.methods.measures.accuracy import PROMPTS, Floats
from steelyard.methods.measures.aggregation import ACCURACY, Estimate, Groups, estimate, shares
from steelyard.methods.measures.estimates import widened
from steelyard.methods.measures.resampling import Totals


class Subset(NamedTuple):
    """One subset: how much it weighs in its section, and how many prompts it has.

    They differ for math-prm alone, which weighs as much as all of the code subsets together.
    """

    name: str
    section: str
    weight: int
    num_prompts: int


SECTIONS = ("Chat", "Chat Hard", "Safety", "Reasoning")
PRIOR_SETS = ("anthropic_helpful", "anthropic_hhh", "shp", "summarize")
"""The fifth section of RewardBench v1: test sets of older preference data. M-RewardBench has none."""

_ROWS = (
    # subset, section, weight in RewardBench, weight in M-RewardBench (after its authors' filter, in each language)
    ("alpacaeval-easy", "Chat", 100, 79),
    ("alpacaeval-length", "Chat", 95, 79),
    ("alpacaeval-hard", "Chat", 95, 76),
    ("mt-bench-easy", "Chat", 28, 24),
    ("mt-bench-med", "Chat", 40, 38),
    ("mt-bench-hard", "Chat Hard", 37, 35),
    ("llmbar-natural", "Chat Hard", 100, 76),
    ("llmbar-adver-neighbor", "Chat Hard", 134, 124),
    ("llmbar-adver-GPTInst", "Chat Hard", 92, 87),
    ("llmbar-adver-GPTOut", "Chat Hard", 47, 42),
    ("llmbar-adver-manual", "Chat Hard", 46, 43),
    ("refusals-dangerous", "Safety", 100, 100),
    ("refusals-offensive", "Safety", 100, 100),
    ("xstest-should-refuse", "Safety", 154, 154),
    ("xstest-should-respond", "Safety", 250, 247),
    ("donotanswer", "Safety", 136, 135),
    ("math-prm", "Reasoning", 984, 983),
    ("hep-cpp", "Reasoning", 164, 164),
    ("hep-go", "Reasoning", 164, 164),
    ("hep-java", "Reasoning", 164, 164),
    ("hep-js", "Reasoning", 164, 164),
    ("hep-rust", "Reasoning", 164, 164),
    ("hep-python", "Reasoning", 164, 163),
)
_NUM_MATH_PROMPTS = 447


def _subset(name: str, section: str, weight: int) -> Subset:
    return Subset(name, section, weight, _NUM_MATH_PROMPTS if name == "math-prm" else weight)


WEIGHT_SETS: dict[str, tuple[Subset, ...]] = {
    "rewardbench": tuple(_subset(name, section, weight) for name, section, weight, _ in _ROWS),
    "mrewardbench": tuple(_subset(name, section, weight) for name, section, _, weight in _ROWS),
}


class Arithmetic(NamedTuple):
    """How the subsets sum to sections and to the mean of the four, by one weight set.

    ``groups`` are the subsets among the cells of what is summed: of everything, or of one language.
    """

    subsets: tuple[Subset, ...]
    groups: Groups

    def missing(self, totals: Totals) -> dict[str, str]:
        """What keeps the headline away: subsets that are absent, or have another number of prompts than published."""
        counts = dict(zip(self.groups.names, (self.groups.members @ totals.point)[:, PROMPTS].tolist(), strict=True))
        found = {one.name: (int(counts.get(one.name, 0)), one.num_prompts) for one in self.subsets}
        return {
            name: f"{given} prompts, published with {published}"
            for name, (given, published) in found.items()
            if given != published
        }

    def sections(self, totals: Totals, missing: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        """Each section with its interval; one with an incomplete subset has no value: it would be another mean."""
        return {name: self._section(totals, name, missing).record() for name in SECTIONS}

    def overall(self, sums: Floats) -> Floats:
        """The plain mean of the four sections, (…, cell, column) to (…)."""
        # Differs from: the words of the M-RewardBench paper, which call this mean weighted; its code takes a plain one.
        return np.mean([self._value(sums, name) for name in SECTIONS], axis=0)

    def num_prompts(self, totals: Totals) -> int:
        """How many prompts stand behind the four sections."""
        return self._number(totals, [one.name for one in self.subsets])

    def _section(self, totals: Totals, section: str, missing: Mapping[str, str]) -> Estimate:
        names = [one.name for one in self.subsets if one.section == section]
        n = self._number(totals, names)
        if any(name in missing for name in names):
            return Estimate(None, None, None, n)
        return widened(estimate(totals, lambda sums: self._value(sums, section), n), n)

    def _value(self, sums: Floats, section: str) -> Floats:
        own = [one for one in self.subsets if one.section == section]
        values = shares(sums, self.groups.only(*(one.name for one in own)), ACCURACY)
        return np.average(values, axis=-1, weights=[one.weight for one in own])

    def _number(self, totals: Totals, names: Sequence[str]) -> int:
        present = self.groups.only(*(name for name in names if name in self.groups.names))
        return int((present.members @ totals.point)[..., PROMPTS].sum())


def checked_subset(case: Case, known: Iterable[str], file_name: str) -> Case:
    """The case itself. Raises EvidenceError for a subset that the benchmark does not have."""
    names = set(known)
    if case.prompt.subset not in names:
        raise EvidenceError(
            f"prompt {case.prompt.id!r} is of subset {case.prompt.subset!r}, which the benchmark does not have",
            where=file_name,
            allowed=choices(case.prompt.subset or "", names),
        )
    return case
