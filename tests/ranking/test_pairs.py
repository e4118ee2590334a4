import itertools

import networkx
import pytest
from hypothesis import given, settings

from resolved_cases import resolve_cases
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Pair
from steelyard.ranking.pairs import IndexedPair, pairs_of
from strategies import case, cases

TIERS = (("a",), ("c", "b"), ("d",))


def names(one, choice=None):
    """The pairs written ``"ab"``: a better than b."""
    ids = [response.id for response in one.responses]
    return [ids[pair.better] + ids[pair.worse] for pair in pairs_of(one, choice)]


def test_every_pair_across_tiers():
    assert names(case(ranking=TIERS)) == ["ac", "ab", "ad", "cd", "bd"]
    assert names(case()) == []
    assert names(case(ranking=(("a", "b"),))) == []


def test_reachable_pairs_are_joined_by_a_path_of_judgments():
    # a > b > d and c > d: a and c are never joined, a and d are, by way of b
    one = case(responses="abcd", judgments=["a>b", "b>d", "d<c"], ranking=(("a", "c"), ("b",), ("d",)))
    assert names(one, "tiers") == ["ab", "ad", "cb", "cd", "bd"]
    assert names(one, "reachable") == ["ab", "ad", "cd", "bd"]
    assert names(one, "judged") == ["ab", "cd", "bd"]


def test_a_contradicted_pair_is_not_judged():
    one = case(responses="abc", judgments=["a>b", "a=b", "b>c", "a>c", "c?a"], ranking=(("a",), ("b",), ("c",)))
    assert names(one, "judged") == ["ac", "bc"]
    assert names(one, "reachable") == ["ab", "ac", "bc"]


def test_listed_pairs_carry_weight_and_margin():
    listed = (Pair(better="b", worse="a"), Pair(better="c", worse="d", weight=0.5, margin=2.0))
    one = case(responses="abcd", pairs=listed, ranking=TIERS)
    assert pairs_of(one) == (IndexedPair(1, 0, 1.0, 0.0), IndexedPair(2, 3, 0.5, 2.0))
    assert names(one, "tiers") == ["ac", "ab", "ad", "cd", "bd"]
    assert pairs_of(case(responses="ab", pairs=())) == ()
    zero = case(responses="ab", pairs=(Pair(better="a", worse="b", weight=0.0),))
    assert pairs_of(zero) == (IndexedPair(0, 1, 0.0, 0.0),)


@pytest.mark.parametrize(("choice", "lack"), [("listed", "lists no pairs"), ("judged", "has no judgments")])
def test_what_the_case_lacks_is_named(choice, lack):
    with pytest.raises(EvidenceError, match=lack) as caught:
        pairs_of(case(ranking=TIERS), choice)
    assert "pairs=tiers" in str(caught.value)
    with pytest.raises(EvidenceError, match="has no judgments"):
        pairs_of(case(ranking=TIERS), "reachable")


@settings(deadline=None)
@given(cases(min_judgments=1, max_responses=7))
def test_the_choices_are_nested_and_reachable_agrees_with_networkx(drawn):
    (one,), _ = resolve_cases([drawn])
    tiers, reachable, judged = (
        {(pair.better, pair.worse) for pair in pairs_of(one, choice)} for choice in ("tiers", "reachable", "judged")
    )
    assert judged <= reachable <= tiers
    position = {response.id: index for index, response in enumerate(one.responses)}
    graph = networkx.DiGraph()
    graph.add_nodes_from(position.values())
    for verdict in one.judgments:
        left, right = position[verdict.left], position[verdict.right]
        if verdict.verdict in ("left", "tie"):
            graph.add_edge(left, right)
        if verdict.verdict in ("right", "tie"):
            graph.add_edge(right, left)
    expected = {
        (better, worse)
        for better, worse in itertools.permutations(graph, 2)
        if networkx.has_path(graph, better, worse) and not networkx.has_path(graph, worse, better)
    }
    assert reachable == expected
