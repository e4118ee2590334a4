import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolved_cases import resolve_cases
from steelyard.core.types import Case
from steelyard.evaluation.measures.human_ceiling import human_ceiling, leave_one_out
from steelyard.ranking.judgment_table import (
    Only,
    judgment_table,
)
from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.groups import Cell, Label
from strategies import case, cases, judgment


def judged(id="p", **by_judge):
    shorts = [judgment(short, judge=name) for name, own in by_judge.items() for short in own.split()]
    return case(id, "abc", shorts)


def ceiling(cases, scores):
    """``scores`` by case: of a, b, c."""
    table = np.array(scores, float)
    blocks = draw_blocks([Label(one.prompt.id, Cell("code")) for one in cases], num_resamples=50, seed=0)
    return human_ceiling(
        blocks, judgments(cases), lambda held: table[held.case, held.better] - table[held.case, held.worse]
    )


def judgments(cases):
    return judgment_table(cases, Only(kind=("human",)))


def test_by_hand():
    # Without ann: bob and eve say a > b: ann agrees. Without bob: ann and eve: a > b, bob agrees. Eve too.
    # On q ann says a < b and bob a > b: each is wrong by the other's ranking; the model (a over b) is right once.
    found = ceiling([judged("p", ann="a>b", bob="a>b", eve="a>b"), judged("q", ann="a<b", bob="a>b")], [[2, 1, 0]] * 2)
    own = found.resolved
    assert found.num_annotators == 3
    assert own.human.micro.value == pytest.approx(3 / 5)
    assert own.model.micro.value == pytest.approx(4 / 5)
    assert own.difference.micro.value == pytest.approx(1 / 5)
    assert (own.num_verdicts, own.num_prompts) == (5, 2)


def test_the_rules_differ_where_the_others_are_of_two_minds():
    # Without eve: two of three say a > b. The vote orders the pair, Algorithm 1 merges it; eve agrees with the vote.
    given = [judged("p", ann="a>b", bob="a>b", cid="a<b", eve="a>b")]
    found = ceiling(given, [[2, 1, 0]])
    # resolved: only cid is held against unanimous others. majority: ann against 2:1, bob and eve too, cid against 3:0
    assert (found.resolved.num_verdicts, found.resolved.human.micro.value) == (1, 0.0)
    assert (found.majority.num_verdicts, found.majority.human.micro.value) == (4, 0.75)
    assert found.majority.model.micro.value == 1.0


def test_ties_are_wrong_on_both_sides_and_no_verdict_is_left_out():
    found = ceiling([judged("p", ann="a=b", bob="a>b", eve="a?b")], [[1, 1, 0]]).resolved
    # ann's tie is held against bob's a > b; bob's verdict against ann's tie, which orders nothing
    assert (found.num_verdicts, found.num_human_ties, found.num_model_ties) == (1, 1, 1)
    assert found.human.micro.value == found.model.micro.value == 0.0


def test_a_pair_that_the_model_does_not_answer_counts_for_neither():
    given = [judged("p", ann="a>b b>c", bob="a>b b>c")]
    found = ceiling(given, [[2, 1, np.nan]]).resolved
    assert (found.num_verdicts, found.num_left_out, found.human.micro.value) == (2, 2, 1.0)


@pytest.mark.parametrize(("num_prompts", "has_interval"), [(20, False), (59, False), (60, True)])
def test_the_mean_over_categories_has_an_interval_from_six_prompts_a_category_on(num_prompts, has_interval):
    """With two prompts a category the interval covered the true value in 77 of 100 simulations."""
    cases = [judged(f"p{n}", ann="a>b", bob="a>b" if n % 4 else "a<b") for n in range(num_prompts)]
    labels = [Label(one.prompt.id, Cell(f"category {n % 10}")) for n, one in enumerate(cases)]
    blocks = draw_blocks(labels, num_resamples=50, seed=0)
    human = human_ceiling(blocks, judgments(cases), lambda held: np.ones(len(held.case))).resolved.human
    assert human.macro.value is not None
    assert (human.macro.low is not None) == has_interval
    assert human.macro.why == (None if has_interval else "an interval needs 60 prompts")
    assert human.micro.low is not None


def test_one_annotator_or_none_has_no_ceiling():
    assert ceiling([judged("p", ann="a>b")], [[1, 0, 0]]) is None
    assert ceiling([case("p", "abc")], [[1, 0, 0]]) is None
    assert ceiling([judged("p", ann="a>b"), judged("q", bob="a>b")], [[1, 0, 0]] * 2) is None


@settings(deadline=None, max_examples=60)
@given(cases(), st.sampled_from(["none", "majority"]))
def test_it_is_resolving_without_each_annotator(one, rule):
    found = leave_one_out(judgment_table([one], Only(kind=("human",))), rule)
    human = [own for own in one.judgments if own.kind == "human"]
    names = [response.id for response in one.responses]
    expected = []
    for judge in sorted({own.judge for own in human}):
        others = [own for own in human if own.judge != judge]
        without = Case(prompt=one.prompt, responses=one.responses, judgments=tuple(others))
        (resolved,), _ = resolve_cases([without], aggregate=rule)
        tier = {name: index for index, own in enumerate(resolved.ranking or ()) for name in own}
        for own in human:
            if own.judge != judge or own.verdict == "none" or own.left not in tier or own.right not in tier:
                continue
            if tier[own.left] != tier[own.right]:
                better, worse = sorted((own.left, own.right), key=tier.__getitem__)
                said = {"left": own.left, "right": own.right}.get(own.verdict)
                expected.append(
                    (names.index(better), names.index(worse), 0 if said is None else 1 if said == better else -1)
                )
    got = list(zip(found.better.tolist(), found.worse.tolist(), found.human.tolist(), strict=True))
    assert sorted(got) == sorted(expected)
