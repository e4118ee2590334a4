import networkx
from hypothesis import given

from steelyard.report.graphs import graph_edges, num_conflicting
from strategies import case, cases


def test_judgments_on_a_pair_are_counted_whichever_way_they_were_written():
    (edge,) = graph_edges(case(judgments=["a>b", "b>a", "b<a", "a=b", "b?a"]).judgments)
    assert (edge.first, edge.second) == ("a", "b")
    assert (edge.num_first, edge.num_second, edge.num_ties, edge.num_none) == (2, 1, 1, 1)
    assert edge.is_in_cycle
    assert edge.num_conflicting == 3


def test_a_circle_is_in_conflict_and_what_leads_out_of_it_is_not():
    edges = graph_edges(case(judgments=["a>b", "b>c", "c>a", "c>d", "d?a"]).judgments)
    assert {(edge.first, edge.second) for edge in edges if edge.is_in_cycle} == {("a", "b"), ("b", "c"), ("c", "a")}
    assert num_conflicting(edges) == 3


def test_a_tie_alone_closes_a_cycle_without_a_strict_judgment():
    edges = graph_edges(case(judgments=["a=b"]).judgments)
    assert edges[0].is_in_cycle
    assert num_conflicting(edges) == 0


@given(cases(max_responses=7, max_judgments=20))
def test_conflicts_are_those_inside_a_strongly_connected_component(one):
    graph = networkx.DiGraph()
    for judgment in one.judgments:
        if judgment.verdict in ("left", "tie"):
            graph.add_edge(judgment.left, judgment.right)
        if judgment.verdict in ("right", "tie"):
            graph.add_edge(judgment.right, judgment.left)
    component = {name: at for at, part in enumerate(networkx.strongly_connected_components(graph)) for name in part}
    expected = sum(
        judgment.verdict in ("left", "right") and component[judgment.left] == component[judgment.right]
        for judgment in one.judgments
    )
    edges = graph_edges(one.judgments)
    assert num_conflicting(edges) == expected
    assert sum(edge.num_first + edge.num_second + edge.num_ties + edge.num_none for edge in edges) == len(one.judgments)
