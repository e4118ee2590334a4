import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from steelyard.core.types import Case, Message, Response
from strategies import case, judgment, prompt

ROW = {
    "input": "问",
    "category": ["数学", "代数"],
    "responses": [{"id": "a", "content": "1"}, {"id": "b", "content": "2"}, {"id": "c", "content": "3"}],
    "annotations": [["a", "b", "1"], ["b", "c", "2"], ["a", "c", "s"], ["c", "a", -1]],
    "rank": {"a": 2, "c": 1, "b": 2},
    "sys_prompt": "简短",
}


def test_annotations_of_every_preference_are_kept_and_the_rank_becomes_tiers():
    (one,), _ = read("cheems", ROW)
    assert [judgment.verdict for judgment in one.judgments] == ["left", "right", "tie", "right"]
    assert one.ranking == (("c",), ("a", "b"))
    assert one.prompt.messages[0] == Message(role="system", content="简短")
    assert one.prompt.category == ("数学", "代数")
    assert write("cheems", one)[0][0]["annotations"] == ROW["annotations"]


def test_ranks_with_gaps_come_back_as_they_were():
    row = {**ROW, "rank": {"a": 1, "b": 5, "c": 5}}
    (one,), _ = read("cheems", row)
    assert one.ranking == (("a",), ("b", "c"))
    assert write("cheems", one)[0][0]["rank"] == row["rank"]


def test_one_row_without_a_category_leaves_the_others_theirs():
    other = {key: value for key, value in ROW.items() if key != "category"}
    cases, _ = read("cheems", ROW, other)
    assert [one.prompt.category for one in cases] == [("数学", "代数"), ()]
    rows, _ = write("cheems", *cases)
    assert rows[0].keys() == rows[1].keys()


def test_equal_prompts_stay_two_cases():
    cases, warnings = read("cheems", ROW, ROW)
    assert cases[1].prompt.id == f"{cases[0].prompt.id}~2"
    assert warnings == {"repeated rows": 1}


def test_a_flat_row_is_one_judgment():
    (one,), _ = read("cheems", {"prompt": "q", "answer1": "好", "answer2": "坏", "preference": "1"})
    assert [response.text for response in one.responses] == ["好", "坏"]
    assert (one.judgments[0].left, one.judgments[0].verdict) == (one.responses[0].id, "left")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"annotations": [["a", "b", "3"]]}, "unknown preference '3'"),
        ({"annotations": [["a", "z", "1"]]}, "names response 'z'"),
        ({"annotations": [["a", "b"]]}, "not a triple"),
        ({"rank": {"z": 1}}, "ranking: names response 'z'"),
        ({"rank": {"a": "first"}}, "not a map of ids to numbers"),
        (
            {"responses": [{"id": "a", "content": "1"}, {"id": "a", "content": "2"}], "annotations": [], "rank": {}},
            "given twice",
        ),
        ({"responses": [{"id": "a"}]}, "without id and content"),
        ({"input": 3}, "neither a text nor turns"),
        ({"category": 3}, "'category' is neither a text nor a list of texts"),
        ({"rank": {"a": True}}, "not a map of ids to numbers"),
        ({"rank": {"a": float("nan")}}, "not a map of ids to numbers"),
        ({"rank": [1]}, "not a map of ids to numbers"),
        ({"id": {"x": 1}}, "neither a text nor a whole number"),
    ],
)
def test_broken_rows_are_named(change, found):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1.*{found}"):
        read("cheems", {**ROW, **change})


def test_ids_that_are_given_must_be_unique():
    with pytest.raises(RecordError, match=r"f\.jsonl:2: id '7' is already used at f\.jsonl:1"):
        read("cheems", {**ROW, "id": 7}, {**ROW, "id": 7})


def test_a_null_rank_is_an_answer_that_was_not_ranked():
    (one,), _ = read("cheems", {**ROW, "rank": {"a": 2, "b": 1, "c": None, "of another row": None}})
    assert one.ranking == (("b",), ("a",))


def test_another_formats_meta_does_not_replace_the_rows_own_keys():
    first = Response(id="a", text="good", meta={"id": 7, "content": "other", "score": 1})
    rows, _ = write("cheems", Case(prompt=prompt("p", "q"), responses=(first,)))
    assert rows[0]["responses"] == [{"id": "a", "content": "good", "score": 1}]


def test_a_preference_in_meta_that_says_something_else_is_not_written():
    rows, _ = write("cheems", case(judgments=[judgment("a<b", meta={"preference": "1"}, judge="unknown")]))
    assert rows[0]["annotations"] == [["a", "b", "2"]]


def test_an_annotation_that_says_more_keeps_it():
    annotation = {"answer1": "a", "answer2": "b", "preference": "g", "annotator": "甲"}
    (one,), _ = read("cheems", {**ROW, "annotations": [annotation]})
    assert (one.judgments[0].verdict, one.judgments[0].meta) == ("left", {"annotator": "甲", "preference": "g"})
    rows, dropped = write("cheems", one)
    assert (rows[0]["annotations"], dropped) == ([annotation], {})


@pytest.mark.parametrize("field", [{"id": "7"}, {"reason": "so"}, {"task": "t"}, {"batch": "b"}, {"shown": ("b", "a")}])
def test_what_an_annotation_cannot_say_of_a_judgment_is_counted(field):
    _, dropped = write("cheems", case(judgments=[judgment("a>b", judge="unknown", **field)]))
    assert dropped == {"judgment details": 1}


def test_meta_under_the_names_of_a_response_is_counted():
    first = Response(id="a", text="good", author="m", meta={"id": 7, "content": "x", "model": "n", "score": 1})
    rows, dropped = write("cheems", Case(prompt=prompt("p", "q"), responses=(first,)))
    assert rows[0]["responses"] == [{"id": "a", "content": "good", "model": "m", "score": 1}]
    assert dropped == {"response meta under keys of the format": 3}
