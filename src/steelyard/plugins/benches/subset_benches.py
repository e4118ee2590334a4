"""A benchmark as a value, and those whose sections are accuracy or exact match of groups of prompts.

CheemsBench, RMB, M-RewardBench's translation task, and ``cases``: any case file with rankings or pairs. The headline of
each is a plain mean of its sections.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.errors import ConfigError, EvidenceError, choices
from steelyard.core.numerics import Integers
from steelyard.core.plugins import without_settings
from steelyard.core.types import Case, JsonObject, Scores
from steelyard.statistics.aggregation import (
    ACCURACY,
    EXACT_MATCH,
    NONE_LEFT_OUT,
    Breakdown,
    Formula,
    Groups,
    Headline,
    LeftOut,
    Part,
    Share,
    by_category,
    estimate_difference,
    estimate_groups,
    estimate_macro,
    group_cells,
    macro,
    mean_accuracy,
    mean_of_sections,
    missing_parts,
    num_prompts,
    subset_of,
)
from steelyard.statistics.bootstrap import Totals
from steelyard.statistics.groups import Cell, prompt_names
from steelyard.statistics.pair_counts import PAIRS

CHEEMS_PUBLISHED = {"open_prompt": 1146, "human_instruction": 1346}
"""The subsets of CheemsBench and their numbers of prompts (CHEEMS, Table 1)."""
_CHEEMS_MEASURES = {"accuracy": ACCURACY, "exact_match": EXACT_MATCH}
_CHEEMS_FILES = {"open": "open_prompt", "human": "human_instruction"}

RMB_GOALS = ("Helpfulness", "Harmlessness")
RMB_SETS = {"Pairwise_set": "pairwise", "BoN_set": "best of N"}
RMB_PUBLISHED = {
    "Helpfulness, pairwise": 10_067,
    "Helpfulness, best of N": 2_109,
    "Harmlessness, pairwise": 7_064,
    "Harmlessness, best of N": 1_677,
}
"""The sections of RMB and their numbers of rows in the 98 published files (49 scenarios, each in both sets)."""

LEVELS = ("easy", "hard")
DIRECTIONS = ("de_en", "en_de", "zh_en", "en_zh")
TRANSLATION_SUBSETS = tuple(f"{level}_{direction}" for level in LEVELS for direction in DIRECTIONS)
TRANSLATION_PUBLISHED = dict.fromkeys(TRANSLATION_SUBSETS, 100)
"""The number of pairs in each translation subset (M-RewardBench, section 3)."""
GAPS = {
    "easy_hard": tuple([name for name in TRANSLATION_SUBSETS if name.startswith(level)] for level in LEVELS),
    "into_english": (
        [name for name in TRANSLATION_SUBSETS if name.endswith("_en")],
        [name for name in TRANSLATION_SUBSETS if "_en_" in name],
    ),
}
"""The mean of the first subsets minus that of the second."""
_CODES = {"de": "de", "deu": "de", "zh": "zh", "zho": "zh", "en": "en", "eng": "en"}
_DIRECTION = re.compile(r"(?<![a-z])(deu?|zho?|eng?)(?:_[a-z]{4})?(?:2|-to-|_to_|-|_|>)(deu?|zho?|eng?)(?![a-z])")


def no_columns(cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
    """Return a table without columns, shape (case, 0): accuracy and exact match are all that the headline needs."""
    return np.zeros((len(cases), 0), dtype=np.int64)


class Benchmark(NamedTuple):
    """A benchmark, as the protocol of that name in `core.protocols` describes its fields.

    ``breakdown``, ``headline`` and ``summarise`` take totals and, optionally, the counts of prompts left out.
    ``resample_ids`` defaults to a prompt's id and text: parallel items and rows of equal text are drawn together.
    """

    breakdown: Callable[..., Breakdown]
    headline: Callable[..., Headline]
    summarise: Callable[..., JsonObject]
    source_format: str | None = None
    counts_halves: bool = False
    counts_unwinnable: bool = True
    subset_of: Callable[[str], str | None] = lambda file_name: None
    normalize: Callable[[Case, str], Case] = lambda case, file_name: case
    resample_ids: Callable[[Case], tuple[str, ...]] = prompt_names
    columns: Callable[..., Integers] = no_columns
    pair_columns: Callable[[Sequence[Case], Sequence[Mapping[tuple[str, str], bool]]], Any] | None = None


def overall(breakdown: Callable[[Totals, LeftOut], Breakdown], about: str) -> Callable[..., Headline]:
    """Return the headline ``overall``: the number over the sections of a breakdown, withheld while parts are missing.

    ``about`` describes the mean.
    """

    def headline(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Headline:
        parts = breakdown(totals, left_out)
        return Headline("overall", about, *parts.overall, parts.missing)

    return headline


def check_subset(case: Case, known: Collection[str], file_name: str, *, bench: str, word: str = "subset") -> Case:
    """Return the case itself. Raises EvidenceError for a subset that the benchmark does not have."""
    subset = case.prompt.subset
    if subset not in known:
        problem = f"prompt {case.prompt.id!r} is of {word} {subset!r}, which {bench} does not have"
        raise EvidenceError(problem, where=file_name, allowed=choices(subset or "", known))
    return case


def _share(groups: Groups, names: Sequence[str], share: Share) -> Formula:
    """Return the plain mean of a share over some of the groups."""
    return lambda sums: macro(sums, groups.select(*names), share)


# Any cases


def _categories(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Breakdown:
    """Return the accuracy of each first-tier category and their plain mean."""

    def part(groups: Groups) -> Part:
        return Part(lambda sums: macro(sums, groups, ACCURACY), float((groups.members @ totals.point)[:, PAIRS].sum()))

    groups = by_category(totals.cells)
    return Breakdown({name: part(groups.select(name)) for name in groups.names}, part(groups), {})


_CASES = Benchmark(
    _categories,
    lambda totals, left_out=NONE_LEFT_OUT: mean_accuracy(totals),
    lambda totals, left_out=NONE_LEFT_OUT: {"headline": mean_accuracy(totals).name},
    counts_unwinnable=False,
)


# CheemsBench


def _cheems_groups(totals: Totals) -> dict[str, Groups]:
    return {name: by_category(totals.cells, subset=name) for name in CHEEMS_PUBLISHED}


def _cheems_breakdown(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Breakdown:
    """Return the mean of accuracy and exact match of each subset, and their plain mean."""

    def score(groups: Groups) -> Formula:
        means = {name: Part(_share(groups, groups.names, share), 0) for name, share in _CHEEMS_MEASURES.items()}
        return mean_of_sections(means)

    counts = num_prompts(totals, subset_of, left_out)
    sections = {
        name: Part(score(groups), counts[name]) for name, groups in _cheems_groups(totals).items() if groups.names
    }
    n = sum(part.n for part in sections.values())
    return Breakdown(sections, Part(mean_of_sections(sections), n), missing_parts(counts, CHEEMS_PUBLISHED))


_cheems_headline = overall(
    _cheems_breakdown, "the mean of accuracy and exact match over Open Prompt and Human Instruction"
)


def _cheems_summary(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> JsonObject:
    """Return ``subsets`` with accuracy and exact match, both means over first-tier categories, and the headline.

    ``by_category`` of a subset has its own categories: the two subsets have different category systems.
    """
    subsets = {
        name: {title: estimate_macro(totals, groups, share).record() for title, share in _CHEEMS_MEASURES.items()}
        | {"by_category": estimate_groups(totals, groups)}
        for name, groups in _cheems_groups(totals).items()
        if groups.names
    }
    return {"subsets": subsets, **_cheems_headline(totals, left_out).record(totals)}


def _cheems_file_subset(file_name: str) -> str | None:
    """Return the subset named in a file name; null where it names none or both."""
    subsets = [subset for word, subset in _CHEEMS_FILES.items() if word in file_name.lower()]
    return subsets[0] if len(subsets) == 1 else None


def _cheems_case(case: Case, file_name: str) -> Case:
    """Return the case with its subset. Raises ConfigError where neither the case nor the file name gives it."""
    name = case.prompt.subset
    subset = _cheems_file_subset(file_name) if name is None else name.strip().lower().replace(" ", "_")
    subset = subset and subset.replace("-", "_")
    if subset is None:
        raise ConfigError(
            "the subset of CheemsBench is unknown",
            where=file_name,
            allowed=f"prompt.subset ({' or '.join(CHEEMS_PUBLISHED)}) in each case, or a file name with `open` or "
            "`human` in it, not both",
        )
    if subset not in CHEEMS_PUBLISHED:
        allowed = choices(str(name), CHEEMS_PUBLISHED)
        raise ConfigError(f"CheemsBench has no subset {name!r}", where="prompt.subset", allowed=allowed)
    return case if subset == name else replace(case, prompt=replace(case.prompt, subset=subset))


# RMB


def _rmb_section(cell: Cell) -> str:
    return f"{cell.category}, {RMB_SETS.get(cell.subset or '', str(cell.subset))}"


def _rmb_breakdown(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Breakdown:
    """Return the exact match of each section and their plain mean.

    A prompt is right when its best answer scores above every other: with one other, that is accuracy.
    """
    groups, counts = group_cells(totals.cells, _rmb_section), num_prompts(totals, _rmb_section, left_out)
    sections = {name: Part(_share(groups, [name], EXACT_MATCH), counts[name]) for name in groups.names}
    mean = Part(_share(groups, groups.names, EXACT_MATCH), sum(part.n for part in sections.values()))
    return Breakdown(sections, mean, missing_parts(counts, RMB_PUBLISHED))


_rmb_headline = overall(
    _rmb_breakdown, "the plain mean of helpfulness and harmlessness, each as pairs and as best of N"
)


def _rmb_summary(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> JsonObject:
    """Return ``sections``, the four means over prompts, and the headline (the paper's table)."""
    groups = group_cells(totals.cells, _rmb_section)
    sections = {name: estimate_macro(totals, groups.select(name), EXACT_MATCH).record() for name in groups.names}
    return {"sections": sections, **_rmb_headline(totals, left_out).record(totals)}


def _rmb_case(case: Case, file_name: str) -> Case:
    """Return the case itself. Raises EvidenceError for one of another set or goal."""
    goal = case.prompt.category[0] if case.prompt.category else None
    if case.prompt.subset not in RMB_SETS or goal not in RMB_GOALS:
        raise EvidenceError(
            f"prompt {case.prompt.id!r} is of subset {case.prompt.subset!r} and category {goal!r}",
            where=file_name,
            allowed=f"subset {' or '.join(RMB_SETS)}, first category {' or '.join(RMB_GOALS)}",
        )
    return case


# M-RewardBench's translation task


def _translation_breakdown(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Breakdown:
    """Return the accuracy of each subset and their plain mean (M-RewardBench, Table 4)."""
    groups, counts = group_cells(totals.cells, subset_of), num_prompts(totals, subset_of, left_out)
    present = [name for name in TRANSLATION_SUBSETS if name in groups.names]
    sections = {name: Part(_share(groups, [name], ACCURACY), counts[name]) for name in present}
    mean = Part(_share(groups, present, ACCURACY), sum(part.n for part in sections.values()))
    return Breakdown(sections, mean, missing_parts(counts, TRANSLATION_PUBLISHED))


_translation_headline = overall(_translation_breakdown, "the plain mean of the eight subsets")


def _translation_summary(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> JsonObject:
    """Return ``sections``, the eight subsets, and the headline; with all of them `GAPS`."""
    groups, headline = group_cells(totals.cells, subset_of), _translation_headline(totals, left_out)
    present = [name for name in TRANSLATION_SUBSETS if name in groups.names]
    sections = {name: estimate_macro(totals, groups.select(name), ACCURACY).record() for name in present}
    summary = {"sections": sections, **headline.record(totals)}
    if headline.missing:
        return summary

    def gap(first: Sequence[str], second: Sequence[str]) -> JsonObject:
        higher, lower = (_share(groups, names, ACCURACY) for names in (first, second))
        return estimate_difference(totals, lambda sums: higher(sums) - lower(sums), headline.n).record()

    return summary | {"gaps": {name: gap(*ends) for name, ends in GAPS.items()}}


def _translation_case(case: Case, file_name: str) -> Case:
    """Return the case under the canonical name of its subset, with the target language in its prompt's ``meta``.

    Raises EvidenceError for a subset name without level and direction.
    """
    name = translation_subset(case.prompt.subset or "")
    if name is None:
        problem = f"prompt {case.prompt.id!r} is of subset {case.prompt.subset!r}: no level and direction"
        raise EvidenceError(problem, where=file_name, allowed=", ".join(TRANSLATION_SUBSETS))
    # A judge's prompt names both languages: that of the request, and the one in which an answer is expected.
    meta = {**(case.prompt.meta or {}), "answer_language": name.rpartition("_")[2]}
    return replace(case, prompt=replace(case.prompt, subset=name, meta=meta))


def translation_subset(name: str) -> str | None:
    """Return the canonical name of a subset (`maple-zh2en-easy` is `easy_zh_en`); null for other names."""
    lower = name.lower()
    levels = [level for level in LEVELS if level in lower]
    directions = {f"{_CODES[source]}_{_CODES[target]}" for source, target in _DIRECTION.findall(lower)}
    known = directions & set(DIRECTIONS)
    return f"{levels[0]}_{known.pop()}" if len(levels) == 1 and len(known) == 1 else None


KINDS = {
    "cases": without_settings(
        _CASES, "A plain benchmark: any case file with rankings or pairs; its headline is accuracy."
    ),
    "cheemsbench": without_settings(
        Benchmark(
            _cheems_breakdown,
            _cheems_headline,
            _cheems_summary,
            source_format="cheems",
            subset_of=_cheems_file_subset,
            normalize=_cheems_case,
        ),
        "CheemsBench: Open Prompt and Human Instruction, and the mean of accuracy and exact match over both.",
    ),
    "mrewardbench_translation": without_settings(
        Benchmark(
            _translation_breakdown,
            _translation_headline,
            _translation_summary,
            source_format="rewardbench",
            counts_halves=True,
            normalize=_translation_case,
        ),
        "M-RewardBench's translation task: German and Chinese from and into English, easy and hard, and the gaps"
        " between.",
    ),
    "rmb": without_settings(
        Benchmark(_rmb_breakdown, _rmb_headline, _rmb_summary, source_format="rmb", normalize=_rmb_case),
        "RMB: helpfulness and harmlessness, each as pairs and as best of N, and the plain mean of the four.",
    ),
}
