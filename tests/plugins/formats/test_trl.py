from collections import Counter

import msgspec
import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from steelyard.core.plugins import build
from steelyard.core.types import Pair, Response
from strategies import case


def turns(*pairs):
    return [{"role": role, "content": content} for role, content in pairs]


def parts(row):
    (one,), _ = read("trl", row)
    return [turn.content for turn in one.prompt.messages], [response.text for response in one.responses]


def test_an_implicit_prompt_is_the_common_turns():
    row = {
        "chosen": turns(("user", "q"), ("assistant", "a"), ("user", "r"), ("assistant", "yes")),
        "rejected": turns(("user", "q"), ("assistant", "a"), ("user", "r"), ("assistant", "no")),
    }
    assert parts(row) == (["q", "a", "r"], ["yes", "no"])


TRANSCRIPT = "\n\nHuman: A?\n\nAssistant:"


@pytest.mark.parametrize(
    ("chosen", "rejected", "prompt", "answers"),
    [
        (f"{TRANSCRIPT} Yes, it is", f"{TRANSCRIPT} Yes, no", TRANSCRIPT, [" Yes, it is", " Yes, no"]),
        ("问题\n好的", "问题\n好坏", "问题\n", ["好的", "好坏"]),
    ],
)
def test_an_implicit_prompt_of_texts_ends_at_a_turn_and_never_inside_a_word(chosen, rejected, prompt, answers):
    assert parts({"chosen": chosen, "rejected": rejected}) == ([prompt], answers)


@pytest.mark.parametrize(
    "row", [{"chosen": "yes", "rejected": "yet"}, {"chosen": turns(("user", "a")), "rejected": turns(("user", "a"))}]
)
def test_a_prompt_that_cannot_be_told_is_refused_not_guessed(row):
    with pytest.raises(RecordError, match=r"f\.jsonl:1: chosen and rejected share no"):
        read("trl", row)


def test_a_margin_is_a_listed_pair_both_ways():
    (one,), _ = read("trl", {"prompt": "q", "chosen": "a", "rejected": "b", "margin": 2})
    assert one.pairs == (Pair(better=one.responses[0].id, worse=one.responses[1].id, margin=2.0),)
    assert write("trl", one)[0] == [{"prompt": "q", "chosen": "a", "rejected": "b", "margin": 2.0}]
    with pytest.raises(RecordError, match="a margin that is no number"):
        read("trl", {"prompt": "q", "chosen": "a", "rejected": "b", "margin": "2"})


def written_implicit(text, *answers):
    first, second = (Response(id=name, text=answer) for name, answer in zip("ab", answers, strict=True))
    one = msgspec.structs.replace(case(text=text, responses="ab", ranking=(("a",), ("b",))), responses=(first, second))
    lost = Counter()
    (row,) = build("formats", "trl", {"implicit": True}).write([one], lost)
    return row, +lost


def test_the_implicit_form_is_written_so_that_it_is_read_as_it_was_meant():
    row, _ = written_implicit("What is it?\n", "It is.", "Nothing.")
    assert row == {"chosen": "What is it?\nIt is.", "rejected": "What is it?\nNothing."}
    # Without a line break the prompt could not be told from the answers: turns tell it.
    row, lost = written_implicit("What is it?", "It is.", "It isn't.")
    assert row == {
        "chosen": turns(("user", "What is it?"), ("assistant", "It is.")),
        "rejected": turns(("user", "What is it?"), ("assistant", "It isn't.")),
    }
    assert lost == {"prompt ids": 1, "response ids": 2}


def test_an_answer_that_begins_the_other_is_not_taken_for_the_prompt():
    assert parts({"chosen": "P\nA\n", "rejected": "P\nA\nB"}) == (["P\n"], ["A\n", "A\nB"])


@pytest.mark.parametrize("margin", [True, float("nan"), "2"])
def test_a_margin_that_is_no_number_is_refused(margin):
    with pytest.raises(RecordError, match=r"f\.jsonl:1 at margin: a margin that is no number"):
        read("trl", {"prompt": "q", "chosen": "a", "rejected": "b", "margin": margin})


def test_rows_of_other_formats_are_not_claimed():
    recognises = build("formats", "trl").recognises
    assert recognises({"chosen": "a", "rejected": "b"})
    assert not recognises({"chosen": ["a", "b"], "rejected": ["c"]})


def test_a_text_beside_two_whole_conversations_does_not_become_a_second_prompt():
    row = {
        "prompt": "q",
        "chosen": turns(("user", "q"), ("assistant", "yes")),
        "rejected": turns(("user", "q"), ("assistant", "no")),
    }
    assert parts(row) == (["q"], ["yes", "no"])
    assert write("trl", *read("trl", row)[0])[0] == [row]
    apart = {"prompt": "q", "chosen": turns(("assistant", "yes")), "rejected": turns(("assistant", "no"))}
    assert parts(apart) == (["q"], ["yes", "no"])
    assert write("trl", *read("trl", apart)[0])[0] == [apart]


def test_a_cut_at_a_line_break_is_counted_and_one_at_a_turn_is_not():
    _, noted = read("trl", {"chosen": "Is it?\nYes.\nFor one", "rejected": "Is it?\nYes.\nBut"})
    assert noted == {"prompts cut at a line break, not at a turn": 1}
    _, noted = read("trl", {"chosen": f"{TRANSCRIPT} Yes", "rejected": f"{TRANSCRIPT} No"})
    assert noted == {}


def test_what_a_turn_says_beyond_role_and_content_is_counted():
    told = [{"role": "user", "content": "q", "name": "Ann", "tool_calls": None}]
    _, noted = read("trl", {"prompt": told, "chosen": "a", "rejected": "b"})
    assert noted == {"other keys of turns, left out": 1}


def test_a_margin_that_is_null_comes_back_as_null():
    row = {"prompt": "q", "chosen": "a", "rejected": "b", "margin": None}
    assert write("trl", *read("trl", row)[0])[0] == [row]
