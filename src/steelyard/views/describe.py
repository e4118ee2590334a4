"""Data statistics: the numbers of Table 1 of CHEEMS for each described data set, and for each of its groups."""

from collections.abc import Iterator, Sequence

import msgspec

from steelyard.core.types import JsonObject
from steelyard.evaluation.tables import (
    DASH,
    Grouped,
    Panel,
    Sentence,
    Table,
    count,
    decimal,
    group_word,
    isolate,
    word,
)
from steelyard.prompts.description import GROUPINGS, DescribeSummary, GroupStatistics, MeanLengths
from steelyard.report.bars import CountBar, count_bars
from steelyard.report.page import COMMA, Section
from steelyard.report.run_records import last_part
from steelyard.views.records import flat_row
from steelyard.views.view import HeadlineRule, PageSources, RunHeadline, StageContents, StageRun, View, report_step

_MOST_BARS = 15


def _contents(runs: Sequence[StageRun[DescribeSummary]], sources: PageSources) -> StageContents:
    """Return the statistics of all data sets side by side, and the groups of each."""
    prefixes = [f"{isolate(run.name)} · " if len(runs) > 1 else "" for run in runs]
    groups = [
        panel._replace(title=prefix + panel.title)
        for prefix, run in zip(prefixes, runs, strict=True)
        for panel in _groups(run.summary)
    ]
    sentences = tuple(sentence for run in runs for sentence in _sentences(run))
    evidence = tuple(run.evidence for run in runs)
    return StageContents((Section("described", evidence, (_overall(runs), *groups), sentences),))


def _panels(run: StageRun[DescribeSummary], sources: PageSources) -> Iterator[Panel]:
    yield _overall([run])
    yield from _groups(run.summary)


def _sentences(run: StageRun[DescribeSummary]) -> Iterator[Sentence]:
    overall = run.summary.overall
    values = {
        "run": run.name,
        "prompts": count(overall.num_prompts),
        "responses": count(overall.num_responses),
        "comparisons": count(overall.num_comparisons),
    }
    yield Sentence("say_described", values)
    if run.summary.num_unranked:
        yield Sentence("say_no_ranking_yet", {"number": count(run.summary.num_unranked)})


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


def _groups(summary: DescribeSummary) -> Iterator[Panel]:
    """Yield the groups of each grouping, with a bar for the prompts of each of the largest."""
    has_tokens = summary.tokenizer is not None
    for grouping in GROUPINGS:
        groups: dict[str, GroupStatistics] = getattr(summary, f"by_{grouping}")
        if len(groups) < 2:
            continue
        rows = tuple(
            (group_word(grouping, name), *_cells(group, has_tokens=has_tokens)) for name, group in groups.items()
        )
        table = Table((word("group"), *_heads(has_tokens=has_tokens)), rows)
        largest = list(groups.items())[:_MOST_BARS]
        bars = [CountBar(group_word(grouping, name), group.num_prompts) for name, group in largest]
        figure = count_bars("described_prompts", bars, total=summary.overall.num_prompts)
        yield Panel(word(f"described_by_{grouping}"), figure, (Grouped("", table),))


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


class _OverallCounts(msgspec.Struct):
    num_prompts: int
    num_comparisons: int


class _Described(msgspec.Struct):
    overall: _OverallCounts


def _described(run: _Described) -> RunHeadline:
    comparisons = f"{count(run.overall.num_comparisons)} {word('view_described_comparisons')}"
    return RunHeadline(count(run.overall.num_prompts), f"{word('view_described_prompts')}{COMMA}{comparisons}")


def _records(summary: DescribeSummary) -> Iterator[JsonObject]:
    yield {"by": "all", "name": "all"} | flat_row(summary.overall)
    for by in GROUPINGS:
        for name, group in getattr(summary, f"by_{by}").items():
            yield {"by": by, "name": name} | flat_row(group)


VIEW = View(
    115, "describe", DescribeSummary, "described", _sentences, _panels,
    records=_records, headline=HeadlineRule(_Described, _described), contents=_contents, lead=1,
    next_step=report_step("shows them"),
)  # fmt: skip
