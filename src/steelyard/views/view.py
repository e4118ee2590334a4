"""The type of a view: everything that people see of the result of one verb, on every surface.

Each file of this package that defines ``VIEW`` is the view of one verb, found by its name; its words are in
``report/templates/sections/`` under the name of the file. A fact is worded once, as a sentence, and a number is shown
once, in a table: the terminal, the page, Python and the tables for papers render the same values. No renderer names a
verb.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from steelyard.core.remedies import Command, Remedy
from steelyard.core.types import Case, JsonObject, Run
from steelyard.evaluation.items import ScoredItem
from steelyard.evaluation.tables import Panel, Sentence, isolate
from steelyard.report.failures import Failures
from steelyard.report.page import CardGroup, Section
from steelyard.report.run_records import counts_line
from steelyard.report.sources import FinishedRun

_PACKAGE = "steelyard.views"
SummaryT = TypeVar("SummaryT")


class StageRun(NamedTuple, Generic[SummaryT]):
    """A finished run with its summary; ``name`` is its title on the page: of an evaluation that of its model."""

    name: str
    source: FinishedRun
    summary: SummaryT

    @property
    def evidence(self) -> str:
        """Counts of what the run read, used and dropped, in one line."""
        return counts_line(self.source.name, self.source.run.counts)


class PageSources(NamedTuple):
    """Contents of the page besides the summaries: items by evaluation, the cases of each file by its name, failures."""

    items: Mapping[str, Sequence[ScoredItem]]
    cases: Mapping[str, Sequence[Case]]
    failures: Failures


NO_SOURCES = PageSources({}, {}, Failures((), ()))
"""The sources of a result that is shown without its cases, as on the terminal."""


class StageContents(NamedTuple):
    """The sections of a stage's runs, and what the top of the page has of them: groups of cards with sentences.

    The first group is shown whole, the others are folded. Without sentences of a group the top of the page has the
    first sentence of each section.
    """

    sections: tuple[Section, ...]
    cards: tuple[CardGroup, ...] = ()


class RunHeadline(NamedTuple):
    """The one number that people look for first: a number in bold, its meaning with its interval, and the model."""

    value: str = ""
    about: str = ""
    model: str = ""


class HeadlineRule(NamedTuple):
    """The headline of a summary. ``fields`` is the part of it that the headline needs.

    Only these fields are decoded: a folder may hold thousands of records of 100 kB, also of older versions.
    """

    fields: type[Any]
    headline: Callable[[Any], RunHeadline]


class NextStep(NamedTuple):
    """The command that comes after a run, and its effect where the command does not say it."""

    command: Command
    effect: str = ""


def report_step(effect: str) -> Callable[[Run[Any], Path], NextStep]:
    """Return the next step of a verb whose result the report shows."""
    return lambda _, out: NextStep(Command("report", (str(out),), (Remedy("out", "report.html"),)), effect)


class View(NamedTuple, Generic[SummaryT]):
    """The view of one verb; those of the lowest ``order`` are first on the page."""

    order: int
    stage: str
    """The stage of the runs, as ``run.json`` has it."""
    summary: type[SummaryT]
    anchor: str
    """The anchor of its section, whose word is the title."""
    sentences: Callable[[StageRun[SummaryT]], Iterable[Sentence]]
    """The result in words, most important first."""
    panels: Callable[[StageRun[SummaryT], PageSources], Iterable[Panel]] = lambda run, sources: ()
    """Figures, tables and examples of one run. Tables need no sources."""
    records: Callable[[SummaryT], Iterable[JsonObject]] = lambda summary: ()
    """The rows of the main table as plain numbers: Python's ``table``."""
    headline: HeadlineRule | None = None
    """The number in a list of runs; without one it is the number of what was used, in words ``unit``."""
    unit: str = "view_cases_used"
    lead: int = 0
    """The number of tables that the terminal shows after the sentences; `--verbose` shows all."""
    title: Callable[[SummaryT], str] | None = None
    """The name of a run on the page, such as its model; null for that of its folder."""
    contents: Callable[[Sequence[StageRun[SummaryT]], PageSources], StageContents] | None = None
    """The sections of several runs, where they share figures or have more than one section."""
    next_step: Callable[[Run[SummaryT], Path], NextStep] | None = None
    """Next steps, by the run and its folder."""
    unrecorded: Callable[[Any, Path], Iterable[str]] = lambda result, out: ()
    """The lines of a result that no ``run.json`` records, such as a forecast, by the result and its folder."""

    def page_contents(self, runs: Sequence[StageRun[SummaryT]], sources: PageSources) -> StageContents:
        """Return the sections of the runs on the page: by default one, with the panels of each run in turn."""
        if self.contents is not None:
            return self.contents(runs, sources)
        panels = tuple(
            panel._replace(title=f"{isolate(run.name)} · {panel.title}" if len(runs) > 1 else panel.title)
            for run in runs
            for panel in self.panels(run, sources)
        )
        sentences = tuple(sentence for run in runs for sentence in self.sentences(run))
        return StageContents((Section(self.anchor, tuple(run.evidence for run in runs), panels, sentences),))


@cache
def views() -> tuple[View[Any], ...]:
    """Return the view of every stage that has one, in the order of the page."""
    values = [view for name in _module_names() if (view := _view_in(name)) is not None]
    return tuple(sorted(values, key=lambda view: view.order))


def view_of(stage: str) -> View[Any] | None:
    """Return the view of a stage; null for a stage without one. Only its own module is imported."""
    name = stage.replace("-", "_")
    return _view_in(name) if name in _module_names() else None


@cache
def _module_names() -> tuple[str, ...]:
    package = importlib.import_module(_PACKAGE)
    return tuple(name for _, name, _ in pkgutil.iter_modules(package.__path__))


def _view_in(name: str) -> View[Any] | None:
    return vars(importlib.import_module(f"{_PACKAGE}.{name}")).get("VIEW")
