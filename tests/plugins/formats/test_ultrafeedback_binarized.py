import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from strategies import case


def turns(*pairs):
    return [{"role": role, "content": content} for role, content in pairs]


CHOSEN = turns(("user", "问"), ("assistant", "好"))
ROW = {
    "prompt": "问",
    "prompt_id": "p1",
    "chosen": CHOSEN,
    "rejected": turns(("user", "问"), ("assistant", "坏")),
    "messages": CHOSEN,
    "score_chosen": 9.0,
    "score_rejected": 4.5,
}


def test_the_scores_are_gpt_4s_from_1_to_10():
    (one,), _ = read("ultrafeedback_binarized", ROW)
    assert one.prompt.id == "p1"
    said = [(one.rater, one.kind, one.dimension, one.value, one.range) for one in one.ratings]
    assert said == [("gpt-4", "llm", "overall_score", value, (1, 10)) for value in (9.0, 4.5)]
    assert one.judgments == ()


def test_equal_scores_and_scores_outside_the_scale_are_counted():
    _, noted = read(
        "ultrafeedback_binarized", ROW | {"score_chosen": 4.5}, ROW | {"score_rejected": 0, "prompt_id": "x"}
    )
    assert noted == {
        "pairs whose scores do not say their order": 1,
        "ratings outside their scale (overall_score)": 1,
    }


def test_a_prompt_id_that_stands_already_is_counted_and_comes_back():
    rows = [ROW, ROW | {"score_chosen": 8.0}]
    cases, noted = read("ultrafeedback_binarized", *rows)
    assert [one.prompt.id for one in cases] == ["p1", "p1~2"]
    assert noted == {"repeated prompt ids": 1}
    assert write("ultrafeedback_binarized", *cases)[0] == rows


@pytest.mark.parametrize(
    "change", [{"prompt": "a title"}, {"messages": None}, {"messages": CHOSEN[:1]}, {"messages": 3}]
)
def test_a_title_and_other_messages_come_back(change):
    row = ROW | change
    assert write("ultrafeedback_binarized", *read("ultrafeedback_binarized", row)[0])[0] == [row]


def test_the_rows_of_one_prompt_share_its_id_and_that_is_counted():
    rows, lost = write("ultrafeedback_binarized", case(id="p", responses="abc", ranking=(("a",), ("b",), ("c",))))
    assert [row["prompt_id"] for row in rows] == ["p", "p", "p"]
    assert (lost["prompt ids"], lost["more than two responses"]) == (2, 1)
    assert {row["score_chosen"] for row in rows} == {None}


@pytest.mark.parametrize("key", ["prompt", "prompt_id", "chosen", "rejected", "score_chosen"])
def test_a_field_of_another_type_is_refused_with_its_line(key):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:2.*{key}"):
        read("ultrafeedback_binarized", ROW, ROW | {"prompt_id": "p2"} | {key: ["x"]})
