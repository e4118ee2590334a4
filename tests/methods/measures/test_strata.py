import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steelyard.methods.measures.strata import Cell, Label, layout_of

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


def test_a_unit_in_two_categories_is_drawn_apart_from_the_others():
    layout = layout_of([Label("p", Cell("a")), Label("p", Cell("b")), Label("q", Cell("a")), Label("r", Cell("b"))])
    assert sorted(stratum.rows.tolist() for stratum in layout.strata) == [[0, 1], [2], [3]]


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
