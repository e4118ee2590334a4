from collections import Counter

import pytest

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.plugins.formats._arena import both_turns, language_in, said_language, said_turns

SIDES = ("conversation_a", "conversation_b")


def row(first, second):
    return Row(Place("f", 3), dict(zip(SIDES, (first, second), strict=True)))


def turns(*contents):
    return [{"role": role, "content": one} for role, one in zip(["user", "assistant"] * 3, contents, strict=False)]


def block(text, **fields):
    return [{"type": "text", "text": text, **fields}]


def test_turns_of_text_have_no_blocks_and_come_back():
    given = row(turns("问", "甲"), turns("问", "乙"))
    found = both_turns(given, SIDES, noted := Counter())
    assert found.blocks is None
    assert [[turn.content for turn in part] for part in found.parts] == [["问"], ["甲"], ["乙"]]
    assert said_turns(found.parts, SIDES, found.blocks) == given.value
    assert not +noted


def test_turns_of_one_text_part_come_back_with_what_stands_beside_the_text():
    given = row(*(turns(block("问", image=None), block(text, image=None)) for text in ("甲", "乙")))
    found = both_turns(given, SIDES, noted := Counter())
    assert found.blocks == {"type": "text", "image": None}
    assert said_turns(found.parts, SIDES, found.blocks) == given.value
    assert not +noted


def test_what_is_left_out_or_joined_is_counted():
    two = [*block("a"), *block("b", cut=True), {"type": "image"}]
    found = both_turns(row(*(turns(two, block(text)) for text in "xy")), SIDES, noted := Counter())
    assert found.parts.prompt[0].content == "a\nb"
    assert +noted == {
        "turns whose parts are joined": 2,
        "parts of turns that are no text, left out": 2,
        "other keys of turns, left out": 4,  # "cut" and the image's kind, in both conversations
    }


@pytest.mark.parametrize("broken", ["text", [], [{"role": "user"}], [3]])
def test_what_is_no_conversation_is_named(broken):
    with pytest.raises(RecordError, match=r"^f:3 at conversation_b: 'conversation_b' is neither"):
        both_turns(row(turns("q", "a"), broken if broken != "text" else 7), SIDES, Counter())


def test_languages_by_name_and_code():
    assert [language_in(name) for name in ("Chinese", "he", "unknown", None)] == ["zh", "he", None, None]
    assert (said_language("zh"), said_language(None)) == ("Chinese", None)
