from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from format_rows import read, write
from steelyard.core.errors import Place, RecordError
from steelyard.core.types import Response
from steelyard.io.rows import read_rows
from steelyard.plugins.formats._annotation_tools import (
    RankedTiers,
    RankingSource,
    data_of,
    field_names,
    form_facts,
    judgments_of,
    named_item,
    rankings_of,
    without_people,
    without_tasks,
)
from strategies import case, judgment

GOLDEN = Path(__file__).parents[2] / "golden" / "formats"

PLACE = Place("f.jsonl", 2, "data")


def test_names_tell_the_prompt_and_the_answers():
    data = {"context": "c", "question": "q", "answer_b": "2", "answer_a": "1", "A": "3", "note": 4, "output_tokens": 9}
    named = named_item(data, PLACE, Counter(), ranked={"A"})
    assert (named.prompt_key, [response.id for response in named.responses]) == (
        "question",
        ["answer_b", "answer_a", "A"],
    )
    assert named.others == {"context": "c", "note": 4, "output_tokens": 9}


def test_items_are_answers_with_what_else_they_say():
    data = {"prompt": "q", "items": [{"id": 1, "title": "t", "body": "x"}, {"id": 2, "title": "u", "body": "y"}]}
    named = named_item(data, PLACE, Counter(), has_items=True)
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
        named_item(data, PLACE, Counter(), has_items=True)


ANN = RankingSource("ann", "human", "quality")


@st.composite
def tiers(draw):
    names = draw(st.permutations("abcdef"))
    count = draw(st.integers(2, 6))
    left, made = list(names[:count]), []
    while left:
        size = draw(st.integers(1, len(left)))
        made.append(tuple(left[:size]))
        left = left[size:]
    return tuple(made)


def test_a_ranking_judges_every_pair():
    said = list(judgments_of(RankedTiers(ANN, (("b",), ("d", "a"), ("c",)))))
    assert [(one.left, one.verdict, one.right) for one in said] == [
        ("b", "left", "d"),
        ("b", "left", "a"),
        ("b", "left", "c"),
        ("d", "tie", "a"),
        ("d", "left", "c"),
        ("a", "left", "c"),
    ]
    assert {(one.judge, one.kind, one.task) for one in said} == {ANN}


@given(tiers())
def test_judgments_of_a_ranking_are_that_ranking(made):
    said = list(judgments_of(RankedTiers(ANN, made)))
    number = sum(map(len, made))
    assert len(said) == len(list(combinations(range(number), 2)))
    assert rankings_of(said, Counter()) == [RankedTiers(ANN, made)]


def test_what_no_ranking_says_is_one_ranking_a_judgment():
    circle = [judgment(short) for short in ("a>b", "b>c", "c>a")]
    assert [one.tiers for one in rankings_of(circle, Counter())] == [
        (("a",), ("b",)),
        (("b",), ("c",)),
        (("c",), ("a",)),
    ]
    twice = [judgment("a>b"), judgment("a=b"), judgment("b>c")]
    assert [one.tiers for one in rankings_of(twice, Counter())] == [(("a",), ("b",)), (("a", "b"),), (("b",), ("c",))]
    # Equal, equal, and yet one better: ties that do not add up.
    uneven = [judgment("a=b"), judgment("b=c"), judgment("a>c")]
    assert len(rankings_of(uneven, Counter())) == 3


def test_no_verdict_is_no_ranking():
    dropped = Counter()
    assert rankings_of([judgment("a?b")], dropped) == []
    assert dropped == {"judgments without a verdict": 1}


def test_what_the_formats_say_is_not_counted_as_lost():
    one = case(judgments=[judgment("a>b", judge="ann", task="t"), judgment("a>b", judge="gpt", kind="llm")])
    assert [said.task for said in without_tasks(one).judgments] == [None, None]
    assert [said.judge for said in without_people(one).judgments] == ["unknown", "gpt"]


@pytest.mark.parametrize("kind", ["argilla", "label_studio", "potato"])
def test_annotations_that_no_longer_fit_the_case_are_written_anew(kind):
    (path,) = GOLDEN.glob(f"{kind}.*")
    cases, _ = read(kind, *(row.value for row in read_rows(path)))
    changed = [
        replace(
            one,
            responses=(Response(id="response1", text="a"), Response(id="response2", text="b")),
            judgments=(replace(judgment("a>b"), left="response1", right="response2"),),
            ratings=(),
        )
        for one in cases
    ]
    written, dropped = write(kind, *changed)
    again, _ = read(kind, *written)
    assert [len(one.judgments) for one in again] == [1] * len(cases)
    assert dropped["annotations written anew"] > 0
