from collections import Counter

import pytest

from format_rows import read, write
from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import build
from steelyard.core.protocols import Row
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
    assert [turn.role for turn in one.responses[0].messages] == ["function", "tool", "assistant"]
    assert one.responses[1].text == "none"
    assert write("ms_swift", one)[0] == [row]


def test_tool_turns_of_other_formats_have_the_roles_that_ms_swift_keeps():
    """It deletes rows of any other role than these, and of ``function``."""
    turns_of_tools = [{"from": name, "value": name} for name in ("human", "function_call", "observation")]
    sides = {side: {"from": "gpt", "value": side} for side in ("chosen", "rejected")}
    (one,), _ = read("llamafactory_sharegpt", {"conversations": turns_of_tools, **sides})
    (row,), dropped = write("ms_swift", one)
    assert [turn["role"] for turn in row["messages"]] == ["user", "tool_call", "tool_response", "assistant"]
    assert not any("deletes" in rule for rule in dropped)
    turns_of_tools[1]["from"] = "ipython"
    (one,), _ = read("llamafactory_sharegpt", {"conversations": turns_of_tools, **sides})
    assert write("ms_swift", one)[1]["rows that ms-swift deletes, for it does not know a role"] == 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"rejected_response": None}, "neither rejected_response nor rejected_messages"),
        ({"rejected_messages": turns(("user", "q"))}, "rejected_response and rejected_messages"),
        ({"rejected_response": ["a", 3]}, "has list under 'rejected_response'"),
        ({"messages": turns(("user", "q"))}, "do not end with an answer"),
        ({"messages": turns(("assistant", "q"))}, "do not end with an answer"),
        ({"messages": None}, "messages"),
        ({"margin": "three"}, "'three' is not a number"),
    ],
)
def test_a_row_of_another_form_is_refused_with_its_line(change, what):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:2.*{what}"):
        read("ms_swift", ROW, ROW | change)


def test_images_and_tools_go_through_unread():
    row = ROW | {"images": ["a.png"], "tools": "[]", "rejected_messages": None}
    whole = ROW["messages"][:-1] + turns(("assistant", "坏"))
    written = {"messages": ROW["messages"], "rejected_messages": whole, "images": ["a.png"], "tools": "[]"}
    assert write("ms_swift", *read("ms_swift", row)[0])[0] == [written]
    _, warnings = read("ms_swift", {**ROW, "messages": [*ROW["messages"][:-1], {**ROW["messages"][-1], "loss": True}]})
    assert warnings == {"other keys of turns, left out": 1}


def test_training_rows_without_a_rejected_answer_are_not_claimed():
    matches = build("formats", "ms_swift").matches
    assert matches(ROW)
    assert not matches({"messages": ROW["messages"]})
    assert not matches({"messages": ROW["messages"], "label": True})


RLHFLOW_ROW = {
    "chosen": turns(("user", "问"), ("assistant", "好")),
    "rejected": turns(("user", "问"), ("assistant", "坏")),
    "chosen_score": 4.5,
    "rejected_score": 2,
}


def test_scores_are_ratings_without_a_scale():
    (one,), warnings = read("rlhflow", RLHFLOW_ROW)
    said = [(rating.dimension, rating.value, rating.range, rating.rater) for rating in one.ratings]
    assert said == [("score", 4.5, None, "unknown"), ("score", 2, None, "unknown")]
    assert [rating.response for rating in one.ratings] == [response.id for response in one.responses]
    assert (one.judgments, warnings) == ((), {})


def test_scores_that_do_not_say_the_order_are_counted_and_kept():
    (one,), warnings = read("rlhflow", RLHFLOW_ROW | {"rejected_score": 4.5})
    assert warnings == {"pairs whose scores contradict their order": 1}
    assert [len(tier) for tier in one.ranking] == [1, 1]
    assert one.ranking[0] == (one.responses[0].id,)


@pytest.mark.parametrize(
    "row",
    [RLHFLOW_ROW | {"chosen_score": None}, {key: value for key, value in RLHFLOW_ROW.items() if "score" not in key}],
)
def test_null_and_absent_scores_are_no_ratings(row):
    (one,), _ = read("rlhflow", row)
    assert len(one.ratings) == ("rejected_score" in row)


def test_who_gave_the_scores_can_be_said():
    form = build("formats", "rlhflow", {"rater": "gpt-4", "rater_kind": "llm"})
    (one,) = form.read([Row(Place("f.jsonl", 1), RLHFLOW_ROW)], Counter())
    assert {(rating.rater, rating.kind) for rating in one.ratings} == {("gpt-4", "llm")}
    dropped = Counter()
    assert not dropped["raters"]


@pytest.mark.parametrize("change", [{"chosen_score": "four"}, {"rejected_score": True}])
def test_a_score_that_is_no_number_is_refused(change):
    (key,) = change
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1 at {key}: .* is not a number"):
        read("rlhflow", RLHFLOW_ROW | change)


def test_conversations_that_share_no_turn_are_refused():
    with pytest.raises(RecordError, match=r"^f\.jsonl:1: chosen and rejected share no turn"):
        read("rlhflow", RLHFLOW_ROW | {"chosen": turns(("user", "x"), ("assistant", "y"))})


def test_rows_without_scores_are_left_to_trl():
    matches = build("formats", "rlhflow").matches
    assert matches(RLHFLOW_ROW)
    assert not matches({key: RLHFLOW_ROW[key] for key in ("chosen", "rejected")})
    assert not matches(RLHFLOW_ROW | {"chosen": "text"})


CHOSEN = turns(("user", "问"), ("assistant", "好"))


ULTRAFEEDBACK_BINARIZED_ROW = {
    "prompt": "问",
    "prompt_id": "p1",
    "chosen": CHOSEN,
    "rejected": turns(("user", "问"), ("assistant", "坏")),
    "messages": CHOSEN,
    "score_chosen": 9.0,
    "score_rejected": 4.5,
}


def test_the_scores_are_gpt_4s_from_1_to_10():
    (one,), _ = read("ultrafeedback_binarized", ULTRAFEEDBACK_BINARIZED_ROW)
    assert one.prompt.id == "p1"
    said = [(one.rater, one.kind, one.dimension, one.value, one.range) for one in one.ratings]
    assert said == [("gpt-4", "llm", "overall_score", value, (1, 10)) for value in (9.0, 4.5)]
    assert one.judgments == ()


def test_equal_scores_and_scores_outside_the_scale_are_counted():
    _, warnings = read(
        "ultrafeedback_binarized",
        ULTRAFEEDBACK_BINARIZED_ROW | {"score_chosen": 4.5},
        ULTRAFEEDBACK_BINARIZED_ROW | {"score_rejected": 0, "prompt_id": "x"},
    )
    assert warnings == {
        "pairs whose scores contradict their order": 1,
        "ratings outside their scale (overall_score)": 1,
    }


def test_a_repeated_prompt_id_is_counted():
    rows = [ULTRAFEEDBACK_BINARIZED_ROW, ULTRAFEEDBACK_BINARIZED_ROW | {"score_chosen": 8.0}]
    cases, warnings = read("ultrafeedback_binarized", *rows)
    assert [one.prompt.id for one in cases] == ["p1", "p1~2"]
    assert warnings == {"repeated prompt ids": 1}


@pytest.mark.parametrize("key", ["prompt", "prompt_id", "chosen", "rejected", "score_chosen"])
def test_a_field_of_another_type_is_refused_with_its_line(key):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:2.*{key}"):
        read(
            "ultrafeedback_binarized",
            ULTRAFEEDBACK_BINARIZED_ROW,
            ULTRAFEEDBACK_BINARIZED_ROW | {"prompt_id": "p2"} | {key: ["x"]},
        )
