"""People's answers to whole prompts: what counts as a ranking, and which prompts are answered whole."""

import pytest

from evaluation_summaries import resampled_bench
from steelyard.core.types import Scores
from steelyard.evaluation.measures.label_error import MEASURE, estimate
from steelyard.evaluation.people_answers import ranked_among
from strategies import case, judgment

WHOLE = ("a>b", "b>c", "a>c")
CIRCLE = ("a>b", "b>c", "a<c")


def by(name, *answers, **fields):
    return [judgment(each, judge=name, **fields) for each in answers]


def measured(bench):
    lines = [Scores(prompt=each.prompt.id, scores={"a": 2.0, "b": 1.0, "c": 0.0}) for each in bench]
    return estimate(resampled_bench(bench, lines, num_resamples=100))


def ranked(at, *answers, ranking=(("a",), ("b",), ("c",))):
    return case(f"p{at}", "abc", answers, ranking=ranking)


@pytest.mark.parametrize(
    ("answers", "sizes"),
    [
        (by("ann", *WHOLE), [3, 3, 3]),
        (by("ann", *WHOLE, task="1"), [3, 3, 3]),
        (by("ann", *WHOLE[:2]), [2, 2, 2]),
        (by("ann", "a>b", "b>c", "a=c"), [2, 2, 2]),
        (by("ann", *WHOLE, kind="llm"), [2, 2, 2]),
        ([each for at, short in enumerate(WHOLE) for each in by("ann", short, task=str(at))], [2, 2, 2]),
        (by("ann", *CIRCLE, task="1"), [2, 2, 2]),
        (by("ann", *WHOLE, meta={"stage": "alignment"}), [2, 2, 2]),
    ],
    ids=["unnamed", "named", "partial", "tie", "model", "by-pair", "circle", "settled"],
)
def test_answers_that_order_all_responses_of_a_task_are_a_ranking(answers, sizes):
    assert ranked_among({4: case("p", "abc", answers)}) == {4: sizes}


def test_a_circle_of_one_person_makes_all_answers_without_tasks_answers_by_pair():
    judged = {
        0: ranked(0, *by("ann", *WHOLE)),
        1: ranked(1, *by("ann", *CIRCLE)),
        2: ranked(2, *by("ann", *WHOLE, task="1")),
    }
    assert ranked_among(judged) == {0: [2, 2, 2], 1: [2, 2, 2], 2: [3, 3, 3]}


def test_prompts_that_two_people_answered_whole_have_a_ceiling_of_exact_match():
    swapped = ("a<b", "b>c", "a>c")
    bench = [ranked(at, *by("ann", *WHOLE), *by("bob", *(swapped if at < 10 else WHOLE))) for at in range(40)]
    found = measured(bench)
    assert found.num_whole == 40
    assert 0.7 < found.exact_match.micro.value < 1
    # The model is right on all labels, and nearer to them than the truth is.
    assert found.exact_distance.micro.value == pytest.approx(found.exact_match.micro.value - 1)
    assert MEASURE.ceiling(found).exact_match == found.exact_match.macro
    assert [each.key for each in MEASURE.sentences("m", found)] == ["say_label_error", "say_exact_match_by_people"]
    assert len(list(MEASURE.panels(found))) == 2


def test_prompts_that_were_answered_in_part_are_not_counted():
    bench = [
        *(ranked(at, *by("ann", *WHOLE), *by("bob", *WHOLE)) for at in range(30)),
        *(ranked(at, *by("ann", *WHOLE), *by("bob", *WHOLE[:2])) for at in range(30, 40)),
        *(ranked(at, *by("ann", *WHOLE)) for at in range(40, 50)),
    ]
    assert measured(bench).num_whole == 30


def test_prompts_of_one_pair_have_no_ceiling_of_exact_match():
    bench = [case(f"p{at}", "ab", by("ann", "a>b") + by("bob", "a>b"), ranking=(("a",), ("b",))) for at in range(30)]
    lines = [Scores(prompt=each.prompt.id, scores={"a": 1.0, "b": 0.0}) for each in bench]
    found = estimate(resampled_bench(bench, lines, num_resamples=100))
    assert (found.num_whole, found.exact_match) == (0, None)
    assert found.label.micro.value == 0
