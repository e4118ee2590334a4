"""From runs to the page's contents: read what each stage left, join it by prompt, choose the sections."""

from collections.abc import Sequence
from typing import NamedTuple

from steelyard.evaluation.comparison import ComparisonSummary
from steelyard.evaluation.items import ScoredItem
from steelyard.evaluation.languages import LanguagesSummary
from steelyard.evaluation.leaderboard import LeaderboardSummary
from steelyard.evaluation.measures.accuracy import Named
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.evaluation.tables import Sentence, word
from steelyard.ranking.resolution import ResolveSummary
from steelyard.report.comparison import comparison_section, comparison_sentences
from steelyard.report.conflicts import conflict_card, conflict_section, conflict_sentences
from steelyard.report.items import join_items, pack
from steelyard.report.judges import judges_section
from steelyard.report.languages import language_sentences, languages_section
from steelyard.report.leaderboard import leaderboard_section
from steelyard.report.measures import measures_section
from steelyard.report.page import Page
from steelyard.report.sections import (
    Section,
    accuracy_section,
    counts_line,
    protocol,
    rewards_section,
)
from steelyard.report.sources import (
    CaseFile,
    KnownCases,
    Source,
    case_files,
    comparison_of,
    curve_of,
    items_of,
    languages_of,
    leaderboard_of,
    of_stage,
    read_known_cases,
    resolution_of,
    summary_of,
    training_of,
)
from steelyard.report.summary_readers import Training, model_name
from steelyard.report.summary_text import (
    CardGroup,
    evaluation_cards,
    evaluation_sentences,
)
from steelyard.report.training_curves import training_section, training_sentences


class Gathered(NamedTuple):
    """The runs, and what was read of them."""

    sources: tuple[Source, ...]
    items: dict[str, Sequence[ScoredItem]]
    summaries: dict[str, EvaluationSummary]
    comparisons: dict[str, ComparisonSummary]
    leaderboards: tuple[LeaderboardSummary, ...]
    languages: tuple[LanguagesSummary, ...]
    resolutions: dict[str, ResolveSummary]
    trainings: dict[str, Training]
    case_files: tuple[CaseFile, ...]
    cases: dict[str, KnownCases]


def gather(sources: Sequence[Source]) -> Gathered:
    """Everything that the report needs. Raises FileError or RecordError for what is broken."""
    evaluated = of_stage(sources, "evaluate")
    summaries = _by_name([summary_of(source) for source in evaluated], evaluated)
    files = case_files(sources)
    return Gathered(
        sources=tuple(sources),
        items={name: items_of(source) for name, source in zip(summaries, evaluated, strict=True)},
        summaries=summaries,
        comparisons={source.name: comparison_of(source) for source in of_stage(sources, "compare")},
        leaderboards=tuple(leaderboard_of(source) for source in of_stage(sources, "leaderboard")),
        languages=tuple(languages_of(source) for source in of_stage(sources, "languages")),
        resolutions={source.name: resolution_of(source) for source in of_stage(sources, "resolve")},
        trainings={source.name: training_of(source) for source in of_stage(sources, "train")},
        case_files=files,
        cases=read_known_cases(files),
    )


SHOWN_STAGES = ("evaluate", "compare", "leaderboard", "languages", "resolve", "train")
"""The stages that have sections of the page; of others their cases are shown, and how they were done."""


def page_of(gathered: Gathered, *, title: str | None, language: str, budget: int, version: str) -> Page:
    """The contents of the page, in order."""
    cases = {name: own.cases for name, own in gathered.cases.items()}
    known = join_items(cases, list(gathered.items.values()))
    sections = [section for section in _sections(gathered) if section.panels]
    return Page(
        title=title or word("report_title"),
        language=language,
        models=tuple(gathered.items),
        is_simulated=_is_simulated(gathered),
        cards=_cards(gathered),
        sentences=_sentences(gathered),
        sections=tuple(sections),
        packed=pack(known, budget=budget),
        protocols=tuple(protocol(source.name, source.run) for source in gathered.sources),
        version=version,
    )


def _by_name(summaries: Sequence[EvaluationSummary], sources: Sequence[Source]) -> dict[str, EvaluationSummary]:
    """The evaluations under their model's name; those of one model also name their run."""
    names = [model_name(summary.model) or source.name for summary, source in zip(summaries, sources, strict=True)]
    unique = [
        name if names.count(name) == 1 else f"{name} ({source.name})"
        for name, source in zip(names, sources, strict=True)
    ]
    return dict(zip(unique, summaries, strict=True))


def _sections(gathered: Gathered) -> list[Section]:
    evaluated = _evidence(gathered, "evaluate")
    curves = {source.name: curve_of(source) for source in of_stage(gathered.sources, "train")}
    return [
        accuracy_section([Named(name, summary) for name, summary in gathered.summaries.items()], evaluated),
        comparison_section(gathered.comparisons, _evidence(gathered, "compare")),
        leaderboard_section(gathered.leaderboards, _evidence(gathered, "leaderboard")),
        languages_section(gathered.languages, _evidence(gathered, "languages")),
        measures_section(gathered.summaries, evaluated),
        rewards_section(gathered.items, evaluated),
        conflict_section(gathered.resolutions, _evidence(gathered, "resolve")),
        judges_section(gathered.resolutions, []),
        training_section(curves, _evidence(gathered, "train")),
    ]


def _evidence(gathered: Gathered, stage: str) -> list[str]:
    return [counts_line(source.name, source.run.counts) for source in of_stage(gathered.sources, stage)]


def _cards(gathered: Gathered) -> tuple[CardGroup, ...]:
    """One group, or one an evaluation and one of the judgments where there are several evaluations."""
    groups = [CardGroup(name, evaluation_cards(name, summary)) for name, summary in gathered.summaries.items()]
    conflicts = tuple(conflict_card(name, summary) for name, summary in gathered.resolutions.items())
    groups = [*groups, CardGroup(word("conflicts"), conflicts)]
    if len(gathered.summaries) < 2:
        groups = [CardGroup("", tuple(card for group in groups for card in group.cards))]
    return tuple(group for group in groups if group.cards)


def _sentences(gathered: Gathered) -> tuple[Sentence, ...]:
    said = [
        sentence for name, summary in gathered.summaries.items() for sentence in evaluation_sentences(name, summary)
    ]
    said += [sentence for own in gathered.comparisons.values() for sentence in comparison_sentences(own)]
    said += [sentence for own in gathered.languages for sentence in language_sentences(own)]
    said += [sentence for own in gathered.resolutions.values() for sentence in conflict_sentences(own)]
    said += [sentence for training in gathered.trainings.values() for sentence in training_sentences(training)]
    return tuple(said)


def _is_simulated(gathered: Gathered) -> bool:
    """Return whether a run simulates or a case is simulated: then every number here describes a simulation."""
    if any(source.run.stage == "simulate" for source in gathered.sources):
        return True
    return any(cases.is_simulated for cases in gathered.cases.values())
