"""Judgments of cases as rankings: together where they were made together, alone where they contradict each other."""

import pytest

from steelyard.annotation.case_answers import answers_of_cases, rankings_of
from steelyard.core.types import Case, Judgment, Message, Prompt, Response


def judgment(left: str, right: str, verdict, task: str | None = "1", judge: str = "ada") -> Judgment:
    return Judgment(left=left, right=right, verdict=verdict, judge=judge, kind="human", task=task)


def case(*judgments: Judgment) -> Case:
    return Case(
        prompt=Prompt(id="p", messages=(Message(role="user", content="?"),)),
        responses=tuple(Response(id=name, text=name) for name in "abc"),
        judgments=judgments,
    )


def test_verdicts_of_one_task_are_one_ranking():
    judgments = (judgment("a", "b", "left"), judgment("c", "a", "right"), judgment("b", "c", "tie"))
    answers = answers_of_cases([case(*judgments)])
    assert [each.tiers for each in answers.answers] == [[[0], [1, 2]]]
    assert answers.raters == ("ada",)
    assert (answers.num_items, answers.width) == (1, 3)


@pytest.mark.parametrize(
    "verdicts", [("left", "right", "left"), ("tie", "tie", "left")], ids=["a circle", "ties without transitivity"]
)
def test_verdicts_that_contradict_each_other_stay_alone(verdicts):
    pairs = (("a", "b"), ("a", "c"), ("b", "c"))
    judgments = [judgment(*pair, verdict) for pair, verdict in zip(pairs, verdicts, strict=True)]
    assert len(rankings_of(judgments)) == 3


def test_verdicts_without_a_task_or_of_an_incomplete_one_are_pairs():
    loose = [judgment("a", "b", "left", None), judgment("a", "c", "left", None), judgment("b", "c", "left", None)]
    assert [each.tiers for each in answers_of_cases([case(*loose)]).answers] == [
        [[0], [1]],
        [[0], [2]],
        [[1], [2]],
    ]
    assert rankings_of([judgment("a", "b", "right"), judgment("b", "c", "tie")]) == [[["b"], ["a"]], [["b", "c"]]]


def test_unreadable_verdicts_are_left_out_and_judges_are_counted_once():
    judgments = (judgment("a", "b", "none"), judgment("a", "b", "left", "2", "bo"), judgment("b", "c", "tie", "3"))
    answers = answers_of_cases([case(*judgments), case(judgment("a", "c", "left", "1", "bo"))])
    assert answers.raters == ("bo", "ada")
    assert [(each.item, each.rater, each.tiers) for each in answers.answers] == [
        (0, 0, [[0], [1]]),
        (0, 1, [[1, 2]]),
        (1, 0, [[0], [2]]),
    ]
