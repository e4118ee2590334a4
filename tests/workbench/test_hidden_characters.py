"""Texts of people beside an item: characters that hide or reorder others are named, in marks, entries and remarks."""

from types import SimpleNamespace

from steelyard.workbench.views.item_views import Opinion
from steelyard.workbench.views.pages import _environment, words_of


def test_an_opinion_and_a_discussion_name_hidden_characters():
    opinion = Opinion(
        voice="1",
        kind="answer",
        ranking="",
        scores=(),
        discarded=(),
        entries=(("revised_text", "run \u202efdp"),),
        marks=(("A", "txt\u200b.exe", "factual error", "see \u202eit"),),
        cannot_judge=None,
        remark="so <b>\u2066much",
    )
    parts, words = _environment().get_template("item_parts.html").module, words_of("en")
    panel = SimpleNamespace(opinions=[opinion], marks="marks")
    html = parts.opinions(words, panel, "en")
    assert '<q dir="auto">txt⟨U+200B⟩.exe</q>' in html
    for text in ("run ⟨U+202E⟩fdp", "see ⟨U+202E⟩it", "so &lt;b&gt;⟨U+2066⟩much"):
        assert text in html
    view = SimpleNamespace(remarks=[("1", "turn \u202eit")])
    assert "turn ⟨U+202E⟩it" in parts.discussion(words, SimpleNamespace(csrf=""), view, "/")
