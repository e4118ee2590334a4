import itertools

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.ranking.judgment_table import Edges
from steelyard.ranking.tiers import ranking_of, tiers_of


def tiers(edges, size):
    """Our tiers of one graph from (better, worse) pairs."""
    better, worse = np.array(edges, np.int64).reshape(-1, 2).T
    return tiers_of(Edges(np.zeros(len(better), np.int64), better, worse), np.array([size])).tolist()[0]


def reference(edges, size):
    """The same by networkx: components condensed, then generations."""
    graph = networkx.DiGraph(edges)
    condensed = networkx.condensation(graph)
    found = [-1] * size
    for tier, components in enumerate(networkx.topological_generations(condensed)):
        for component in components:
            for response in condensed.nodes[component]["members"]:
                found[response] = tier
    return found


def random_edges(draws, size):
    """Strict edges, ties, contradictions and repeats; sometimes nothing."""
    edges = []
    for _ in range(int(draws.integers(0, 3 * size))):
        better, worse = (int(one) for one in draws.choice(size, 2, replace=False))
        edges.append((better, worse))
        kind = draws.random()
        if kind < 0.1:
            edges.append((worse, better))
        elif kind < 0.2:
            edges.append((better, worse))
    return edges


@pytest.mark.parametrize("low_high_number", [(2, 12, 10_000), (13, 40, 150), (60, 70, 40), (100, 130, 3)])
def test_random_graphs_agree_with_networkx(low_high_number):
    """All graphs are worked out in one call: many sizes, every width of mask, mixed."""
    low, high, number = low_high_number
    draws = np.random.default_rng(20240)
    sizes = draws.integers(low, high + 1, number)
    graphs = [random_edges(draws, int(size)) for size in sizes]
    rows = [(index, *edge) for index, edges in enumerate(graphs) for edge in edges]
    shuffled = np.array(rows, np.int64)[draws.permutation(len(rows))]
    found = tiers_of(Edges(*shuffled.T), sizes)
    for edges, size, row in zip(graphs, sizes.tolist(), found.tolist(), strict=True):
        assert row[:size] == reference(edges, size)
        assert set(row[size:]) <= {-1}


@pytest.mark.parametrize("size", [2, 3])
def test_every_small_graph_agrees_with_networkx(size):
    possible = list(itertools.permutations(range(size), 2))
    for number in range(len(possible) + 1):
        for edges in itertools.combinations(possible, number):
            assert tiers(edges, size) == reference(edges, size)


def test_every_graph_of_four_agrees_with_networkx():
    possible = list(itertools.permutations(range(4), 2))
    graphs = [edges for number in range(13) for edges in itertools.combinations(possible, number)]
    rows = np.array([(index, *edge) for index, edges in enumerate(graphs) for edge in edges])
    found = tiers_of(Edges(*rows.T), np.full(len(graphs), 4)).tolist()
    assert len(graphs) == 2**12
    assert found == [reference(edges, 4) for edges in graphs]


def test_by_hand():
    assert tiers([(0, 1), (1, 2)], 3) == [0, 1, 2]
    assert tiers([(0, 1), (1, 2), (2, 0)], 3) == [0, 0, 0]
    assert tiers([(0, 1), (2, 1)], 4) == [0, 1, 0, -1]
    # 1 and 2 are one cycle, 3 lies below it, 0 above; 4 is beaten by 0 alone
    assert tiers([(0, 1), (1, 2), (2, 1), (2, 3), (0, 4)], 5) == [0, 1, 1, 2, 1]


def test_a_graph_without_edges_ranks_nobody():
    assert tiers([], 3) == [-1, -1, -1]
    nothing = np.zeros(0, np.int64)
    assert tiers_of(Edges(nothing, nothing, nothing), nothing).shape == (0, 0)
    assert tiers_of(Edges(nothing, nothing, nothing), np.array([0, 2])).tolist() == [[-1, -1], [-1, -1]]


@pytest.mark.parametrize("size", [8, 9, 16, 17, 32, 33, 64, 65, 100])
def test_the_longest_chain_and_the_longest_cycle_of_every_width(size):
    chain = [(index, index + 1) for index in range(size - 1)]
    assert tiers(chain, size) == list(range(size))
    assert tiers([*chain, (size - 1, 0)], size) == [0] * size


edges_and_size = st.integers(2, 10).flatmap(
    lambda size: st.tuples(
        st.lists(
            st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(lambda edge: edge[0] != edge[1]),
            max_size=30,
        ),
        st.just(size),
    )
)


@given(edges_and_size)
def test_tiers_made_into_verdicts_give_the_same_tiers(drawn):
    edges, size = drawn
    once = tiers(edges, size)
    ranked = [index for index in range(size) if once[index] >= 0]
    across = [(a, b) for a, b in itertools.permutations(ranked, 2) if once[a] < once[b]]
    ties = [(a, b) for a, b in itertools.permutations(ranked, 2) if once[a] == once[b]]
    assert tiers(across + ties, size) == once


@given(edges_and_size, st.randoms())
def test_the_order_of_the_judgments_does_not_matter(drawn, chance):
    edges, size = drawn
    shuffled = [*edges, *edges[:3]]
    chance.shuffle(shuffled)
    assert tiers(shuffled, size) == tiers(edges, size)


@given(edges_and_size, st.randoms())
def test_other_names_of_the_responses_give_the_same_tiers(drawn, chance):
    edges, size = drawn
    names = list(range(size))
    chance.shuffle(names)
    renamed = tiers([(names[better], names[worse]) for better, worse in edges], size)
    assert [renamed[names[index]] for index in range(size)] == tiers(edges, size)


@given(edges_and_size)
def test_an_edge_outside_every_cycle_leads_down(drawn):
    edges, size = drawn
    found = tiers(edges, size)
    components = networkx.strongly_connected_components(networkx.DiGraph(edges))
    component = {response: index for index, members in enumerate(components) for response in members}
    for better, worse in edges:
        if component[better] == component[worse]:
            assert found[better] == found[worse]
        else:
            assert found[better] < found[worse]


def test_ids_in_a_tier_keep_the_order_of_the_responses():
    assert ranking_of(("c", "א", "b", "乙"), [1, 0, 1, -1]) == (("א",), ("c", "b"))
    assert ranking_of(("a", "b"), [-1, -1]) is None
    assert ranking_of(("a", "b"), [0, 0, -1, -1]) == (("a", "b"),)
