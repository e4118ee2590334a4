"""Wrong answers made of settled ones: they can be submitted, contradict the truth, and are not made where unsure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.annotation.agreement import disputed_points
from steelyard.annotation.answers import BucketComparison, TaskAnswer
from steelyard.annotation.task_kinds import kind_named, kind_names
from steelyard.annotation.wrong_answers import mirror_quality, move_category, remove_marks, reverse_order
from steelyard.core.numerics import generator
from task_kind_cases import cases_for, look_at, rules_for

CATALOGUES = {
    "category": ("maths/algebra", "maths/geometry", "writing/poems"),
    "difficulty": ("easy", "hard"),
    "scenario": ("school", "work"),
}


@pytest.mark.parametrize("name", kind_names())
def test_every_kind_makes_wrong_answers_that_can_be_submitted_and_contradict_the_truth(name):
    kind, number = kind_named(name), 0
    for place, case in enumerate(cases_for(name, 30)):
        texts = {response.id: response.text for response in case.responses}
        for task in kind.design(case, rules_for(name), seed=0):
            truth = kind.simulate(look_at(case, task, seed=place), CATALOGUES)
            wrong = kind.falsify(truth, CATALOGUES, generator(place, "wrong"))
            if wrong is None:
                continue
            number += 1
            assert kind.misfits(wrong, {response: texts[response] for response in task}, CATALOGUES) == ()
            assert kind.contradictions(wrong, task) == ()
            assert disputed_points(task, (truth, wrong), kind)
            assert wrong.remark is None
    assert number > 0


@pytest.mark.parametrize("name", kind_names())
def test_a_task_that_nobody_could_judge_has_no_wrong_answer(name):
    assert kind_named(name).falsify(TaskAnswer(cannot_judge="unclear"), CATALOGUES, generator(0, "x")) is None


@given(st.permutations("abcd"), st.sets(st.integers(0, 5), min_size=4, max_size=4))
def test_an_order_turned_round_twice_is_the_order(order, scores):
    ordered = dict(zip(order, sorted(scores, reverse=True), strict=True))
    answer = TaskAnswer(scores=ordered, ranking=tuple((each,) for each in order))
    turned = reverse_order(answer)
    assert turned is not None
    assert turned.ranking == tuple((each,) for each in reversed(order))
    assert reverse_order(turned) == answer


def test_scores_comparisons_and_ranking_are_turned_together():
    answer = TaskAnswer(
        scores={"a": 5, "b": 3, "c": 3},
        comparisons=(BucketComparison(first="b", second="c", choice="better"),),
        ranking=(("a",), ("b",), ("c",)),
        remark="a is best",
    )
    turned = reverse_order(answer)
    assert turned == TaskAnswer(
        scores={"a": 3, "b": 5, "c": 5},
        comparisons=(BucketComparison(first="b", second="c", choice="worse"),),
        ranking=(("c",), ("b",), ("a",)),
    )
    assert kind_named("triple").contradictions(turned, ("a", "b", "c")) == ()


@pytest.mark.parametrize(
    "answer",
    [
        TaskAnswer(ranking=(("a", "b"),)),
        TaskAnswer(scores={"a": 4, "b": 3}, ranking=(("a",), ("b",))),
        TaskAnswer(ranking=(("a",), ("b",)), discarded={"c": "garbled"}),
        TaskAnswer(),
    ],
    ids=["equal", "close scores", "discarded", "empty"],
)
def test_an_order_of_which_nobody_can_be_sure_is_not_turned(answer):
    assert reverse_order(answer) is None


def test_marks_are_left_out_and_where_there_are_none_nothing_is_wrong():
    marked = TaskAnswer(spans={"a": ((0, 3, "factual error", None),)}, remark="see there")
    assert remove_marks(marked) == TaskAnswer()
    assert remove_marks(TaskAnswer(spans={"a": ()})) is None


@pytest.mark.parametrize(("quality", "mirrored"), [(95, 5), (70, 30), (69, None), (31, None), (30, 70), (0, 100)])
def test_points_are_mirrored_unless_they_are_near_the_middle(quality, mirrored):
    spans = {"a": ((0, 3, "Terminology", "minor"),)}
    wrong = mirror_quality(TaskAnswer(scores={"a": quality}, spans=spans))
    if mirrored is None:
        assert wrong is None
    else:
        assert wrong == TaskAnswer(scores={"a": mirrored}, spans=spans if mirrored < 50 else {})


def test_a_category_becomes_one_of_another_main_category():
    truth = TaskAnswer(entries={"decision": "keep", "category": "Maths/algebra"})
    rng = np.random.default_rng(0)
    wrong = move_category(truth, CATALOGUES["category"], rng)
    assert wrong is not None
    assert wrong.entries == {"decision": "keep", "category": "writing/poems"}
    assert move_category(truth, ("maths/algebra", "maths/geometry"), rng) is None
    assert move_category(TaskAnswer(entries={"decision": "drop"}), CATALOGUES["category"], rng) is None
