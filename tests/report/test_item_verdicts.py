import pytest

from steelyard.core.types import Pair, Scores
from steelyard.io.terminal_text import plain
from steelyard.ranking.judgment_table import Only
from steelyard.report.item_verdicts import (
    Scored,
    cycle_lines,
    judgment_lines,
    pair_lines,
    score_lines,
    tier_lines,
)
from steelyard.report.opened import open_case
from steelyard.report.summary_readers import Item
from strategies import case, judgment


def texts(lines):
    return [plain(line) for line in lines]


def opened(*judgments, **fields):
    return open_case(case(responses="abcd", judgments=judgments, **fields))


def test_the_graph_names_what_could_not_be_read():
    one = opened("a>b", judgment("c?d", judge="m\n", kind="llm", reason="refused"), judgment("a?b"))
    assert texts(judgment_lines(one, 60))[-2:] == ["C ? D  m␊ (llm): refused", "A ? B  j (human): no reason given"]


def test_judgments_that_do_not_count_are_counted():
    one = open_case(case(judgments=["a>b", judgment("b>a", kind="llm")]), only=Only(kind=("human",)))
    assert texts(judgment_lines(one, 60))[-1] == "1 other judgment not counted by this rule"


def test_no_judgments_are_said_to_be_none():
    assert texts(judgment_lines(opened(), 60)) == ["", "JUDGMENTS", "  none"]


def test_a_cycle_shows_its_circle_and_its_judgments():
    one = opened("a>b", judgment("c<b", judge="ann", id="j1"), "c>a", "a>d")
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
    found = texts(cycle_lines(opened("a>b", "b>a", "c>d", "d>c"), 60))
    assert [line for line in found if line.startswith("CYCLE")] == [
        "CYCLE 1  A B: they share a tier",
        "CYCLE 2  C D: they share a tier",
    ]


def test_the_outvoted_are_told():
    one = open_case(case(judgments=["a>b", "a>b", "b>a"]), aggregate="majority")
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
             "  the file's ranking is another:", "  1  B", "  2  A", "  -  C D  (not ranked)"],
        ),
    ],
)  # fmt: skip
def test_tiers_come_from_the_judgments_and_are_held_against_the_file(judgments, ranking, told):
    assert texts(tier_lines(opened(*judgments, ranking=ranking), 60, rule="R")) == told


def test_without_a_ranking_in_the_file_the_verb_that_makes_one_is_named():
    assert texts(tier_lines(opened("a>b"), 60, rule="R"))[-1] == "  the file has no ranking: see steelyard resolve"


def test_listed_pairs_have_their_weight_and_margin():
    one = opened(pairs=(Pair(better="a", worse="b", weight=0.0, margin=1.5), Pair(better="c", worse="a")))
    assert texts(pair_lines(one, 60)) == [
        "", "PAIRS  as the file lists them", "  A > B · weight 0 · margin 1.5", "  C > A",
    ]  # fmt: skip
    assert pair_lines(opened(), 60) == []


def test_scores_go_from_the_highest_and_mark_what_stands_above_better_ones():
    one = opened(ranking=(("a",), ("b", "c"), ("d",)))
    scores = Scores(prompt="p", scores={"a": 1.0, "b": 2.0, "c": 1.0, "d": None}, unscored={"d": "cut"})
    outcome = Item(prompt="p", num_pairs=3, num_correct=1, num_tied=1, exact_match=False)
    assert texts(score_lines(one, Scored("s.jsonl", scores, outcome), 40)) == [
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
    one = opened(ranking=(("a",), ("b",), ("c",), ("d",)))
    marked = [line for line in texts(score_lines(one, Scored("s", scores), 60)) if line.endswith("!")]
    assert len(marked) == 1
    assert marked[0].startswith("  B")
