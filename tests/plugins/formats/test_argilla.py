import pytest
from msgspec.structs import replace

from format_rows import read, write
from steelyard.core.errors import RecordError
from steelyard.core.types import Rating
from strategies import case, judgment


def ranking(*places):
    return [{"value": name, "rank": rank} for name, rank in places]


ROW = {
    "id": "r",
    "fields": {"prompt": "q", "response1": "a", "response2": "b", "response10": "c"},
    "suggestions": {},
    "responses": {
        "best": [{"value": ranking(("response2", 1), ("response1", 2), ("response10", 2)), "user_id": "u"}],
        "response10-depth": [{"value": 4, "user_id": "u"}],
        "why": [{"value": "因为", "user_id": "u"}],
    },
}


def test_a_ranking_may_be_names_alone_best_first():
    # As the SDK of version 2 returns the values of a ranking question.
    row = ROW | {"responses": {"best": [{"value": ["response2", "response10", "response1"], "user_id": "u"},
                                        {"value": ["response1", "elsewhere"], "user_id": "v"}]}}  # fmt: skip
    (one,), warnings = read("argilla", row)
    assert {(said.left, said.verdict, said.right, said.judge) for said in one.judgments} == {
        ("response2", "left", "response10", "u"),
        ("response2", "left", "response1", "u"),
        ("response10", "left", "response1", "u"),
    }
    assert warnings == {"answers that are neither rankings nor ratings of a response": 1}
    assert write("argilla", one)[0] == [row]


def test_a_number_behind_a_word_for_ratings_is_that_of_a_response():
    fields = {"prompt": "q", "generation_1": "a", "generation_2": "b"}
    people = {"rating1": [{"value": 5, "user_id": "u"}], "rating-2": [{"value": 1, "user_id": "u"}],
              "criterion_1": [{"value": 3, "user_id": "u"}]}  # fmt: skip
    (one,), warnings = read("argilla", {"id": "r", "fields": fields, "responses": people})
    assert [(said.response, said.dimension, said.value) for said in one.ratings] == [
        ("generation_1", "rating", 5),
        ("generation_2", "rating", 1),
    ]
    assert warnings == {"answers that are neither rankings nor ratings of a response": 1}


def test_a_list_of_one_label_is_that_label():
    fields = {"prompt": "q", "response1": "a", "response2": "b"}
    row = {"id": "r", "fields": fields, "responses": {"better": [{"value": ["response2"], "user_id": "u"}]}}
    (one,), _ = read("argilla", row)
    assert [(said.left, said.verdict, said.right) for said in one.judgments] == [("response1", "right", "response2")]


def test_equal_ranks_are_ties_and_numbers_are_ratings():
    (one,), warnings = read("argilla", ROW)
    assert {(said.left, said.verdict, said.right) for said in one.judgments} == {
        ("response2", "left", "response1"),
        ("response2", "left", "response10"),
        ("response1", "tie", "response10"),
    }
    assert {(said.judge, said.kind, said.task) for said in one.judgments} == {("u", "human", "best")}
    (rated,) = one.ratings
    # response1 stands in the question's name as well; the longer name is meant.
    assert (rated.response, rated.dimension, rated.value, rated.task) == ("response10", "depth", 4, "response10-depth")
    assert warnings == {"answers that are neither rankings nor ratings of a response": 1}
    assert write("argilla", one)[0] == [ROW]


def test_a_suggestion_is_a_model_s():
    said = {"best": {"value": ranking(("response2", 1), ("response1", 2)), "score": None, "agent": "m"}}
    (one,), _ = read("argilla", {**ROW, "suggestions": said, "responses": {}})
    assert [(said.judge, said.kind) for said in one.judgments] == [("m", "llm")]


def test_new_evidence_is_written_anew_and_what_goes_with_it_counted():
    (one,), _ = read("argilla", ROW)
    more = replace(one, judgments=one.judgments[:1])
    rows, dropped = write("argilla", more)
    assert rows[0]["responses"]["best"] == [
        {"value": ranking(("response2", 1), ("response1", 2)), "user_id": "u"},
    ]
    assert "why" not in rows[0]["responses"]
    assert dropped["annotations written anew"] == 1


def test_a_case_from_elsewhere_is_read_again_as_it_was():
    rated = Rating(response="b", rater="ann", kind="human", dimension="depth", value=2.0)
    by_models = [judgment("a=b", judge="m", kind="llm"), judgment("b>c", judge="n", kind="llm")]
    one = case(responses="abc", judgments=["a>b", *by_models], ratings=(rated,))
    rows, dropped = write("argilla", one)
    (again,), _ = read("argilla", *rows)
    names = dict(zip("abc", ("response1", "response2", "response3"), strict=True))
    assert [(said.left, said.right, said.verdict, said.judge, said.kind) for said in again.judgments] == [
        (names["a"], names["b"], "tie", "m", "llm"),
        (names["b"], names["c"], "left", "n", "llm"),
        (names["a"], names["b"], "left", "j", "human"),
    ]
    assert [(said.response, said.dimension, said.value) for said in again.ratings] == [(names["b"], "depth", 2.0)]
    assert dropped == {"response ids that are not field names": 3}
    assert list(rows[0]["suggestions"]) == ["ranking", "ranking-2"]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"fields": None}, "fields"),
        ({"fields": {"prompt": "q"}}, "no answer"),
        ({"fields": {"prompt": "q", "response1": 3, "response2": [3]}}, "response1"),
        ({"responses": []}, "responses"),
        ({"responses": {"best": [3]}}, "responses.best"),
        ({"suggestions": {"best": {"agent": "m"}}}, "suggestions.best"),
    ],
)
def test_what_is_wrong_is_named(change, found):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1.*{found}"):
        read("argilla", {**ROW, **change})


def test_a_label_that_names_one_of_two_answers_is_a_judgment():
    choices = [{"value": value, "user_id": user} for user, value in (("u", "response-1"), ("v", "Tie"), ("w", "2"))]
    row = {
        "id": "1",
        "fields": {"prompt": "q", "response-0": "a", "response-1": "b"},
        "suggestions": {"best": {"value": "A", "agent": "m"}},
        "responses": {"best": choices},
    }
    (one,), warnings = read("argilla", row)
    assert sorted((said.judge, said.left, said.verdict, said.kind) for said in one.judgments) == [
        ("m", "response-0", "left", "llm"),
        ("u", "response-0", "right", "human"),
        ("v", "response-0", "tie", "human"),
    ]
    assert warnings == {"answers that are neither rankings nor ratings of a response": 1}
    assert write("argilla", one)[0] == [row]
