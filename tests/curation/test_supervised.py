import math
from collections import Counter
from itertools import compress

import msgspec
import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.core.types import Pair, Scores
from steelyard.curation.supervised import SupervisionCounter, compare_with_people, supervise_cases, with_margins
from steelyard.curation.supervision import SUPERVISED, SupervisionRule
from steelyard.ranking.judgment_table import Only
from steelyard.ranking.pairs import pairs_of
from strategies import case, cases, judgment
from supervision_files import judged


def llm(*shorts, judge="gpt"):
    return tuple(judgment(short, judge=judge, kind="llm") for short in shorts)


def scores_of(one, *values):
    ids = [response.id for response in one.responses]
    return Scores(prompt=one.prompt.id, language=one.prompt.language, scores=dict(zip(ids, values, strict=True)))


def shown(one):
    sign = {"left": ">", "right": "<", "tie": "=", "none": "?"}
    return [f"{own.left}{sign[own.verdict]}{own.right}" for own in one.judgments]


def test_agree_on_whole_cases_with_its_manifest():
    first = case(
        "p", "abc", llm("a>b", "b>c", "c>a", "b=c", "a?c"), language="zh", pairs=(Pair(better="a", worse="b"),)
    )
    human = case("q", "ab", ["a>b"], ranking=(("b",), ("a",)))
    scored = ((first, scores_of(first, 3.0, 1.0, 0.5)), (human, scores_of(human, 0.0, 1.0)))
    (batch,) = with_margins(scored, SUPERVISED)
    found = supervise_cases(batch, SupervisionRule(min_margin=1.0))
    assert shown(found.cases[0]) == ["a>b"]
    assert found.cases[0].ranking == (("a",), ("b",))
    assert found.cases[0].pairs == (Pair(better="a", worse="b"),)
    assert found.cases[1] == human  # nothing of it is supervised
    rows = found.dropped
    assert [(row.left, row.right, row.rule, row.margin) for row in rows] == [
        ("b", "c", "below min_margin", 0.5),
        ("c", "a", "disagrees", -2.5),
        ("b", "c", "tie", None),
        ("a", "c", "unparsed", None),
    ]
    assert (rows[0].prompt, rows[0].language, rows[0].judge, rows[0].verdict) == ("p", "zh", "gpt", "left")
    assert (rows[1].left_score, rows[1].right_score) == (0.5, 3.0)


def test_kept_ties_are_resolved_again():
    one = case("p", "abc", llm("a>b", "b>c", "a=c"))
    (batch,) = with_margins([(one, scores_of(one, 3.0, 2.0, 1.0))], SUPERVISED)
    assert supervise_cases(batch, SupervisionRule()).cases[0].ranking == (("a",), ("b",), ("c",))
    # The tie closes the circle a>b>c=a: all three stand in one tier.
    assert supervise_cases(batch, SupervisionRule(keep_ties=True)).cases[0].ranking == (("a", "b", "c"),)


def test_other_judgments_stay_and_do_not_rank():
    mixed = case("p", "ab", (judgment("b>a"), *llm("a>b", "b>a"), judgment("a=b")))
    (batch,) = with_margins([(mixed, scores_of(mixed, 1.0, 0.0))], SUPERVISED)
    found = supervise_cases(batch, SupervisionRule())
    assert [(own.kind, own.verdict) for own in found.cases[0].judgments] == [
        ("human", "left"), ("llm", "left"), ("human", "tie"),
    ]  # fmt: skip
    assert found.cases[0].ranking == (("a",), ("b",))


def test_a_case_that_keeps_nothing_has_no_ranking():
    one = case("p", "ab", llm("b>a"), ranking=(("b",), ("a",)))
    (batch,) = with_margins([(one, scores_of(one, 1.0, 0.0))], SUPERVISED)
    found = supervise_cases(batch, SupervisionRule()).cases[0]
    assert (found.judgments, found.ranking) == ((), None)


@pytest.mark.parametrize("policy", ["agree", "cycles"])
def test_the_pairs_of_kept_verdicts_are_listed_and_no_others(policy):
    # Algorithm 1 puts a and c into the best tier, so that c > b, against the scores, is a pair that nobody judged.
    one = case("p", "abcd", llm("a>b", "a>b", "b>d", "c>d", "b>a"))
    (batch,) = with_margins([(one, scores_of(one, 3.0, 2.0, 1.5, 1.0))], SUPERVISED)
    found = supervise_cases(batch, SupervisionRule(policy=policy)).cases[0]
    assert found.ranking == (("a", "c"), ("b",), ("d",))
    assert [(pair.better, pair.worse) for pair in pairs_of(found)] == [(0, 1), (1, 3), (2, 3)]


def test_a_verdict_in_a_cycle_through_kept_ties_gives_no_pair():
    one = case("p", "abcd", llm("a>b", "b=c", "c=a", "a>d"))
    (batch,) = with_margins([(one, scores_of(one, 3.0, 2.0, 2.0, 1.0))], SUPERVISED)
    assert supervise_cases(batch, SupervisionRule(keep_ties=True)).cases[0].pairs == (Pair(better="a", worse="d"),)


def test_what_debiasing_removed_does_not_come_back():
    listed = (Pair(better="a", worse="b", weight=0.5, margin=2.0), Pair(better="c", worse="a"))
    one = case("p", "abc", llm("a>b", "b>c", "a>c"), pairs=listed)
    (batch,) = with_margins([(one, scores_of(one, 3.0, 2.0, 1.0))], SUPERVISED)
    assert supervise_cases(batch, SupervisionRule()).cases[0].pairs == listed[:1]
    belief = 1 / (1 + math.exp(-1))
    (weighed,) = supervise_cases(batch, SupervisionRule(policy="weight")).cases[0].pairs
    assert (weighed.margin, weighed.weight) == (2.0, pytest.approx(0.5 * belief))


def test_weights_become_listed_pairs_and_nothing_goes():
    one = case("p", "abc", (*llm("a>b"), *llm("a>b", judge="other"), *llm("b>a", "a=c", "b?c")))
    (batch,) = with_margins([(one, scores_of(one, 1.0, 0.0, None))], SUPERVISED)
    found = supervise_cases(batch, SupervisionRule(policy="weight"))
    belief = 1 / (1 + math.exp(-1))
    assert found.cases[0].judgments == one.judgments
    assert not found.dropped
    assert [(pair.better, pair.worse) for pair in found.cases[0].pairs] == [("a", "b"), ("b", "a")]
    assert [pair.weight for pair in found.cases[0].pairs] == pytest.approx([2 * belief, 1 - belief])


def test_verdicts_are_held_against_the_majority_of_people():
    people = [judgment("a>b", judge="k"), *map(judgment, ("a>b", "b>a", "a>c", "c>a", "b=c"))]
    first = case("p", "abcd", (*people, *llm("b<a", "b>a", "a>c", "c>b", "c>d", "a=b")))
    without = case("q", "ab", llm("a>b"))
    unjudged = without, scores_of(without, 0, 1)
    (batch,) = with_margins([unjudged, (first, scores_of(first, 4.0, 3.0, 1.0, None))], SUPERVISED)
    found = compare_with_people(batch)
    # b<a is right, b>a wrong; people are split on a, c, and tied on b, c. Nobody judged c, d; a=b is not strict.
    assert found.graph.tolist() == [1, 1, 1, 1]
    assert found.margin.tolist() == [1.0, -1.0, 3.0, -2.0]
    assert found.is_right.tolist() == [True, False, False, False]
    assert found.is_tied.tolist() == [False, False, True, True]
    (batch,) = with_margins([unjudged], SUPERVISED)
    assert not len(compare_with_people(batch).graph)


RULES = st.builds(
    SupervisionRule,
    policy=st.sampled_from(["agree", "cycles", "weight"]),
    min_margin=st.sampled_from([0.0, 1.0]),
    only=st.sampled_from([Only(kind=("llm",)), Only(), Only(judge=("ann",))]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(cases(repeats=False), min_size=1, max_size=4), RULES, st.randoms())
def test_what_comes_in_is_kept_or_dropped_and_what_is_kept_is_ranked(given_cases, rule, random):
    numbered = [
        msgspec.structs.replace(one, prompt=msgspec.structs.replace(one.prompt, id=str(place)))
        for place, one in enumerate(given_cases)
    ]
    lines = [scores_of(one, *(random.choice([None, 0.0, 1.0, 2.0]) for _ in one.responses)) for one in numbered]
    (batch,) = with_margins(zip(numbered, lines, strict=True), rule.only)
    found = supervise_cases(batch, rule)
    for before, after in zip(numbered, found.cases, strict=True):
        dropped = Counter(ends(row) for row in found.dropped if row.prompt == before.prompt.id)
        assert Counter(map(ends, before.judgments)) == Counter(map(ends, after.judgments)) + dropped
        assert set(map(repr, after.judgments)) <= set(map(repr, before.judgments))
        kept = list(compress(after.judgments, rule.only.admits(after.judgments)))
        assert len(before.judgments) - len(after.judgments) <= sum(rule.only.admits(before.judgments))
        if rule.policy != "weight" and any(rule.only.admits(before.judgments)):
            check_ranked(after, kept)
    assert len(found.dropped) == int((found.rule != 0).sum())


def ends(row):
    return (row.left, row.right, row.verdict, row.judge, row.kind, row.id)


def check_ranked(after, kept):
    tier = {name: place for place, names in enumerate(after.ranking or ()) for name in names}
    graph = networkx.DiGraph()
    for own in kept:
        better, worse = (own.left, own.right) if own.verdict == "left" else (own.right, own.left)
        if own.verdict == "tie":
            assert tier[own.left] == tier[own.right]
        else:
            assert tier[better] < tier[worse]
            graph.add_edge(better, worse)
    assert networkx.is_directed_acyclic_graph(graph)


def test_margins_of_many_cases_take_each_its_own_scores():
    one, other = case("p", "ab", llm("a>b")), case("q", "ab", llm("b>a", "a>b"))
    (found,) = with_margins([(one, scores_of(one, 5.0, 1.0)), (other, scores_of(other, 1.0, 2.5))], SUPERVISED)
    np.testing.assert_array_equal(found.margin, [4.0, 1.5, -1.5])


def test_a_persons_own_verdict_is_no_test_of_it():
    one = case("p", "ab", [*llm("b>a"), judgment("a>b", judge="ann"), judgment("a>b", judge="bob")])
    scored = [(one, scores_of(one, 1.0, 0.0))]
    (everyone,) = with_margins(scored, Only())
    agreement = compare_with_people(everyone)
    assert (agreement.margin.tolist(), agreement.is_right.tolist()) == ([-1.0], [False])
    (people,) = with_margins(scored, Only(kind=("human",)))
    assert not len(compare_with_people(people).graph)


def counted(batches, rule):
    counter = SupervisionCounter(rule)
    for batch in batches:
        counter.add(batch, supervise_cases(batch, rule))
    return counter


def test_everything_is_counted_once():
    scored = judged("p", llm=("a>b", "b>a", "a=b"), human=("a>b",))
    unscored = judged("q", llm=("a>b",))
    listed = judged("r", llm=("a>b",))
    listed = msgspec.structs.replace(listed, pairs=(Pair(better="b", worse="a"),))
    nothing = judged("s", llm=())
    cases = (scored, unscored, listed, nothing)
    given = [{"a": 2.0, "b": 1.0, "c": 0.0}, {"a": None, "b": 1.0, "c": 0.0}, {"a": 2.0, "b": 1.0, "c": 0.0}] * 2
    lines = [
        Scores(prompt=one.prompt.id, language="zh", scores=own, unscored={"a": "cut"} if own["a"] is None else {})
        for one, own in zip(cases, given, strict=False)
    ]
    batches = [
        *with_margins(zip(cases[:2], lines[:2], strict=True), SUPERVISED),
        *with_margins(zip(cases[2:], lines[2:], strict=True), SUPERVISED),
    ]
    found = counted(batches, SupervisionRule())
    counts = found.counts()
    assert (counts.num_in, counts.num_used) == (5, 2)
    assert counts.dropped == {"disagrees": 1, "tie": 1, "unscored": 1}
    assert counts.noted == {
        "cases": 4,
        "cases without a supervised judgment": 1,
        "cases left without a judgment": 1,
        "judgments not supervised": 1,
        "pairs listed before, without a kept verdict": 1,
        "unscored responses": 1,
    }
    assert (found.num_strict, found.num_strict_kept, found.num_prompts, found.num_prompts_kept) == (4, 2, 3, 2)
    cut = counted(batches, SupervisionRule(policy="cycles")).counts()
    assert cut.noted["strict judgments with an unscored end"] == 1
    # a=b merges both, so that a>b and b>a are inside a tie; nothing else is in a cycle.
    assert cut.dropped == {"inside a tie": 2}


def test_a_repeated_judgment_goes_with_the_first_and_is_counted_apart():
    one = case("p", "ab", llm("a>b", "a>b", "b>a", "a<b"))
    (batch,) = with_margins([(one, scores_of(one, 3.0, 1.0))], SUPERVISED)
    found = supervise_cases(batch, SupervisionRule())
    assert shown(found.cases[0]) == ["a>b", "a>b"]
    assert [row.rule for row in found.dropped] == ["disagrees"]
    noted = counted([batch], SupervisionRule()).counts().noted
    assert (noted["judgments that repeat an identical one"], noted.get("judgments not supervised", 0)) == (2, 0)
    (weighed,) = supervise_cases(batch, SupervisionRule(policy="weight")).cases[0].pairs[:1]
    assert weighed.weight == pytest.approx(1 / (1 + math.exp(-2)))
