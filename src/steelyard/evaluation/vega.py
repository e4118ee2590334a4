"""Parts of Vega-Lite figures: colours, symbols, axes, tooltips, and rows of estimates with intervals.

Colours are CSS variables of the page, so that a figure follows its light or dark theme without a redraw.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from steelyard.evaluation.tables import Mark, word
from steelyard.statistics.intervals import Estimate


def css_variable(name: str) -> str:
    """Return the colour that the page's stylesheet has under this name."""
    return f"var(--{name})"


MODEL_COLOURS = tuple(css_variable(f"series-{number}") for number in range(1, 5))
BASELINE_COLOUR = css_variable("baseline")
BASELINE_SYMBOLS = ("square", "triangle-up", "diamond", "cross", "triangle-down", "stroke")
FAINT, MUTED, ALERT, INK = map(css_variable, ("faint", "muted", "alert", "ink"))
STRONG = MODEL_COLOURS[0]
CHANCE = 0.5

Spec = dict[str, Any]


class Dot(NamedTuple):
    """One value of a figure: its row, its series, and the estimate."""

    row: str
    series: str
    estimate: Estimate


def model_marks(names: Sequence[str]) -> tuple[Mark, ...]:
    """Return the marks of the models: one colour each, filled circles."""
    return tuple(Mark(name, MODEL_COLOURS[index % len(MODEL_COLOURS)], "circle") for index, name in enumerate(names))


def baseline_marks(names: Sequence[str]) -> tuple[Mark, ...]:
    """Return the marks of the baselines: one muted colour, one symbol each."""
    symbols = BASELINE_SYMBOLS
    return tuple(Mark(name, BASELINE_COLOUR, symbols[index % len(symbols)]) for index, name in enumerate(names))


def records(dots: Iterable[Dot]) -> list[Spec]:
    """Return the dots that have a value as Vega-Lite data rows."""
    return [
        {
            "row": dot.row,
            "series": dot.series,
            "value": dot.estimate.value,
            "low": dot.estimate.low,
            "high": dot.estimate.high,
            "n": dot.estimate.n,
        }
        for dot in dots
        if dot.estimate.value is not None
    ]


def share_axis(title: str) -> Spec:
    """Return an axis of shares in percent."""
    return {"format": ".0%", "title": word(title), "tickCount": 6}


def row_axis(*, num_lines: int = 2) -> Spec:
    """Return the axis of named rows: no line, no ticks, and labels of one or two lines."""
    plain: Spec = {"title": None, "labelLimit": 150, "domain": False, "ticks": False}
    # Vega aligns the first line of a label with its row: half a line up centres two lines.
    return plain if num_lines == 1 else {**plain, "labelExpr": "split(datum.label, '\\n')", "labelOffset": -7}


def tooltip(row: str, *, form: str = ".1%") -> list[Spec]:
    """Return the tooltip of a value in a named row; ``row`` is the word for a row."""
    return [
        {"field": "row", "title": word(row)},
        {"field": "series", "title": word("series")},
        {"field": "value", "title": word("value"), "format": form},
        {"field": "low", "title": word("interval_low"), "format": form},
        {"field": "high", "title": word("interval_high"), "format": form},
        {"field": "n", "title": "n", "format": ","},
    ]


def value_tips(field: str, title: str, field_form: str, form: str) -> list[Spec]:
    """Return the tooltip of a value at a number on the x axis; ``title`` is the word for that number."""
    return [
        {"field": "series", "title": word("series")},
        {"field": field, "title": word(title), "format": field_form},
        {"field": "value", "title": word("value"), "format": form},
        {"field": "low", "title": word("interval_low"), "format": form},
        {"field": "high", "title": word("interval_high"), "format": form},
    ]


def colour_of(marks: Sequence[Mark]) -> Spec:
    """Return the colour encoding of the series; the page draws the legend."""
    scale = {"domain": [mark.name for mark in marks], "range": [mark.colour for mark in marks]}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": None}


def symbol_of(marks: Sequence[Mark]) -> Spec:
    """Return the symbol encoding of the series."""
    scale = {"domain": [mark.name for mark in marks], "range": [mark.symbol for mark in marks]}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": None}


def vertical_line(value: float) -> Spec:
    """Return a dashed line at one value of the x axis."""
    mark = {"type": "rule", "strokeDash": [4, 4], "color": MUTED, "aria": False}
    return {
        "data": {"values": [{"at": value}]},
        "mark": mark,
        "encoding": {"x": {"field": "at", "type": "quantitative"}},
    }


def framed(layers: list[Spec], height: int) -> Spec:
    """Return the layers as one figure of the width of its container."""
    return {
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "layer": layers,
    }


def interval_rows(dots: Sequence[Dot], x: Spec, *, row: str, form: str, line: float | None, height: int = 30) -> Spec:
    """Draw one estimate per row in the order of ``dots``: its interval as a rule, its value as a point.

    ``x`` is the encoding of the value axis, ``row`` the word for a row, ``form`` the number format of the tooltip.
    ``line`` is the value of the dashed line, and ``height`` the pixels of a row. A name may have two lines.
    """
    values = records(dots)
    order = [value["row"] for value in values]
    num_lines = 1 + max((name.count("\n") for name in order), default=0)
    y = {"field": "row", "type": "nominal", "sort": order, "axis": {**row_axis(num_lines=num_lines), "labelLimit": 260}}
    across: Spec = {"type": "quantitative", **x}
    shown: Spec = {"y": y, "color": {"value": STRONG}, "tooltip": tooltip(row, form=form)}
    interval: Spec = {
        # Vega-Lite draws a null end at 0: an estimate without an interval has a point and no rule.
        "transform": [{"filter": "datum.low !== null && datum.high !== null"}],
        "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.45, "strokeCap": "round"},
        "encoding": {**shown, "x": {"field": "low", **across}, "x2": {"field": "high"}},
    }
    has_interval = any(value["low"] is not None and value["high"] is not None for value in values)
    layers: list[Spec] = [
        *([] if line is None else [vertical_line(line)]),
        *([interval] if has_interval else []),
        {
            "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
            "encoding": {**shown, "x": {"field": "value", **across}},
        },
    ]
    row_height = height + 12 * (num_lines - 1)
    return {**framed(layers, row_height * max(2, len(order))), "data": {"values": values}}
