"""Splits: the parts, their shares of every category and language, and prompts that stay together."""

from collections.abc import Iterator, Mapping, Sequence

from steelyard.curation.splits import SplitSummary
from steelyard.evaluation.tables import (
    DASH,
    Grouped,
    Mark,
    Panel,
    Sentence,
    Table,
    category_word,
    count,
    isolate,
    language_word,
    percent,
    word,
)
from steelyard.evaluation.vega import MODEL_COLOURS
from steelyard.report.bars import stacked_bars
from steelyard.report.page import COMMA, Section
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection

_MOST_ROWS = 15


def _contents(runs: Sequence[StageRun[SplitSummary]], sources: PageSources) -> StageContents:
    panels = [panel for run in runs for panel in _panels(run, is_alone=len(runs) == 1)]
    sentences = tuple(_sentence(run) for run in runs)
    return StageContents((Section("splits", tuple(run.evidence for run in runs), tuple(panels), sentences),))


def _sentence(run: StageRun[SplitSummary]) -> Sentence:
    summary = run.summary
    total = sum(summary.parts.values())
    parts = COMMA.join(
        f"{name} {count(size)} ({percent(size / max(total, 1))})" for name, size in summary.parts.items()
    )
    values = {
        "run": run.name,
        "cases": count(total),
        "parts": parts,
        "groups": count(summary.num_groups),
        "largest": count(summary.largest_group),
        "near": count(summary.num_joined_as_near_duplicates),
    }
    return Sentence("say_split", values)


def _panels(run: StageRun[SplitSummary], *, is_alone: bool) -> Iterator[Panel]:
    """Yield the shares of the parts in each category and language that the split distinguishes."""
    parts = list(run.summary.parts)
    prefix = "" if is_alone else f"{isolate(run.name)} · "
    divisions = {
        "by_category": {category_word(name): numbers for name, numbers in run.summary.by_category.items()},
        "by_language": {language_word(name): numbers for name, numbers in run.summary.by_language.items()},
    }
    for key, groups in divisions.items():
        if len(groups) < 2:
            continue
        largest = sorted(groups.items(), key=lambda item: -sum(item[1].values()))
        marks = [Mark(part, MODEL_COLOURS[place % len(MODEL_COLOURS)], "square") for place, part in enumerate(parts)]
        figure = stacked_bars(key, dict(largest[:_MOST_ROWS]), marks)
        yield Panel(f"{prefix}{word(key)}", figure, (Grouped("", _table(dict(largest), parts)),), "note_split")


def _table(groups: Mapping[str, Mapping[str, int]], parts: Sequence[str]) -> Table:
    rows = []
    for name, numbers in groups.items():
        total = sum(numbers.values())
        cells = [
            f"{count(numbers[part])} ({percent(numbers[part] / total)})" if numbers.get(part) else DASH
            for part in parts
        ]
        rows.append((name, count(total), *cells))
    return Table((word("group"), "n", *parts), tuple(rows))


SECTION = StageSection(120, "split", SplitSummary, _contents)
