import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.statistics.aggregation import by_category
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of, prompt_names, units_of
from strategies import case

labels = st.lists(
    st.builds(
        Label,
        st.sampled_from("pqrst"),
        st.builds(
            Cell, st.sampled_from(["code", "数学"]), st.sampled_from([None, "a"]), st.sampled_from([None, "zh", "en"])
        ),
    ),
    min_size=1,
    max_size=20,
)


def test_a_plain_bench_has_a_stratum_a_category():
    layout = layout_of([Label("p", Cell("b")), Label("q", Cell("a")), Label("r", Cell("b"))])
    assert layout.cells == (Cell("a"), Cell("b"))
    assert layout.cell.tolist() == [1, 0, 1]
    assert [(stratum.rows.tolist(), stratum.num_units) for stratum in layout.strata] == [([1], 1), ([0, 2], 2)]


def test_parallel_items_are_one_unit_with_a_cell_for_each_language():
    layout = layout_of([Label(name, Cell("a", None, language)) for name in "pq" for language in ("en", "zh")])
    (stratum,) = layout.strata
    assert stratum.num_units == 2
    assert stratum.unit.tolist() == [0, 0, 1, 1]
    assert [layout.cells[index].language for index in stratum.cells[stratum.column]] == ["en", "zh", "en", "zh"]


def test_units_in_two_categories_are_drawn_apart_from_the_others():
    both = [Label(f"p{index}", Cell(name)) for index in range(5) for name in "ab"]
    layout = layout_of([*both, Label("q", Cell("a")), Label("r", Cell("b"))])
    assert sorted(stratum.rows.tolist() for stratum in layout.strata) == [list(range(10)), [10], [11]]


def test_few_units_in_two_categories_are_drawn_with_the_larger_one():
    plain = [Label("q", Cell("a")), Label("r", Cell("b")), Label("s", Cell("b"))]
    layout = layout_of([Label("p", Cell("a")), Label("p", Cell("b")), *plain])
    assert [(sorted(stratum.rows.tolist()), stratum.num_units) for stratum in layout.strata] == [
        ([2], 1), ([0, 1, 3, 4], 3)
    ]  # fmt: skip
    alone = layout_of([Label("p", Cell("a")), Label("p", Cell("b"))])
    assert [stratum.num_units for stratum in alone.strata] == [1]


@given(labels)
def test_every_prompt_lies_in_one_stratum_and_units_are_never_divided(given):
    layout = layout_of(given)
    rows = np.concatenate([stratum.rows for stratum in layout.strata])
    assert sorted(rows.tolist()) == list(range(len(given)))
    assert sum(stratum.num_units for stratum in layout.strata) == len({label.prompt for label in given})
    for stratum in layout.strata:
        own = {given[row].prompt for row in stratum.rows}
        assert stratum.num_units == len(own)
        for row, unit, column in zip(stratum.rows, stratum.unit, stratum.column, strict=True):
            assert given[row].cell == layout.cells[stratum.cells[column]]
            assert (unit == stratum.unit[stratum.rows == row]).all()


def test_prompts_that_share_a_name_through_others_are_one_unit():
    # r joins p (by its id) and q (by its text); s stands alone
    assert units_of([("p", "甲"), ("q", "乙"), ("p", "乙"), ("s", "丙")]) == ["p", "p", "p", "s"]
    assert units_of([("q", "x"), ("p", "x")]) == ["p", "p"]
    assert units_of([]) == []


@given(st.lists(st.lists(st.sampled_from("pqrstu"), min_size=1, max_size=3), max_size=8), st.randoms())
def test_units_are_the_parts_that_networkx_finds_in_any_order(names, random):
    graph = nx.Graph()
    for row, own in enumerate(names):
        graph.add_edges_from((row, name) for name in own)
    parts = [{row for row in part if isinstance(row, int)} for part in nx.connected_components(graph)]
    found = units_of(names)
    assert sorted(map(sorted, parts)) == sorted(
        [row for row, own in enumerate(found) if own == unit] for unit in set(found)
    )
    order = random.sample(range(len(names)), len(names))
    assert units_of([names[row] for row in order]) == [found[row] for row in order]


def test_prompts_without_text_are_units_of_their_own():
    assert [prompt_names(case(name, text=" \u200b")) for name in "pq"] == [("p",), ("q",)]


def test_an_id_is_never_a_text():
    (one, _), (_, text) = prompt_names(case("What is it?")), prompt_names(case("p", text="What is it?"))
    assert one != text


def test_other_spellings_of_a_category_and_a_language_are_one_cell():
    names = ["Logic ", "Logic", "Logic", "ＬＯＧＩＣ", "logic", "lo\u200bgic", "Log"]
    codes = ["zh", "zh-CN", "zh-CN", "zho_Hans", "ZH", None, "zh-Hant"]
    cells = [Cell(name, "s", code) for name, code in zip(names, codes, strict=True)]
    layout = layout_of([Label(str(row), cell) for row, cell in enumerate(cells)])
    assert layout.cells == (Cell("Log", "s", "zh-Hant"), Cell("Logic", "s", None), Cell("Logic", "s", "zh-CN"))
    assert layout.cell.tolist() == [2, 2, 2, 2, 2, 1, 0]
    # Subsets are those of the benchmark, and stay as they are.
    assert len(layout_of([Label(name, Cell("c", name)) for name in ("a", "A")]).cells) == 2


def loss_of(categories, pairs):
    labels = [Label(f"p{row}", Cell(category)) for row, category in enumerate(categories)]
    totals = resample(Items(layout_of(labels), np.array(pairs, np.int64)[:, None], 2), seed=0)
    return totals.evidence(by_category(totals.cells).members, denominator=0).loss


def test_small_categories_lose_degrees_of_freedom_and_unequal_prompts_do_not():
    assert loss_of("abc" * 2, [10] * 6) == pytest.approx(2)
    assert loss_of("abc" * 20, [10] * 60) == pytest.approx(20 / 19)
    assert loss_of("a" * 60, [1, 28] * 30) == pytest.approx(60 / 59)
    # The category of five prompts has ten times the variance of that of fifty.
    assert loss_of("a" * 50 + "b" * 5, [10] * 55) == pytest.approx((1 / 50 + 1 / 5) / (49 / 50**2 + 4 / 5**2))
