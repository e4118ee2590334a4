"""Names: what is seen as a whole can be one, and names that look the same have one key."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each_value import each
from steelyard.core.names import escape_unseen, is_name, mark_unseen, name_key, normalize_name

GOOD = ["Ada", "李 明", "José", "Jose\u0301", "می\u200cخواهم", "क्\u200dष", "👩\u200d💻", "O'Brien-Łódź (2)", "❤\ufe0f"]
BAD = [
    "", " \n ", "a\nb", "a\x00b", "a\x1bb", "\ud800", "a\u2028b", "x" * 201, "\u0301a",
    "\u202eadA", "A\u2067b", "a\u200eb", "a\u200fb", "a\u061cb", "A\u200bda", "A\u2060da", "\ufeffAda", "A\u00adda",
    "\u3164", "\u2800", "\u115f", "a\U000e0041", "\u200dAda", "Ada\u200c", "A \u200dda", "A\u200c\u200cda",
]  # fmt: skip


@pytest.mark.parametrize("name", GOOD, ids=ascii)
def test_names_of_people_are_names(name):
    assert is_name(name)
    assert is_name(f"  {name} ")


@each("name", BAD)
def test_what_is_not_seen_or_turns_the_direction_is_not_a_name(name):
    assert not is_name(name)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Ada", "ADA"),
        ("Jos\u00e9", "Jose\u0301"),
        ("Straße", "STRASSE"),
        ("\uff21da", "Ada"),  # full width
        ("Ada  L", "Ada\u00a0L"),
        ("می\u200cخواهم", "میخواهم"),
        ("\u01c4", "\u01c6"),
    ],
)
def test_names_that_look_the_same_have_one_key(first, second):
    assert name_key(first) == name_key(second)


@pytest.mark.parametrize(("first", "second"), [("Ada", "Adа"), ("Jose", "José"), ("李明", "李 明"), ("a1", "a2")])
def test_names_that_can_be_told_apart_have_two(first, second):
    assert name_key(first) != name_key(second)


@given(st.text())
def test_a_key_is_that_of_the_stored_name(text):
    assert name_key(normalize_name(text)) == name_key(text)
    assert name_key(name_key(text)) == name_key(text)
    assert is_name(text) == is_name(normalize_name(text)) or len(text) > 100


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_with_escapes_is_the_same_value(text):
    written = escape_unseen(json.dumps(text, ensure_ascii=False))
    assert json.loads(written) == text
    assert not {"\u202e", "\u200b", "\ufeff", "\u2066"} & set(written)


def test_what_is_not_seen_is_marked_in_its_place():
    assert mark_unseen("ab\u202etxt.exe\u2066") == "ab⟨U+202E⟩txt.exe⟨U+2066⟩"
    assert mark_unseen("a\0b\nc\U000e0041") == "a⟨U+0000⟩b⟨U+000A⟩c⟨U+E0041⟩"
    for text in ("نص عربي", "עברית", "क्\u200dष", "日本語", "👩\u200d🚀", "a b"):
        assert mark_unseen(text) == text
