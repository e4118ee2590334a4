"""Benchmarks whose sections are accuracy or exact match of groups of prompts.

CheemsBench, RMB, M-RewardBench's translation task, and ``cases``: any case file with rankings or pairs. The headline of
each is a plain mean of its sections.
"""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from steelyard.core.errors import ConfigError, EvidenceError, choices
from steelyard.core.plugins import without_settings
from steelyard.core.types import Case, JsonObject
from steelyard.plugins.benches._benchmark import Benchmark, overall
from steelyard.plugins.benches.subsets import Config, subset_benchmark
from steelyard.statistics.aggregation import (
    ACCURACY,
    EXACT_MATCH,
    NONE_LEFT_OUT,
    Breakdown,
    Formula,
    Groups,
    LeftOut,
    Part,
    Share,
    by_category,
    estimate_difference,
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
from steelyard.statistics.groups import Cell
from steelyard.statistics.pair_counts import PAIRS

CHEEMS_PUBLISHED = {"open_prompt": 1146, "human_instruction": 1346}
"""The subsets of CheemsBench and their numbers of prompts (CHEEMS, Table 1)."""
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


_TRANSLATION = subset_benchmark(
    Config(
        subsets=TRANSLATION_PUBLISHED,
        sections={name: {name: 1.0} for name in TRANSLATION_SUBSETS},
        by_category=False,
        halves=True,
    ),
    "the plain mean of the eight subsets",
)


def _translation_summary(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> JsonObject:
    """Return ``sections``, the eight subsets (M-RewardBench, Table 4), and the headline; with all of them `GAPS`."""
    headline, parts = _TRANSLATION.headline(totals, left_out), _TRANSLATION.breakdown(totals, left_out)
    groups = group_cells(totals.cells, subset_of)
    sections = {name: estimate_macro(totals, groups.select(name), ACCURACY).record() for name in parts.sections}
    summary = {"sections": sections, **headline.record(totals)}
    if headline.missing:
        return summary

    def gap(first: Sequence[str], second: Sequence[str]) -> JsonObject:
        higher, lower = (mean_of_sections({name: parts.sections[name] for name in names}) for names in (first, second))
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
        subset_benchmark(
            Config(subsets=CHEEMS_PUBLISHED, measures=("accuracy", "exact_match")),
            "the mean of accuracy and exact match over Open Prompt and Human Instruction",
        )._replace(source_format="cheems", subset_of=_cheems_file_subset, normalize=_cheems_case),
        "CheemsBench: Open Prompt and Human Instruction, and the mean of accuracy and exact match over both.",
    ),
    "mrewardbench_translation": without_settings(
        _TRANSLATION._replace(summarise=_translation_summary, source_format="rewardbench", normalize=_translation_case),
        "M-RewardBench's translation task: German and Chinese from and into English, easy and hard, and the gaps"
        " between.",
    ),
    "rmb": without_settings(
        Benchmark(_rmb_breakdown, _rmb_headline, _rmb_summary, source_format="rmb", normalize=_rmb_case),
        "RMB: helpfulness and harmlessness, each as pairs and as best of N, and the plain mean of the four.",
    ),
}
