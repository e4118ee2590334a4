"""Splits: the parts, their shares of every category and language, and prompts that stay together."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

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
    language_word,
    percent,
    table,
    word,
)
from steelyard.evaluation.vega import MODEL_COLOURS
from steelyard.report.bars import stacked_bars
from steelyard.report.page import COMMA
from steelyard.views.view import HeadlineRule, PageSources, RunHeadline, StageRun, View

_MOST_ROWS = 15


def _sentences(run: StageRun[SplitSummary]) -> Iterator[Sentence]:
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
    yield Sentence("say_split", values)


def _panels(run: StageRun[SplitSummary], sources: PageSources) -> Iterator[Panel]:
    """Yield the sizes of the parts, and their shares in each category and language that the split distinguishes."""
    parts, total = list(run.summary.parts), max(sum(run.summary.parts.values()), 1)
    sizes = [(name, count(size), percent(size / total)) for name, size in run.summary.parts.items()]
    yield Panel(word("split_parts"), None, (Grouped("", table(("part", "n", "share"), sizes)),))
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
        yield Panel(word(key), figure, (Grouped("", _table(dict(largest), parts)),), "note_split")


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


class _Parts(msgspec.Struct):
    parts: dict[str, int]


def _parts(run: _Parts) -> RunHeadline:
    return RunHeadline(" / ".join(map(count, run.parts.values())), " / ".join(run.parts))


VIEW = View(
    120,
    "split",
    SplitSummary,
    "splits",
    _sentences,
    _panels,
    headline=HeadlineRule(_Parts, _parts),
    records=lambda summary: [{"part": name, "num_cases": number} for name, number in summary.parts.items()],
)
