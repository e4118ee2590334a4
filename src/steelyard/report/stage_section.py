"""The sections of a stage on the page: one file in ``sections/`` for each verb, found by its name.

A file defines ``SECTION``: the stage, the type of its summary, and a function from its finished runs to sections of the
page. Its words are in ``templates/sections/`` under the name of the file.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

from steelyard.core.types import Case
from steelyard.evaluation.items import ScoredItem
from steelyard.report.failures import Failures
from steelyard.report.page import CardGroup, Section
from steelyard.report.run_records import counts_line
from steelyard.report.sources import FinishedRun

_PACKAGE = "steelyard.report.sections"
SummaryT = TypeVar("SummaryT")


class StageRun(NamedTuple, Generic[SummaryT]):
    """A finished run with its summary; ``name`` is its title on the page: of an evaluation that of its model."""

    name: str
    source: FinishedRun
    summary: SummaryT

    @property
    def evidence(self) -> str:
        """What the run read, used and dropped, in one line."""
        return counts_line(self.source.name, self.source.run.counts)


class PageSources(NamedTuple):
    """What the page knows besides the summaries: items by evaluation, the cases of each file by its name, failures."""

    items: Mapping[str, Sequence[ScoredItem]]
    cases: Mapping[str, Sequence[Case]]
    failures: Failures


class StageContents(NamedTuple):
    """The sections of a stage's runs, and what the top of the page has of them: groups of cards with sentences.

    The first group is shown whole, the others are folded. Without sentences of a group the top of the page has the
    first sentence of each section.
    """

    sections: tuple[Section, ...]
    cards: tuple[CardGroup, ...] = ()


class StageSection(NamedTuple, Generic[SummaryT]):
    """The sections of one stage; those of the lowest ``order`` are first on the page."""

    order: int
    stage: str
    summary: type[SummaryT]
    contents: Callable[[Sequence[StageRun[SummaryT]], PageSources], StageContents]


@cache
def stage_sections() -> tuple[StageSection[Any], ...]:
    """Return the sections of every stage that has some, in the order of the page."""
    package = importlib.import_module(_PACKAGE)
    modules = [importlib.import_module(f"{_PACKAGE}.{name}") for _, name, _ in pkgutil.iter_modules(package.__path__)]
    sections: list[StageSection[Any]] = [module.SECTION for module in modules]
    return tuple(sorted(sections, key=lambda section: section.order))
