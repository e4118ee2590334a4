"""Examples of damage on the page: in which direction the excerpts of both sides are laid out."""

import pytest

from steelyard.evaluation.tables import word
from steelyard.judging.translation_summary import DamageExample, LanguageTranslation, TranslateSummary
from steelyard.report.page import page_strings
from steelyard.translation.damage_kinds import DamageFinding
from steelyard.views.translate import VIEW
from steelyard.views.view import NO_SOURCES, StageRun


@pytest.mark.parametrize(
    ("kind", "language", "directions"),
    [
        ("number", "arb_Arab", ["ltr", "rtl"]),
        ("negation", "he", ["ltr", "rtl"]),
        ("negation", "hi", ["ltr", "ltr"]),
        ("code", "he", ["ltr", "ltr"]),
        ("wrong_language", "he", ["auto", "auto"]),
    ],
)
def test_an_excerpt_has_the_direction_of_its_language_and_code_runs_left_to_right(kind, language, directions):
    finding = DamageFinding(kind=kind, place="prompt", before="12 x", after="13 x")
    (shown,) = (example for panel in _panels(finding, language) for example in panel.examples)
    assert [shown.direction(number) for number in range(2)] == directions
    assert [shown.pieces(number) for number in range(2)][1] == [("13 x", False)], "shown as it is written"


def test_languages_have_their_names_also_in_findings():
    finding = DamageFinding(kind="wrong_language", place="prompt", before="uk", after="ru: это")
    panels = list(_panels(finding, "uk"))
    assert {row[0] for row in panels[0].tables[0].table.rows} == {word("name_of_uk", "Ukrainian")}
    (shown,) = (example for panel in panels for example in panel.examples)
    assert word("name_of_uk", "Ukrainian") in shown.answers[0][0]
    assert word("name_of_ru", "Russian") in shown.answers[1][0]
    assert [text for _, text in shown.answers] == ["", "это"]


def _panels(finding, language="zh"):
    kind = finding.kind
    summary = TranslateSummary(
        source="en",
        translator=None,
        languages={language: LanguageTranslation(num_items=1, num_present=1, num_damaged=1, damage={kind: 1})},
        num_sources=1,
        num_kept=0,
        examples={kind: (DamageExample(prompt="p1", language=language, finding=finding),)},
    )
    return VIEW.panels(StageRun("run", None, summary), NO_SOURCES)


def test_counts_of_structure_are_in_the_language_of_the_page():
    finding = DamageFinding(kind="structure", place="response r1", before="1 paragraph", after="2 paragraphs")
    strings = page_strings()
    (shown,) = (example for panel in _panels(finding) for example in panel.examples)
    for language, titles, place in (
        ("en", ["Source: 1 paragraph", "Translation: 2 paragraphs"], "response"),
        ("zh", ["原文：1 个段落", "译文：2 个段落"], "回答"),
    ):
        assert [strings.translate(title, language) for title, _ in shown.answers] == titles
        assert strings.translate(shown.about.values["place"], language).startswith(place)
    unknown = DamageFinding(kind="structure", place="prompt", before="@@view_of@@", after="7 x")
    (shown,) = (example for panel in _panels(unknown) for example in panel.examples)
    assert strings.translate(shown.answers[1][0], "zh") == "译文：7 x"
