"""The page: values in, one self-contained HTML text out. Whatever comes from a user's files is escaped or packed."""

import functools
from typing import NamedTuple

import msgspec

from steelyard.evaluation.measure import measure_texts
from steelyard.evaluation.tables import Sentence, count
from steelyard.report.html import (
    Strings,
    code_markup,
    json_markup,
    read_template,
    script_hash,
    template_environment,
)
from steelyard.report.items import Packed, packed_text
from steelyard.report.sections import CardGroup, Protocol, Section

_DEFINITION = "define_"


class Page(NamedTuple):
    """The contents of the page, in their order."""

    title: str
    language: str
    models: tuple[str, ...]
    is_simulated: bool
    cards: tuple[CardGroup, ...]
    sentences: tuple[Sentence, ...]
    sections: tuple[Section, ...]
    packed: Packed
    protocols: tuple[Protocol, ...]
    version: str


def page_strings() -> Strings:
    """Return the words of the page, with those of every measure."""
    return Strings("strings.toml", measure_texts())


def render(page: Page) -> str:
    """Return the HTML text. It loads no script, style, font or picture, and its policy forbids to."""
    strings = page_strings()
    figures = [panel.figure.spec for section in page.sections for panel in section.panels if panel.figure]
    scripts = [*([_vega()] if figures else []), *map(read_template, ("page.js", "graph.js", "items.js"))]
    return (
        template_environment(strings)
        .from_string(read_template("page.html"))
        .render(
            page=page,
            terms=_terms(),
            left_out=_left_out(page.packed),
            styles=code_markup(read_template("page.css")),
            scripts=[code_markup(script) for script in scripts],
            hashes=[script_hash(script) for script in scripts],
            figures=json_markup(figures),
            strings=json_markup(strings.table),
            index=packed_text([msgspec.Raw(line) for line in page.packed.lines]),
            pages=page.packed.pages,
        )
    )


def _terms() -> list[str]:
    """The words that the page defines: of the headline, of every measure that defines some, and of judgments."""
    of_measures = [key.removeprefix(_DEFINITION) for key in measure_texts() if key.startswith(_DEFINITION)]
    return ["accuracy", "exact_match", "interval_95", *of_measures, "conflict_ratio", "tier"]


def _left_out(packed: Packed) -> Sentence | None:
    """Return how many items are in the page as a whole, where some are not."""
    if packed.num_whole == len(packed.lines):
        return None
    return Sentence("say_left_out", {"whole": count(packed.num_whole), "all": count(len(packed.lines))})


@functools.cache  # the bundle is the same for every page, and takes seconds to make
def _vega() -> str:
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
