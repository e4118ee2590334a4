"""Resolved judgments: their conflicts, what the rankings keep of them, and the quality of the judges."""

from collections.abc import Iterator, Sequence

import msgspec

from steelyard.core.types import JsonObject
from steelyard.evaluation.tables import Panel, Sentence, count, percent, word
from steelyard.ranking.judgment_table import REPEATED
from steelyard.ranking.resolution import ResolveSummary
from steelyard.report.judges import judge_panels, judge_sentences, judges_section
from steelyard.report.judgment_sections import conflict_card, conflict_panels, conflict_sentences
from steelyard.report.page import COMMA, CardGroup, Section
from steelyard.views.records import flat_row
from steelyard.views.view import HeadlineRule, PageSources, RunHeadline, StageContents, StageRun, View, report_step

_NOTED = {
    "say_kept_rankings": "given",
    "say_even_votes": "pairs tied by an even vote",
    "say_repeated_judgments": REPEATED,
    "say_first_answers": "first answers beside aligned ones",
}
"""Notes of a run on its judgments, by the sentence on each."""


def _sentences(run: StageRun[ResolveSummary]) -> Iterator[Sentence]:
    yield from _resolution_sentences(run)
    yield from judge_sentences(run.summary)


def _resolution_sentences(run: StageRun[ResolveSummary]) -> Iterator[Sentence]:
    """Yield the conflicts, what was noted of the judgments, and what a majority would order."""
    yield from conflict_sentences(run.summary)
    noted = run.source.run.counts.noted
    for key, rule in _NOTED.items():
        if number := noted.get(rule):
            yield Sentence(key, {"number": count(number)})
    if (share := run.summary.share_ordered_by_majority) is not None:
        yield Sentence("say_majority_would_order", {"share": percent(share)})


def _panels(run: StageRun[ResolveSummary], sources: PageSources) -> Iterator[Panel]:
    yield from conflict_panels(run.summary)
    yield from judge_panels(run.summary, sources.cases)


def _contents(runs: Sequence[StageRun[ResolveSummary]], sources: PageSources) -> StageContents:
    """Return a section on judges and one on conflicts."""
    summaries = {run.name: run.summary for run in runs}
    panels = tuple(
        panel._replace(title=name) if len(runs) > 1 else panel
        for name, summary in summaries.items()
        for panel in conflict_panels(summary)
    )
    sentences = tuple(sentence for run in runs for sentence in _resolution_sentences(run))
    conflicts = Section("conflicts", tuple(run.evidence for run in runs), panels, sentences)
    cards = tuple(conflict_card(name, summary) for name, summary in summaries.items())
    return StageContents((judges_section(summaries, sources.cases), conflicts), (CardGroup(word("conflicts"), cards),))


def _records(summary: ResolveSummary) -> Iterator[JsonObject]:
    """Yield the conflicts of all judgments, and of each judge, kind, category, subset and language."""
    tables = msgspec.structs.asdict(summary.conflicts)
    yield {"by": "all", "name": "all"} | flat_row(tables.pop("overall"))
    for by, records in tables.items():
        for name, record in records.items():
            yield {"by": by.removeprefix("by_"), "name": name} | flat_row(record)


class _Conflicts(msgspec.Struct):
    ratio: float | None
    num_judgments: int


class _ConflictsOfAll(msgspec.Struct):
    overall: _Conflicts


class _Resolved(msgspec.Struct):
    conflicts: _ConflictsOfAll


def _resolved(run: _Resolved) -> RunHeadline:
    overall = run.conflicts.overall
    about = f"{word('conflict_ratio')}{COMMA}{count(overall.num_judgments)} {word('judgments')}"
    return RunHeadline(percent(overall.ratio), about)


VIEW = View(
    80, "resolve", ResolveSummary, "conflicts", _sentences, _panels,
    records=_records, headline=HeadlineRule(_Resolved, _resolved), contents=_contents,
    next_step=report_step("shows the conflicts"),
)  # fmt: skip
