from collections import Counter

import pytest

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Prompt
from steelyard.plugins.formats._instruction import instruction_row, instruction_turns


def again(row):
    turns, kept = instruction_turns(Row(Place("f", 1), row))
    case = Case(prompt=Prompt(id="p", messages=turns), responses=())
    return instruction_row(case, Counter(), form=kept, answers={})


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
    with pytest.raises(RecordError, match="f:1 at history: an exchange that is no pair"):
        instruction_turns(Row(Place("f", 1), {"instruction": "i", "history": [["q"]]}))


@pytest.mark.parametrize(
    ("instruction", "extra", "question"), [("i", "x", "i\nx"), ("", "x", "x"), ("i", "", "i"), ("i\n", "x", "i\n\nx")]
)
def test_instruction_and_input_are_joined_where_both_say_something(instruction, extra, question):
    row = {"instruction": instruction, "input": extra, "system": None, "history": None}
    turns, _ = instruction_turns(Row(Place("f", 1), row))
    assert [turn.content for turn in turns] == [question]
    assert again(row) == row
