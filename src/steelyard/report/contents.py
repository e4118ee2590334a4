"""From runs to the contents of the page: read the output of each stage, join it by prompt, choose the sections."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from steelyard.core.types import Counts, Run
from steelyard.evaluation.comparison import ComparisonSummary
from steelyard.evaluation.items import ScoredItem
from steelyard.evaluation.languages import LanguagesSummary
from steelyard.evaluation.leaderboard import LeaderboardSummary
from steelyard.evaluation.measures.accuracy import Named
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.evaluation.tables import Grouped, Sentence, Table, count, table, word
from steelyard.io.terminal_text import rule_counts
from steelyard.ranking.resolution import ResolveSummary
from steelyard.report.comparison import (
    comparison_section,
    comparison_sentences,
    language_sentences,
    languages_section,
)
from steelyard.report.evaluation_sections import (
    accuracy_section,
    evaluation_cards,
    evaluation_sentences,
    measures_section,
)
from steelyard.report.items import JoinedItems, pack
from steelyard.report.judgment_sections import conflict_card, conflict_section, conflict_sentences, judges_section
from steelyard.report.leaderboard import leaderboard_section
from steelyard.report.page import COLON, CardGroup, Page, Protocol, Section
from steelyard.report.rewards import rewards_section
from steelyard.report.sources import (
    FinishedRun,
    KnownCases,
    RunCaseFile,
    case_files,
    curve_of,
    items_of,
    of_stage,
    read_known_cases,
    summary_of,
)
from steelyard.report.training_curves import training_section, training_sentences
from steelyard.training.config import TrainingSummary


class ReportData(NamedTuple):
    """The runs with their summaries, items and cases."""

    sources: tuple[FinishedRun, ...]
    items: dict[str, Sequence[ScoredItem]]
    summaries: dict[str, EvaluationSummary]
    comparisons: dict[str, ComparisonSummary]
    leaderboards: tuple[LeaderboardSummary, ...]
    languages: tuple[LanguagesSummary, ...]
    resolutions: dict[str, ResolveSummary]
    trainings: dict[str, TrainingSummary]
    case_files: tuple[RunCaseFile, ...]
    cases: dict[str, KnownCases]


def read_data(sources: Sequence[FinishedRun]) -> ReportData:
    """Read the files that the report needs. Raises FileError or RecordError for a broken one."""
    evaluated = of_stage(sources, "evaluate")
    summaries = _by_name([summary_of(source, EvaluationSummary) for source in evaluated], evaluated)
    files = case_files(sources)
    return ReportData(
        sources=tuple(sources),
        items={name: items_of(source) for name, source in zip(summaries, evaluated, strict=True)},
        summaries=summaries,
        comparisons={source.name: summary_of(source, ComparisonSummary) for source in of_stage(sources, "compare")},
        leaderboards=tuple(summary_of(source, LeaderboardSummary) for source in of_stage(sources, "leaderboard")),
        languages=tuple(summary_of(source, LanguagesSummary) for source in of_stage(sources, "languages")),
        resolutions={source.name: summary_of(source, ResolveSummary) for source in of_stage(sources, "resolve")},
        trainings={source.name: summary_of(source, TrainingSummary) for source in of_stage(sources, "train")},
        case_files=files,
        cases=read_known_cases(files),
    )


SHOWN_STAGES = ("evaluate", "compare", "leaderboard", "languages", "resolve", "train")
"""The stages with sections of the page; of other stages it shows cases and run records."""


def page_of(data: ReportData, *, title: str | None, language: str, budget: int, version: str) -> Page:
    """Return the contents of the page, in order."""
    cases = {name: known.cases for name, known in data.cases.items()}
    items = JoinedItems(cases, list(data.items.values()))
    sections = [section for section in _sections(data) if section.panels]
    return Page(
        title=title or word("report_title"),
        language=language,
        models=tuple(data.items),
        is_simulated=_is_simulated(data),
        cards=_cards(data),
        sentences=_sentences(data),
        sections=tuple(sections),
        packed=pack(items, budget=budget),
        protocols=tuple(protocol(source.name, source.run) for source in data.sources),
        version=version,
    )


def _by_name(summaries: Sequence[EvaluationSummary], sources: Sequence[FinishedRun]) -> dict[str, EvaluationSummary]:
    """Return the evaluations under their model's name; those of one model also name their run."""
    names = [_last_part(summary.model) or source.name for summary, source in zip(summaries, sources, strict=True)]
    unique = [
        name if names.count(name) == 1 else f"{name} ({source.name})"
        for name, source in zip(names, sources, strict=True)
    ]
    return dict(zip(unique, summaries, strict=True))


def _last_part(path: str) -> str:
    """Return the last part of a path of any system."""
    return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def _sections(data: ReportData) -> list[Section]:
    evaluated = _evidence(data, "evaluate")
    curves = {source.name: curve_of(source) for source in of_stage(data.sources, "train")}
    return [
        accuracy_section([Named(name, summary) for name, summary in data.summaries.items()], evaluated),
        comparison_section(data.comparisons, _evidence(data, "compare")),
        leaderboard_section(data.leaderboards, _evidence(data, "leaderboard")),
        languages_section(data.languages, _evidence(data, "languages")),
        measures_section(data.summaries, evaluated),
        rewards_section(data.items, evaluated),
        conflict_section(data.resolutions, _evidence(data, "resolve")),
        judges_section(data.resolutions),
        training_section(curves, _evidence(data, "train")),
    ]


def _evidence(data: ReportData, stage: str) -> list[str]:
    return [counts_line(source.name, source.run.counts) for source in of_stage(data.sources, stage)]


def _cards(data: ReportData) -> tuple[CardGroup, ...]:
    """Return one group of cards; with several evaluations one for each, and one for the judgments."""
    groups = [CardGroup(name, evaluation_cards(name, summary)) for name, summary in data.summaries.items()]
    conflicts = tuple(conflict_card(name, summary) for name, summary in data.resolutions.items())
    groups = [*groups, CardGroup(word("conflicts"), conflicts)]
    if len(data.summaries) < 2:
        groups = [CardGroup("", tuple(card for group in groups for card in group.cards))]
    return tuple(group for group in groups if group.cards)


def _sentences(data: ReportData) -> tuple[Sentence, ...]:
    by_run = [
        *(evaluation_sentences(name, summary) for name, summary in data.summaries.items()),
        *map(comparison_sentences, data.comparisons.values()),
        *map(language_sentences, data.languages),
        *map(conflict_sentences, data.resolutions.values()),
        *map(training_sentences, data.trainings.values()),
    ]
    return tuple(sentence for sentences in by_run for sentence in sentences)


def _is_simulated(data: ReportData) -> bool:
    """Return whether a run simulates or a case is simulated: then every number here describes a simulation."""
    if any(source.run.stage == "simulate" for source in data.sources):
        return True
    return any(cases.is_simulated for cases in data.cases.values())


def counts_line(name: str, counts: Counts) -> str:
    """Return what went in, was used, was dropped by which rule, and was noted, in one line."""
    parts = [f"{count(counts.num_in)} {word('num_in')}", f"{count(counts.num_used)} {word('used')}"]
    for title, rules in (("dropped", counts.dropped), ("noted", counts.noted)):
        if rules:
            numbers = rule_counts({rule.replace("_", " "): number for rule, number in rules.items()})
            parts.append(f"{word(title)}{COLON}{numbers}")
    return f"{name}{COLON}{' · '.join(parts)}"


def protocol(name: str, run: Run) -> Protocol:
    """Return the run's settings, seed, inputs, versions, counts and time. Of a path only the last part is shown."""
    files = [(role, _without_folders(source.path), source.sha256) for role, source in run.inputs.items()]
    written = [(word("output"), output, sha256) for output, sha256 in run.outputs.items()]
    settings = [(key, value) for key, value in _flat(run.config) if key != "seed"]
    whole = [(word("seed"), str(run.seed) if run.seed is not None else word("no_seed"))]
    whole.append((word("seconds"), f"{run.seconds:,.1f}"))
    counts = [(word("num_in"), count(run.counts.num_in)), (word("used"), count(run.counts.num_used))]
    for title, rules in (("dropped", run.counts.dropped), ("noted", run.counts.noted)):
        counts += [(f"{word(title)}{COLON}{rule}", count(number)) for rule, number in sorted(rules.items())]
    return Protocol(
        name,
        run.stage,
        (
            Grouped("counts", _pairs(counts)),
            Grouped("settings", _pairs([*whole, *settings])),
            Grouped("files", table(("role", "file", "sha256"), [*files, *written])),
            Grouped("versions", _pairs(sorted(run.versions.items()))),
        ),
    )


def _pairs(rows: Sequence[tuple[str, str]]) -> Table:
    return table(("setting", "value"), rows)


def _flat(settings: Mapping[str, object], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            rows += _flat(value, f"{prefix}{key}.")
        else:
            rows.append((prefix + key, _without_folders(value) if isinstance(value, str) else str(value)))
    return rows


def _without_folders(value: str) -> str:
    """Return the last part of an absolute path, any other text unchanged: a page must not show a user's folders."""
    return _last_part(value) if value.startswith(("/", "\\")) or value[1:3] == ":\\" else value
