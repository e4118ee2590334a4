"""Columns of published tables: which numbers by benchmark have, and which those by language."""

import re

from steelyard.core.languages import english_name
from steelyard.core.plugins import kinds
from steelyard.evaluation.benches import CASE_KINDS
from steelyard.evaluation.printed_tables import AVERAGES
from steelyard.plugins.benches.rewardbench import SECTIONS
from steelyard.plugins.benches.subset_benches import CHEEMS_PUBLISHED, translation_subset

_CHEEMS = {
    f"{name.partition('_')[0]}_{measure}" for name in CHEEMS_PUBLISHED for measure in ("accuracy", "exact_match")
}
_SECTIONS = {name.casefold() for name in SECTIONS}


def is_by_bench(name: str) -> bool:
    """Return whether a table by benchmark has numbers in a column of this name, and none by language has."""
    return name.casefold() in _CHEEMS | {*kinds("benches")} - {*CASE_KINDS}


def is_by_language(name: str) -> bool:
    """Return whether a table by language has numbers in a column of this name: a language, a subset or a section."""
    is_language = name.casefold() not in AVERAGES and english_name(name) is not None
    is_section = re.sub("[_-]", " ", name.casefold()) in _SECTIONS
    return is_language or is_section or translation_subset(name) is not None
