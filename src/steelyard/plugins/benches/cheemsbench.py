"""CheemsBench: Open Prompt and Human Instruction, and the mean of accuracy and exact match over both."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, choices
from steelyard.core.types import Case, Scores
from steelyard.statistics import aggregation
from steelyard.statistics.groups import prompt_names
from steelyard.statistics.headline import (
    NONE_LEFT_OUT,
    Breakdown,
    Formula,
    Headline,
    LeftOut,
    Part,
    mean_of_sections,
    missing_parts,
    num_prompts,
    subset_of,
)
from steelyard.statistics.pair_counts import Integers
from steelyard.statistics.resampling import Totals

PUBLISHED = {"open_prompt": 1146, "human_instruction": 1346}
"""The subsets and their numbers of prompts (CHEEMS, Table 1)."""
SUBSETS = tuple(PUBLISHED)
_MEASURES = {"accuracy": aggregation.ACCURACY, "exact_match": aggregation.EXACT_MATCH}
_IN_FILE_NAMES = {"open": "open_prompt", "human": "human_instruction"}


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Bench:
    """A case's subset is its ``prompt.subset``, else what its file's name says."""

    source_format: str | None = "cheems"
    counts_halves = False

    def subset_of(self, file_name: str) -> str | None:
        """The subset that the file's name tells, None where it names none or both."""
        found = [subset for word, subset in _IN_FILE_NAMES.items() if word in file_name.lower()]
        return found[0] if len(found) == 1 else None

    def normalize(self, case: Case, file_name: str) -> Case:
        """The case with its subset. Raises ConfigError where neither the case nor the file's name tells it."""
        subset = self.subset_of(file_name) if case.prompt.subset is None else _named(case.prompt.subset)
        if subset is None:
            raise ConfigError(
                "cannot tell which subset of CheemsBench this is",
                where=file_name,
                allowed=f"prompt.subset ({' or '.join(SUBSETS)}) in each case, or a file name with `open` or `human` "
                "in it, not both",
            )
        if subset == case.prompt.subset:
            return case
        return msgspec.structs.replace(case, prompt=msgspec.structs.replace(case.prompt, subset=subset))

    def resample_ids(self, case: Case) -> tuple[str, ...]:
        """Its id and its text: a prompt is drawn with its parallel items, and with other rows of the same text."""
        return prompt_names(case)

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """None of its own."""
        return np.zeros((len(cases), 0), dtype=np.int64)

    def breakdown(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Breakdown:
        """The mean of accuracy and exact match of each subset, and their plain mean."""
        counts, groups = num_prompts(totals, subset_of, left_out), _groups(totals)
        sections = {name: Part(_mean_of_measures(own), counts[name]) for name, own in groups.items() if own.names}
        n = sum(part.n for part in sections.values())
        return Breakdown(sections, Part(mean_of_sections(sections), n), missing_parts(counts, PUBLISHED))

    def headline(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Headline:
        """Overall, the mean of accuracy and exact match over both subsets (CHEEMS, Table 2)."""
        own = self.breakdown(totals, left_out)
        about = "the mean of accuracy and exact match over Open Prompt and Human Instruction"
        return Headline("overall", about, own.overall.formula, own.overall.n, own.missing)

    def summarise(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> dict[str, Any]:
        """``subsets`` with accuracy and exact match, both means over first-tier categories, and the headline.

        ``by_category`` of a subset has its own categories: the two subsets have different category systems.
        """
        subsets = {
            name: {
                title: aggregation.estimate_macro(totals, groups, share).record() for title, share in _MEASURES.items()
            }
            | {"by_category": aggregation.estimate_groups(totals, groups)}
            for name, groups in _groups(totals).items()
            if groups.names
        }
        return {"subsets": subsets, **self.headline(totals, left_out).record(totals)}


def build(config: Config) -> Bench:
    """The bench."""
    return Bench()


def _groups(totals: Totals) -> dict[str, aggregation.Groups]:
    return {name: aggregation.by_category(totals.cells, subset=name) for name in SUBSETS}


def _mean_of_measures(groups: aggregation.Groups) -> Formula:
    return lambda sums: np.mean([aggregation.macro(sums, groups, share) for share in _MEASURES.values()], axis=0)


def _named(given: str) -> str:
    subset = given.strip().lower().replace(" ", "_").replace("-", "_")
    if subset not in SUBSETS:
        raise ConfigError(
            f"CheemsBench has no subset {given!r}", where="prompt.subset", allowed=choices(given, SUBSETS)
        )
    return subset
