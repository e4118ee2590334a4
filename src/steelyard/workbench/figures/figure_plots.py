"""The plots of the pages of figures, in the words of the page."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from markupsafe import Markup

from steelyard.annotation.native_results import NativeResult
from steelyard.workbench.figures.agreement_figures import AgreementFigures
from steelyard.workbench.figures.dashboards import ProgressFigures
from steelyard.workbench.figures.people_figures import PeopleFigures
from steelyard.workbench.figures.plots import DayColumn, PlotPart, ValueDot, day_columns, dots, stacked_bar
from steelyard.workbench.pipeline.question_words import category_name

_MOST_COLUMNS = 120
_MOST_ROWS = 60
_GUESSING = 0.5
"""The reliability of guessing, where the axis begins if nobody is below it."""
_TONES = {
    "finished": "tone-3",
    "validation": "tone-1",
    "operations review": "tone-review-2",
    "delivery review": "tone-review-3",
    "with developers": "tone-2",
    "with operations": "tone-adjudicate-2",
    "with delivery": "tone-adjudicate-3",
    "aligning": "tone-adjudicate-4",
    "annotating": "tone-4",
    "dropped": "tone-6",
}


class StateMark(NamedTuple):
    """An entry of a legend."""

    tone: str
    name: str
    number: int


class ProgressPlots(NamedTuple):
    """The plots of the page of progress, and the legend of the states."""

    states: Markup
    legend: tuple[StateMark, ...]
    days: Markup


def progress_plots(figures: ProgressFigures, words: Mapping[str, str]) -> ProgressPlots:
    """Return the plots of a project's progress."""
    marks = tuple(
        StateMark(tone, words[f"state {state}"], figures.items.states[state])
        for state, tone in _TONES.items()
        if figures.items.states.get(state)
    )
    parts = [PlotPart(mark.number, mark.name, mark.tone) for mark in marks]
    columns = [
        DayColumn(
            day_label(day.at),
            [
                PlotPart(day.answers - day.gold - day.rework, words["progress_first_answers"], "tone-1"),
                PlotPart(day.rework, words["progress_rework"], "tone-2"),
                PlotPart(day.gold, words["progress_gold"], "tone-4"),
            ],
        )
        for day in figures.days[-_MOST_COLUMNS:]
    ]
    return ProgressPlots(
        stacked_bar(words["progress_by_state"], parts),
        marks,
        day_columns(words["progress_by_day"], columns, up=words["progress_answers"], across=words["day_utc"]),
    )


class AgreementPlots(NamedTuple):
    """The plots of the page of agreement: categories, people, and the weeks of the gate."""

    categories: Markup
    people: Markup
    gate: Markup


def agreement_plots(
    figures: AgreementFigures, words: Mapping[str, str], *, language: str, least: float
) -> AgreementPlots:
    """Return the plots of agreement; ``least`` is what the gate asks for."""
    groups = [ValueDot(category_name(row.name, language) or words["no_name"], row.same) for row in figures.categories]
    people = [ValueDot(row.name, row.same) for row in figures.people[:_MOST_ROWS]]
    weeks = [ValueDot(day_label(row.at or 0.0), row.share) for row in figures.gate_weeks[-_MOST_ROWS:]]
    return AgreementPlots(
        dots(words["agreement_by_category"], groups, line=least),
        dots(words["agreement_by_person"], people, line=least),
        dots(words["agreement_gate_weeks"], weeks),
    )


def gold_plot(figures: PeopleFigures, words: Mapping[str, str]) -> Markup:
    """Return the gold accuracy of people; those whose accuracy changed are marked."""
    rows = [
        ValueDot(row.name, row.gold, row.drift is not None and row.drift.is_real)
        for row in figures.people
        if row.gold.value is not None
    ]
    return dots(words["people_gold"], rows[:_MOST_ROWS], line=figures.gold.value)


def reliability_plot(figures: PeopleFigures, words: Mapping[str, str]) -> Markup:
    """Return the reliability of people with its intervals, the most reliable first."""
    rows = [
        ValueDot(row.name, row.reliability)
        for row in figures.people
        if row.reliability is not None and row.reliability.value is not None
    ]
    rows.sort(key=lambda row: row.estimate, reverse=True)
    lowest = min((row.estimate.low or 0.0 for row in rows), default=_GUESSING)
    low = _GUESSING if lowest >= _GUESSING else 0.0
    return dots(words["people_reliability"], rows[:_MOST_ROWS], low=low, line=None if low else _GUESSING)


def native_plot(results: Sequence[NativeResult], words: Mapping[str, str]) -> Markup:
    """Return how often people prefer the better response of the reference, by language; by chance half do."""
    rows = [ValueDot(row.language or words["no_name"], row.reference) for row in results[:_MOST_ROWS]]
    return dots(words["native_reference"], rows, line=0.5)


def day_label(at: float) -> str:
    """Return the month and day of a time, in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%m-%d}"
