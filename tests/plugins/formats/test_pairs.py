from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from format_rows import read
from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Message, Pair, Response
from steelyard.curation.format_support import carrying_pairs
from steelyard.plugins.formats._pairs import (
    PairTurns,
    cut_turns,
    implicit_turns,
    pair_rows,
    shared_turns,
    whole_turns,
)
from steelyard.plugins.formats._row_format import (
    without_keys,
)
from steelyard.plugins.formats._turns import answer_text
from strategies import case

turns = st.lists(st.sampled_from("abc"), max_size=4).map(
    lambda names: tuple(Message(role="user", content=name) for name in names)
)


def row(chosen, rejected, *, names=("chosen", "rejected")):
    return Row(Place("f", 1), dict(zip(names, (chosen, rejected), strict=True)))


def parts(prompt, chosen, rejected):
    roles = ("user", "assistant", "assistant")
    texts = zip(roles, (prompt, chosen, rejected), strict=True)
    return PairTurns(*((Message(role=role, content=text),) for role, text in texts))


@given(prompt=turns, chosen=turns, rejected=turns)
def test_a_cut_loses_no_turn_and_leaves_both_sides_one(prompt, chosen, rejected):
    if not (prompt + chosen and prompt + rejected):
        return
    cut = cut_turns(prompt + chosen, prompt + rejected)
    assert (cut.prompt + cut.chosen, cut.prompt + cut.rejected) == (prompt + chosen, prompt + rejected)
    assert cut.chosen
    assert cut.rejected
    assert len(cut.prompt) >= min(len(prompt), len(prompt + chosen) - 1, len(prompt + rejected) - 1)
    is_longest = min(len(cut.chosen), len(cut.rejected)) == 1 or cut.chosen[0] != cut.rejected[0]
    assert is_longest


@pytest.mark.parametrize(
    ("wanted", "found"),
    [(parts("q\n", "a", "b"), True), (parts("q", "a", "b"), False), (parts("q\n", "a\nb", "a\nc"), False)],
)
def test_texts_are_separable_only_where_the_prompt_is_found_again(wanted, found):
    assert wanted.is_separable(as_texts=True) == found


def test_turns_are_found_again_unless_the_answers_begin_alike():
    one = parts("q", "a", "b")
    assert one.are_texts()
    assert one.is_separable()
    assert shared_turns(Row(Place("f", 1), whole_turns(one)), ("chosen", "rejected")) == one
    both = PairTurns(one.prompt, one.chosen + one.prompt, one.chosen + one.chosen)
    assert not both.are_texts()
    assert not both.is_separable()
    assert not PairTurns((), one.chosen, one.rejected).is_separable()


def test_the_names_of_the_sides_stand_in_the_error():
    with pytest.raises(RecordError, match=r"^f:1: good and bad share no prompt"):
        implicit_turns(row("x", "y", names=("good", "bad")), Counter(), ("good", "bad"))
    with pytest.raises(RecordError, match=r"^f:1 at bad: "):
        shared_turns(row([{"role": "user", "content": "q"}], 3, names=("good", "bad")), ("good", "bad"))


def test_a_meta_without_keys_may_be_none():
    assert without_keys({"a": 1, "b": 2}, ["a"]) == {"b": 2}
    assert without_keys({"a": 1}, ["a"]) is None
    assert without_keys(None, ["a"]) is None


def messages(*pairs):
    return tuple(Message(role=role, content=content) for role, content in pairs)


IDS = carrying_pairs("prompt ids", "response ids")


def test_every_pair_is_a_row_and_the_rest_is_counted():
    dropped = Counter()
    rows = list(pair_rows(case(ranking=(("a", "b"), ("c",))), dropped, IDS))
    assert [(row.better.id, row.worse.id) for row in rows] == [("a", "c"), ("b", "c")]
    assert dropped == {"responses in no pair": 2, "ties": 1, "more than two responses": 1}
    dropped = Counter()
    assert list(pair_rows(case(), dropped, IDS)) == []
    assert dropped == {"responses in no pair": 5, "more than two responses": 1, "prompts without a pair": 1}


def test_an_answer_of_several_turns_keeps_its_last():
    dropped = Counter()
    turns = messages(("assistant", "a"), ("user", "b"), ("assistant", "c"))
    assert answer_text(Response(id="x", messages=turns), dropped) == "c"
    assert dropped["earlier turns of an answer"] == 2


def test_what_a_ranking_orders_beyond_the_listed_pairs_is_counted():
    ranking = (("a",), ("b",), ("c",))
    listed = (Pair(better="a", worse="b"), Pair(better="b", worse="c"))
    dropped = Counter()
    rows = list(pair_rows(case(responses="abc", ranking=ranking, pairs=listed), dropped, IDS))
    assert [(row.better.id, row.worse.id) for row in rows] == [("a", "b"), ("b", "c")]
    assert dropped == {"more than two responses": 1, "ranked pairs that are not listed": 1}


EARLIER = [("user", "一"), ("assistant", "二"), ("user", "q")]


@pytest.mark.parametrize(
    "history",
    [
        [["一", "二"]],
        '[["一", "二"]]',
        [{"role": "user", "content": "一"}, {"role": "assistant", "content": "二"}],
        [{"from": "human", "value": "一"}, {"from": "gpt", "value": "二"}],
    ],
)
def test_earlier_turns_beside_a_prompt_are_read(history):
    row = {"history": history, "prompt": "q", "chosen": "a", "rejected": "b"}
    (one,), warnings = read("trl", row)
    assert ([(turn.role, turn.content) for turn in one.prompt.messages], one.prompt.meta) == (EARLIER, None)
    assert not warnings
    (one,), _ = read("trl", row | {"system": "s"})
    assert [turn.role for turn in one.prompt.messages] == ["system", "user", "assistant", "user"]


def test_a_history_that_is_a_text_is_counted_and_one_of_another_form_refused():
    row = {"prompt": "q", "chosen": "a", "rejected": "b"}
    (one,), warnings = read("trl", row | {"history": "User: hi"})
    assert (len(one.prompt.messages), one.prompt.meta) == (1, {"history": "User: hi"})
    assert warnings == {"texts under history, not in the prompt": 1}
    for empty in (None, "", []):
        (one,), warnings = read("trl", row | {"history": empty})
        assert (len(one.prompt.messages), warnings) == (1, {})
    for broken in ([["q"]], [["q", 1]], {"q": "a"}, [1], 5):
        with pytest.raises(RecordError, match=r"^f\.jsonl:1 at history: 'history' is neither pairs"):
            read("trl", row | {"history": broken})


def test_whole_conversations_hold_their_earlier_turns_themselves():
    turns = [{"role": role, "content": content} for role, content in (*EARLIER, ("assistant", "a"))]
    row = {"prompt": "q", "chosen": turns, "rejected": [*turns[:-1], {"role": "assistant", "content": "b"}]}
    (one,), _ = read("trl", row | {"history": [["一", "二"]]})
    assert [(turn.role, turn.content) for turn in one.prompt.messages] == EARLIER


@pytest.mark.parametrize(("end", "gap"), [("\n\nAssistant:", " "), ("\n\nAssistant: ", ""), ("\n\nAssistant:", "")])
def test_a_prompt_that_is_a_transcript_up_to_the_answer_is_read_as_turns(end, gap):
    text = f"\n\nHuman: q\n\nAssistant: a\n\nHuman: r{end}"
    (one,), warnings = read("trl", {"prompt": text, "chosen": f"{gap}yes", "rejected": f"{gap}no", "response": "yes"})
    said = [(turn.role, turn.content) for turn in one.prompt.messages]
    assert said == [("user", "q"), ("assistant", "a"), ("user", "r")]
    assert [each.text for each in one.responses] == ["yes", "no"]
    assert warnings["prompts that are transcripts, read as turns"] == 1


def test_a_prompt_that_quotes_a_transcript_stays_a_text():
    for text in ("\n\nHuman: q", "Continue:\n\nHuman: q\n\nAssistant:"):
        (one,), _ = read("trl", {"prompt": text, "chosen": " yes", "rejected": " no"})
        assert ([turn.content for turn in one.prompt.messages], one.responses[0].text) == ([text], " yes")
