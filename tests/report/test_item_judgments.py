import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation_summaries import scored_item
from steelyard.core.types import Pair, Scores
from steelyard.io.terminal_text import plain, width_of
from steelyard.ranking.judgment_table import (
    Only,
)
from steelyard.report.case_analysis import analyze_case
from steelyard.report.item_judgments import (
    MOST_ARROWS,
    CaseScores,
    cycle_lines,
    draw_graph,
    judgment_lines,
    legend,
    pair_lines,
    score_lines,
    tier_lines,
)
from strategies import case, cases, judgment


def texts(lines):
    return [plain(line) for line in lines]


def analysis(*judgments, **fields):
    return analyze_case(case(responses="abcd", judgments=judgments, **fields))


def test_the_graph_names_what_could_not_be_read():
    one = analysis("a>b", judgment("c?d", judge="m\n", kind="llm", reason="refused"), judgment("a?b"))
    assert texts(judgment_lines(one, 60))[-2:] == ["C ? D  m␊ (llm): refused", "A ? B  j (human): no reason given"]


def test_judgments_that_do_not_count_are_counted():
    one = analyze_case(case(judgments=["a>b", judgment("b>a", kind="llm")]), only=Only(kind=("human",)))
    assert texts(judgment_lines(one, 60))[-1] == "1 other judgment not counted by this rule"


def test_no_judgments_are_said_to_be_none():
    assert texts(judgment_lines(analysis(), 60)) == ["", "JUDGMENTS", "  none"]


def test_a_cycle_shows_its_circle_and_its_judgments():
    one = analysis("a>b", judgment("c<b", judge="ann", id="j1"), "c>a", "a>d")
    assert texts(cycle_lines(one, 60)) == [
        "",
        "CYCLE  A B C: they share a tier",
        "  shortest: A > B > C > A",
        "  in it: 3 judgments",
        "    A > B  j (human)",
        "    B > C  ann (human), judgment j1",
        "    C > A  j (human)",
    ]


def test_several_cycles_are_numbered():
    found = texts(cycle_lines(analysis("a>b", "b>a", "c>d", "d>c"), 60))
    assert [line for line in found if line.startswith("CYCLE")] == [
        "CYCLE 1  A B: they share a tier",
        "CYCLE 2  C D: they share a tier",
    ]


def test_the_outvoted_are_told():
    one = analyze_case(case(judgments=["a>b", judgment("a>b", judge="k"), "b>a"]), aggregate="majority")
    assert texts(cycle_lines(one, 80)) == ["1 judgment in conflict without a cycle: outvoted, or tied by the vote"]


@pytest.mark.parametrize(
    ("judgments", "ranking", "told"),
    [
        ((), None, ["", "TIERS", "  none: no judgment, no ranking"]),
        (
            (),
            (("b",), ("a",)),
            ["", "TIERS  the ranking given by the file", "  1  B", "  2  A", "  -  C D  (not ranked)"],
        ),
        (
            ("a>b", "c=d", "b>c"),
            (("a",), ("b",), ("d", "c")),
            ["", "TIERS  from the judgments, R", "  1  A", "  2  B", "  3  C D  (not ordered)",
             "  the file's ranking is the same"],
        ),
        (
            ("a>b",),
            (("b",), ("a",)),
            ["", "TIERS  from the judgments, R", "  1  A", "  2  B", "  -  C D  (not ranked)",
             "  the file has a different ranking:", "  1  B", "  2  A", "  -  C D  (not ranked)"],
        ),
    ],
)  # fmt: skip
def test_tiers_come_from_the_judgments_and_are_held_against_the_file(judgments, ranking, told):
    assert texts(tier_lines(analysis(*judgments, ranking=ranking), 60, rule="R")) == told


def test_without_a_ranking_in_the_file_the_verb_that_makes_one_is_named():
    assert texts(tier_lines(analysis("a>b"), 60, rule="R"))[-1] == "  the file has no ranking: see steelyard resolve"


def test_listed_pairs_have_their_weight_and_margin():
    one = analysis(pairs=(Pair(better="a", worse="b", weight=0.0, margin=1.5), Pair(better="c", worse="a")))
    assert texts(pair_lines(one, 60)) == [
        "", "PAIRS  as the file lists them", "  A > B · weight 0 · margin 1.5", "  C > A",
    ]  # fmt: skip
    assert pair_lines(analysis(), 60) == []


def test_scores_go_from_the_highest_and_mark_what_stands_above_better_ones():
    one = analysis(ranking=(("a",), ("b", "c"), ("d",)))
    scores = Scores(prompt="p", scores={"a": 1.0, "b": 2.0, "c": 1.0, "d": None}, unscored={"d": "cut"})
    outcome = scored_item("p", num_pairs=3, num_correct=1, num_tied=1, exact_match=False)
    assert texts(score_lines(one, CaseScores("s.jsonl", scores, outcome), 40)) == [
        "",
        "SCORES  s.jsonl",
        "  B  tier 2      2.0000  " + "█" * 12 + " !",
        "  A  tier 1      1.0000",
        "  C  tier 2      1.0000   !",
        "  D  tier 3  no score: cut",
        "  ! not below an answer of a better tier",
        "  1 of 3 pairs right · 1 tied",
        "  no exact match",
    ]


@pytest.mark.parametrize("order", ["abcd", "badc"])
def test_a_tie_with_a_better_one_is_marked_whatever_the_order_of_the_file(order):
    given = {"b": 1.0, "a": 1.0, "c": 0.0, "d": -1.0}
    scores = Scores(prompt="p", scores={name: given[name] for name in order})
    one = analysis(ranking=(("a",), ("b",), ("c",), ("d",)))
    marked = [line for line in texts(score_lines(one, CaseScores("s", scores), 60)) if line.endswith("!")]
    assert len(marked) == 1
    assert marked[0].startswith("  B")


def drawn(one, width):
    return [plain(line) for line in draw_graph(analyze_case(one), width)]


def test_columns_stand_by_tier_and_arrows_by_column():
    one = case(responses="abcd", judgments=["d>a", judgment("d>a", kind="llm"), "a>b", "b>a", "d=c", "c?b"])
    assert drawn(one, 60) == [
        "tier 1    1    2    2",
        "     C    D    A    B",
        "     ╞════╡    │    │  1 human",
        "     ├╌╌╌╌┼╌╌╌╌┼╌╌╌╌┤  1 human",
        "     │    ├───>│    │  1 human, 1 llm",
        "     │    │    ├───>│  1 human !",
        "     │    │    │<───┤  1 human !",
    ]


def test_columns_draw_together_before_they_give_way_to_a_list():
    one = case(responses="abc", judgments=["a>b", "c>a"])
    assert drawn(one, 40)[2:] == ["     ├───>│    │  1 human", "     │    ├───>│  1 human"]
    assert drawn(one, 21)[2:] == ["     ├─>│  │  1 human", "     │  ├─>│  1 human"]
    assert drawn(one, 20) == ["C > A  1 human", "A > B  1 human"]


def test_an_arrow_over_other_columns_crosses_them():
    assert drawn(case(responses="abc", judgments=["a>b", "b>c", "c>a"]), 25)[2:] == [
        "     ├──>│   │  1 human !",
        "     │<──┼───┤  1 human !",
        "     │   ├──>│  1 human !",
    ]


def test_without_judgments_there_is_nothing_to_draw():
    assert drawn(case(), 40) == []
    assert legend(analyze_case(case()), 40) == []


def test_responses_that_nobody_judged_have_no_column():
    assert drawn(case(responses="abc", judgments=["c>a"]), 40)[:2] == ["tier 1    2", "     C    A"]


def test_more_arrows_than_a_person_reads_are_counted():
    names = "abcdefghijklmnopq"
    pairs = [f"{one}>{other}" for place, one in enumerate(names) for other in names[place + 1 :]]
    lines = drawn(case(responses=names, judgments=pairs), 200)
    assert len(lines) == MOST_ARROWS + 3
    assert lines[-1] == f"… {len(pairs) - MOST_ARROWS} more, all of them in the JSON record"


@pytest.mark.parametrize(
    ("judgments", "told"),
    [
        (["a>b"], "├──> beats"),
        (["a=b", "b?c"], "╞══╡ tie · ├╌╌┤ unparsed"),
        (["a>b", "b>a"], "├──> beats · ! in conflict: the tiers do not keep it"),
    ],
)
def test_the_legend_explains_what_is_there(judgments, told):
    assert [plain(line) for line in legend(analyze_case(case(judgments=judgments)), 80)] == [told]


@given(cases(max_responses=8), st.integers(30, 100))
def test_every_outcome_of_a_pair_has_a_line_that_fits(one, width):
    analysis = analyze_case(one)
    lines = draw_graph(analysis, width)
    assert all(width_of(plain(line)) <= width for line in lines)
    marked = [line for line in lines if plain(line).endswith("!")]
    assert len(marked) == len({(a.first, a.second) for a in analysis.arrows if a.is_conflicting})
    columns = [plain(line) for line in lines if plain(line).startswith("tier ")]
    assert len(lines) == len(analysis.arrows) + 2 * len(columns)


def test_repeated_judgments_are_counted_in_a_line_of_their_own():
    one = case(judgments=["a>b", "a>b", "b<a", judgment("b>a", kind="llm")])
    lines = texts(judgment_lines(analyze_case(one, only=Only(kind=("human",))), 80))
    assert "2 judgments repeat an identical one: each counts once" in lines
    assert "1 other judgment not counted by this rule" in lines
    assert not any("identical" in line for line in texts(judgment_lines(analyze_case(case(judgments=["a>b"])), 80)))
