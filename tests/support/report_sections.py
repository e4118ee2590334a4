"""The page of some runs, and its one section with its words checked, for the tests of the report."""

import re

from steelyard.report.contents import page_of, read_data
from steelyard.report.page import page_strings, render
from steelyard.report.sources import read_sources


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
