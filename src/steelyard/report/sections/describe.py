"""Data statistics: the numbers of Table 1 of CHEEMS for each described data set, and for each of its groups."""

from collections.abc import Iterator, Sequence

from steelyard.evaluation.tables import (
    DASH,
    Grouped,
    Panel,
    Sentence,
    Table,
    category_word,
    count,
    decimal,
    isolate,
    language_word,
    word,
)
from steelyard.prompts.description import GROUPINGS, DescribeSummary, GroupStatistics, MeanLengths
from steelyard.report.bars import CountBar, count_bars
from steelyard.report.page import Section
from steelyard.report.run_records import last_part
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection

_MOST_BARS = 15


def _contents(runs: Sequence[StageRun[DescribeSummary]], sources: PageSources) -> StageContents:
    panels = [_overall(runs), *(panel for run in runs for panel in _panels(run, is_alone=len(runs) == 1))]
    sentences = tuple(_sentence(run) for run in runs)
    return StageContents((Section("described", tuple(run.evidence for run in runs), tuple(panels), sentences),))


def _sentence(run: StageRun[DescribeSummary]) -> Sentence:
    overall = run.summary.overall
    values = {
        "run": run.name,
        "prompts": count(overall.num_prompts),
        "responses": count(overall.num_responses),
        "comparisons": count(overall.num_comparisons),
    }
    return Sentence("say_described", values)


def _overall(runs: Sequence[StageRun[DescribeSummary]]) -> Panel:
    """Return the statistics as rows and the data sets as columns, as Table 1 of CHEEMS has them."""
    columns = [_cells(run.summary.overall, has_tokens=True) for run in runs]
    heads = _heads(has_tokens=True)
    rows = [
        (head, *(column[place] for column in columns))
        for place, head in enumerate(heads)
        if any(column[place] != DASH for column in columns)
    ]
    names = tuple(isolate(run.name) for run in runs)
    tokenizers = tuple(last_part(run.summary.tokenizer) if run.summary.tokenizer else DASH for run in runs)
    rows += [(word("described_tokenizer"), *tokenizers)] if set(tokenizers) != {DASH} else []
    table = Table((word("described_statistic"), *names), tuple(rows))
    return Panel(word("described_overall"), None, (Grouped("", table),), "note_described")


def _panels(run: StageRun[DescribeSummary], *, is_alone: bool) -> Iterator[Panel]:
    """Yield the groups of each grouping, with a bar for the prompts of each of the largest."""
    prefix = "" if is_alone else f"{isolate(run.name)} · "
    has_tokens = run.summary.tokenizer is not None
    for grouping in GROUPINGS:
        groups: dict[str, GroupStatistics] = getattr(run.summary, f"by_{grouping}")
        if len(groups) < 2:
            continue
        name_word = category_word if grouping == "category" else language_word
        rows = tuple((name_word(name), *_cells(group, has_tokens=has_tokens)) for name, group in groups.items())
        table = Table((word("group"), *_heads(has_tokens=has_tokens)), rows)
        largest = list(groups.items())[:_MOST_BARS]
        bars = [CountBar(name_word(name), group.num_prompts) for name, group in largest]
        figure = count_bars("described_prompts", bars, total=run.summary.overall.num_prompts)
        yield Panel(f"{prefix}{word(f'described_by_{grouping}')}", figure, (Grouped("", table),))


def _heads(*, has_tokens: bool) -> tuple[str, ...]:
    units = ("characters", "tokens") if has_tokens else ("characters",)
    lengths = [f"described_{unit}_{part}" for unit in units for part in MeanLengths.__struct_fields__]
    numbers = ("prompts", "described_responses", "described_responses_per_prompt", "described_comparisons")
    return tuple(word(name) for name in (*numbers, *lengths))


def _cells(group: GroupStatistics, *, has_tokens: bool) -> tuple[str, ...]:
    lengths = (group.characters, group.tokens) if has_tokens else (group.characters,)
    means = (
        decimal(None if unit is None else getattr(unit, part), 2)
        for unit in lengths
        for part in MeanLengths.__struct_fields__
    )
    numbers = (count(group.num_prompts), count(group.num_responses), decimal(group.responses_per_prompt, 2))
    return (*numbers, count(group.num_comparisons), *means)


SECTION = StageSection(115, "describe", DescribeSummary, _contents)
