from collections import Counter

from steelyard.core.types import Message, Pair, Response
from steelyard.plugins.formats._pairwise import answer_text, conversation_of, pair_rows
from steelyard.plugins.formats._parts import carrying_pairs
from strategies import case

IDS = carrying_pairs("prompt ids", "response ids")


def messages(*pairs):
    return tuple(Message(role=role, content=content) for role, content in pairs)


def test_every_pair_is_a_row_and_the_rest_is_counted():
    lost = Counter()
    rows = list(pair_rows(case(ranking=(("a", "b"), ("c",))), lost, IDS))
    assert [(row.better.id, row.worse.id) for row in rows] == [("a", "c"), ("b", "c")]
    assert lost == {"responses in no pair": 2, "ties": 1, "more than two responses": 1}
    lost = Counter()
    assert list(pair_rows(case(), lost, IDS)) == []
    assert lost == {"responses in no pair": 5, "more than two responses": 1, "prompts without a pair": 1}


def test_a_conversation_is_exchanges_and_an_open_question():
    lost = Counter()
    said = conversation_of(messages(("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "c")), lost)
    assert (said.system, said.history, said.question, lost) == ("s", [("a", "b")], "c", {})


def test_turns_that_do_not_alternate_are_joined_and_counted():
    lost = Counter()
    said = conversation_of(messages(("assistant", "a"), ("user", "b"), ("user", "c")), lost)
    assert (said.history, said.question, lost["turns joined"]) == ([("", "a")], "b\nc", 2)


def test_an_answer_of_several_turns_keeps_its_last():
    lost = Counter()
    turns = messages(("assistant", "a"), ("user", "b"), ("assistant", "c"))
    assert answer_text(Response(id="x", messages=turns), lost) == "c"
    assert lost["earlier turns of an answer"] == 2


def test_what_exchanges_cannot_say_is_counted():
    lost = Counter()
    said = conversation_of(messages(("user", "a"), ("system", "s"), ("tool", "t"), ("assistant", "b")), lost)
    assert (said.system, said.history, said.question) == ("s", [("a\nt", "b")], "")
    assert lost == {
        "system turns joined, moved or empty": 1,
        "roles": 1,
        "turns joined": 1,
        "conversations without an open question": 1,
    }


def test_what_a_ranking_orders_beyond_the_listed_pairs_is_counted():
    ranking = (("a",), ("b",), ("c",))
    listed = (Pair(better="a", worse="b"), Pair(better="b", worse="c"))
    lost = Counter()
    rows = list(pair_rows(case(responses="abc", ranking=ranking, pairs=listed), lost, IDS))
    assert [(row.better.id, row.worse.id) for row in rows] == [("a", "b"), ("b", "c")]
    assert lost == {"more than two responses": 1, "ranked pairs that are not listed": 1}
