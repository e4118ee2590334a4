"""M-RewardBench: RewardBench's four sections in 23 languages, their mean without English, and the drop from English."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case, Scores
from steelyard.methods.measures import aggregation
from steelyard.methods.measures.accuracy import Floats, Integers
from steelyard.methods.measures.headlines import Headline
from steelyard.methods.measures.resampling import Totals
from steelyard.methods.measures.strata import prompt_names
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

    def names_of(self, case: Case) -> tuple[str, ...]:
        """Its id and its text: a prompt is drawn with its parallel items, and with other rows of the same text."""
        return prompt_names(case)

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """None of its own."""
        return np.zeros((len(cases), 0), dtype=np.int64)

    def headline(self, totals: Totals) -> Headline:
        """Overall, the plain mean over the 23 languages, of which each is the mean of its four sections."""
        own = self._by_language(totals)
        absent = {name: why for name in LANGUAGES if (why := _why_not(totals, own.get(name))) is not None}
        others = [own[name] for name in LANGUAGES if name not in absent]

        def mean(sums: Floats) -> Floats:
            return np.mean([one.overall(sums) for one in others], axis=0)

        n = sum(one.num_prompts(totals) for one in others)
        return Headline("overall", "the plain mean over 23 languages without English", mean, n, absent)

    def summarise(self, totals: Totals) -> dict[str, Any]:
        """``languages``: sections and overall of each; and the headline, their plain mean.

        ``drop_from_english``: English minus that mean, in one draw of the prompts (M-RewardBench, section 4).
        """
        own, headline = self._by_language(totals), self.headline(totals)
        summary: dict[str, Any] = {
            "weights": self.weights,
            "languages": {name: _language(totals, one) for name, one in own.items()},
            **headline.record(totals),
        }
        english = next((own[name] for name in ENGLISH if name in own and not own[name].missing(totals)), None)
        if english is not None and not headline.missing:
            drop = aggregation.estimate(totals, lambda sums: english.overall(sums) - headline.formula(sums), headline.n)
            summary["drop_from_english"] = drop.record()
        return summary

    def _by_language(self, totals: Totals) -> dict[str, Arithmetic]:
        names = sorted({cell.language for cell in totals.cells if cell.language is not None})
        return {name: Arithmetic(self.subsets, _subsets_of(totals, name)) for name in names}


def build(config: Config) -> Bench:
    """The bench."""
    return Bench(config)


def _subsets_of(totals: Totals, language: str) -> aggregation.Groups:
    return aggregation.group_cells(totals.cells, lambda cell: cell.subset if cell.language == language else None)


def _language(totals: Totals, own: Arithmetic) -> dict[str, Any]:
    missing = own.missing(totals)
    found: dict[str, Any] = {"sections": own.sections(totals, missing)}
    if missing:
        return found | {"missing": missing}
    return found | {"overall": aggregation.estimate(totals, own.overall, own.num_prompts(totals)).record()}


def _why_not(totals: Totals, own: Arithmetic | None) -> str | None:
    if own is None:
        return "no cases of it"
    missing = own.missing(totals)
    return f"{len(missing)} subsets incomplete" if missing else None
