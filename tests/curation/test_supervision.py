import math

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.curation.supervision import RULES, agree, closest, cut_cycles, margins_of, pair_weights
from steelyard.ranking.judgment_table import LEFT, NONE, RIGHT, TIE, Verdicts, edges_of
from steelyard.ranking.tiers import tiers_of

SIGN = {">": LEFT, "<": RIGHT, "=": TIE, "?": NONE}


def verdicts_of(*graphs):
    """Verdicts from texts such as ``"a>b b=c"``, one a graph; response a is position 0."""
    rows = [
        (number, ord(short[0]) - ord("a"), ord(short[2]) - ord("a"), SIGN[short[1]])
        for number, text in enumerate(graphs)
        for short in text.split()
    ]
    return Verdicts(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))


def names(rule):
    return [RULES[code] for code in rule.tolist()]


def margins(verdicts, *scores):
    flat = np.array([math.nan if one is None else one for graph in scores for one in graph])
    first = np.cumsum([0, *map(len, scores[:-1])])
    return margins_of(verdicts, flat, first)


def test_a_margin_is_the_preferred_score_minus_the_other():
    verdicts = verdicts_of("a>b a<b a=b a?b", "a>c b<c a>b")
    found = margins(verdicts, (1.0, -0.5), (2.0, None, 5.0))
    np.testing.assert_array_equal(found, [1.5, -1.5, np.nan, np.nan, -3.0, np.nan, np.nan])


def test_agree_keeps_what_the_model_says_too_and_names_the_rest():
    verdicts = verdicts_of("a>b a<b a>c b=c b?c c>d a>e")
    margin = margins(verdicts, (1.0, 0.8, 0.0, None, 1.0))
    assert names(agree(verdicts, margin, min_margin=0.5)) == [
        "below min_margin", "disagrees", "kept", "tie", "unparsed", "unscored", "disagrees",
    ]  # fmt: skip
    assert names(agree(verdicts, margin, min_margin=0.0))[:3] == ["kept", "disagrees", "kept"]
    assert (
        names(agree(verdicts, margin, min_margin=1.0))[2] == "kept"
    )  # at least min_margin, so min_margin itself stays
    assert names(agree(verdicts, margin, min_margin=0.5, keep_ties=True))[3:5] == ["kept", "unparsed"]


def test_closest_keeps_small_differences_either_way():
    verdicts = verdicts_of("a>b a<b a>c b=c b?c a>d d>a")
    margin = margins(verdicts, (1.0, 0.5, 3.5, None))
    assert names(closest(verdicts, margin, max_difference=0.5)) == [
        "kept", "kept", "farther apart", "tie", "unparsed", "unscored", "unscored",
    ]  # fmt: skip
    assert names(closest(verdicts, margin, max_difference=2.5))[2] == "kept"


def test_the_least_supported_pair_of_a_cycle_goes_with_its_repeats():
    verdicts = verdicts_of("a>b b>c b>c c>a c>d a?d")
    # a>b 1, b>c -3 (twice), c>a 2: b>c is least supported and closes the only cycle.
    margin = margins(verdicts, (0.0, -1.0, 2.0, 9.0))
    assert names(cut_cycles(verdicts, margin, np.array([4]))) == [
        "kept", "least supported in a cycle", "least supported in a cycle", "kept", "kept", "unparsed",
    ]  # fmt: skip


def test_both_ways_is_a_cycle_and_ties_are_merged_first():
    both = verdicts_of("a>b b>a b>a")
    assert names(cut_cycles(both, margins(both, (3.0, 1.0)), np.array([2]))) == ["kept", *[RULES[-1]] * 2]
    # a=b and b=c merge a, b, c: what is strict among them is dropped; d beats c and loses to a, which closes a cycle.
    tied = verdicts_of("a=b c=b a>c d>c a>d")
    rule = names(cut_cycles(tied, margins(tied, (1.0, 1.0, 1.0, 2.0)), np.array([4])))
    assert rule == ["kept", "kept", "inside a tie", "kept", RULES[-1]]


def test_an_unscored_pair_stands_at_margin_zero():
    verdicts = verdicts_of("a>b b>c c>a", "a>b b>c c>a")
    margin = margins(verdicts, (5.0, 2.0, None), (1.0, 2.0, None))
    # First: a>b 3, the others unknown (0), so b>c, of lower positions, goes. Second: a>b -1 goes.
    assert names(cut_cycles(verdicts, margin, np.array([3, 3]))) == [
        "kept", RULES[-1], "kept", RULES[-1], "kept", "kept",
    ]  # fmt: skip


def test_weights_are_beliefs_added_over_repeats():
    verdicts = verdicts_of("a>b a>b b>a a=b", "b>c")
    *ends, weight = pair_weights(verdicts, margins(verdicts, (2.0, 0.0), (None, 1.0, 1.0)), scale=2.0)
    belief = 1 / (1 + math.exp(-1.0))
    assert list(zip(*(column.tolist() for column in ends), strict=True)) == [
        (0, 0, 1), (0, 1, 0), (1, 1, 2),
    ]  # fmt: skip
    assert weight.tolist() == pytest.approx([2 * belief, 1 - belief, 0.5])


SIZE = 6


@st.composite
def graphs(draw):
    """Up to four graphs of six responses with repeated, contradictory, tied and unparsed verdicts, and scores."""
    number = draw(st.integers(1, 4))
    entry = st.tuples(
        st.integers(0, number - 1),
        st.permutations(range(SIZE)).map(lambda order: order[:2]),
        st.sampled_from([LEFT, LEFT, RIGHT, RIGHT, TIE, NONE]),
    )
    rows = draw(st.lists(entry, min_size=1, max_size=40))
    scores = draw(
        st.lists(
            st.one_of(st.none(), st.integers(-3, 3)), min_size=number * SIZE, max_size=number * SIZE
        )
    )  # fmt: skip
    verdicts = Verdicts(
        *(
            np.array(column, np.int64)
            for column in zip(*((graph, *pair, verdict) for graph, pair, verdict in rows), strict=True)
        )
    )
    flat = np.array([math.nan if score is None else float(score) for score in scores])
    return verdicts, margins_of(verdicts, flat, np.arange(number) * SIZE), np.full(number, SIZE)


def merged_graph(verdicts, kept):
    """The strict verdicts that are kept, between the sets of responses that ties join: networkx throughout."""
    nodes = networkx.Graph([])
    nodes.add_nodes_from((graph, place) for graph in range(int(verdicts.graph.max()) + 1) for place in range(SIZE))
    rows = list(zip(*(column.tolist() for column in verdicts), kept.tolist(), strict=True))
    nodes.add_edges_from(((g, a), (g, b)) for g, a, b, verdict, stays in rows if stays and verdict == TIE)
    home = {node: min(part) for part in networkx.connected_components(nodes) for node in part}
    found = networkx.DiGraph()
    for g, a, b, verdict, stays in rows:
        if stays and verdict in (LEFT, RIGHT):
            better, worse = (a, b) if verdict == LEFT else (b, a)
            found.add_edge(home[g, better], home[g, worse])
    return found


@settings(max_examples=60, deadline=None)
@given(graphs(), st.sampled_from([0.0, 1.0, 2.5]))
def test_what_agree_keeps_is_acyclic_and_exactly_what_it_should_be(given_graphs, min_margin):
    verdicts, margin, _ = given_graphs
    rule = agree(verdicts, margin, min_margin=min_margin)
    assert networkx.is_directed_acyclic_graph(merged_graph(verdicts, rule == 0))
    for verdict, own, code in zip(verdicts.verdict.tolist(), margin.tolist(), rule.tolist(), strict=True):
        assert (code == 0) == (verdict in (LEFT, RIGHT) and own > 0 and own >= min_margin)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_what_cutting_keeps_is_acyclic_and_the_ranking_keeps_all_of_it(given_graphs):
    verdicts, margin, num_responses = given_graphs
    kept = cut_cycles(verdicts, margin, num_responses) == 0
    assert networkx.is_directed_acyclic_graph(merged_graph(verdicts, kept))
    left = verdicts.where(kept)
    tiers = tiers_of(edges_of(left), num_responses)
    strict = left.where(left.is_strict)
    assert (tiers[strict.graph, strict.better] < tiers[strict.graph, strict.worse]).all()
    tied = left.where(left.verdict == TIE)
    assert (tiers[tied.graph, tied.left] == tiers[tied.graph, tied.right]).all()


def slowly_cut(verdicts, margin):
    """The rule once more, one pair after another, with networkx's components."""
    rows = list(zip(*(column.tolist() for column in verdicts), np.nan_to_num(margin).tolist(), strict=True))
    kept = np.array([verdict != NONE for *_, verdict, _ in rows])
    ties = merged_graph(verdicts, kept & (verdicts.verdict == TIE))
    assert not ties.edges
    nodes = networkx.Graph([((g, a), (g, b)) for g, a, b, verdict, _ in rows if verdict == TIE])
    home = {node: min(part) for part in networkx.connected_components(nodes) for node in part}
    pairs = {}
    for index, (g, a, b, verdict, own) in enumerate(rows):
        if verdict not in (LEFT, RIGHT):
            continue
        better, worse = ((g, a), (g, b)) if verdict == LEFT else ((g, b), (g, a))
        if home.get(better, better) == home.get(worse, worse):
            kept[index] = False
        else:
            pairs.setdefault((own, better, worse), []).append(index)
    while True:
        graph = networkx.DiGraph([(home.get(b, b), home.get(w, w)) for _, b, w in pairs])
        parts = [part for part in networkx.strongly_connected_components(graph) if len(part) > 1]
        if not parts:
            return kept
        inside = [key for key in pairs if home.get(key[1], key[1]) in parts[0] and home.get(key[2], key[2]) in parts[0]]
        kept[pairs.pop(min(inside))] = False


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_cutting_is_the_rule_done_one_pair_after_another(given_graphs):
    verdicts, margin, num_responses = given_graphs
    assert ((cut_cycles(verdicts, margin, num_responses) == 0) == slowly_cut(verdicts, margin)).all()


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_weights_lose_no_strict_verdict(given_graphs):
    verdicts, margin, _ = given_graphs
    graph, _, _, weight = pair_weights(verdicts, margin)
    belief = [1 / (1 + math.exp(-own)) if not math.isnan(own) else 0.5 for own in margin[verdicts.is_strict].tolist()]
    assert weight.sum() == pytest.approx(sum(belief))
    strict = verdicts.where(verdicts.is_strict)
    directed = {
        tuple(row) for row in zip(strict.graph.tolist(), strict.better.tolist(), strict.worse.tolist(), strict=True)
    }
    assert len(graph) == len(directed)
