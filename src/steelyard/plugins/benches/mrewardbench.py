"""M-RewardBench: RewardBench's four sections in 23 languages, their mean without English, and the drop from English."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case, Scores
from steelyard.plugins.benches._rewardbench import (
    SECTIONS,
    WEIGHT_SETS,
    breakdown_of,
    checked_subset,
    section_records,
)
from steelyard.statistics.aggregation import estimate
from steelyard.statistics.estimates import Estimate
from steelyard.statistics.groups import prompt_names
from steelyard.statistics.headline import (
    NONE_LEFT_OUT,
    Breakdown,
    Formula,
    Headline,
    LanguageTotals,
    LeftOut,
    Part,
    by_language,
    drop_record,
)
from steelyard.statistics.pair_counts import Floats, Integers
from steelyard.statistics.resampling import Totals

LANGUAGES = (
    "arb_Arab", "ces_Latn", "deu_Latn", "ell_Grek", "fra_Latn", "heb_Hebr", "hin_Deva", "ind_Latn", "ita_Latn",
    "jpn_Jpan", "kor_Hang", "nld_Latn", "pes_Arab", "pol_Latn", "por_Latn", "ron_Latn", "rus_Cyrl", "spa_Latn",
    "tur_Latn", "ukr_Cyrl", "vie_Latn", "zho_Hans", "zho_Hant",
)  # fmt: skip
"""The published languages: Chinese in two scripts counts as two. English comes from RewardBench itself."""
CHINESE = ("zho_Hans", "zho_Hant")
ENGLISH = ("eng_Latn", "en", "eng")
_MOST_TOLD = 2
_ABOUT = "the plain mean over 22 languages without English, simplified and traditional Chinese averaged into one"


class Config(BaseConfig, frozen=True):
    """``weights``: M-RewardBench's own (prompt counts after its filter), or RewardBench's. Never mixed."""

    weights: Literal["mrewardbench", "rewardbench"] = "mrewardbench"
    """The weights of the subsets: prompt counts of RewardBench, or of M-RewardBench after its filter."""


class _Spoken(NamedTuple):
    """One language of the bench: its totals and how they sum."""

    own: LanguageTotals
    breakdown: Breakdown


class Bench:
    """Each language sums as RewardBench does. English, where it is there, is kept out of the mean over languages."""

    source_format: str | None = "rewardbench"
    counts_halves = True

    def __init__(self, config: Config) -> None:
        self.weights = config.weights
        self.subsets = WEIGHT_SETS[config.weights]

    def subset_of(self, file_name: str) -> str | None:
        """A file's name says nothing here."""
        return None

    def normalize(self, case: Case, file_name: str) -> Case:
        """The case itself. Raises EvidenceError for one without a language, or of an unknown subset."""
        if case.prompt.language is None:
            found = f"prompt {case.prompt.id!r} has no language"
            raise EvidenceError(found, where=file_name, do="convert each language with --language CODE")
        return checked_subset(case, [subset.name for subset in self.subsets], file_name)

    def resample_ids(self, case: Case) -> tuple[str, ...]:
        """Its id and its text: a prompt is drawn with its parallel items, and with other rows of the same text."""
        return prompt_names(case)

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """None of its own."""
        return np.zeros((len(cases), 0), dtype=np.int64)

    def breakdown(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Breakdown:
        """The four sections of one language and their plain mean."""
        return breakdown_of(totals, self.subsets, left_out)

    def headline(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Headline:
        """Overall, the plain mean over 22 columns: each language's overall, the two Chinese ones averaged first."""
        spoken = self._spoken(totals, left_out)
        missing = {name: why for name in LANGUAGES if (why := _why_not(spoken.get(name))) is not None}
        overall = _mean_part(spoken, lambda own: own.overall)
        return Headline("overall", _ABOUT, overall.formula, overall.n, missing)

    def summarise(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> dict[str, Any]:
        """``languages``: sections and overall of each; and the headline, the mean over the 22 columns.

        ``variance``: the sample variance of the 22 columns (M-RewardBench, Table 9), without an interval: each resample
        would add its own noise to it. ``drop_from_english``: how far that mean lies below English, in one draw of the
        prompts, where English has the same prompts; else null, and ``why``.
        """
        spoken, headline = self._spoken(totals, left_out), self.headline(totals, left_out)
        summary: dict[str, Any] = {
            "weights": self.weights,
            "languages": {name: self._language(one) for name, one in spoken.items()},
            **headline.record(totals),
        }
        if headline.missing:
            return summary
        columns = _columns(spoken, lambda own: own.overall.formula)(totals.point)
        summary["variance"] = Estimate(float(columns.var(ddof=1)), None, None, columns.shape[-1]).record()
        english = next((spoken[name] for name in ENGLISH if name in spoken), None)
        if english is not None:
            summary["drop_from_english"] = _drop(totals, english, spoken)
        return summary

    def _spoken(self, totals: Totals, left_out: LeftOut) -> dict[str, _Spoken]:
        return {
            name: _Spoken(own, self.breakdown(own.totals, own.left_out))
            for name, own in by_language(totals, left_out).items()
        }

    def _language(self, spoken: _Spoken) -> dict[str, Any]:
        totals, own = spoken.own.totals, spoken.breakdown
        found: dict[str, Any] = {"sections": section_records(totals, own, self.subsets)}
        if own.missing:
            return found | {"missing": dict(own.missing)}
        return found | {"overall": estimate(totals, own.overall.formula, own.overall.n).record()}


def build(config: Config) -> Bench:
    """The bench."""
    return Bench(config)


def _columns(spoken: Mapping[str, _Spoken], choose: Callable[[Breakdown], Formula]) -> Formula:
    """A value of each of the 22 columns of Table 9: (…, cell, column) to (…, 22)."""
    formulas = {name: one.own.lift(choose(one.breakdown)) for name, one in spoken.items() if name in LANGUAGES}

    def columns(sums: Floats) -> Floats:
        values = {name: formula(sums) for name, formula in formulas.items()}
        chinese = np.mean([values.pop(name) for name in CHINESE], axis=0)
        return np.stack([*values.values(), chinese], axis=-1)

    return columns


def _mean_part(spoken: Mapping[str, _Spoken], choose: Callable[[Breakdown], Part]) -> Part:
    """The plain mean of a part over the 22 columns."""
    columns = _columns(spoken, lambda own: choose(own).formula)
    n = sum(choose(one.breakdown).n for name, one in spoken.items() if name in LANGUAGES)
    return Part(lambda sums: columns(sums).mean(axis=-1), n)


def _drop(totals: Totals, english: _Spoken, spoken: Mapping[str, _Spoken]) -> dict[str, Any]:
    """How far the mean over languages lies below English, overall and by section."""
    if english.breakdown.missing:
        n = int(english.breakdown.overall.n)
        why = (
            f"English has {n:,} prompts, other than those of the languages: `steelyard languages` compares shared ones"
        )
        return {"absolute": Estimate(None, None, None, n).record(), "why": why}

    def below(choose: Callable[[Breakdown], Part]) -> dict[str, Any]:
        own = choose(english.breakdown)
        return drop_record(totals, Part(english.own.lift(own.formula), own.n), _mean_part(spoken, choose))

    sections = {name: below(lambda own, name=name: own.sections[name]) for name in SECTIONS}
    return below(lambda own: own.overall) | {"sections": sections}


def _why_not(spoken: _Spoken | None) -> str | None:
    if spoken is None:
        return "no cases of it"
    missing = spoken.breakdown.missing
    told = [f"{name}: {why}" for name, why in missing.items()]
    more = f", and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    return f"{len(missing)} subsets incomplete ({', '.join(told[:_MOST_TOLD])}{more})" if missing else None
