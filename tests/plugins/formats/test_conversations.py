from collections import Counter

from steelyard.core.types import Message
from steelyard.plugins.formats._turns import EXTRA_ID, HUMAN, conversation_of, turns_in


def user(content):
    return Message(role="user", content=content)


def assistant(content):
    return Message(role="assistant", content=content)


def test_anthropics_marks():
    text = "Be brief.\n\nHuman: a\n\nAssistant:b\n\nHuman: "
    assert turns_in(text, HUMAN) == (Message(role="system", content="Be brief."), user("a"), assistant("b"), user(""))


def test_helpsteers_marks():
    text = "שלום\n<extra_id_1>Assistant\n你好\n<extra_id_1>User\nx\n"
    assert turns_in(text, EXTRA_ID) == (user("שלום"), assistant("你好"), user("x\n"))
    assert turns_in("", EXTRA_ID) == (user(""),)


def messages(*pairs):
    return tuple(Message(role=role, content=content) for role, content in pairs)


def test_a_conversation_is_exchanges_and_an_open_question():
    dropped = Counter()
    parts = conversation_of(messages(("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "c")), dropped)
    assert (parts, dropped) == (("s", [("a", "b")], "c"), {})


def test_turns_that_do_not_alternate_are_joined_and_counted():
    dropped = Counter()
    parts = conversation_of(messages(("assistant", "a"), ("user", "b"), ("user", "c")), dropped)
    assert (parts, dropped["turns joined"]) == ((None, [("", "a")], "b\nc"), 2)


def test_what_exchanges_cannot_say_is_counted():
    dropped = Counter()
    parts = conversation_of(messages(("user", "a"), ("system", "s"), ("tool", "t"), ("assistant", "b")), dropped)
    assert parts == ("s", [("a\nt", "b")], "")
    assert dropped == {
        "system turns joined, moved or empty": 1,
        "roles": 1,
        "turns joined": 1,
        "conversations without an open question": 1,
    }
