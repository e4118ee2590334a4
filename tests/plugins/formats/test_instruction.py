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
