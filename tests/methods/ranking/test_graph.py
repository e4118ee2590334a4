import numpy as np
import pytest

from steelyard.methods.ranking.graph import LEFT, NONE, RIGHT, TIE, Verdicts, edges_of, majority


def verdicts(*rows):
    """Rows of (graph, left, right, verdict)."""
    return Verdicts(*np.array(rows, np.int64).reshape(-1, 4).T)


def as_set(edges):
    return set(zip(*(column.tolist() for column in edges), strict=True))


def test_a_tie_is_an_edge_both_ways_and_none_is_no_edge():
    given = verdicts((0, 0, 1, LEFT), (0, 1, 2, RIGHT), (1, 0, 1, TIE), (1, 1, 2, NONE))
    assert as_set(edges_of(given)) == {(0, 0, 1), (0, 2, 1), (1, 0, 1), (1, 1, 0)}


def test_better_and_worse_follow_the_verdict():
    given = verdicts((0, 3, 1, LEFT), (0, 3, 1, RIGHT), (0, 3, 1, TIE))
    assert given.better[:2].tolist() == [3, 1]
    assert given.worse[:2].tolist() == [1, 3]
    assert given.is_strict.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ("a", {(0, 0, 1)}),
        ("aab", {(0, 0, 1)}),
        ("abb", {(0, 1, 0)}),
        ("ab", {(0, 0, 1), (0, 1, 0)}),
        ("a=", {(0, 0, 1), (0, 1, 0)}),
        ("aa=", {(0, 0, 1)}),
        ("aabb=", {(0, 0, 1), (0, 1, 0)}),
        ("aab==", {(0, 0, 1), (0, 1, 0)}),
        ("a???", {(0, 0, 1)}),
        ("??", set()),
    ],
)
@pytest.mark.parametrize("flipped", [False, True])
def test_the_majority_needs_strictly_most_votes(votes, expected, *, flipped):
    code = {"a": LEFT, "b": RIGHT, "=": TIE, "?": NONE}
    mirrored = {LEFT: RIGHT, RIGHT: LEFT}
    rows = []
    for index, vote in enumerate(votes):
        is_flipped = flipped and index % 2 == 0  # the same vote, given with the responses the other way round
        verdict = mirrored.get(code[vote], code[vote]) if is_flipped else code[vote]
        rows.append((0, 1, 0, verdict) if is_flipped else (0, 0, 1, verdict))
    assert as_set(edges_of(verdicts(*rows), "majority")) == expected


def test_each_pair_of_each_graph_votes_by_itself():
    given = verdicts(
        (0, 0, 1, LEFT), (1, 0, 1, RIGHT), (1, 0, 1, RIGHT), (1, 1, 4, TIE), (0, 4, 0, LEFT), (1, 0, 1, LEFT)
    )
    assert as_set(edges_of(given, "majority")) == {(0, 0, 1), (0, 4, 0), (1, 1, 0), (1, 1, 4), (1, 4, 1)}


def test_nothing_in_nothing_out():
    for aggregate in ("none", "majority"):
        assert as_set(edges_of(verdicts(), aggregate)) == set()
    assert len(majority(verdicts()).graph) == 0
