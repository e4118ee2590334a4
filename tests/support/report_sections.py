"""The page of some runs, and its one section with its words checked, for the tests of the report."""

import re
from pathlib import Path

from steelyard.core.types import Run
from steelyard.report.page import page_strings, render
from steelyard.report.sources import FinishedRun, read_sources
from steelyard.views.page import page_of, read_data
from steelyard.views.view import NO_SOURCES, StageRun


def page(*runs):
    return page_of(read_data(read_sources(runs)), title=None, language="en", budget=2**20, version="1")


def only_section(*runs):
    """The section of a page that has one, whose words are in both languages."""
    made = page(*runs)
    (section,) = made.sections
    strings = page_strings().table
    used = re.findall(r"@@([a-z0-9_]+)\|", str((section, made.sentences)))
    keys = {*used, section.anchor, *(sentence.key for sentence in made.sentences)}
    for key in keys | {panel.note for panel in section.panels if panel.note}:
        if not key.startswith("why_"):
            assert set(strings[key]) == {"en", "zh"}, key
    assert f'id="{section.anchor}"' in render(made)
    return section, made.sentences


def panels_of(section):
    return {panel.title: panel for panel in section.panels}


def run_with(summary, stage="stage", name="run"):
    """A run of a summary, as its view gets it; it wrote no files."""
    return StageRun(name, FinishedRun(name, Path(name), Run(stage=stage, config={}, summary=summary)), summary)


def section_of(view, summary, cases=None):
    """The only section that a view makes of one summary."""
    sources = NO_SOURCES._replace(cases=cases or {})
    (section,) = view.page_contents([run_with(summary, view.stage)], sources).sections
    return section
