from collections import Counter

import pytest

from format_rows import read, write
from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.plugins.formats._row_format import (
    in_form,
)
from steelyard.plugins.formats.conversation_pairs import instruction_row, instruction_turns


def again(row):
    turns, form = instruction_turns(Row(Place("f", 1), row))
    return in_form(instruction_row(turns, form, Counter()), form)


@pytest.mark.parametrize(
    "row",
    [
        {"instruction": "i"},
        {"instruction": "i\nj", "input": "", "history": [["q", "a"], ["r", "b"]], "system": "s"},
        {"instruction": "", "input": "x", "history": []},
    ],
)
def test_a_row_comes_back_as_it_was(row):
    assert again(row) == row


def test_a_broken_exchange_is_named():
    with pytest.raises(RecordError, match="f:1 at history: 'history' is neither pairs"):
        instruction_turns(Row(Place("f", 1), {"instruction": "i", "history": [["q"]]}))


@pytest.mark.parametrize(
    ("instruction", "extra", "question"), [("i", "x", "i\nx"), ("", "x", "x"), ("i", "", "i"), ("i\n", "x", "i\n\nx")]
)
def test_instruction_and_input_are_joined_where_both_say_something(instruction, extra, question):
    row = {"instruction": instruction, "input": extra, "system": None, "history": None}
    turns, _ = instruction_turns(Row(Place("f", 1), row))
    assert [turn.content for turn in turns] == [question]
    assert again(row) == row


ROW = {
    "instruction": "译",
    "input": "Hello",
    "chosen": "你好",
    "rejected": "再见",
    "system": "s",
    "history": [["u", "a"]],
}


def test_system_history_and_input_are_turns_and_come_back():
    (one,), _ = read("llamafactory_alpaca", ROW)
    assert [(turn.role, turn.content) for turn in one.prompt.messages] == [
        ("system", "s"), ("user", "u"), ("assistant", "a"), ("user", "译\nHello"),
    ]  # fmt: skip
    assert write("llamafactory_alpaca", one)[0] == [ROW]


def test_absent_keys_stay_absent():
    row = {"instruction": "i", "chosen": "a", "rejected": "b"}
    assert write("llamafactory_alpaca", *read("llamafactory_alpaca", row)[0])[0] == [row]


def test_the_place_in_the_output_is_the_tier_and_repeats_are_counted():
    (one,), warnings = read(
        "llamafactory_ranked", {"instruction": "i", "input": "x", "output": ["a", "b", "a"], "history": []}
    )
    assert [len(tier) for tier in one.ranking] == [1, 1, 1]
    assert one.responses[2].id == f"{one.responses[0].id}~2"
    assert warnings == {"repeated responses": 1}
    assert one.prompt.messages[-1].content == "i\nx"


@pytest.mark.parametrize("output", ["text", None, [1]])
def test_an_output_that_is_no_list_of_texts_is_refused(output):
    with pytest.raises(RecordError, match=r"^f\.jsonl:1"):
        read("llamafactory_ranked", {"instruction": "i", "output": output})


LLAMAFACTORY_SHAREGPT_ROW = {
    "conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "q"}],
    "chosen": {"from": "gpt", "value": "a"},
    "rejected": {"from": "gpt", "value": "b"},
}


def test_roles_are_translated_both_ways_and_a_system_text_keeps_its_place():
    inside, apart = (
        LLAMAFACTORY_SHAREGPT_ROW,
        {**LLAMAFACTORY_SHAREGPT_ROW, "conversations": LLAMAFACTORY_SHAREGPT_ROW["conversations"][1:], "system": "s"},
    )
    cases, _ = read("llamafactory_sharegpt", inside, apart)
    assert cases[0].prompt.messages == cases[1].prompt.messages
    assert [turn.role for turn in cases[0].prompt.messages] == ["system", "user"]
    assert write("llamafactory_sharegpt", *cases)[0] == [inside, apart]


def test_a_turn_without_value_is_refused():
    with pytest.raises(RecordError, match=r"f\.jsonl:1 at chosen: a turn of 'chosen' without"):
        read("llamafactory_sharegpt", {**LLAMAFACTORY_SHAREGPT_ROW, "chosen": {"from": "gpt"}})


@pytest.mark.parametrize("system", [None, "", "s"])
def test_a_system_text_comes_back_even_where_it_says_nothing(system):
    row = {
        "conversations": [{"from": "human", "value": "q"}],
        "chosen": {"from": "gpt", "value": "a"},
        "rejected": {"from": "gpt", "value": "b"},
        "system": system,
    }
    (one,), warnings = read("llamafactory_sharegpt", row)
    assert (len(one.prompt.messages), warnings) == (2 if system else 1, {})
    assert write("llamafactory_sharegpt", one)[0] == [row]


def test_what_a_turn_says_beyond_its_text_is_counted():
    weighed = {"from": "human", "value": "q", "weight": 3}
    row = {"conversations": [weighed], "chosen": {"from": "gpt", "value": "a"}, "rejected": weighed}
    assert read("llamafactory_sharegpt", row)[1] == {"other keys of turns, left out": 2}


@pytest.mark.parametrize(("sender", "role"), [("chatgpt", "assistant"), ("bot", "assistant"), ("prompter", "user")])
def test_senders_have_one_role_in_all_formats(sender, role):
    turns = [{"from": sender, "value": "x"}, {"from": "function_call", "value": "{}"}]
    turns += [{"from": "observation", "value": "1"}]
    answers = {side: {"from": "chatgpt", "value": side} for side in ("chosen", "rejected")}
    (sharegpt,) = read("llamafactory_sharegpt", {"conversations": turns, **answers})[0]
    (trl,) = read("trl", {"prompt": turns, **{side: [answer] for side, answer in answers.items()}})[0]
    assert [turn.role for turn in sharegpt.prompt.messages] == [role, "function", "tool"]
    assert trl.prompt.messages == sharegpt.prompt.messages
    assert [each.text for each in sharegpt.responses] == [each.text for each in trl.responses] == ["chosen", "rejected"]
