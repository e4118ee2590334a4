import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from steelyard.core.plugins import build
from steelyard.core.types import Pair


def turns(*pairs):
    return [{"role": role, "content": content} for role, content in pairs]


ROW = {"messages": turns(("system", "s"), ("user", "问"), ("assistant", "好")), "rejected_response": "坏"}


def test_the_last_assistant_turn_is_the_chosen_answer():
    (one,), _ = read("ms_swift", ROW | {"margin": 3})
    assert [(turn.role, turn.content) for turn in one.prompt.messages] == [("system", "s"), ("user", "问")]
    assert [response.text for response in one.responses] == ["好", "坏"]
    assert one.pairs == (Pair(better=one.responses[0].id, worse=one.responses[1].id, margin=3.0),)


def test_a_rejected_conversation_is_read_whole():
    row = {
        "messages": turns(("user", "q"), ("tool_call", "{}"), ("tool_response", "1"), ("assistant", "one")),
        "rejected_messages": turns(("user", "q"), ("assistant", "none")),
    }
    (one,), _ = read("ms_swift", row)
    assert [turn.content for turn in one.prompt.messages] == ["q"]
    assert [turn.role for turn in one.responses[0].messages] == ["tool_call", "tool_response", "assistant"]
    assert one.responses[1].text == "none"
    assert write("ms_swift", one)[0] == [row]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"rejected_response": None}, "neither rejected_response nor rejected_messages"),
        ({"rejected_messages": turns(("user", "q"))}, "rejected_response and rejected_messages"),
        ({"rejected_response": ["a", "b"]}, "has list under 'rejected_response'"),
        ({"messages": turns(("user", "q"))}, "do not end with an answer"),
        ({"messages": turns(("assistant", "q"))}, "do not end with an answer"),
        ({"messages": None}, "messages"),
        ({"margin": "3"}, "a score that is no number"),
    ],
)
def test_a_row_of_another_form_is_refused_with_its_line(change, what):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:2.*{what}"):
        read("ms_swift", ROW, ROW | change)


def test_images_and_tools_go_through_unread():
    row = ROW | {"images": ["a.png"], "tools": "[]", "rejected_messages": None}
    assert write("ms_swift", *read("ms_swift", row)[0])[0] == [row]
    _, noted = read("ms_swift", {**ROW, "messages": [*ROW["messages"][:-1], {**ROW["messages"][-1], "loss": True}]})
    assert noted == {"other keys of turns, left out": 1}


def test_training_rows_without_a_rejected_answer_are_not_claimed():
    recognises = build("formats", "ms_swift").recognises
    assert recognises(ROW)
    assert not recognises({"messages": ROW["messages"]})
    assert not recognises({"messages": ROW["messages"], "label": True})
