"""M-RewardBench: RewardBench's four sections in 23 languages, their mean without English, and the drop from English."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case, Scores
from steelyard.methods.measures import aggregation
from steelyard.methods.measures.accuracy import Floats, Integers
from steelyard.methods.measures.resampling import Items, Totals, resample
from steelyard.plugins.benches._rewardbench import WEIGHT_SETS, Arithmetic, checked_subset

LANGUAGES = (
    "arb_Arab", "ces_Latn", "deu_Latn", "ell_Grek", "fra_Latn", "heb_Hebr", "hin_Deva", "ind_Latn", "ita_Latn",
    "jpn_Jpan", "kor_Hang", "nld_Latn", "pes_Arab", "pol_Latn", "por_Latn", "ron_Latn", "rus_Cyrl", "spa_Latn",
    "tur_Latn", "ukr_Cyrl", "vie_Latn", "zho_Hans", "zho_Hant",
)  # fmt: skip
"""The published languages: Chinese in two scripts counts as two. English comes from RewardBench itself."""
ENGLISH = ("eng_Latn", "en", "eng")


class Config(BaseConfig, frozen=True):
    """``weights``: M-RewardBench's own (prompt counts after its filter), or RewardBench's. Never mixed."""

    weights: Literal["mrewardbench", "rewardbench"] = "mrewardbench"


class Bench:
    """Each language sums as RewardBench does. English, where it is there, is kept out of the mean over languages."""

    foreign: str | None = "rewardbench"

    def __init__(self, config: Config) -> None:
        self.weights = config.weights
        self.subsets = WEIGHT_SETS[config.weights]

    def subset_of(self, file_name: str) -> str | None:
        """A file's name says nothing here."""
        return None

    def prepared(self, case: Case, file_name: str) -> Case:
        """The case itself. Raises EvidenceError for one without a language, or of an unknown subset."""
        if case.prompt.language is None:
            found = f"prompt {case.prompt.id!r} has no language"
            raise EvidenceError(found, where=file_name, do="convert each language with --language CODE")
        return checked_subset(case, [subset.name for subset in self.subsets], file_name)

    def unit_of(self, case: Case) -> str:
        """Each prompt is drawn with its parallel items."""
        return case.prompt.id

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """None of its own."""
        return np.zeros((len(cases), 0), dtype=np.int64)

    def summarise(self, items: Items, *, seed: int) -> dict[str, Any]:
        """``languages``: sections and overall of each; ``overall``: their plain mean, where all 23 are complete.

        ``drop_from_english``: English minus that mean, in one draw of the prompts (M-RewardBench, section 4).
        """
        totals = resample(items, seed=seed)
        names = sorted({cell.language for cell in totals.cells if cell.language is not None})
        by_language = {name: Arithmetic(self.subsets, _subsets_of(totals, name)) for name in names}
        missing = {name: own.missing(totals) for name, own in by_language.items()}
        summary: dict[str, Any] = {
            "weights": self.weights,
            "languages": {name: _language(totals, own, missing[name]) for name, own in by_language.items()},
        }
        complete = {name: own for name, own in by_language.items() if not missing[name]}
        absent = {name: _why(missing.get(name)) for name in LANGUAGES if name not in complete}
        if absent:
            return summary | {"missing": absent}
        return summary | _headlines(totals, complete)


def build(config: Config) -> Bench:
    """The bench."""
    return Bench(config)


def _subsets_of(totals: Totals, language: str) -> aggregation.Groups:
    return aggregation.group_cells(totals.cells, lambda cell: cell.subset if cell.language == language else None)


def _language(totals: Totals, own: Arithmetic, missing: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {"sections": own.sections(totals, missing)}
    if missing:
        return found | {"missing": dict(missing)}
    return found | {"overall": aggregation.estimate(totals, own.overall, own.num_prompts(totals)).record()}


def _why(missing: Mapping[str, str] | None) -> str:
    return "no cases of it" if missing is None else f"{len(missing)} subsets incomplete"


def _headlines(totals: Totals, complete: Mapping[str, Arithmetic]) -> dict[str, Any]:
    others = [complete[name] for name in LANGUAGES]

    def mean(sums: Floats) -> Floats:
        return np.mean([own.overall(sums) for own in others], axis=0)

    n = sum(own.num_prompts(totals) for own in others)
    found = {"overall": aggregation.estimate(totals, mean, n).record()}
    english = next((complete[name] for name in ENGLISH if name in complete), None)
    if english is not None:
        drop = aggregation.estimate(totals, lambda sums: english.overall(sums) - mean(sums), n)
        found["drop_from_english"] = drop.record()
    return found
