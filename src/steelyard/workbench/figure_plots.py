"""The plots of the pages of figures, in the words of the page."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from markupsafe import Markup

from steelyard.workbench.dashboards import ProgressFigures
from steelyard.workbench.plots import DayColumn, PlotPart, day_columns, stacked_bar

_MOST_COLUMNS = 120
_TONES = {
    "finished": "tone-3",
    "validation": "tone-1",
    "operations review": "tone-1",
    "delivery review": "tone-1",
    "aligning": "tone-2",
    "with delivery": "tone-2",
    "with operations": "tone-2",
    "with developers": "tone-2",
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
        stacked_bar(words["progress_by_state"], parts), marks, day_columns(words["progress_by_day"], columns)
    )


def day_label(at: float) -> str:
    """Return the month and day of a time, in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%m-%d}"
