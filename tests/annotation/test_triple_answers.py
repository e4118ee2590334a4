"""Answers to triples: what scores and comparisons imply, what contradicts what, and the judgments that follow."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.annotation.answers import (
    BucketComparison,
    Inconsistency,
    Origin,
    TaskAnswer,
    contradictions,
    implied_ranking,
    judgments_of,
    misfits,
    outcome_of,
    ratings_of,
)

ABC = ("a", "b", "c")
ORIGIN = Origin(judge="P-1", task="1-1", shown=("b", "a", "c"), batch="first", meta={"stage": "annotation"})


def compared(*entries):
    return tuple(BucketComparison(first=first, second=second, choice=choice) for first, second, choice in entries)


@pytest.mark.parametrize(
    ("scores", "comparisons", "ranking"),
    [
        ({"a": 5, "b": 3, "c": 0}, (), (("a",), ("b",), ("c",))),
        ({"a": 3, "b": 3, "c": 0}, compared(("b", "a", "better")), (("b",), ("a",), ("c",))),
        ({"a": 3, "b": 3, "c": 0}, compared(("a", "b", "same")), (("a", "b"), ("c",))),
        (
            {"a": 2, "b": 2, "c": 2},
            compared(("a", "b", "same"), ("b", "c", "worse"), ("a", "c", "worse")),
            (("c",), ("a", "b")),
        ),
        # What was entered last counts.
        ({"a": 3, "b": 3, "c": 0}, compared(("a", "b", "better"), ("a", "b", "worse")), (("b",), ("a",), ("c",))),
    ],
)
def test_ranking_follows_from_scores_and_comparisons(scores, comparisons, ranking):
    answer = TaskAnswer(scores=scores, comparisons=comparisons, ranking=ranking)
    assert implied_ranking(answer, ABC) == ranking
    assert contradictions(answer, ABC) == ()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (TaskAnswer(scores={"a": 1, "c": 2}), Inconsistency("missing score", ("b",))),
        (TaskAnswer(scores={"a": 1, "b": 1, "c": 2}), Inconsistency("missing comparison", ("a", "b"))),
        (
            TaskAnswer(
                scores=dict.fromkeys(ABC, 4),
                comparisons=compared(("a", "b", "better"), ("b", "c", "better"), ("c", "a", "better")),
            ),
            Inconsistency("circle", ABC),
        ),
        (
            TaskAnswer(
                scores=dict.fromkeys(ABC, 4),
                comparisons=compared(("a", "b", "same"), ("b", "c", "same"), ("a", "c", "better")),
            ),
            Inconsistency("circle", ABC),
        ),
        (
            TaskAnswer(scores={"a": 5, "b": 3, "c": 0}, ranking=(("b",), ("a",), ("c",))),
            Inconsistency("score against ranking", ("a", "b")),
        ),
        (
            TaskAnswer(scores={"a": 5, "b": 3, "c": 0}, ranking=(("a", "b"), ("c",))),
            Inconsistency("score against ranking", ("a", "b")),
        ),
        (
            TaskAnswer(
                scores={"a": 3, "b": 3, "c": 0},
                comparisons=compared(("a", "b", "same")),
                ranking=(("a",), ("b",), ("c",)),
            ),
            Inconsistency("comparison against ranking", ("a", "b")),
        ),
    ],
)
def test_contradictions_are_named(answer, expected):
    assert contradictions(answer, ABC) == (expected,)


def test_every_complete_answer_has_a_ranking_or_a_circle():
    """All 27 ways of comparing three equal responses: 13 are orders with ties of three things, the rest are circles."""
    num_ranked = 0
    for choices in product(("better", "same", "worse"), repeat=3):
        pairs = (("a", "b"), ("b", "c"), ("a", "c"))
        entries = compared(*((*pair, choice) for pair, choice in zip(pairs, choices, strict=True)))
        answer = TaskAnswer(scores=dict.fromkeys(ABC, 2), comparisons=entries)
        ranking = implied_ranking(answer, ABC)
        problems = [each.problem for each in contradictions(answer, ABC)]
        assert problems == ["circle"] if ranking is None else "circle" not in problems
        num_ranked += ranking is not None
    assert num_ranked == 13


@given(st.lists(st.integers(0, 5), min_size=3, max_size=3), st.permutations(ABC), st.sampled_from(["better", "same"]))
def test_implied_ranking_never_contradicts_its_scores(scores, order, choice):
    by_id = dict(zip(ABC, scores, strict=True))
    places = {response: place for place, response in enumerate(order)}
    entries = compared(
        *(
            (first, second, "same" if choice == "same" else "better" if places[first] < places[second] else "worse")
            for first, second in (("a", "b"), ("b", "c"), ("a", "c"))
        )
    )
    answer = TaskAnswer(scores=by_id, comparisons=entries)
    ranking = implied_ranking(answer, ABC)
    assert ranking is not None
    whole = TaskAnswer(scores=by_id, comparisons=entries, ranking=ranking)
    assert contradictions(whole, ABC) == ()
    assert [by_id[tier[0]] for tier in ranking] == sorted((by_id[tier[0]] for tier in ranking), reverse=True)


def test_judgments_keep_the_order_shown_and_the_verdicts_of_the_ranking():
    answer = TaskAnswer(scores={"a": 3, "b": 3, "c": 0}, ranking=(("a", "b"), ("c",)))
    judgments = judgments_of(answer, ORIGIN)
    assert [(each.left, each.right, each.verdict) for each in judgments] == [
        ("b", "a", "tie"),
        ("b", "c", "left"),
        ("a", "c", "left"),
    ]
    assert {(each.judge, each.kind, each.task, each.batch, each.shown) for each in judgments} == {
        ("P-1", "human", "1-1", "first", ("b", "a", "c"))
    }
    assert len({each.id for each in judgments}) == 3
    assert [(each.response, each.value, each.range) for each in ratings_of(answer, ORIGIN)] == [
        ("b", 3.0, (0.0, 5.0)),
        ("a", 3.0, (0.0, 5.0)),
        ("c", 0.0, (0.0, 5.0)),
    ]


def test_discarded_responses_have_no_verdict_no_rating_and_a_reason():
    answer = TaskAnswer(scores={"a": 3, "b": 4}, discarded={"c": "garbled"}, ranking=(("b",), ("a",)))
    assert contradictions(answer, ABC) == ()
    assert outcome_of(answer, "a", "c") == "discarded"
    assert [(each.verdict, each.reason) for each in judgments_of(answer, ORIGIN)] == [
        ("left", None),
        ("none", "discarded: garbled"),
        ("none", "discarded: garbled"),
    ]
    assert [each.response for each in ratings_of(answer, ORIGIN)] == ["b", "a"]


def test_who_cannot_judge_says_so_in_every_judgment():
    answer = TaskAnswer(cannot_judge="a field that I do not know")
    assert contradictions(answer, ABC) == () == ratings_of(answer, ORIGIN)
    judgments = judgments_of(answer, ORIGIN)
    assert {(each.verdict, each.reason) for each in judgments} == {("none", "cannot judge: a field that I do not know")}


@pytest.mark.parametrize(
    "answer",
    [
        TaskAnswer(scores={"a": 6, "b": 1, "c": 1}, ranking=(("a",), ("b",), ("c",))),
        TaskAnswer(scores={"x": 1}, ranking=(("a",), ("b",), ("c",))),
        TaskAnswer(scores={"a": 1}, discarded={"a": "garbled"}, ranking=(("b",), ("c",))),
        TaskAnswer(discarded={"x": "garbled"}, ranking=(("a",), ("b",), ("c",))),
        TaskAnswer(ranking=(("a",), ("b",))),
        TaskAnswer(ranking=(("a",), ("b",), ("c",), ("c",))),
        TaskAnswer(comparisons=compared(("a", "a", "same")), ranking=(("a", "b", "c"),)),
        TaskAnswer(spans={"a": ((0, 6, "fact", None),)}, ranking=(("a", "b", "c"),)),
        TaskAnswer(spans={"a": ((3, 3, "fact", None),)}, ranking=(("a", "b", "c"),)),
    ],
)
def test_what_no_page_sends_is_refused(answer):
    assert len(misfits(answer, {"a": "五个汉字啊", "b": "b", "c": "c"})) == 1
