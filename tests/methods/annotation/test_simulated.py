from collections import Counter
from itertools import combinations

import pytest

from steelyard.core.checks import check_case
from steelyard.core.errors import ConfigError
from steelyard.core.types import Case, Response
from steelyard.methods.annotation.annotators import Noise
from steelyard.methods.annotation.simulated import Candidates, human_judgments, llm_judgments
from strategies import prompt

EXACT = Noise(spread=0.0, tie_band=0.05, unreadable=0.0)
ONE = Candidates(tuple("abcde"), (0.1, 0.9, 0.5, 0.5, 0.3), (10, 20, 30, 40, 50))


def agrees(judgment, candidates):
    quality = dict(zip(candidates.ids, candidates.qualities, strict=True))
    difference = quality[judgment.left] - quality[judgment.right]
    return judgment.verdict == ("tie" if abs(difference) < 0.05 else "left" if difference > 0 else "right")


def test_people_give_three_verdicts_a_task_that_share_the_order_shown():
    (judgments,) = human_judgments([ONE], EXACT, num_annotators=6, seed=0)
    assert len(judgments) == 15
    tasks = {one.task: [own for own in judgments if own.task == one.task] for one in judgments}
    assert sorted(tasks) == [f"human-{number}" for number in range(1, 6)]
    for own in tasks.values():
        assert len({(one.shown, one.judge) for one in own}) == 1
        assert [(one.left, one.right) for one in own] == list(combinations(own[0].shown, 2))
    assert len({own[0].judge for own in tasks.values()}) == 5, "five tasks, five people"
    assert all(one.judge.startswith("simulated-human-") and one.kind == "human" for one in judgments)
    assert sorted(Counter(frozenset((one.left, one.right)) for one in judgments).values()) == [1] * 5 + [2] * 5
    assert all(agrees(one, ONE) for one in judgments)


def test_the_llm_judges_every_pair_once_in_random_order_of_pairs_and_places():
    prompts = [ONE] * 40
    found = llm_judgments(prompts, EXACT, seed=0)
    for own in found:
        assert {frozenset((one.left, one.right)) for one in own} == {
            frozenset(pair) for pair in combinations("abcde", 2)
        }
        assert len(own) == 10
        assert all(one.shown == (one.left, one.right) and one.kind == "llm" for one in own)
        assert all(agrees(one, ONE) for one in own)
    assert len({frozenset((own[0].left, own[0].right)) for own in found}) > 5
    ascending = sum(one.left < one.right for own in found for one in own)
    assert 150 <= ascending <= 250  # 200 of 400 expected, five standard deviations are 50


def test_what_cannot_be_read_is_none_with_its_reason():
    (judgments,) = human_judgments([ONE], Noise(spread=0.0, tie_band=0.0, unreadable=1.0), num_annotators=5, seed=0)
    assert {one.verdict for one in judgments} == {"none"}
    assert {one.reason for one in judgments} == {"simulated: the verdict could not be read"}


def test_judgments_make_a_case_that_holds_together_and_the_seed_decides_them():
    noise = Noise(spread=0.3, tie_band=0.05)
    runs = [human_judgments([ONE, ONE], noise, num_annotators=9, seed=seed) for seed in (3, 3, 4)]
    assert runs[0] == runs[1] != runs[2]
    responses = tuple(Response(id=name, text=name) for name in ONE.ids)
    both = (*runs[0][0], *llm_judgments([ONE], noise, seed=3)[0])
    check_case(Case(prompt=prompt(), responses=responses, judgments=both))


def test_prompts_of_different_sizes_each_get_their_tasks():
    three = Candidates(tuple("xyz"), (0.0, 0.5, 1.0), (1, 1, 1))
    found = human_judgments([ONE, three, ONE], EXACT, num_annotators=5, seed=0)
    assert [len(own) for own in found] == [15, 9, 15]
    assert {one.left for one in found[1]} <= set("xyz")


def test_too_few_people_are_refused():
    with pytest.raises(ConfigError, match="4 annotators"):
        human_judgments([ONE], EXACT, num_annotators=4, seed=0)
