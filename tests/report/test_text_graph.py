import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.io.terminal_text import plain, width_of
from steelyard.report.opened import open_case
from steelyard.report.text_graph import MOST_ARROWS, draw_graph, legend
from strategies import case, cases, judgment


def drawn(one, width):
    return [plain(line) for line in draw_graph(open_case(one), width)]


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
    assert legend(open_case(case()), 40) == []


def test_responses_that_nobody_judged_have_no_column():
    assert drawn(case(responses="abc", judgments=["c>a"]), 40)[:2] == ["tier 1    2", "     C    A"]


def test_more_arrows_than_a_person_reads_are_counted():
    names = "abcdefghijklmnopq"
    pairs = [f"{one}>{other}" for place, one in enumerate(names) for other in names[place + 1 :]]
    lines = drawn(case(responses=names, judgments=pairs), 200)
    assert len(lines) == MOST_ARROWS + 3
    assert lines[-1] == f"… {len(pairs) - MOST_ARROWS} more: --json has them all"


@pytest.mark.parametrize(
    ("judgments", "told"),
    [
        (["a>b"], "├──> beats"),
        (["a=b", "b?c"], "╞══╡ tie · ├╌╌┤ unreadable"),
        (["a>b", "b>a"], "├──> beats · ! in conflict: the tiers do not keep it"),
    ],
)
def test_the_legend_explains_what_is_there(judgments, told):
    assert [plain(line) for line in legend(open_case(case(judgments=judgments)), 80)] == [told]


@given(cases(max_responses=8), st.integers(30, 100))
def test_every_outcome_of_a_pair_has_a_line_that_fits(one, width):
    opened = open_case(one)
    lines = draw_graph(opened, width)
    assert all(width_of(plain(line)) <= width for line in lines)
    marked = [line for line in lines if plain(line).endswith("!")]
    assert len(marked) == len({(a.first, a.second) for a in opened.arrows if a.is_conflicting})
    columns = [plain(line) for line in lines if plain(line).startswith("tier ")]
    assert len(lines) == len(opened.arrows) + 2 * len(columns)
