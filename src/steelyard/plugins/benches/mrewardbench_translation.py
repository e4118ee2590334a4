"""M-RewardBench's translation task: German and Chinese from and into English, easy and hard, and the gaps between."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case, Scores
from steelyard.methods.measures import aggregation
from steelyard.methods.measures.accuracy import PAIRS, Floats, Integers
from steelyard.methods.measures.headlines import Headline
from steelyard.methods.measures.resampling import Totals
from steelyard.methods.measures.strata import prompt_names

LEVELS = ("easy", "hard")
DIRECTIONS = ("de_en", "en_de", "zh_en", "en_zh")
SUBSETS = tuple(f"{level}_{direction}" for level in LEVELS for direction in DIRECTIONS)
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
    """Subset accuracies and their plain mean (M-RewardBench, Table 5)."""

    foreign: str | None = "rewardbench"

    def subset_of(self, file_name: str) -> str | None:
        """A file's name says nothing here."""
        return None

    def prepared(self, case: Case, file_name: str) -> Case:
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

    def names_of(self, case: Case) -> tuple[str, ...]:
        """Its id and its text: an easy and a hard pair of answers may be of one request."""
        return prompt_names(case)

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """None of its own."""
        return np.zeros((len(cases), 0), dtype=np.int64)

    def headline(self, totals: Totals) -> Headline:
        """Overall, the plain mean of the eight subsets (M-RewardBench, Table 5)."""
        groups = _groups(totals)
        absent = [name for name in SUBSETS if name not in groups.names]
        n = (groups.members @ totals.point)[:, PAIRS].sum()
        about = "the plain mean of the eight subsets"
        return Headline(
            "overall", about, lambda sums: _mean(sums, groups, SUBSETS), n, dict.fromkeys(absent, "no cases of it")
        )

    def summarise(self, totals: Totals) -> dict[str, Any]:
        """``sections``: the eight subsets, and the headline; with all of them `GAPS`."""
        groups, headline = _groups(totals), self.headline(totals)
        sections = {
            name: aggregation.estimate_macro(totals, groups.only(name), aggregation.ACCURACY).record()
            for name in SUBSETS
            if name in groups.names
        }
        summary = {"sections": sections, **headline.record(totals)}
        if headline.missing:
            return summary

        def gap(sums: Floats, ends: tuple[Sequence[str], Sequence[str]]) -> Floats:
            return _mean(sums, groups, ends[0]) - _mean(sums, groups, ends[1])

        gaps = {
            name: aggregation.estimate(totals, lambda sums, ends=ends: gap(sums, ends), headline.n).record()
            for name, ends in GAPS.items()
        }
        return summary | {"gaps": gaps}


def build(config: Config) -> Bench:
    """The bench."""
    return Bench()


def _groups(totals: Totals) -> aggregation.Groups:
    return aggregation.group_cells(totals.cells, lambda cell: cell.subset)


def _mean(sums: Floats, groups: aggregation.Groups, chosen: Sequence[str]) -> Floats:
    return aggregation.macro(sums, groups.only(*chosen), aggregation.ACCURACY)


def subset_named(given: str) -> str | None:
    """The one name of a subset, however it is spelt (`maple-zh2en-easy`, `easy_zh_en`); null where it is not told."""
    lower = given.lower()
    levels = [level for level in LEVELS if level in lower]
    directions = {f"{_CODES[one]}_{other}" for one, two in _DIRECTION.findall(lower) for other in [_CODES[two]]}
    known = directions & set(DIRECTIONS)
    return f"{levels[0]}_{known.pop()}" if len(levels) == 1 and len(known) == 1 else None
