"""A training on the page: the loss as it was and smoothed, accuracy on held-out prompts, and both in words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from steelyard.evaluation.tables import Figure, Mark, word
from steelyard.evaluation.vega import CHANCE, MUTED, Spec, colour_of, framed, model_marks
from steelyard.training.config import HeldOutAccuracy

MAX_POINTS = 600
_SMOOTHING = 0.9


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A line of ``curve.jsonl``, of a step or of an evaluation on held-out prompts; other columns are not shown."""

    step: int
    loss: float | None = None
    held_out: HeldOutAccuracy | None = None


class LossPoint(NamedTuple):
    """The loss at a step, and its bias-corrected exponential moving average with factor 0.9."""

    step: int
    loss: float
    smoothed: float


def losses(curve: Iterable[CurvePoint]) -> tuple[LossPoint, ...]:
    """Return the loss of every step that has one, smoothed."""
    average, weight = 0.0, 0.0
    points = []
    for point in curve:
        if point.loss is not None:
            average = _SMOOTHING * average + (1 - _SMOOTHING) * point.loss
            weight = _SMOOTHING * weight + (1 - _SMOOTHING)
            points.append(LossPoint(point.step, point.loss, average / weight))
    return tuple(points)


def thinned(points: Sequence[LossPoint], limit: int = MAX_POINTS) -> tuple[LossPoint, ...]:
    """Return at most ``limit`` points, evenly spaced in order, the first and the last among them."""
    if len(points) <= limit:
        return tuple(points)
    return tuple(points[round(index * (len(points) - 1) / (limit - 1))] for index in range(limit))


def loss_figure(curves: Mapping[str, Sequence[CurvePoint]]) -> Figure | None:
    """Return the loss of each training over its steps, faint as it was and strong smoothed; None without losses."""
    values: list[Spec] = [
        {"series": name, "step": point.step, "loss": round(point.loss, 6), "smoothed": round(point.smoothed, 6)}
        for name, curve in curves.items()
        for point in thinned(losses(curve))
    ]
    if not values:
        return None
    marks = model_marks(list(curves))
    tips = [_tip("step", "step", ","), _tip("loss", "loss", ".4f"), _tip("smoothed", "smoothed", ".4f")]
    axis = {"title": word("loss"), "tickCount": 5}
    layers = [
        _line({"type": "line", "strokeWidth": 1, "opacity": 0.3}, "loss", axis, marks),
        _line({"type": "line", "strokeWidth": 2.2, "interpolate": "monotone"}, "smoothed", axis, marks),
        _line({"type": "point", "opacity": 0, "size": 160}, "smoothed", axis, marks, tips),
    ]
    spec = {**framed(layers, 240), "data": {"values": values}}
    return Figure("figure_loss", spec, marks if len(marks) > 1 else ())


def held_out_figure(curves: Mapping[str, Sequence[CurvePoint]]) -> Figure | None:
    """Return accuracy on held-out prompts while training, with the chance level; None where none was measured."""
    values: list[Spec] = [
        {"series": name, "step": point.step, "value": point.held_out.accuracy, "n": point.held_out.num_pairs}
        for name, curve in curves.items()
        for point in curve
        if point.held_out is not None
    ]
    if not values:
        return None
    marks = model_marks(list(curves))
    tips = [_tip("step", "step", ","), _tip("value", "accuracy", ".1%"), _tip("n", "pairs", ",")]
    axis = {"title": word("held_out_accuracy"), "format": ".0%", "tickCount": 5}
    chance = {"type": "rule", "strokeDash": [4, 4], "color": MUTED, "aria": False}
    layers: list[Spec] = [
        {
            "data": {"values": [{"at": CHANCE}]},
            "mark": chance,
            "encoding": {"y": {"field": "at", "type": "quantitative"}},
        },
        _line({"type": "line", "strokeWidth": 2.2}, "value", axis, marks),
        _line({"type": "point", "filled": True, "size": 60, "opacity": 1}, "value", axis, marks, tips),
    ]
    spec = {**framed(layers, 240), "data": {"values": values}}
    return Figure("figure_held_out", spec, marks if len(marks) > 1 else ())


def _tip(field: str, title: str, form: str) -> Spec:
    return {"field": field, "title": word(title), "format": form}


def _line(mark: Spec, field: str, axis: Spec, marks: Sequence[Mark], tips: Sequence[Spec] = ()) -> Spec:
    encoding: Spec = {
        "x": {"field": "step", "type": "quantitative", "axis": {"title": word("step"), "format": "~s", "tickCount": 6}},
        "y": {"field": field, "type": "quantitative", "scale": {"zero": False}, "axis": axis},
        "color": colour_of(marks),
    }
    if tips:
        encoding["tooltip"] = list(tips)
    return {"mark": mark, "encoding": encoding}
