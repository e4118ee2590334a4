"""RewardBench v1 and M-RewardBench: four sections of weighted subsets, in one language or in 23."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError
from steelyard.core.numerics import Floats
from steelyard.core.plugins import Plugin
from steelyard.core.remedies import CODE, Advice, Remedy
from steelyard.core.types import Case, JsonObject
from steelyard.plugins.benches.subset_benches import Benchmark, check_subset, overall
from steelyard.statistics.aggregation import (
    ACCURACY,
    NONE_LEFT_OUT,
    Breakdown,
    Formula,
    Groups,
    Headline,
    LanguageTotals,
    LeftOut,
    Part,
    by_language,
    drop,
    estimate,
    estimate_groups,
    group_cells,
    mean_of_sections,
    missing_parts,
    num_prompts,
    shares,
    subset_of,
)
from steelyard.statistics.bootstrap import Totals
from steelyard.statistics.intervals import Estimate


class WeightedSubset(NamedTuple):
    """A subset, its weight in its section, and its number of prompts.

    Weight and number differ for math-prm alone, which weighs as much as all of the code subsets together.
    """

    name: str
    section: str
    weight: int
    num_prompts: int


SECTIONS = ("Chat", "Chat Hard", "Safety", "Reasoning")
PRIOR_SETS = {"anthropic_helpful": 6192, "anthropic_hhh": 221, "shp": 1741, "summarize": 9000}
"""The fifth section of RewardBench v1, test sets of older preference data, with their numbers of prompts.

M-RewardBench has none.
"""

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


def _subset(name: str, section: str, weight: int) -> WeightedSubset:
    return WeightedSubset(name, section, weight, _NUM_MATH_PROMPTS if name == "math-prm" else weight)


WEIGHT_SETS: dict[str, tuple[WeightedSubset, ...]] = {
    "rewardbench": tuple(_subset(name, section, weight) for name, section, weight, _ in _ROWS),
    "mrewardbench": tuple(_subset(name, section, weight) for name, section, _, weight in _ROWS),
}


LANGUAGES = (
    "arb_Arab", "ces_Latn", "deu_Latn", "ell_Grek", "fra_Latn", "heb_Hebr", "hin_Deva", "ind_Latn", "ita_Latn",
    "jpn_Jpan", "kor_Hang", "nld_Latn", "pes_Arab", "pol_Latn", "por_Latn", "ron_Latn", "rus_Cyrl", "spa_Latn",
    "tur_Latn", "ukr_Cyrl", "vie_Latn", "zho_Hans", "zho_Hant",
)  # fmt: skip
"""The published languages: Chinese in two scripts counts as two. English comes from RewardBench itself."""
CHINESE = ("zho_Hans", "zho_Hant")
ENGLISH = ("eng_Latn", "en", "eng")
_NUM_LISTED = 2


class RewardBenchConfig(BaseConfig, frozen=True):
    """``weights``: RewardBench's own, or those of M-RewardBench (prompt counts after its filter). Never mixed."""

    weights: Literal["rewardbench", "mrewardbench"] = "rewardbench"
    """The weights of the subsets: prompt counts of RewardBench, or of M-RewardBench after its filter."""


class MRewardBenchConfig(BaseConfig, frozen=True):
    """``weights``: M-RewardBench's own (prompt counts after its filter), or RewardBench's. Never mixed."""

    weights: Literal["mrewardbench", "rewardbench"] = "mrewardbench"
    """The weights of the subsets: prompt counts of RewardBench, or of M-RewardBench after its filter."""


class LanguagePart(NamedTuple):
    """One language of the bench: its totals and how they sum."""

    language: LanguageTotals
    breakdown: Breakdown


def _breakdown(subsets: Sequence[WeightedSubset]) -> Callable[..., Breakdown]:
    """Return the breakdown of one language: its sections, each the weighted mean of its subsets, and their plain mean.

    Sections and subsets without a prompt are left out.
    """

    def breakdown(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Breakdown:
        # Differs from: the words of the M-RewardBench paper, which call this mean weighted; its code takes a plain one.
        groups, counts = group_cells(totals.cells, subset_of), num_prompts(totals, subset_of, left_out)
        by_section = {
            name: [subset for subset in subsets if subset.section == name and subset.name in groups.names]
            for name in SECTIONS
        }
        sections = {
            name: Part(_section(groups, present), sum(counts[subset.name] for subset in present))
            for name, present in by_section.items()
            if present
        }
        mean = Part(mean_of_sections(sections), sum(part.n for part in sections.values()))
        return Breakdown(sections, mean, missing_parts(counts, {subset.name: subset.num_prompts for subset in subsets}))

    return breakdown


def _section(groups: Groups, subsets: Sequence[WeightedSubset]) -> Formula:
    members, weights = groups.select(*(subset.name for subset in subsets)), [subset.weight for subset in subsets]
    return lambda sums: np.average(shares(sums, members, ACCURACY), axis=-1, weights=weights)


def _section_records(totals: Totals, breakdown: Breakdown, subsets: Sequence[WeightedSubset]) -> dict[str, JsonObject]:
    """Return each section with its interval; one with an incomplete subset has no value: it would be another mean."""
    records = {}
    for name in SECTIONS:
        part = breakdown.sections.get(name)
        if part is None or any(subset.name in breakdown.missing for subset in subsets if subset.section == name):
            records[name] = Estimate(None, None, None, int(part.n) if part else 0).record()
        else:
            records[name] = estimate(totals, part.formula, part.n).record()
    return records


def _rewardbench(config: RewardBenchConfig) -> Benchmark:
    """Build RewardBench: the overall value is the plain mean of the four sections."""
    subsets = WEIGHT_SETS[config.weights]
    known = (*(subset.name for subset in subsets), *PRIOR_SETS)
    breakdown = _breakdown(subsets)
    headline = overall(breakdown, "the plain mean of Chat, Chat Hard, Safety and Reasoning")

    def summarise(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> JsonObject:
        """Return ``subsets``, ``sections``, and the headline.

        ``overall_with_prior_sets`` = (2 * each of the four + prior sets) / 9, only with all four prior sets complete.
        """
        parts, mean = breakdown(totals, left_out), headline(totals, left_out)
        groups = group_cells(totals.cells, subset_of)
        summary: JsonObject = {
            "weights": config.weights,
            "subsets": estimate_groups(totals, groups),
            "sections": _section_records(totals, parts, subsets),
            **mean.record(totals),
        }
        counts = num_prompts(totals, subset_of, left_out)
        missing = missing_parts(counts, PRIOR_SETS)
        if missing and any(counts[name] for name in PRIOR_SETS):
            summary["prior_sets_missing"] = missing
        if not missing and not mean.missing:
            n = mean.n + sum(PRIOR_SETS.values())
            with_prior = estimate(totals, lambda sums: _with_prior_sets(sums, groups, mean.formula), n)
            summary["overall_with_prior_sets"] = with_prior.record()
        return summary

    return Benchmark(
        breakdown,
        headline,
        summarise,
        source_format="rewardbench",
        counts_halves=True,
        normalize=lambda case, file_name: check_subset(case, known, file_name, bench="the benchmark"),
    )


def _with_prior_sets(sums: Floats, groups: Groups, mean: Formula) -> Floats:
    prior = shares(sums, groups.select(*PRIOR_SETS), ACCURACY).mean(axis=-1)
    return (2 * len(SECTIONS) * mean(sums) + prior) / (2 * len(SECTIONS) + 1)


def _mrewardbench(config: MRewardBenchConfig) -> Benchmark:
    """Build M-RewardBench: each language sums as RewardBench does; English is kept out of the mean over languages."""
    subsets = WEIGHT_SETS[config.weights]
    breakdown = _breakdown(subsets)

    def language_parts(totals: Totals, left_out: LeftOut) -> dict[str, LanguagePart]:
        return {
            name: LanguagePart(part, breakdown(part.totals, part.left_out))
            for name, part in by_language(totals, left_out).items()
        }

    def headline(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Headline:
        """Return the plain mean over 22 columns: each language's overall, the two Chinese ones averaged first."""
        parts = language_parts(totals, left_out)
        missing = {name: why for name in LANGUAGES if (why := _missing_subsets(parts.get(name))) is not None}
        about = "the plain mean over 22 languages without English, simplified and traditional Chinese averaged into one"
        return Headline("overall", about, *_mean_part(parts, lambda sections: sections.overall), missing)

    def language_record(part: LanguagePart) -> JsonObject:
        totals, sections = part.language.totals, part.breakdown
        record: JsonObject = {"sections": _section_records(totals, sections, subsets)}
        if sections.missing:
            return record | {"missing": dict(sections.missing)}
        return record | {"overall": estimate(totals, *sections.overall).record()}

    def summarise(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> JsonObject:
        """Return ``languages`` (sections and overall of each) and the headline, the mean over the 22 columns.

        ``variance``: the sample variance of the 22 columns (M-RewardBench, Table 9), without an interval: each resample
        would add its own noise to it. ``drop_from_english``: the difference of that mean to English, in one draw of the
        prompts, where English has the same prompts; else null, and ``why``.
        """
        parts, mean = language_parts(totals, left_out), headline(totals, left_out)
        summary: JsonObject = {
            "weights": config.weights,
            "languages": {name: language_record(part) for name, part in parts.items()},
            **mean.record(totals),
        }
        if mean.missing:
            return summary
        columns = _columns(parts, lambda sections: sections.overall.formula)(totals.point)
        summary["variance"] = Estimate(float(columns.var(ddof=1)), None, None, columns.shape[-1]).record()
        english = next((parts[name] for name in ENGLISH if name in parts), None)
        if english is not None:
            summary["drop_from_english"] = _drop(totals, english, parts)
        return summary

    def normalize(case: Case, file_name: str) -> Case:
        """Return the case itself. Raises EvidenceError for one without a language, or of an unknown subset."""
        if case.prompt.language is None:
            problem = f"prompt {case.prompt.id!r} has no language"
            raise EvidenceError(
                problem, where=file_name, do=Advice("convert each language with ", Remedy("language", CODE))
            )
        return check_subset(case, [subset.name for subset in subsets], file_name, bench="the benchmark")

    return Benchmark(
        breakdown, headline, summarise, source_format="rewardbench", counts_halves=True, normalize=normalize
    )


def _columns(parts: Mapping[str, LanguagePart], choose: Callable[[Breakdown], Formula]) -> Formula:
    """Return a value for each of the 22 columns of Table 9: (…, cell, column) to (…, 22)."""
    formulas = {name: part.language.lift(choose(part.breakdown)) for name, part in parts.items() if name in LANGUAGES}

    def columns(sums: Floats) -> Floats:
        values = {name: formula(sums) for name, formula in formulas.items()}
        chinese = np.mean([values.pop(name) for name in CHINESE], axis=0)
        return np.stack([*values.values(), chinese], axis=-1)

    return columns


def _mean_part(parts: Mapping[str, LanguagePart], choose: Callable[[Breakdown], Part]) -> Part:
    """Return the plain mean of a part over the 22 columns."""
    columns = _columns(parts, lambda sections: choose(sections).formula)
    n = sum(choose(part.breakdown).n for name, part in parts.items() if name in LANGUAGES)
    return Part(lambda sums: columns(sums).mean(axis=-1), n)


def _drop(totals: Totals, english: LanguagePart, parts: Mapping[str, LanguagePart]) -> JsonObject:
    """Return the difference of the mean over languages to English, overall and by section; above 0 is lower."""
    if english.breakdown.missing:
        n = int(english.breakdown.overall.n)
        why = (
            f"English has {n:,} prompts, other than those of the languages: `steelyard languages` compares shared ones"
        )
        return {"absolute": Estimate(None, None, None, n).record(), "why": why}

    def below(choose: Callable[[Breakdown], Part]) -> JsonObject:
        reference = choose(english.breakdown)
        lifted = Part(english.language.lift(reference.formula), reference.n)
        return msgspec.to_builtins(drop(totals, lifted, _mean_part(parts, choose)))

    sections = {name: below(lambda parts, name=name: parts.sections[name]) for name in SECTIONS}
    return below(lambda parts: parts.overall) | {"sections": sections}


def _missing_subsets(part: LanguagePart | None) -> str | None:
    """Return why a language is incomplete; null where it is not."""
    if part is None:
        return "no cases of it"
    reasons = [f"{name}: {why}" for name, why in part.breakdown.missing.items()]
    more = f", and {len(reasons) - _NUM_LISTED} more" if len(reasons) > _NUM_LISTED else ""
    return f"{len(reasons)} subsets incomplete ({', '.join(reasons[:_NUM_LISTED])}{more})" if reasons else None


KINDS = {
    "rewardbench": Plugin(
        RewardBenchConfig,
        _rewardbench,
        "RewardBench v1 and M-RewardBench in one language: four sections with their published weights, and their mean.",
    ),
    "mrewardbench": Plugin(
        MRewardBenchConfig,
        _mrewardbench,
        "M-RewardBench: RewardBench's four sections in 23 languages, their mean without English, and the drop from"
        " English.",
    ),
}
