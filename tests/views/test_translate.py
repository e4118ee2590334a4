"""Examples of damage on the page: in which direction the excerpts of both sides are laid out."""

import pytest

from steelyard.judging.translation_summary import DamageExample, LanguageTranslation, TranslateSummary
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
    summary = TranslateSummary(
        source="en",
        translator=None,
        languages={language: LanguageTranslation(num_items=1, num_present=1, num_damaged=1, damage={kind: 1})},
        num_sources=1,
        num_kept=0,
        examples={kind: (DamageExample(prompt="p1", language=language, finding=finding),)},
    )
    panels = VIEW.panels(StageRun("run", None, summary), NO_SOURCES)
    (shown,) = (example for panel in panels for example in panel.examples)
    assert [shown.direction(number) for number in range(2)] == directions
    assert [shown.pieces(number) for number in range(2)][1] == [("13 x", False)], "shown as it is written"
