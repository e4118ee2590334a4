from collections import defaultdict
from itertools import combinations

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_measures import as_written
from resolved_cases import resolve_cases
from steelyard.ranking.conflicts import NO_SUMS, add_sums, conflict_tables
from strategies import case, cases, judgment


def reported(given_cases, **choices):
    return as_written(conflict_tables(resolve_cases(given_cases, **choices)[1].sums))


def shown(ratios, *names):
    return tuple(ratios[name] for name in names)


def test_by_hand():
    circle = case(
        id="circle", responses="abcd", judgments=["a>b", "b>c", "c>a", "a>d", "b=d", "c?d"], category=("数学",)
    )
    # a>d and b=d pull d into the circle: a > d, d = b > c > a. Four strict judgments, all in it; one tie.
    chain = case(id="chain", responses="abcde", judgments=["a>b", "b<c", "a>c"], language="zh")
    # a over c over b: three pairs of ten are ordered
    found = reported([circle, chain, case(id="empty")])
    overall = found["overall"]
    assert shown(overall, "num_judgments", "num_strict", "num_conflicting") == (8, 7, 4)
    assert shown(overall, "num_ties", "num_none", "num_prompts", "num_pairs") == (1, 1, 2, 6 + 10)
    assert overall["ratio"] == 4 / 8
    assert overall["ratio_of_strict"] == 4 / 7
    assert overall["ratio_mean_per_prompt"] == (4 / 5 + 0) / 2
    assert overall["share_of_prompts"] == 1 / 2
    assert overall["share_of_pairs_ordered"] == 3 / 16
    assert list(found["by_category"]) == ["uncategorised", "数学"]
    assert found["by_category"]["数学"]["ratio"] == 4 / 5
    assert found["by_category"]["uncategorised"]["ratio"] == 0
    assert list(found["by_language"]) == ["unspecified", "zh"]
    assert found["by_language"]["zh"]["share_of_pairs_ordered"] == 3 / 10
    assert found["by_subset"] == {}


def test_conflicts_by_subset_leave_out_cases_without_one():
    circle = ["a>b", "b>c", "c>a"]
    found = reported(
        [
            case(id="open", judgments=circle, subset="open_prompt"),
            case(id="human", judgments=["a>b", *circle[1:2]], subset="human_instruction"),
            case(id="none", judgments=circle),
        ]
    )
    ratios = {name: (own["ratio"], own["num_judgments"]) for name, own in found["by_subset"].items()}
    assert ratios == {"human_instruction": (0.0, 2), "open_prompt": (1.0, 3)}


def test_judges_and_kinds_are_measured_on_their_own_graphs():
    ann = [judgment("a>b", judge="ann"), judgment("b>c", judge="ann")]
    bob = [judgment("c>a", judge="bob"), judgment("a>c", judge="bob", kind="llm")]
    found = reported([case(responses="abc", judgments=[*ann, *bob])])
    assert found["overall"]["ratio"] == 1.0
    assert found["by_judge"]["ann"]["ratio"] == 0.0
    assert found["by_judge"]["ann"]["share_of_pairs_ordered"] == 1.0
    assert found["by_judge"]["bob"]["ratio"] == 1.0
    assert found["by_judge"]["bob"]["share_of_pairs_ordered"] == 0.0
    assert found["by_kind"]["human"]["ratio"] == 1.0  # a > b > c > a
    assert found["by_kind"]["llm"]["ratio"] == 0.0
    assert found["by_kind"]["llm"]["share_of_pairs_ordered"] == 1 / 3


def test_a_judge_who_only_failed_is_listed_with_null_ratios():
    found = reported([case(responses="ab", judgments=[judgment("a?b", judge="m", kind="llm")])])
    alone = found["by_judge"]["m"]
    assert shown(alone, "num_judgments", "num_none", "num_prompts", "num_pairs") == (0, 1, 0, 0)
    assert shown(alone, "ratio", "ratio_of_strict", "ratio_mean_per_prompt", "share_of_prompts") == (None,) * 4
    assert alone["share_of_pairs_ordered"] is None


def test_ties_alone_conflict_with_nothing():
    overall = reported([case(responses="abc", judgments=["a=b", "b=c"])])["overall"]
    assert shown(overall, "ratio", "ratio_of_strict", "share_of_pairs_ordered") == (0.0, None, 0.0)


def test_under_a_majority_an_outvoted_judgment_conflicts_with_the_ranking():
    outvoted = ["a>b", judgment("a>b", judge="k"), "b>a"]  # a over b stays: one of three is not kept
    split = ["c>d", "d>c"]  # no majority is a tie: neither is kept
    found = reported([case(responses="abcd", judgments=[*outvoted, *split])], aggregate="majority")
    assert shown(found["overall"], "num_conflicting", "num_judgments") == (3, 5)
    assert reported([case(responses="abcd", judgments=[*outvoted, *split])])["overall"]["num_conflicting"] == 5


def test_nothing_is_reported_of_nothing():
    found = as_written(conflict_tables(NO_SUMS))
    assert found["overall"]["ratio"] is None
    assert found["overall"]["num_judgments"] == 0
    assert found["by_judge"] == {}
    assert reported([case()]) == found


def by_networkx(given_cases, group):
    """Plain loops: the counts of each group, every group on graphs of its own judgments."""
    found = defaultdict(lambda: defaultdict(int))
    for one in given_cases:
        owned = defaultdict(list)
        for verdict in one.judgments:
            owned[group(one, verdict)].append(verdict)
        for name, judgments in owned.items():
            graph = networkx.DiGraph()
            for verdict in judgments:
                if verdict.verdict in ("left", "tie"):
                    graph.add_edge(verdict.left, verdict.right)
                if verdict.verdict in ("right", "tie"):
                    graph.add_edge(verdict.right, verdict.left)
            condensed = networkx.condensation(graph)
            component = condensed.graph["mapping"]
            tier = {
                member: index
                for index, level in enumerate(networkx.topological_generations(condensed))
                for node in level
                for member in condensed.nodes[node]["members"]
            }
            strict = [one for one in judgments if one.verdict in ("left", "right")]
            judged = [one for one in judgments if one.verdict != "none"]
            conflicts = sum(component[verdict.left] == component[verdict.right] for verdict in strict)
            sums = found[name]
            sums["num_judgments"] += len(judged)
            sums["num_strict"] += len(strict)
            sums["num_conflicting"] += conflicts
            sums["num_none"] += len(judgments) - len(judged)
            sums["num_prompts"] += bool(judged)
            sums["in_conflict"] += conflicts > 0
            sums["num_pairs"] += bool(judged) * len(one.responses) * (len(one.responses) - 1) // 2
            sums["ordered"] += sum(tier[a] != tier[b] for a, b in combinations(tier, 2))
            sums["ratios"] += conflicts / len(judged) if judged else 0
    return found


@settings(deadline=None)
@given(st.lists(cases(max_responses=6, max_judgments=15, repeats=False), max_size=4))
def test_the_report_agrees_with_networkx_and_plain_loops(drawn):
    found = reported(drawn)
    groups = {
        "overall": lambda one, verdict: "all",
        "by_judge": lambda one, verdict: verdict.judge,
        "by_kind": lambda one, verdict: verdict.kind,
    }
    for table, group in groups.items():
        ours = {"all": found["overall"]} if table == "overall" else found[table]
        for name, sums in by_networkx(drawn, group).items():
            for count in ("num_judgments", "num_strict", "num_conflicting", "num_none", "num_prompts", "num_pairs"):
                assert ours[name][count] == sums[count]
            if sums["num_prompts"]:
                assert ours[name]["share_of_prompts"] == sums["in_conflict"] / sums["num_prompts"]
                assert ours[name]["share_of_pairs_ordered"] == sums["ordered"] / sums["num_pairs"]
                assert ours[name]["ratio_mean_per_prompt"] == pytest.approx(sums["ratios"] / sums["num_prompts"])


@settings(deadline=None)
@given(st.lists(cases(max_judgments=15), min_size=2, max_size=4), st.sampled_from(["none", "majority"]))
def test_the_sums_of_two_halves_are_the_sums_of_the_whole(drawn, aggregate):
    first, second, whole = (resolve_cases(part, aggregate=aggregate)[1].sums for part in (drawn[:1], drawn[1:], drawn))
    together, alone = (as_written(conflict_tables(sums)) for sums in (add_sums(first, second), whole))
    for table, ratios in alone.items():
        groups = (
            [(ratios, together[table])] if table == "overall" else [(ratios[k], together[table][k]) for k in ratios]
        )
        assert table == "overall" or set(ratios) == set(together[table])
        for ours, added in groups:
            assert added == pytest.approx(ours)
