import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.ranking.judgment_table import Only
from steelyard.report.case_analysis import Arrow, analyze_case, graph_edges, num_conflicting, response_label
from strategies import case, cases, judgment, with_repeats


def graph_of(one):
    """The judgments as networkx sees them: a tie is an edge both ways, ``none`` is no edge."""
    graph = networkx.DiGraph()
    for own in one.judgments:
        if own.verdict in ("left", "tie"):
            graph.add_edge(own.left, own.right)
        if own.verdict in ("right", "tie"):
            graph.add_edge(own.right, own.left)
    return graph


def test_labels_go_on_after_z():
    assert [response_label(number) for number in (0, 25, 26, 27, 51, 52, 701, 702)] == [
        "A", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA",
    ]  # fmt: skip


def test_arrows_count_kinds_by_pair_and_outcome():
    one = case(
        judgments=[
            "a>b",
            judgment("b<a", kind="llm"),
            "b>a",
            "c=d",
            judgment("d=c", kind="llm"),
            "a?c",
            judgment("c?a", id="2"),
        ]
    )
    assert analyze_case(one).arrows == (
        Arrow("a", "b", ">", {"human": 1, "llm": 1}, True),
        Arrow("b", "a", ">", {"human": 1}, True),
        Arrow("c", "d", "=", {"human": 1, "llm": 1}, False),
        Arrow("a", "c", "?", {"human": 2}, False),
    )


def test_a_circle_is_found_with_its_judgments_and_its_tie():
    one = case(judgments=["a>b", "b>c", "c=d", "d>b", "d>e"])
    analysis = analyze_case(one)
    (cycle,) = analysis.cycles
    assert cycle.responses == ("b", "c", "d")
    assert cycle.circle == ("b", "c", "d", "b")
    assert cycle.signs == (">", "=", ">")
    assert cycle.judgments == (1, 3)
    assert analysis.conflicting == (False, True, False, True, False)
    assert analysis.tiers == (("a",), ("b", "c", "d"), ("e",))
    assert analysis.num_conflicting == 2
    assert [analysis.tier_of(name) for name in "ace"] == [1, 2, 3]


def test_a_contradicted_pair_is_a_circle_of_two():
    (cycle,) = analyze_case(case(judgments=["a>b", "b>a", "c>d"])).cycles
    assert (cycle.circle, cycle.signs, cycle.judgments) == (("a", "b", "a"), (">", ">"), (0, 1))


def test_ties_alone_contradict_nothing():
    analysis = analyze_case(case(judgments=["a=b", "b=c", "c=a"]))
    assert analysis.cycles == ()
    assert analysis.tiers == (("a", "b", "c"),)


def test_only_admitted_judgments_count():
    one = case(judgments=["a>b", judgment("b>a", kind="llm")])
    analysis = analyze_case(one, only=Only(kind=("human",)))
    assert analysis.admitted == (True, False)
    assert analysis.conflicting == (False, False)
    assert analysis.tiers == (("a",), ("b",))
    assert len(analysis.arrows) == 1


def test_under_a_majority_the_outvoted_conflict_without_a_cycle():
    analysis = analyze_case(case(judgments=["a>b", judgment("a>b", judge="k"), "b>a"]), aggregate="majority")
    assert analysis.tiers == (("a",), ("b",))
    assert analysis.conflicting == (False, False, True)
    assert analysis.cycles == ()


def test_under_a_majority_a_circle_of_votes_is_a_cycle():
    (cycle,) = analyze_case(
        case(judgments=["a>b", judgment("a>b", judge="k"), "b>a", "b>c", "c>a"]), aggregate="majority"
    ).cycles
    assert cycle.circle == ("a", "b", "c", "a")
    assert cycle.judgments == (0, 1, 2, 3, 4)


@pytest.mark.parametrize(("judgments", "tiers"), [((), None), (("a?b",), None)])
def test_without_evidence_the_given_ranking_counts_only_where_nothing_was_judged(judgments, tiers):
    analysis = analyze_case(case(judgments=judgments, ranking=(("b",), ("a",))))
    assert analysis.tiers is tiers
    assert analysis.tier_of("a") == 2
    assert analysis.tier_of("c") is None


@given(cases(max_responses=7, repeats=False))
def test_cycles_are_the_components_of_the_graph_that_hold_a_strict_judgment(one):
    analysis, graph = analyze_case(one), graph_of(one)
    components = [set(found) for found in networkx.strongly_connected_components(graph)]
    strict = [own for own in one.judgments if own.verdict in ("left", "right")]
    held = [found for found in components if any({own.left, own.right} <= found for own in strict)]
    assert sorted(map(sorted, held)) == sorted(sorted(cycle.responses) for cycle in analysis.cycles)
    for cycle in analysis.cycles:
        assert cycle.circle[0] == cycle.circle[-1]
        assert all(graph.has_edge(*step) for step in zip(cycle.circle, cycle.circle[1:], strict=False))
        assert ">" in cycle.signs
        inner = graph.subgraph(cycle.responses)
        strict_edges = [
            (own.left, own.right) if own.verdict == "left" else (own.right, own.left)
            for own in strict
            if {own.left, own.right} <= set(cycle.responses)
        ]
        shortest = min(networkx.shortest_path_length(inner, end, start) for start, end in strict_edges)
        assert len(cycle.signs) == shortest + 1
    assert sorted(index for cycle in analysis.cycles for index in cycle.judgments) == [
        index for index, bad in enumerate(analysis.conflicting) if bad
    ]


def test_judgments_on_a_pair_are_counted_whichever_way_they_were_written():
    (edge,) = graph_edges(case(judgments=["a>b", "b>a", judgment("b<a", judge="k"), "a=b", "b?a"]).judgments)
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


@given(cases(max_responses=7, max_judgments=20, repeats=False))
def test_conflicts_are_those_inside_a_strongly_connected_component(one):
    graph = networkx.DiGraph()
    for verdict in one.judgments:
        if verdict.verdict in ("left", "tie"):
            graph.add_edge(verdict.left, verdict.right)
        if verdict.verdict in ("right", "tie"):
            graph.add_edge(verdict.right, verdict.left)
    component = {name: at for at, part in enumerate(networkx.strongly_connected_components(graph)) for name in part}
    expected = sum(
        verdict.verdict in ("left", "right") and component[verdict.left] == component[verdict.right]
        for verdict in one.judgments
    )
    edges = graph_edges(one.judgments)
    assert num_conflicting(edges) == expected
    assert sum(edge.num_first + edge.num_second + edge.num_ties + edge.num_none for edge in edges) == len(one.judgments)


@settings(deadline=None)
@given(with_repeats(max_responses=5, max_judgments=15), st.sampled_from(["none", "majority"]))
def test_a_case_page_shows_repeated_judgments_once(drawn, aggregate):
    once, again = (analyze_case(one, aggregate=aggregate) for one in drawn)
    shown = ("tiers", "arrows", "cycles", "num_conflicting", "labels", "ranking")
    assert [getattr(again, name) for name in shown] == [getattr(once, name) for name in shown]
    assert again.num_repeated == len(drawn[1].judgments) - len(drawn[0].judgments)
    assert graph_edges(drawn[1].judgments) == graph_edges(drawn[0].judgments)
