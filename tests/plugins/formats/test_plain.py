from collections import Counter

import pytest

from steelyard.core.types import Message, Response
from steelyard.plugins.formats._plain import answer_or_none, plain_of, without_keys
from strategies import case

TURN = Message(role="assistant", content="x")


def test_one_question_and_answers_of_one_turn_are_plain():
    lost = Counter()
    assert plain_of(case(responses="ab", text="q"), lost) == ("q", {"a": "answer a", "b": "answer b"})
    assert answer_or_none(Response(id="a", messages=(TURN,))) == "x"
    assert not +lost


@pytest.mark.parametrize(
    "messages",
    [
        (Message(role="system", content="s"), Message(role="user", content="q")),
        (Message(role="user", content="q"), TURN, Message(role="user", content="r")),
        (TURN,),
        (),
    ],
)
def test_a_conversation_is_not(messages):
    one, lost = case(), Counter()
    changed = type(one)(prompt=type(one.prompt)(id="p", messages=messages), responses=one.responses)
    assert plain_of(changed, lost) is None
    assert lost == {"cases of another shape": 1}


def test_answers_of_several_turns_are_not():
    assert answer_or_none(Response(id="a", messages=(TURN, TURN))) is None
    assert answer_or_none(Response(id="a", messages=(Message(role="user", content="x"),))) is None


def test_a_meta_without_keys_may_be_none():
    assert without_keys({"a": 1, "b": 2}, ["a"]) == {"b": 2}
    assert without_keys({"a": 1}, ["a"]) is None
    assert without_keys(None, ["a"]) is None
