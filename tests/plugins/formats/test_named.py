from collections import Counter

import pytest

from steelyard.core.errors import Place, RecordError
from steelyard.plugins.formats._named import data_of, field_names, form_facts, named_of
from strategies import case

PLACE = Place("f.jsonl", 2, "data")


def test_names_tell_the_prompt_and_the_answers():
    data = {"context": "c", "question": "q", "answer_b": "2", "answer_a": "1", "A": "3", "note": 4, "output_tokens": 9}
    named = named_of(data, PLACE, ranked={"A"})
    assert (named.prompt_key, [response.id for response in named.responses]) == (
        "question",
        ["answer_b", "answer_a", "A"],
    )
    assert named.others == {"context": "c", "note": 4, "output_tokens": 9}


def test_items_are_answers_with_what_else_they_say():
    data = {"prompt": "q", "items": [{"id": 1, "title": "t", "body": "x"}, {"id": 2, "title": "u", "body": "y"}]}
    named = named_of(data, PLACE, has_items=True)
    assert [(one.id, one.text, one.meta) for one in named.responses] == [
        ("1", "x", {"title": "t"}),
        ("2", "y", {"title": "u"}),
    ]
    one = case(responses="ab")
    written = data_of(one, {}, Counter())
    assert written == {"prompt": "What is it?", "items": [{"id": n, "body": f"answer {n}"} for n in "ab"]}
    assert form_facts(named, data)["ids"] == [1, 2]


def test_ids_that_are_no_names_get_some():
    names = field_names(case(responses=["response2", "x", "reply", "y"]))
    assert names == {"response2": "response2", "reply": "reply", "x": "response3", "y": "response4"}


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"response1": "x"}, "no prompt"),
        ({"prompt": "x"}, "no answer"),
        ({"prompt": 3, "response1": "x"}, "'prompt'"),
        ({"prompt": "x", "items": [{"id": 1, "body": "y"}, {"id": 2}]}, r"items\[1\]"),
        ({"prompt": "x", "items": [{"id": 1, "body": "y"}, {"id": "1", "body": "z"}]}, "two items of one id"),
    ],
)
def test_what_is_missing_is_named(data, found):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:2.*{found}"):
        named_of(data, PLACE, has_items=True)
