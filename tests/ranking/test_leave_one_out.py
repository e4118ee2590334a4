import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolved_cases import resolve_cases
from steelyard.ranking.judge_quality import (
    AGAINST,
    AGREES,
    UNDEFINED,
    UNORDERED,
    compare_with_ranking,
    tiers_of_others,
)
from steelyard.ranking.judgment_table import judgment_table
from steelyard.ranking.resolution import resolve_table
from strategies import case, cases, judgment


def stood(given_cases, aggregate="none"):
    evidence = judgment_table(given_cases)
    by_judge = resolve_table(evidence, aggregate).graphs.by_judge
    return compare_with_ranking(by_judge, tiers_of_others(by_judge, len(evidence.judges), aggregate)).tolist()


def by(judge, *shorts):
    return [judgment(short, judge=judge) for short in shorts]


def test_by_hand():
    # Ann is alone with c > d; what she says of a and b, bob says too, and cid the reverse: for bob, a > b (ann) and
    # b > a (cid) are a circle; for cid everyone else says a > b.
    judgments = [*by("ann", "a>b", "c>d"), *by("bob", "a>b"), *by("cid", "b>a", "a=b", "a?b")]
    found = stood([case(responses="abcd", judgments=judgments)])
    assert found == [UNORDERED, UNORDERED, UNORDERED, AGAINST, UNDEFINED, UNDEFINED]


def test_a_longer_path_of_others_speaks_too():
    judgments = [*by("ann", "a>c"), *by("bob", "a>b", "b>c")]
    # Of a and b, and b and c, ann said nothing: a > c alone does not order them.
    assert stood([case(responses="abc", judgments=judgments)]) == [AGREES, UNORDERED, UNORDERED]


def test_nobody_else_says_nothing():
    alone = [case(id="p", judgments=by("ann", "a>b")), case(id="q", judgments=by("bob", "a>b"))]
    assert stood(alone) == [UNDEFINED] * 2
    assert stood([case(judgments=by("ann", "a>b", "b>a"))]) == [UNDEFINED] * 2


def test_a_vote_of_the_others_decides():
    judgments = [*by("ann", "a>b"), *by("bob", "b>a"), *by("cid", "b>a"), *by("dot", "a>b")]
    one = [case(responses="ab", judgments=judgments)]
    assert stood(one, "none") == [UNORDERED] * 4
    # For ann the others vote b, b, a; for bob a, b, a.
    assert stood(one, "majority") == [AGAINST] * 4


@pytest.mark.parametrize("aggregate", ["none", "majority"])
@settings(deadline=None, max_examples=60)
@given(st.lists(cases(max_responses=5, max_judgments=12, repeats=False), min_size=1, max_size=3))
def test_the_others_ranking_is_that_of_the_file_without_the_judge(aggregate, given_cases):
    """Taken judge by judge and case by case from the cases themselves, with that judge's judgments left out."""
    expected = []
    for one in given_cases:
        for own in one.judgments:
            rest = tuple(other for other in one.judgments if other.judge != own.judge)
            (without,), _ = resolve_cases([type(one)(prompt=one.prompt, responses=one.responses, judgments=rest)],
                                          aggregate=aggregate)  # fmt: skip
            tier = {name: index for index, names in enumerate(without.ranking or ()) for name in names}
            if own.verdict not in ("left", "right") or not tier:
                expected.append(UNDEFINED)
                continue
            better, worse = (own.left, own.right) if own.verdict == "left" else (own.right, own.left)
            if better not in tier or worse not in tier or tier[better] == tier[worse]:
                expected.append(UNORDERED)
            else:
                expected.append(AGREES if tier[better] < tier[worse] else AGAINST)
    assert stood(given_cases, aggregate) == expected


def test_standing_in_the_full_ranking():
    evidence = judgment_table([case(responses="abc", judgments=["a>b", "b>a", "a>c", "a=c"])])
    graphs = resolve_table(evidence).graphs
    # a, b and c are in one circle by the tie: nothing is ordered.
    assert compare_with_ranking(graphs.full, graphs.full.tiers).tolist() == [UNORDERED] * 3 + [UNDEFINED]
    assert np.array_equal(graphs.full.is_kept, [False] * 4)
