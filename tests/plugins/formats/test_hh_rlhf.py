import msgspec
import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from steelyard.core.plugins import build
from steelyard.core.types import Message, Prompt
from strategies import case

HUMAN, ASSISTANT = "\n\nHuman:", "\n\nAssistant:"


def said(turns):
    return [(turn.role, turn.content) for turn in turns]


def test_the_shared_turns_are_the_prompt_and_the_last_turns_the_answers():
    start = f"{HUMAN} 你好{ASSISTANT} 你好！{HUMAN} 再见"
    (one,), noted = read("hh_rlhf", {"chosen": f"{start}{ASSISTANT} 再见！🙂", "rejected": f"{start}{ASSISTANT} 走。"})
    assert said(one.prompt.messages) == [("user", "你好"), ("assistant", "你好！"), ("user", "再见")]
    assert [response.text for response in one.responses] == ["再见！🙂", "走。"]
    assert one.ranking == ((one.responses[0].id,), (one.responses[1].id,))
    assert noted == {}


def test_transcripts_that_part_early_keep_all_their_turns():
    chosen = f"{HUMAN} a{ASSISTANT} b{HUMAN} c{ASSISTANT} d"
    rejected = f"{HUMAN} a{ASSISTANT} x"
    (one,), _ = read("hh_rlhf", {"chosen": chosen, "rejected": rejected})
    assert said(one.prompt.messages) == [("user", "a")]
    assert said(one.responses[0].messages) == [("assistant", "b"), ("user", "c"), ("assistant", "d")]
    assert one.responses[1].text == "x"
    assert write("hh_rlhf", one)[0] == [{"chosen": chosen, "rejected": rejected}]


def test_a_transcript_that_ends_with_the_person_is_kept_and_counted():
    row = {"chosen": f"{HUMAN} a{ASSISTANT} b{HUMAN} c", "rejected": f"{HUMAN} a{ASSISTANT} d"}
    (one,), noted = read("hh_rlhf", row)
    assert noted == {"transcripts that end with a person's turn": 1}
    assert said(one.responses[0].messages) == [("assistant", "b"), ("user", "c")]
    assert write("hh_rlhf", one)[0] == [row]


def test_transcripts_that_share_no_turn_are_kept_whole_and_counted():
    row = {"chosen": f"{HUMAN} a{ASSISTANT} b", "rejected": f"{HUMAN} c{ASSISTANT} d"}
    (one,), noted = read("hh_rlhf", row)
    assert noted == {"transcripts that share no turn": 1}
    assert one.prompt.messages == ()
    assert write("hh_rlhf", one)[0] == [row]


@pytest.mark.parametrize(
    "chosen",
    [
        f"{HUMAN} q{ASSISTANT}",
        f"{HUMAN} q{ASSISTANT} ",
        f"{HUMAN}q{ASSISTANT}  two spaces ",
        f"{HUMAN} q\n\nHumans: no mark{ASSISTANT} y\n",
        f"{HUMAN} q{HUMAN} r{ASSISTANT} s{ASSISTANT} t",
        f"Be kind.{HUMAN} q{ASSISTANT} y",
    ],
)
def test_every_space_comes_back(chosen):
    row = {"chosen": chosen, "rejected": f"{HUMAN} q{ASSISTANT} no"}
    assert write("hh_rlhf", *read("hh_rlhf", row)[0])[0] == [row]


def test_text_before_the_first_mark_is_a_system_turn_both_ways():
    row = {key: f"Be kind.{HUMAN} q{ASSISTANT} {key}" for key in ("chosen", "rejected")}
    (one,), _ = read("hh_rlhf", row)
    assert said(one.prompt.messages) == [("system", "Be kind."), ("user", "q")]
    assert write("hh_rlhf", one)[0] == [row]


@pytest.mark.parametrize("value", ["no mark", "", 3, None, ["\n\nHuman: a"]])
def test_what_is_no_transcript_is_refused_with_its_line(value):
    good = {"chosen": f"{HUMAN} q{ASSISTANT} a", "rejected": f"{HUMAN} q{ASSISTANT} b"}
    with pytest.raises(RecordError, match=r"^f\.jsonl:2.*rejected"):
        read("hh_rlhf", good, {**good, "rejected": value})


@pytest.mark.parametrize(
    "turns",
    [
        (Message(role="user", content=f"quotes{HUMAN} a mark"),),
        (Message(role="user", content="q"), Message(role="tool", content="t")),
        (Message(role="user", content="q"), Message(role="system", content="late")),
    ],
)
def test_turns_that_a_transcript_cannot_hold_are_counted_and_not_written(turns):
    one = case(responses="abc", ranking=(("a",), ("b",), ("c",)))
    rows, lost = write("hh_rlhf", msgspec.structs.replace(one, prompt=Prompt(id="p", messages=turns)))
    assert rows == []
    assert lost["cases of another shape"] == 1


def test_bare_transcripts_are_recognised_and_left_by_trl():
    row = {"chosen": f"{HUMAN} q{ASSISTANT} a", "rejected": f"{HUMAN} q{ASSISTANT} b"}
    assert build("formats", "hh_rlhf").recognises(row)
    assert not build("formats", "trl").recognises(row)
    for other in ({"prompt": f"{HUMAN} q"}, {"margin": 1.0}):
        assert not build("formats", "hh_rlhf").recognises(row | other)
        assert build("formats", "trl").recognises(row | other)
    assert not build("formats", "hh_rlhf").recognises({"chosen": "q", "rejected": "r"})
