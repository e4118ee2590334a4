"""CheemsBench: Open Prompt and Human Instruction, and the mean of accuracy and exact match over both."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, choices
from steelyard.core.types import Case, Scores
from steelyard.methods.measures import aggregation
from steelyard.methods.measures.accuracy import PROMPTS, Floats, Integers
from steelyard.methods.measures.resampling import Items, resample

SUBSETS = ("open_prompt", "human_instruction")
_IN_FILE_NAMES = {"open": "open_prompt", "human": "human_instruction"}


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Bench:
    """A case's subset is its ``prompt.subset``, else what its file's name says."""

    foreign: str | None = "cheems"

    def subset_of(self, file_name: str) -> str | None:
        """The subset that the file's name tells, None where it names none or both."""
        found = [subset for word, subset in _IN_FILE_NAMES.items() if word in file_name.lower()]
        return found[0] if len(found) == 1 else None

    def prepared(self, case: Case, file_name: str) -> Case:
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

    def unit_of(self, case: Case) -> str:
        """Each prompt is drawn with its parallel items."""
        return case.prompt.id

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """None of its own."""
        return np.zeros((len(cases), 0), dtype=np.int64)

    def summarise(self, items: Items, *, seed: int) -> dict[str, Any]:
        """``subsets`` with accuracy and exact match, and ``overall`` where both subsets are there, else ``missing``.

        In a subset both are means over first-tier categories; Overall is the mean of the four (CHEEMS, Table 2).
        """
        totals = resample(items, seed=seed)
        groups = {name: aggregation.by_category(totals.cells, subset=name) for name in SUBSETS}
        present = [name for name in SUBSETS if groups[name].names]
        measures = {"accuracy": aggregation.ACCURACY, "exact_match": aggregation.EXACT_MATCH}
        summary: dict[str, Any] = {
            "subsets": {
                name: {
                    title: aggregation.estimate_macro(totals, groups[name], share).record()
                    for title, share in measures.items()
                }
                for name in present
            }
        }
        if len(present) < len(SUBSETS):
            return summary | {"missing": {name: "no cases of it" for name in SUBSETS if name not in present}}

        def overall(sums: Floats) -> Floats:
            four = [aggregation.macro(sums, groups[name], share) for name in SUBSETS for share in measures.values()]
            return np.mean(four, axis=0)

        num_prompts = totals.point[:, PROMPTS].sum()
        return summary | {"overall": aggregation.estimate(totals, overall, num_prompts).record()}


def build(config: Config) -> Bench:
    """The bench."""
    return Bench()


def _named(given: str) -> str:
    subset = given.strip().lower().replace(" ", "_").replace("-", "_")
    if subset not in SUBSETS:
        raise ConfigError(
            f"CheemsBench has no subset {given!r}", where="prompt.subset", allowed=choices(given, SUBSETS)
        )
    return subset
