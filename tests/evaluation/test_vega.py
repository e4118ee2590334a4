from evaluation_summaries import estimate
from report_figures import accepted, rows
from steelyard.evaluation.tables import Figure
from steelyard.evaluation.vega import (
    Dot,
    baseline_marks,
    colour_of,
    framed,
    interval_rows,
    model_marks,
    records,
    row_axis,
    symbol_of,
    tooltip,
    vertical_line,
)


def test_models_differ_by_colour_and_baselines_by_symbol():
    models, baselines = model_marks(["a", "b"]), baseline_marks(["x", "y", "z"])
    assert len({mark.colour for mark in models}) == 2
    assert len({mark.colour for mark in baselines}) == 1
    assert len({mark.symbol for mark in baselines}) == 3
    assert colour_of(models)["scale"] == {"domain": ["a", "b"], "range": [mark.colour for mark in models]}
    assert symbol_of(baselines)["scale"]["domain"] == ["x", "y", "z"]


def test_what_was_not_measured_is_not_drawn():
    dots = [Dot("a", "s", estimate(value=None, n=3)), Dot("b", "s", estimate(value=0.5, low=0.4, high=0.6, n=3))]
    assert records(dots) == [{"row": "b", "series": "s", "value": 0.5, "low": 0.4, "high": 0.6, "n": 3}]


def test_labels_of_two_lines_are_centred_on_their_row():
    assert "labelOffset" in row_axis()
    assert "labelOffset" not in row_axis(num_lines=1)


def test_a_tooltip_says_n_and_the_interval():
    assert [tip["field"] for tip in tooltip("category")] == ["row", "series", "value", "low", "high", "n"]


def test_a_frame_is_as_wide_as_its_place():
    assert framed([vertical_line(0.5)], 90)["width"] == "container"
    assert vertical_line(0.5)["data"]["values"] == [{"at": 0.5}]


def test_an_estimate_without_an_interval_has_a_point_and_no_rule():
    dots = [Dot("a", "s", estimate(value=0.4, n=3)), Dot("b", "s", estimate(value=0.5, low=0.4, high=0.6, n=3))]
    spec = accepted(Figure("figure_x", interval_rows(dots, {}, row="group", form=".1%", line=0.5)))
    assert [row.get("row") for row in rows(spec)] == ["a", "b", None]
    assert "low !== null" in spec["layer"][1]["transform"][0]["filter"]
