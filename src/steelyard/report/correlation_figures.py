"""Figures of correlations over models: a heat map of benches and outcomes, and models as points with their names.

Colours are CSS variables, which cannot be mixed: the size of a correlation is the opacity of the colour of its sign.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from steelyard.evaluation.tables import Figure, Mark, word
from steelyard.evaluation.vega import ALERT, INK, MODEL_COLOURS, MUTED, STRONG, Spec, framed, row_axis

_ROW, _SQUARE = 34, 420
_SMALL = 10
# Shares of a figure on a narrow page. A name stands above the line of its point.
_RIGHT_HALF, _LETTER_WIDTH, _MOST_WIDTH, _NAME_HEIGHT, _NAME_RISE, _POINT_REACH = 0.6, 0.02, 0.48, 0.035, 0.02, 0.03
_EDGE = 0.05


class CorrelationCell(NamedTuple):
    """The correlation of a bench with an outcome; null leaves the cell empty."""

    bench: str
    outcome: str
    value: float | None


class PlacedModel(NamedTuple):
    """A model with its values on a bench and an outcome, and its family."""

    model: str
    family: str | None
    bench: float
    outcome: float


def correlation_map(about: str, cells: Sequence[CorrelationCell]) -> Figure:
    """Draw a bench in each row and an outcome in each column; the farther from 0, the darker."""
    values: list[Spec] = [
        {
            "bench": cell.bench,
            "outcome": cell.outcome,
            "value": cell.value,
            "size": abs(cell.value),
            "sign": "negative" if cell.value < 0 else "positive",
        }
        for cell in cells
        if cell.value is not None
    ]
    benches = list(dict.fromkeys(cell.bench for cell in cells))
    outcomes = list(dict.fromkeys(cell.outcome for cell in cells))
    labels = {"orient": "top", "title": None, "labelAngle": -30, "labelAlign": "left", "domain": False}
    labels |= {"ticks": False, "grid": False}
    place: Spec = {
        "y": {
            "field": "bench",
            "type": "nominal",
            "sort": benches,
            "axis": {**row_axis(num_lines=1), "labelLimit": 240, "grid": False},
        },
        "x": {"field": "outcome", "type": "nominal", "sort": outcomes, "axis": {**labels, "labelLimit": 160}},
    }
    tips = [
        {"field": "bench", "title": word("correlated_bench")},
        {"field": "outcome", "title": word("correlated_outcome")},
        {"field": "value", "title": word("coefficient"), "format": ".3f"},
    ]
    rectangle: Spec = {
        "mark": {"type": "rect"},
        "encoding": {
            **place,
            "opacity": {
                "field": "size",
                "type": "quantitative",
                "scale": {"domain": [0, 1], "range": [0.05, 0.75]},
                "legend": None,
            },
            "color": {
                "field": "sign",
                "type": "nominal",
                "legend": None,
                "scale": {"domain": ["negative", "positive"], "range": [ALERT, STRONG]},
            },
            "tooltip": tips,
        },
    }
    text: Spec = {
        "mark": {"type": "text", "color": INK, "fontSize": 12, "aria": False},
        "encoding": {**place, "text": {"field": "value", "type": "quantitative", "format": ".2f"}},
    }
    return Figure(about, {**framed([rectangle, text], _ROW * max(2, len(benches))), "data": {"values": values}})


def model_scatter(about: str, models: Sequence[PlacedModel], *, bench: str, outcome: str) -> Figure:
    """Draw each model at its values with its name. The largest families have a colour each, the others are muted."""
    sizes = Counter(each.family for each in models if each.family is not None)
    coloured = [name for name, number in sizes.most_common(len(MODEL_COLOURS)) if number > 1]
    rest = word("other_families") if coloured else word("scorer")
    marks = [Mark(name, MODEL_COLOURS[place], "circle") for place, name in enumerate(coloured)]
    if not coloured or any(each.family not in coloured for each in models):
        marks.append(Mark(rest, MUTED if coloured else STRONG, "circle"))
    values: list[Spec] = [
        {
            "model": each.model,
            "series": each.family if each.family in coloured else rest,
            "bench": each.bench,
            "outcome": each.outcome,
            "label": label,
        }
        for each, label in zip(models, _labels(models), strict=True)
    ]
    across: Spec = {"type": "quantitative", "scale": {"zero": False, "nice": True, "padding": 12}}
    place: Spec = {
        "x": {"field": "bench", **across, "axis": {"title": bench, "format": "~g", "tickCount": 6}},
        "y": {"field": "outcome", **across, "axis": {"title": outcome, "format": "~g", "tickCount": 6}},
    }
    colour = {
        "field": "series",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": [mark.name for mark in marks], "range": [mark.colour for mark in marks]},
    }
    tips = [
        {"field": "model", "title": word("scorer")},
        {"field": "series", "title": word("model_family")},
        {"field": "bench", "title": bench, "format": "~g"},
        {"field": "outcome", "title": outcome, "format": "~g"},
    ]
    points: Spec = {
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.9},
        "encoding": {**place, "color": colour, "tooltip": tips},
    }
    name: Spec = {"type": "text", "dy": -4, "fontSize": _SMALL, "color": MUTED, "limit": 150, "aria": False}
    names: list[Spec] = [
        {
            "transform": [{"filter": f"datum.label === '{side}'"}],
            "mark": {**name, "align": align, "dx": shift},
            "encoding": {**place, "text": {"field": "model", "type": "nominal"}},
        }
        for side, align, shift in (("right", "left", 6), ("left", "right", -6))
    ]
    legend = tuple(marks) if coloured else ()
    return Figure(about, {**framed([points, *names], _SQUARE), "data": {"values": values}}, legend)


def _labels(models: Sequence[PlacedModel]) -> list[str]:
    """Return the side of each model's name, left or right of its point; empty where it would cover another."""
    ranges = [[getattr(each, axis) for each in models] for axis in ("bench", "outcome")]
    scaled = [[(value - min(axis)) / ((max(axis) - min(axis)) or 1.0) for value in axis] for axis in ranges]
    points = list(zip(*scaled, strict=True))
    labelled: list[tuple[float, float, float]] = []
    sides: list[str] = []
    for (x, y), each in zip(points, models, strict=True):
        half = min(_MOST_WIDTH, _LETTER_WIDTH * len(each.model)) / 2
        preferred = ("left", "right") if x > _RIGHT_HALF else ("right", "left")
        middles = {side: x + half * (1 if side == "right" else -1) for side in preferred}
        free = [
            side
            for side, middle in middles.items()
            if half - _EDGE < middle < 1 + _EDGE - half
            if all(
                abs(middle - other) > half + other_half or abs(y - line) > _NAME_HEIGHT
                for other, line, other_half in labelled
            )
            if all(
                abs(middle - other) > half or abs(y + _NAME_RISE - line) > _POINT_REACH
                for other, line in points
                if (other, line) != (x, y)
            )
        ]
        labelled += [(middles[side], y, half) for side in free[:1]]
        sides.append(free[0] if free else "")
    return sides
