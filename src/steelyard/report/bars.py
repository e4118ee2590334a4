"""Figures of counts and shares: bars by rule, stacked bars, values before and after, and curves over a threshold."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from steelyard.evaluation.tables import Figure, Mark, count, percent, word
from steelyard.evaluation.vega import FAINT, MUTED, STRONG, Spec, framed, row_axis, share_axis, vertical_line
from steelyard.statistics.intervals import Estimate

_ROW = 30


class CountBar(NamedTuple):
    """One bar: its row, its number, and its colour."""

    row: str
    number: int
    colour: str = STRONG


class ShareChange(NamedTuple):
    """One row with a value before and after a stage."""

    row: str
    before: Estimate
    after: Estimate


class SharePoint(NamedTuple):
    """One point of a curve: its series, its place on the x axis, and its value, which may lack an interval."""

    series: str
    x: float
    estimate: Estimate


def count_bars(about: str, bars: Sequence[CountBar], *, total: int) -> Figure:
    """Draw a bar for each number, with the number and its share of ``total`` at its end."""
    values: list[Spec] = [
        {
            "row": bar.row,
            "number": bar.number,
            "colour": bar.colour,
            "label": f"{count(bar.number)} ({percent(bar.number / max(total, 1))})",
        }
        for bar in bars
    ]
    rows = [bar.row for bar in bars]
    y = {"field": "row", "type": "nominal", "sort": rows, "axis": {**row_axis(num_lines=1), "labelLimit": 240}}
    # The axis goes on beyond the longest bar, which leaves room for its label on a page of any width.
    most, room = max([1, *(bar.number for bar in bars)]), 12 + 7 * max([0, *(len(value["label"]) for value in values)])
    scale = {"domainMin": 0, "domainMax": {"expr": f"{most} * width / max(width - {room}, 0.2 * width)"}}
    x = {"field": "number", "type": "quantitative", "scale": scale, "axis": None}
    tips = [{"field": "row", "title": word("group")}, {"field": "label", "title": "n"}]
    mark = {"type": "bar", "size": 14, "cornerRadiusEnd": 2}
    text = {"type": "text", "align": "left", "dx": 6, "color": MUTED, "fontSize": 12}
    layers: list[Spec] = [
        {"mark": mark, "encoding": {"y": y, "x": x, "color": _own_colour(), "tooltip": tips}},
        {"mark": text, "encoding": {"y": y, "x": x, "text": {"field": "label"}}},
    ]
    return Figure(about, {**framed(layers, _ROW * max(1, len(rows))), "data": {"values": values}})


def _own_colour() -> Spec:
    return {"field": "colour", "type": "nominal", "scale": None, "legend": None}


def stacked_bars(about: str, rows: Mapping[str, Mapping[str, int]], marks: Sequence[Mark]) -> Figure:
    """Draw one bar of shares for each row, divided by the series of ``marks``; tooltips have the numbers."""
    order = {mark.name: place for place, mark in enumerate(marks)}
    values: list[Spec] = [
        {
            "row": row,
            "series": name,
            "number": numbers[name],
            "order": place,
            "share": numbers[name] / sum(numbers.values()),
        }
        for row, numbers in rows.items()
        for name, place in order.items()
        if numbers.get(name)
    ]
    axis = {**row_axis(num_lines=1), "labelLimit": 240}
    tips = [
        {"field": "row", "title": word("group")},
        {"field": "series", "title": word("part")},
        {"field": "number", "title": "n", "format": ","},
        {"field": "share", "title": word("share"), "format": ".1%"},
    ]
    encoding: Spec = {
        "y": {"field": "row", "type": "nominal", "sort": list(rows), "axis": axis},
        "x": {
            "field": "share",
            "type": "quantitative",
            "stack": "zero",
            "scale": {"domain": [0, 1]},
            "axis": share_axis("share"),
        },
        "color": {"field": "series", "type": "nominal", "legend": None, "scale": _scale(marks)},
        "order": {"field": "order", "type": "quantitative"},
        "tooltip": tips,
    }
    layers: list[Spec] = [{"mark": {"type": "bar", "size": 16}, "encoding": encoding}]
    return Figure(about, {**framed(layers, _ROW * max(2, len(rows))), "data": {"values": values}}, tuple(marks))


def _scale(marks: Sequence[Mark]) -> Spec:
    return {"domain": [mark.name for mark in marks], "range": [mark.colour for mark in marks]}


def before_after(about: str, rows: Sequence[ShareChange], *, axis: str, line: float | None = None) -> Figure:
    """Draw two shares for each row: before in the faint colour, after in the strong one; ``line`` marks a value."""
    marks = (Mark(word("value_before"), FAINT, "circle"), Mark(word("value_after"), STRONG, "circle"))
    values: list[Spec] = [
        {
            "row": row.row, "series": mark.name, "colour": mark.colour, "value": estimate.value, "low": estimate.low,
            "high": estimate.high, "n": estimate.n,
        }
        for row in rows
        for mark, estimate in zip(marks, (row.before, row.after), strict=True)
        if estimate.value is not None
    ]  # fmt: skip
    names = [row.row for row in rows]
    # A point at the end of the axis does not touch the name of its row.
    labels = {**row_axis(num_lines=1), "labelLimit": 240, "labelPadding": 14}
    y = {"field": "row", "type": "nominal", "sort": names, "axis": labels}
    offset = {"field": "series", "sort": [mark.name for mark in marks]}
    x = {
        "type": "quantitative",
        "axis": share_axis(axis),
        "scale": {"domain": _domain(values, line), "nice": False, "zero": False},
    }
    tips = [
        {"field": "row", "title": word("group")},
        {"field": "series", "title": word("series")},
        {"field": "value", "title": word("value"), "format": ".1%"},
        {"field": "low", "title": word("interval_low"), "format": ".1%"},
        {"field": "high", "title": word("interval_high"), "format": ".1%"},
        {"field": "n", "title": "n", "format": ","},
    ]
    shown: Spec = {"y": y, "yOffset": offset, "color": _own_colour(), "tooltip": tips}
    interval: Spec = {
        "transform": [{"filter": "datum.low !== null && datum.high !== null"}],
        "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.6, "strokeCap": "round"},
        "encoding": {**shown, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
    }
    layers: list[Spec] = [
        *([] if line is None else [vertical_line(line)]),
        *([interval] if _has_interval(values) else []),
        {
            "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
            "encoding": {**shown, "x": {**x, "field": "value"}},
        },
    ]
    return Figure(about, {**framed(layers, 40 * max(2, len(names))), "data": {"values": values}}, marks)


def _domain(values: Sequence[Spec], line: float | None) -> list[float]:
    """Return the shares that the axis spans: the values with their intervals, the line, and a margin."""
    shown = [] if line is None else [line]
    ends = [*shown, *(value[key] for value in values for key in ("value", "low", "high") if value[key] is not None)]
    margin = max(0.02, 0.06 * (max(ends) - min(ends)))
    return [max(0.0, min(ends) - margin), min(1.0, max(ends) + margin)]


def _has_interval(values: Sequence[Spec]) -> bool:
    """Return whether a value has an interval; of none, Vega would draw an axis without an extent."""
    return any(value["low"] is not None and value["high"] is not None for value in values)


def share_curves(
    about: str, points: Sequence[SharePoint], marks: Sequence[Mark], *, x: str, line: float | None, y: str = "share"
) -> Figure:
    """Draw shares over a number, a line for each series with its interval as a band; ``line`` marks one number.

    ``x`` and ``y`` are the words for the number and for the share.
    """
    values: list[Spec] = [
        {"series": point.series, "x": point.x, **_ends(point.estimate)}
        for point in points
        if point.estimate.value is not None
    ]
    colour = {"field": "series", "type": "nominal", "scale": _scale(marks), "legend": None}
    across = {"field": "x", "type": "quantitative", "axis": {"title": word(x), "tickCount": 6, "format": ".3~g"}}
    share = {"type": "quantitative", "axis": share_axis(y), "scale": {"zero": False}}
    tips = [
        {"field": "series", "title": word("series")},
        {"field": "x", "title": word(x), "format": ".4~g"},
        {"field": "value", "title": word("value"), "format": ".1%"},
        {"field": "low", "title": word("interval_low"), "format": ".1%"},
        {"field": "high", "title": word("interval_high"), "format": ".1%"},
        {"field": "n", "title": "n", "format": ","},
    ]
    band: Spec = {
        "transform": [{"filter": "datum.low !== null && datum.high !== null"}],
        "mark": {"type": "area", "opacity": 0.15},
        "encoding": {"x": across, "y": {**share, "field": "low"}, "y2": {"field": "high"}, "color": colour},
    }
    layers: list[Spec] = [
        *([] if line is None else [vertical_line(line)]),
        *([band] if _has_interval(values) else []),
        {
            "mark": {"type": "line", "strokeWidth": 2.2},
            "encoding": {"x": across, "y": {**share, "field": "value"}, "color": colour},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 40, "opacity": 1},
            "encoding": {"x": across, "y": {**share, "field": "value"}, "color": colour, "tooltip": tips},
        },
    ]
    return Figure(about, {**framed(layers, 260), "data": {"values": values}}, tuple(marks))


def _ends(estimate: Estimate) -> Spec:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "n": estimate.n}
