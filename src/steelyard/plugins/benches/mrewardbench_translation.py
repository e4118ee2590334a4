"""M-RewardBench's translation task: German and Chinese from and into English, easy and hard, and the gaps between."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError
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
    missing_parts,
    num_prompts,
    subset_of,
)
from steelyard.statistics.pair_counts import Integers
from steelyard.statistics.resampling import Totals

LEVELS = ("easy", "hard")
DIRECTIONS = ("de_en", "en_de", "zh_en", "en_zh")
SUBSETS = tuple(f"{level}_{direction}" for level in LEVELS for direction in DIRECTIONS)
PUBLISHED = dict.fromkeys(SUBSETS, 100)
"""The number of pairs in each subset (M-RewardBench, section 3)."""
GAPS = {
    "easy_hard": tuple([name for name in SUBSETS if name.startswith(level)] for level in LEVELS),
    "into_english": ([name for name in SUBSETS if name.endswith("_en")], [name for name in SUBSETS if "_en_" in name]),
}
"""The mean of the first subsets minus that of the second."""
_CODES = {"de": "de", "deu": "de", "zh": "zh", "zho": "zh", "en": "en", "eng": "en"}
_DIRECTION = re.compile(r"(?<![a-z])(deu?|zho?|eng?)(?:_[a-z]{4})?(?:2|-to-|_to_|-|_|>)(deu?|zho?|eng?)(?![a-z])")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Bench:
    """Subset accuracies and their plain mean (M-RewardBench, Table 4)."""

    source_format: str | None = "rewardbench"
    counts_halves = True

    def subset_of(self, file_name: str) -> str | None:
        """A file's name says nothing here."""
        return None

    def normalize(self, case: Case, file_name: str) -> Case:
        """The case under the one name of its subset, with the language into which is translated in its meta.

        Raises EvidenceError where level and direction are not told.
        """
        name = subset_named(case.prompt.subset or "")
        if name is None:
            raise EvidenceError(
                f"prompt {case.prompt.id!r} is of subset {case.prompt.subset!r}: no level and direction",
                where=file_name,
                allowed=", ".join(SUBSETS),
            )
        # A judge is told both languages: that of the request, and the one in which an answer is expected.
        meta = {**(case.prompt.meta or {}), "answer_language": name.rpartition("_")[2]}
        return msgspec.structs.replace(case, prompt=msgspec.structs.replace(case.prompt, subset=name, meta=meta))

    def resample_ids(self, case: Case) -> tuple[str, ...]:
        """Its id and its text: an easy and a hard pair of answers may be of one request."""
        return prompt_names(case)

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """None of its own."""
        return np.zeros((len(cases), 0), dtype=np.int64)

    def breakdown(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Breakdown:
        """The accuracy of each subset and their plain mean."""
        groups, counts = _groups(totals), num_prompts(totals, subset_of, left_out)
        sections = {name: Part(_mean(groups, [name]), counts[name]) for name in SUBSETS if name in groups.names}
        n = sum(part.n for part in sections.values())
        return Breakdown(sections, Part(_mean(groups, list(sections)), n), missing_parts(counts, PUBLISHED))

    def headline(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Headline:
        """Overall, the plain mean of the eight subsets (M-RewardBench, Table 4)."""
        own = self.breakdown(totals, left_out)
        return Headline("overall", "the plain mean of the eight subsets", *own.overall, own.missing)

    def summarise(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> dict[str, Any]:
        """``sections``: the eight subsets, and the headline; with all of them `GAPS`."""
        groups, headline = _groups(totals), self.headline(totals, left_out)
        sections = {
            name: aggregation.estimate_macro(totals, groups.only(name), aggregation.ACCURACY).record()
            for name in SUBSETS
            if name in groups.names
        }
        summary = {"sections": sections, **headline.record(totals)}
        if headline.missing:
            return summary
        gaps = {name: _gap(groups, *ends) for name, ends in GAPS.items()}
        return summary | {
            "gaps": {
                name: aggregation.estimate_difference(totals, gap, headline.n).record() for name, gap in gaps.items()
            }
        }


def build(config: Config) -> Bench:
    """The bench."""
    return Bench()


def _groups(totals: Totals) -> aggregation.Groups:
    return aggregation.group_cells(totals.cells, subset_of)


def _mean(groups: aggregation.Groups, chosen: Sequence[str]) -> Formula:
    return lambda sums: aggregation.macro(sums, groups.only(*chosen), aggregation.ACCURACY)


def _gap(groups: aggregation.Groups, first: Sequence[str], second: Sequence[str]) -> Formula:
    return lambda sums: _mean(groups, first)(sums) - _mean(groups, second)(sums)


def subset_named(given: str) -> str | None:
    """The one name of a subset, however it is spelt (`maple-zh2en-easy`, `easy_zh_en`); null where it is not told."""
    lower = given.lower()
    levels = [level for level in LEVELS if level in lower]
    directions = {f"{_CODES[one]}_{other}" for one, two in _DIRECTION.findall(lower) for other in [_CODES[two]]}
    known = directions & set(DIRECTIONS)
    return f"{levels[0]}_{known.pop()}" if len(levels) == 1 and len(known) == 1 else None
