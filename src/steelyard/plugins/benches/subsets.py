"""A benchmark of subsets whose counts, weights, sections and languages are settings: a benchmark of your own.

CheemsBench, RewardBench, M-RewardBench and its translation task are values of these settings. A subset has the mean of
the chosen measures, a section the weighted mean of its subsets, a language the plain mean of its sections, and the
headline is the plain mean over languages.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import ConfigError, EvidenceError, choices, listed
from steelyard.core.languages import language_key
from steelyard.core.numerics import Floats
from steelyard.core.remedies import CODE, Advice, Command, Placeholder, Remedy
from steelyard.core.text import number_of
from steelyard.core.types import Case, JsonObject
from steelyard.plugins.benches._benchmark import Benchmark, overall
from steelyard.statistics.aggregation import (
    ACCURACY,
    EXACT_MATCH,
    NONE_LEFT_OUT,
    Breakdown,
    Formula,
    Groups,
    Headline,
    LanguageTotals,
    LeftOut,
    Part,
    Share,
    by_category,
    by_language,
    drop,
    estimate,
    estimate_groups,
    estimate_macro,
    group_cells,
    mean_of_sections,
    mean_over_groups,
    missing_parts,
    num_prompts,
    shares,
    subset_of,
)
from steelyard.statistics.bootstrap import Totals
from steelyard.statistics.groups import Cell
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.stated_label_error import StatedLabelError

MEASURES = {"accuracy": ACCURACY, "exact_match": EXACT_MATCH}
_NUM_LISTED = 2


class Config(BaseConfig, frozen=True):
    """The settings of a benchmark, which a file ``bench.toml`` beside its cases can hold.

    A subset of a section that ``subsets`` does not list may have any number of prompts. With ``languages``, counts and
    weights are those of each language.
    """

    name: str | None = None
    """The name in results. Default: that of the folder."""
    version: str | None = None
    """The version, which follows the name."""
    subsets: Mapping[str, Positive | Literal["any"]] = {}
    """The subsets and how many prompts each has; any: one or more."""
    measures: tuple[Literal["accuracy", "exact_match"], ...] = ("accuracy",)
    """The measures whose mean is the value of a subset."""
    by_category: bool = True
    """Mean for a subset's value: over its first-tier categories, or over its pairs (exact match: prompts)."""
    halves: bool = False
    """Count ties and failures of judges as half a point, beside the strict headline."""
    sections: dict[str, dict[str, Annotated[float, msgspec.Meta(gt=0)]]] = {}  # noqa: RUF012 - msgspec copies it
    """The sections, each with its subsets and their weights. Default: each subset is a section."""
    languages: tuple[str | tuple[str, ...], ...] = ()
    """The languages of the mean; those of an inner list are averaged first. Default: languages are not told apart."""
    baseline_language: str | None = None
    """A language kept out of the mean, which the others are compared with."""
    default_subset: str | None = None
    """The subset of cases that have none, and whose file is not named after a subset."""
    files: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it
    """The case files by name, with their SHA-256: other files are refused. Default: any files."""
    label_error: StatedLabelError | None = None
    """The label error of these cases (docs/formats.md), which `workbench export --what release` writes."""

    @property
    def weights(self) -> Mapping[str, Mapping[str, float]]:
        """The weights of the subsets of each section."""
        return self.sections or {name: {name: 1.0} for name in self.subsets}

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """The languages of the mean, those that are averaged first together."""
        return tuple((column,) if isinstance(column, str) else column for column in self.languages)


def build(config: Config) -> Benchmark:
    """Build the benchmark. Raises ConfigError for settings that contradict each other."""
    _check_subsets(config)
    _check_languages(config)
    if config.label_error is not None:
        config.label_error.check()
    known = tuple(dict.fromkeys(chain(config.subsets, *config.sections.values())))
    title = config.name or "this benchmark"

    def normalize(case: Case, file_name: str) -> Case:
        """Return the case with its subset. Raises EvidenceError for an unknown or absent subset or language."""
        name = case.prompt.subset or subset_of_file(file_name, known) or config.default_subset
        if name is None or name not in known:
            has = "has no subset" if name is None else f"is of subset {name!r}, which {title} does not have"
            raise EvidenceError(
                f"prompt {case.prompt.id!r} {has}",
                where=file_name,
                allowed=choices(name or "", known),
                do=Advice("name it: ", Remedy("bench.default_subset", Placeholder("NAME")), ", or add prompt.subset")
                if name is None
                else "correct prompt.subset, or name the subset in bench.toml",
            )
        if name != case.prompt.subset:
            case = replace(case, prompt=replace(case.prompt, subset=name))
        return _check_language(case, file_name, config) if config.languages else case

    return subset_benchmark(config)._replace(
        counts_unwinnable=False, subset_of=lambda file_name: subset_of_file(file_name, known), normalize=normalize
    )


def subset_benchmark(config: Config, about: str | None = None) -> Benchmark:
    """Return the benchmark of these settings; it takes cases as they are. ``about`` describes the headline."""
    breakdown = subset_breakdown(config)
    if config.languages:
        return _language_benchmark(config, breakdown, about or _about(config))
    headline = overall(breakdown, about or _about(config))

    def summarise(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> JsonObject:
        """Return ``subsets`` with both measures, ``sections`` where subsets have weights, and the headline."""
        summary: JsonObject = {"subsets": _subset_records(totals, config)}
        if config.sections:
            summary["sections"] = section_records(totals, breakdown(totals, left_out), config)
        return summary | headline(totals, left_out).record(totals)

    return Benchmark(breakdown, headline, summarise, counts_halves=config.halves)


def subset_of_file(file_name: str, known: Sequence[str]) -> str | None:
    """Return the subset that a file is named after; null for other files."""
    stem = file_name.removesuffix(".gz").rpartition(".")[0]
    return stem if stem in known else None


def subset_breakdown(config: Config) -> Callable[..., Breakdown]:
    """Return the breakdown of one language: its sections, each the weighted mean of its subsets, and their plain mean.

    Sections and subsets without a prompt are left out.
    """
    expected = {name: number for name, number in config.subsets.items() if number != "any"}
    others = [name for weights in config.weights.values() for name in weights if name not in expected]

    def breakdown(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Breakdown:
        counts = num_prompts(totals, subset_of, left_out)
        present = {cell.subset for cell in totals.cells}
        sections: dict[str, Part] = {}
        for section, weights in config.weights.items():
            groups = {name: _groups_of(totals.cells, name, config) for name in weights if name in present}
            if groups:
                formula = _section(groups, [weights[name] for name in groups], config)
                sections[section] = Part(formula, sum(counts[name] for name in groups))
        mean = Part(mean_of_sections(sections), sum(part.n for part in sections.values()))
        empty = {name: "no cases of it" for name in others if not counts[name]}
        return Breakdown(sections, mean, missing_parts(counts, expected) | empty)

    return breakdown


def _groups_of(cells: Sequence[Cell], subset: str, config: Config) -> Groups:
    """Return the groups whose plain mean is the value of a subset: its first-tier categories, or the whole of it."""
    if config.by_category:
        return by_category(cells, subset=subset)
    return group_cells(cells, lambda cell: subset if cell.subset == subset else None)


def _section(subsets: Mapping[str, Groups], weights: Sequence[float], config: Config) -> Formula:
    """Return the weighted mean of subsets, of each measure, and the plain mean of the measures."""
    names = tuple(chain.from_iterable(groups.names for groups in subsets.values()))
    groups = Groups(names, np.concatenate([groups.members for groups in subsets.values()]))
    ends = np.cumsum([len(groups.names) for groups in subsets.values()]).tolist()
    slices = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def weighted(share: Share) -> Formula:
        def value(sums: Floats) -> Floats:
            # One product for all groups of the section: there are many resamples, and many sections in many languages.
            values = shares(sums, groups, share)
            of_subsets = [mean_over_groups(values[..., chosen]) for chosen in slices]
            return np.average(np.stack(of_subsets, axis=-1), axis=-1, weights=weights)

        return value

    return mean_of_sections({name: Part(weighted(MEASURES[name]), 0) for name in config.measures})


def _subset_records(totals: Totals, config: Config) -> JsonObject:
    """Return accuracy and exact match of each subset and, where it is their mean, of its first-tier categories.

    The categories are of the subset alone: subsets may have different category systems.
    """
    records: JsonObject = {}
    present = {cell.subset for cell in totals.cells if cell.subset is not None}
    for name in [*(name for name in config.subsets if name in present), *sorted(present - config.subsets.keys())]:
        groups = _groups_of(totals.cells, name, config)
        records[name] = {title: estimate_macro(totals, groups, share).record() for title, share in MEASURES.items()}
        if config.by_category:
            records[name]["by_category"] = estimate_groups(totals, groups)
    return records


def section_records(totals: Totals, breakdown: Breakdown, config: Config) -> dict[str, JsonObject]:
    """Return each section with its interval.

    A section of several subsets with an incomplete one has no value: it would be another mean.
    """
    records = {}
    for name, weights in config.weights.items():
        part = breakdown.sections.get(name)
        if part is None or (len(weights) > 1 and any(subset in breakdown.missing for subset in weights)):
            records[name] = Estimate(None, None, None, int(part.n) if part else 0).record()
        else:
            records[name] = estimate(totals, part.formula, part.n).record()
    return records


def _about(config: Config) -> str:
    """Describe the headline. The page has every such sentence in both languages."""
    measures = " and ".join(name.replace("_", " ") for name in sorted(config.measures))
    mean = f"the mean of {measures} over the {'weighted sections' if config.sections else 'subsets'}"
    return f"the plain mean over the languages, each {mean}" if config.languages else mean


# Languages


class LanguagePart(NamedTuple):
    """One language of the bench: its totals and how they sum."""

    language: LanguageTotals
    breakdown: Breakdown


def _language_benchmark(config: Config, breakdown: Callable[..., Breakdown], about: str) -> Benchmark:
    """Return the benchmark whose headline is the mean over languages; a baseline is kept out of it."""
    codes = tuple(chain.from_iterable(config.columns))
    spelling = {language_key(code): code for code in codes}

    def code_of(language: str) -> str:
        """Return the code of a language as the benchmark spells it: cases may have it in another one."""
        return spelling.get(language_key(language), language)

    def language_parts(totals: Totals, left_out: LeftOut) -> dict[str, LanguagePart]:
        return {
            name: LanguagePart(part, breakdown(part.totals, part.left_out))
            for name, part in by_language(totals, left_out, code_of=code_of).items()
        }

    def headline(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Headline:
        """Return the plain mean over the columns: languages, and plain means of those that are averaged first."""
        parts = language_parts(totals, left_out)
        missing = {name: why for name in codes if (why := _missing_subsets(parts.get(name))) is not None}
        mean = _mean_part(parts, config.columns, lambda sections: sections.overall)
        return Headline("overall", about, *mean, missing)

    def language_record(part: LanguagePart) -> JsonObject:
        totals, sections = part.language.totals, part.breakdown
        record: JsonObject = {"sections": section_records(totals, sections, config)}
        if sections.missing:
            return record | {"missing": dict(sections.missing)}
        return record | {"overall": estimate(totals, *sections.overall).record()}

    def summarise(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> JsonObject:
        """Return ``languages`` (sections and overall of each) and the headline, the mean over the columns.

        ``variance``: the sample variance of the columns (M-RewardBench, Table 9), without an interval: each resample
        would add its own noise to it. ``drop_from_baseline``: the difference of that mean to the baseline language, in
        one draw of the prompts, where it has the same prompts; else null, and ``why``.
        """
        parts, mean = language_parts(totals, left_out), headline(totals, left_out)
        records = {name: language_record(part) for name, part in parts.items()}
        summary: JsonObject = {"languages": records, **mean.record(totals)}
        if mean.missing:
            return summary
        columns = _column_values(parts, config.columns, lambda sections: sections.overall.formula)(totals.point)
        if len(columns) > 1:
            summary["variance"] = Estimate(float(columns.var(ddof=1)), None, None, columns.shape[-1]).record()
        baseline = config.baseline_language and language_key(config.baseline_language)
        reference = next((name for name in parts if baseline == language_key(name)), None)
        if reference is not None:
            summary["drop_from_baseline"] = _drop(totals, reference, parts, config)
        return summary

    return Benchmark(breakdown, headline, summarise, counts_halves=config.halves)


def _column_values(
    parts: Mapping[str, LanguagePart], columns: Sequence[Sequence[str]], choose: Callable[[Breakdown], Formula]
) -> Formula:
    """Return a value for each column: (…, cell, column of counts) to (…, column of languages)."""
    formulas = {name: part.language.lift(choose(part.breakdown)) for name, part in parts.items()}
    return lambda sums: np.stack(
        [np.mean([formulas[name](sums) for name in names], axis=0) for names in columns], axis=-1
    )


def _mean_part(
    parts: Mapping[str, LanguagePart], columns: Sequence[Sequence[str]], choose: Callable[[Breakdown], Part]
) -> Part:
    """Return the plain mean of a part over the columns."""
    values = _column_values(parts, columns, lambda sections: choose(sections).formula)
    n = sum(choose(parts[name].breakdown).n for names in columns for name in names if name in parts)
    return Part(lambda sums: values(sums).mean(axis=-1), n)


def _drop(totals: Totals, reference: str, parts: Mapping[str, LanguagePart], config: Config) -> JsonObject:
    """Return the difference of the mean over languages to the baseline, overall and by section; above 0 is lower."""
    baseline = parts[reference]
    if baseline.breakdown.missing:
        n = int(baseline.breakdown.overall.n)
        why = f"{reference} has {n:,} prompts, other than those of the languages: `steelyard languages` compares shared"
        return {"absolute": Estimate(None, None, None, n).record(), "why": f"{why} ones"}

    def below(choose: Callable[[Breakdown], Part]) -> JsonObject:
        part = choose(baseline.breakdown)
        lifted = Part(baseline.language.lift(part.formula), part.n)
        return msgspec.to_builtins(drop(totals, lifted, _mean_part(parts, config.columns, choose)))

    sections = {name: below(lambda sections, name=name: sections.sections[name]) for name in config.weights}
    return below(lambda sections: sections.overall) | {"sections": sections}


def _missing_subsets(part: LanguagePart | None) -> str | None:
    """Return why a language is incomplete; null where it is not."""
    if part is None:
        return "no cases of it"
    reasons = [f"{name}: {why}" for name, why in part.breakdown.missing.items()]
    if not reasons:
        return None
    more = f", and {len(reasons) - _NUM_LISTED} more" if len(reasons) > _NUM_LISTED else ""
    return f"{number_of(len(reasons), 'subset')} incomplete ({', '.join(reasons[:_NUM_LISTED])}{more})"


# Checks


def check_has_language(case: Case, file_name: str) -> None:
    """Raise EvidenceError for a case without a language."""
    if case.prompt.language is None:
        problem = f"prompt {case.prompt.id!r} has no language"
        convert = Command("convert", (Placeholder("FILE"), Placeholder("OUT")), (Remedy("language", CODE),))
        raise EvidenceError(problem, where=file_name, do=Advice("convert each language by itself: ", convert))


def _check_language(case: Case, file_name: str, config: Config) -> Case:
    check_has_language(case, file_name)
    code, baseline = str(case.prompt.language), config.baseline_language
    codes = tuple(chain.from_iterable(config.columns))
    if language_key(code) in {language_key(known) for known in (*codes, *([baseline] if baseline else ()))}:
        return case
    problem = f"prompt {case.prompt.id!r} is in {code!r}, which is no language of {config.name or 'this benchmark'}"
    allowed = choices(code, codes if baseline is None else (*codes, baseline))
    do = Advice("add it to the languages of the benchmark, or leave the case out: ", Remedy("bench.languages"))
    raise EvidenceError(problem, where=file_name, allowed=allowed, do=do)


def _check_subsets(config: Config) -> None:
    """Raise ConfigError for subsets, sections, weights or measures that contradict each other."""
    if not config.weights:
        do = Advice(
            "add a table `subsets` to bench.toml beside the cases, or ",
            Remedy("bench.subsets", Placeholder("{NAME=N}")),
        )
        raise ConfigError("the benchmark has no subset", where="subsets", allowed="a number for each name", do=do)
    sections = Counter(chain.from_iterable(config.sections.values()))
    if twice := [name for name, number in sections.items() if number > 1]:
        of_it = [section for section, weights in config.sections.items() if twice[0] in weights]
        problem = f"the subset {twice[0]!r} is in {len(of_it)} sections: {listed(of_it)}"
        raise ConfigError(problem, where="sections", do="keep it in one of them")
    outside = [name for name in config.subsets if sections and name not in sections]
    if outside:
        problem = f"the subset {outside[0]!r} is in no section"
        allowed, do = choices(outside[0], sections), "add it to a section with its weight, or remove it"
        raise ConfigError(problem, where="subsets", allowed=allowed, do=do)
    for section, weights in config.sections.items():
        if not weights:
            raise ConfigError("a section without subsets", where=f"sections.{section}", do="add its subsets")
        for name, weight in weights.items():
            if not isfinite(weight):
                where = f"sections.{section}.{name}"
                raise ConfigError(f"the weight is {weight}", where=where, allowed="a finite number above 0")
    default = config.default_subset
    if default is not None and default not in (sections or config.subsets):
        allowed = choices(default, sections or config.subsets)
        raise ConfigError(f"there is no subset {default!r}", where="default_subset", allowed=allowed)
    if not config.measures or len({*config.measures}) < len(config.measures):
        problem = f"the measures are {list(config.measures)}"
        raise ConfigError(problem, where="measures", allowed=", ".join(MEASURES), do="name one, or each once")


def _check_languages(config: Config) -> None:
    """Raise ConfigError for languages that are named twice, and for a baseline without languages or among them."""
    codes = Counter(chain.from_iterable(config.columns))
    if not all(config.columns):
        raise ConfigError("a list without languages", where="languages", do="name its languages, or remove it")
    for name in codes:
        same = [repr(other) for other in codes.elements() if language_key(other) == language_key(name)]
        if len(same) > 1:
            problem = f"{' and '.join(same)} are one language"
            raise ConfigError(problem, where="languages", do="name each language once")
    baseline = config.baseline_language
    if baseline is None:
        return
    if not codes:
        do = Advice("add ", Remedy("bench.languages", Placeholder('["de","fr"]')), ", or remove the baseline")
        raise ConfigError("a baseline without languages", where="baseline_language", do=do)
    if same := [code for code in codes if language_key(code) == language_key(baseline)]:
        problem = f"the baseline {baseline!r} is among the languages, as {same[0]!r}"
        raise ConfigError(problem, where="baseline_language", do="remove it from the languages: it is kept out of them")
