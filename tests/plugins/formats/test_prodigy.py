import pytest

from format_rows import read
from steelyard.core.errors import RecordError

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


@pytest.mark.parametrize("answer", ["reject", "ignore"])
def test_of_two_options_no_choice_is_a_judgment_that_says_so(answer):
    row = {**answered([], answer), "options": OPTIONS[:2]}
    (one,), _ = read("prodigy", row)
    assert [(said.verdict, said.reason) for said in one.judgments] == [("none", answer)]


def test_rows_of_one_task_are_one_case():
    rows = [answered([1], _timestamp=1), answered([2], _session_id="bo", _timestamp=2), answered([3], view=1)]
    cases, _ = read("prodigy", *rows)
    assert [sorted({said.judge for said in one.judgments}) for one in cases] == [["ann", "bo"], ["ann"]]


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
