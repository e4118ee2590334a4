import pytest
from msgspec.structs import replace

from format_rows import read, write
from steelyard.core.errors import RecordError
from strategies import case, judgment


def task(*results, **annotation):
    said = {"completed_by": 5, "was_cancelled": False, "result": list(results)} | annotation
    return {"id": 1, "data": {"prompt": "q", "answer1": "a", "answer2": "b"}, "annotations": [said], "predictions": []}


def result(kind, value, to_name="answer1,answer2"):
    return {"from_name": "n", "to_name": to_name, "type": kind, "value": value}


@pytest.mark.parametrize(
    ("to_name", "left"), [("answer1,answer2", "answer1"), ("answer2,answer1", "answer2"), ("txt-1,txt-2", "answer1")]
)
def test_left_is_the_first_that_the_result_names(to_name, left):
    (one,), _ = read("label_studio", task(result("pairwise", {"selected": "right"}, to_name)))
    (said,) = one.judgments
    assert (said.left, said.verdict, said.judge, said.kind, said.task) == (left, "right", "5", "human", "n")


@pytest.mark.parametrize(
    ("lists", "verdict"),
    [
        ({"n": ["answer2", "answer1"]}, ("answer2", "left", "answer1")),
        ({"good": ["answer1", "answer2"], "bad": []}, ("answer1", "tie", "answer2")),
        ({"good": ["answer2"], "bad": ["answer1"]}, ("answer2", "left", "answer1")),
        ({"good": ["answer2"], "_": ["answer1"]}, None),
    ],
)
def test_a_ranker_s_list_is_an_order_and_buckets_are_ties(lists, verdict):
    row = task(result("ranker", {"ranker": lists}, "answers"))
    (one,), _ = read("label_studio", row)
    assert [(said.left, said.verdict, said.right) for said in one.judgments] == ([verdict] if verdict else [])
    assert write("label_studio", one)[0] == [row]


def test_a_skipped_task_of_two_answers_has_no_verdict():
    row = task(result("pairwise", {"selected": "left"}), was_cancelled=True)
    (one,), warnings = read("label_studio", row)
    assert [(said.verdict, said.reason) for said in one.judgments] == [("none", "cancelled")]
    assert warnings == {"cancelled annotations": 1}
    assert write("label_studio", one)[0] == [row]


def test_a_rating_is_of_the_answer_that_it_names():
    stars, choice = result("rating", {"rating": 3}, "answer2"), result("choices", {"choices": ["x"]}, "answer1")
    (one,), warnings = read("label_studio", task(stars, choice))
    assert [(said.response, said.dimension, said.value, said.rater) for said in one.ratings] == [
        ("answer2", "n", 3, "5")
    ]
    assert warnings == {"results that are neither comparisons nor ratings of a response": 1}


def test_a_case_from_elsewhere_is_read_again_as_it_was():
    said = ["a>b", judgment("b=c", judge="gpt", kind="llm"), judgment("c?a")]
    rows, dropped = write("label_studio", case(responses="abc", judgments=said))
    (again,), _ = read("label_studio", *rows)
    assert [(one.left, one.right, one.verdict, one.judge, one.kind) for one in again.judgments] == [
        ("a", "b", "left", "j", "human"),
        ("b", "c", "tie", "gpt", "llm"),
    ]
    assert [response.id for response in again.responses] == ["a", "b", "c"]
    assert dropped == {"judgments without a verdict": 1}


def test_ids_with_commas_are_ranked():
    said = replace(judgment("a>c"), left="a,b")
    rows, _ = write("label_studio", case(responses=["a,b", "c"], judgments=[said]))
    (one,), _ = read("label_studio", *rows)
    assert [(again.left, again.verdict, again.right) for again in one.judgments] == [("a,b", "left", "c")]
    assert rows[0]["annotations"][0]["result"][0]["type"] == "ranker"


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (task(result("pairwise", {"selected": "both"})), r"annotations\[0\].result\[0\]: unknown choice 'both'"),
        (task(result("ranker", {"ranker": {"n": ["answer3"]}})), r"result\[0\]"),
        (task(result("ranker", {"ranker": {"n": ["answer1", "answer1"]}})), r"result\[0\]"),
        (task({"type": "pairwise"}), r"result\[0\]"),
        (task(result="x"), r"annotations\[0\]"),
        ({"data": [], "annotations": []}, "data"),
        ({"data": {"prompt": "q"}, "annotations": []}, "no answer"),
    ],
)
def test_what_is_wrong_is_named(row, found):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1.*{found}"):
        read("label_studio", row)


def test_a_choice_that_names_one_of_two_answers_is_a_judgment():
    named, number = result("choices", {"choices": ["answer2"]}), result("choices", {"choices": ["1"]})
    (one,), warnings = read("label_studio", task(named, number))
    assert [(said.left, said.verdict, said.right, said.judge) for said in one.judgments] == [
        ("answer1", "right", "answer2", "5")
    ]
    assert warnings == {"results that are neither comparisons nor ratings of a response": 1}
    assert write("label_studio", one)[0] == [task(named, number)]


def test_controls_of_one_kind_rate_all_responses_in_one_dimension():
    results = [
        {
            "from_name": f"quality_{number}",
            "to_name": f"response{number}",
            "type": "rating",
            "value": {"rating": number},
        }
        for number in (1, 2)
    ]
    row = {"id": 1, "data": {"prompt": "q", "response1": "a", "response2": "b"}, "annotations": [{"result": results}]}
    (one,), _ = read("label_studio", row)
    assert [(said.response, said.dimension, said.value) for said in one.ratings] == [
        ("response1", "quality", 1),
        ("response2", "quality", 2),
    ]
    assert write("label_studio", one)[0] == [row]
