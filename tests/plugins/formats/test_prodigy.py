import pytest
from msgspec.structs import replace

from format_rows import read, write
from steelyard.core.errors import RecordError
from strategies import case, judgment

OPTIONS = [{"id": number, "text": f"t{number}"} for number in (1, 2, 3)]
TASK = {"text": "q", "options": OPTIONS, "_input_hash": 9}


def answered(accept, answer="accept", **other):
    return {**TASK, "accept": accept, "answer": answer, "_session_id": "ann", **other}


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ([2], {("2", "left", "1"), ("2", "left", "3")}),
        ([1, 3], {("1", "left", "2"), ("3", "left", "2")}),
        ([1, 2, 3], {("1", "tie", "2"), ("1", "tie", "3"), ("2", "tie", "3")}),
        ([], set()),
    ],
)
def test_what_is_accepted_is_better_than_the_rest(accept, expected):
    (one,), warnings = read("prodigy", answered(accept))
    assert {(said.left, said.verdict, said.right) for said in one.judgments} == expected
    assert {said.judge for said in one.judgments} <= {"ann"}
    assert warnings == ({} if accept else {"tasks without a choice": 1})
    assert write("prodigy", one)[0] == [answered(accept)]


@pytest.mark.parametrize("answer", ["reject", "ignore"])
def test_of_two_options_no_choice_is_a_judgment_that_says_so(answer):
    row = {**answered([], answer), "options": OPTIONS[:2]}
    (one,), _ = read("prodigy", row)
    assert [(said.verdict, said.reason) for said in one.judgments] == [("none", answer)]


def test_rows_of_one_task_are_one_case():
    rows = [answered([1], _timestamp=1), answered([2], _session_id="bo", _timestamp=2), answered([3], view=1)]
    cases, _ = read("prodigy", *rows)
    assert [sorted({said.judge for said in one.judgments}) for one in cases] == [["ann", "bo"], ["ann"]]
    assert write("prodigy", *cases)[0] == rows


def test_other_evidence_is_written_anew():
    (one,), _ = read("prodigy", answered([1]))
    rows, dropped = write("prodigy", replace(one, judgments=one.judgments[:1]))
    assert rows == [{**answered([1]), "options": OPTIONS[:2]}]
    assert (dropped["annotations written anew"], dropped["responses in no judgment"]) == (1, 1)


def test_a_case_from_elsewhere_is_an_answer_where_one_says_it_all():
    rows, dropped = write("prodigy", case(responses="abc", judgments=["b>a", "b>c", judgment("a=b", judge="bo")]))
    assert [(row["accept"], len(row["options"]), row["_session_id"]) for row in rows] == [
        (["b"], 3, "j"),
        (["a", "b"], 2, "bo"),
    ]
    assert "judges" not in dropped
    rows, _ = write("prodigy", case(responses="ab"))
    assert "answer" not in rows[0]
    assert read("prodigy", *rows)[0][0].judgments == ()


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (answered([4]), "accepted id"),
        (answered([1], "maybe"), "unknown answer 'maybe'"),
        ({**TASK, "options": [{"id": 1}]}, r"options\[0\]"),
        ({**TASK, "options": [{"id": 1, "text": "a"}, {"id": "1", "text": "b"}]}, "two options of one id"),
        ({**TASK, "options": "x"}, "options"),
        ({**TASK, "text": 3}, "text"),
    ],
)
def test_what_is_wrong_is_named(row, found):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1.*{found}"):
        read("prodigy", row)
