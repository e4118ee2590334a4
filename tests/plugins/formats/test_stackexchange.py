import pytest

from format_rows import read
from steelyard.core.errors import RecordError

ITEM = {"answer_id": 5, "text": "<p>x</p>", "pm_score": 3, "selected": True, "author": "דנה"}
ROW = {
    "qid": 1,
    "question": "<p>问</p>",
    "answers": [ITEM, {**ITEM, "answer_id": 6, "pm_score": -1, "selected": False}],
}


def test_scores_and_acceptance_are_ratings_by_readers_and_asker():
    (one,), _ = read("stackexchange", ROW)
    assert [(r.response, r.rater, r.dimension, r.value, r.range) for r in one.ratings] == [
        ("5", "stackexchange", "pm_score", 3, None),
        ("5", "asker", "selected", 1, (0, 1)),
        ("6", "stackexchange", "pm_score", -1, None),
        ("6", "asker", "selected", 0, (0, 1)),
    ]
    assert (one.prompt.id, one.ranking, one.judgments) == ("1", None, ())


def test_ids_of_several_sites_are_made_unique():
    cases, warnings = read("stackexchange", ROW, ROW)
    assert [one.prompt.id for one in cases] == ["1", "1~2"]
    assert warnings == {"repeated prompt ids": 1}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"text": None}, "an answer without id and text"),
        ({"answer_id": True}, "an answer without id and text"),
        ({"pm_score": "3"}, "a pm_score that is not a number"),
        ({"selected": 1}, "'selected' is neither true nor false"),
        ({"author": 7}, "an author that is not a name"),
    ],
)
def test_a_broken_answer_is_named(change, found):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1 at answers\[0\]: {found}"):
        read("stackexchange", {**ROW, "answers": [{**ITEM, **change}]})


def test_a_question_without_an_id_is_named():
    with pytest.raises(RecordError, match=r"^f\.jsonl:1 at qid: a question without an id"):
        read("stackexchange", {**ROW, "qid": None})
