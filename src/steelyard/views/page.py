"""From runs to the contents of the page: read each run and its cases, and ask each view for its sections."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from steelyard.annotation.people_runs import is_simulated_run
from steelyard.core.types import Case
from steelyard.evaluation.items import ScoredItem
from steelyard.evaluation.tables import Sentence, isolate, word
from steelyard.report.failures import failure_section, find_failures
from steelyard.report.findings import findings_section
from steelyard.report.items import JoinedItems, pack
from steelyard.report.missing_verdicts import text_key
from steelyard.report.page import Card, CardGroup, Page, Section
from steelyard.report.run_records import losses_section, protocol, records_section
from steelyard.report.sources import (
    FinishedRun,
    KnownCases,
    RunCaseFile,
    case_files,
    items_of,
    of_stage,
    read_known_cases,
    summary_of,
)
from steelyard.views.view import PageSources, StageContents, StageRun, View, views

_MOST_RUNS = 8
"""The most runs of a stage at the top of the page."""
_OPEN = ("few_labels", "accuracy")
"""The sections of stages that are open on a page of several stages or of an evaluation, where others are folded."""


class ReportData(NamedTuple):
    """The runs, those of each stage with their summaries, the items by evaluation, and the cases by file."""

    sources: tuple[FinishedRun, ...]
    runs: dict[str, tuple[StageRun[Any], ...]]
    items: dict[str, Sequence[ScoredItem]]
    case_files: tuple[RunCaseFile, ...]
    cases: dict[str, KnownCases]


def read_data(sources: Sequence[FinishedRun]) -> ReportData:
    """Read the files that the report needs. Raises FileError or RecordError for a broken one."""
    runs = {view.stage: _with_titles(view, _runs(of_stage(sources, view.stage), view.summary)) for view in views()}
    files = case_files(sources)
    return ReportData(
        sources=tuple(sources),
        runs=runs,
        items={run.name: items_of(run.source) for run in runs["evaluate"]},
        case_files=files,
        cases=read_known_cases(files),
    )


def page_of(data: ReportData, *, title: str | None, language: str, budget: int, version: str) -> Page:
    """Return the contents of the page, in order."""
    cases: dict[str, Sequence[Case]] = {name: known.cases for name, known in data.cases.items()}
    items = JoinedItems(cases, list(data.items.values()))
    failures = find_failures(items, list(data.items))
    contents = _contents(data, PageSources(data.items, cases, failures))
    sentences = _sentences(contents)
    of_stages = _without_repeats([section for part in contents for section in part.sections], sentences)
    is_folded = len(contents) > 1 or bool(data.runs["evaluate"])
    checks = [section for section in [findings_section(data.sources)] if section.sentences]
    sections = _ordered(of_stages, checks, data.sources) if is_folded else [*checks, *of_stages]
    return Page(
        title=title or default_title(data),
        language=language,
        models=tuple(data.items),
        is_simulated=is_simulated_data(data),
        cards=tuple(card for part in contents for group in _top(part.cards) for card in group.cards),
        sentences=sentences,
        groups=tuple(group for part in contents if len(part.cards) > 1 for group in part.cards),
        failures=failure_section(failures, items, [run.evidence for run in data.runs["evaluate"]]),
        sections=tuple(sections),
        is_folded=is_folded,
        packed=pack(items, budget=budget, marks=failures.marks(len(items))),
        protocols=tuple(protocol(source.name, source.run) for source in data.sources),
        version=version,
    )


def _ordered(of_stages: Sequence[Section], checks: Sequence[Section], sources: Sequence[FinishedRun]) -> list[Section]:
    """Return the accuracy of models, what the runs lost and what their inputs show, and folded all other sections."""
    accuracy = [section for section in of_stages if section.anchor in _OPEN]
    losses = [losses_section(sources)] if len(sources) > 1 else []
    folded = [section._replace(is_folded=True) for section in of_stages if section.anchor not in _OPEN]
    return [*accuracy, *losses, *checks, *folded]


def default_title(data: ReportData) -> str:
    """Return the model and benchmark of a single evaluation, the folder that all runs share, or the name of one run."""
    evaluated = data.runs["evaluate"]
    if len(evaluated) == 1:
        return f"{isolate(evaluated[0].name)} · {evaluated[0].summary.bench}"
    if len(data.sources) == 1:
        stage, name = data.sources[0].run.stage, data.sources[0].name
        anchor = next((view.anchor for view in views() if view.stage == stage), stage)
        section = word(anchor, stage.replace("_", " "))
        return section if text_key(name) == text_key(stage) else f"{section} · {name}"
    folders = {source.folder.resolve().parent for source in data.sources}
    return (folders.pop().name if len(folders) == 1 else "") or word("report_title")


def _runs(sources: Sequence[FinishedRun], kind: type[Any]) -> tuple[StageRun[Any], ...]:
    return tuple(StageRun(source.name, source, summary_of(source, kind)) for source in sources)


def _with_titles(view: View[Any], runs: Sequence[StageRun[Any]]) -> tuple[StageRun[Any], ...]:
    """Return the runs under the titles of their view, as evaluations under their model; equal ones name their run."""
    if view.title is None:
        return tuple(runs)
    titles = [view.title(run.summary) or run.name for run in runs]
    return tuple(
        run._replace(name=title if titles.count(title) == 1 else f"{title} ({run.name})")
        for title, run in zip(titles, runs, strict=True)
    )


def _contents(data: ReportData, sources: PageSources) -> list[StageContents]:
    """Return the contents of every stage that has runs, and the records of runs of other stages."""
    contents = [view.page_contents(runs, sources) for view in views() if (runs := data.runs[view.stage])]
    others = [source for source in data.sources if source.run.stage not in data.runs]
    return [*contents, StageContents((records_section(others),))] if others else contents


def _without_repeats(sections: Sequence[Section], top: Sequence[Sentence]) -> list[Section]:
    """Return the sections with contents; the only one with sentences does not repeat them where all are at the top."""
    if sum(bool(section.sentences) for section in sections) == 1:
        sections = [
            section._replace(sentences=()) if all(sentence in top for sentence in section.sentences) else section
            for section in sections
        ]
    return [section for section in sections if section.panels or section.sentences]


def _sentences(contents: Sequence[StageContents]) -> tuple[Sentence, ...]:
    """Return the results in words: of a stage's run, or the first of each of its runs or of its sections.

    If the page has one section, it has all of its sentences.
    """
    sections = [section for part in contents for section in part.sections if section.sentences]
    most = None if len(sections) == 1 else 1
    return tuple(
        sentence
        for part in contents
        for sentence in [sentence for group in _top(part.cards) for sentence in group.sentences]
        or [sentence for section in part.sections for sentence in section.sentences[:most]]
    )


def _top(groups: Sequence[CardGroup]) -> tuple[CardGroup, ...]:
    """Return a single run whole, and of several runs the first card and sentence of each: none stands for the others.

    The lowest values come first, and of more runs than fit only those. Each card has the lead over the best baseline.
    """
    if len(groups) == 1:
        return tuple(groups)
    lowest = sorted(groups, key=lambda group: group.headline or 0.0)[:_MOST_RUNS]
    return tuple(group._replace(cards=_first(group), sentences=group.sentences[:1]) for group in lowest)


def _first(group: CardGroup) -> tuple[Card, ...]:
    return tuple(card._replace(below="\n".join(filter(None, (card.below, group.lead)))) for card in group.cards[:1])


def is_simulated_data(data: ReportData) -> bool:
    """Return whether a run simulates or a case is simulated: then every number here describes a simulation."""
    if any(source.run.stage == "simulate" or is_simulated_run(source.run.summary) for source in data.sources):
        return True
    return any(cases.is_simulated for cases in data.cases.values())
