import csv
import json

import pytest

import steelyard as sy
from format_rows import read
from steelyard.core.errors import RecordError
from steelyard.stages.convert import convert

TURNS = [("user", "q1"), ("assistant", "un"), ("user", "q2"), ("assistant", "deux")]


def reaction(place=1, side="a", *, liked=True, disliked=False, **fields):
    """A thumb on a message of one of two conversations, whose answers end in the side."""
    conversations = {
        f"conversation_{each}": [
            {"role": role, "content": text + each if role == "assistant" else text} for role, text in TURNS
        ]
        for each in "ab"
    }
    thumbs = {"liked": liked, "disliked": disliked}
    message = {"model_pos": side, "refers_to_model": f"model {side}", "msg_index": place}
    return conversations | message | {"visitor_id": "v", **thumbs, **fields}


def opinions(case):
    texts = {response.id: response.text for response in case.responses}
    return [(texts[each.response], each.value, each.rater) for each in case.ratings]


def test_a_reaction_is_a_rating_of_the_message_at_its_place_below_all_turns_above():
    (first, later), warnings = read("comparia_reactions", reaction(), reaction(3, "b", liked=False, disliked=True))
    assert opinions(first) == [("una", 1, "v")]
    assert opinions(later) == [("deuxb", -1, "v")]
    assert [turn.content for turn in first.prompt.messages] == ["q1"]
    assert [turn.content for turn in later.prompt.messages] == ["q1", "unb", "q2"]
    assert (first.responses[0].author, later.responses[0].author) == ("model a", "model b")
    assert not warnings


def test_reactions_to_one_prompt_are_one_case_and_rank_its_answers():
    rows = [reaction(), reaction(side="b", liked=False, disliked=True), reaction(side="b", visitor_id="w")]
    converted = sy.convert(rows)
    (case,) = converted.cases
    assert opinions(case) == [("una", 1, "v"), ("unb", -1, "v"), ("unb", 1, "w")]
    assert [len(tier) for tier in case.ranking] == [1, 1]


@pytest.mark.parametrize(
    ("thumbs", "count"),
    [((None, None), "reactions without a thumb"), ((False, False), "reactions without a thumb"),
     ((True, True), "reactions with both thumbs")],
)  # fmt: skip
def test_no_thumb_or_both_are_no_rating_and_are_counted(thumbs, count):
    (case,), warnings = read("comparia_reactions", reaction(liked=thumbs[0], disliked=thumbs[1]))
    assert (case.ratings, warnings) == ((), {count: 1})


def test_the_system_prompt_is_a_turn_once():
    (case,), _ = read("comparia_reactions", reaction(system_prompt="Réponds brièvement."))
    assert [turn.role for turn in case.prompt.messages] == ["system", "user"]
    row = reaction(2, system_prompt="S")
    row["conversation_a"] = [{"role": "system", "content": "S"}, *row["conversation_a"]]
    (case,), _ = read("comparia_reactions", row)
    assert [turn.role for turn in case.prompt.messages] == ["system", "user"]
    assert opinions(case) == [("una", 1, "v")]


@pytest.mark.parametrize("place", [0, 2, 4, -1, None, "x", 1.5, True])
def test_a_place_without_an_answer_is_an_error_with_its_line(place):
    with pytest.raises(RecordError, match=r"^f\.jsonl:1 at msg_index: no answer is at place"):
        read("comparia_reactions", reaction(place))


def test_a_side_that_is_neither_is_an_error():
    with pytest.raises(RecordError, match=r"^f\.jsonl:1 at model_pos: 'c' is not a side"):
        read("comparia_reactions", reaction(side="a") | {"model_pos": "c"})


def test_a_table_of_texts_is_read_as_well(tmp_path):
    row = reaction(3, "b")
    with (tmp_path / "r.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, row)
        table.writeheader()
        table.writerow({key: json.dumps(value) if isinstance(value, list) else value for key, value in row.items()})
    assert convert(tmp_path / "r.csv", tmp_path / "o.jsonl").from_kind == "comparia_reactions"
    (case,) = sy.read_cases(tmp_path / "o.jsonl")
    assert opinions(case) == [("deuxb", 1, "v")]
