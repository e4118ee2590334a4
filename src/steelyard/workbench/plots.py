"""Plots as SVG in the page: bars of parts, columns by day, and values with their intervals.

Colours and type come from the style sheet (`figures.css`), so that a plot follows light and dark; no script runs. To a
screen reader a plot is an image with a label; what it shows is also a table behind it, which the page writes.
"""

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from markupsafe import Markup

from steelyard.statistics.intervals import Estimate

_WIDTH = 720
_RIGHT = 12
_ROW = 30
_NAMES = 190


class PlotPart(NamedTuple):
    """A part of a bar: its number, its name, and the class that colours it (``tone-1`` to ``tone-6``)."""

    number: float
    name: str
    tone: str


class DayColumn(NamedTuple):
    """A column of a day: what the axis says, and its parts from the bottom."""

    label: str
    parts: Sequence[PlotPart]


class ValueDot(NamedTuple):
    """A row of a value with its interval: the name, the estimate, and whether it stands out."""

    name: str
    estimate: Estimate
    is_marked: bool = False


def stacked_bar(label: str, parts: Sequence[PlotPart]) -> Markup:
    """Return one bar of parts over the whole width."""
    total = sum(part.number for part in parts) or 1.0
    pieces, x = [], 0.0
    for part in parts:
        width = _WIDTH * part.number / total
        if width:
            pieces.append(
                Markup('<rect class="{}" x="{:.1f}" y="0" width="{:.1f}" height="22"><title>{}: {:,.0f}</title></rect>')
                .format(part.tone, x, max(width - 1, 1), part.name, part.number)
            )  # fmt: skip
        x += width
    return _svg(label, 22, pieces)


def day_columns(label: str, columns: Sequence[DayColumn], *, line: float | None = None, line_name: str = "") -> Markup:
    """Return columns side by side, with an axis of numbers; ``line`` is a level that is marked across."""
    height, base = 210, 180
    highest = max([1.0, line or 0.0, *(sum(part.number for part in column.parts) for column in columns)])
    top, step = _axis(highest)
    pieces = [_level(base - (base - 10) * value / top, f"{value:g}") for value in _ticks(top, step)]
    width = (_WIDTH - 44 - _RIGHT) / max(len(columns), 1)
    shown_every = max(1, ceil(len(columns) * 62 / (_WIDTH - 44)))
    for place, column in enumerate(columns):
        x, y = 44 + place * width, float(base)
        for part in column.parts:
            size = (base - 10) * part.number / top
            y -= size
            pieces.append(
                Markup(
                    '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">'
                    "<title>{} · {}: {:,.0f}</title></rect>"
                ).format(part.tone, x + width * 0.1, y, width * 0.8, size, column.label, part.name, part.number)
            )
        if place % shown_every == 0:
            pieces.append(
                Markup('<text x="{:.1f}" y="{}" class="tick" text-anchor="middle">{}</text>').format(
                    x + width / 2, base + 18, column.label
                )
            )
    if line is not None:
        y = base - (base - 10) * line / top
        pieces.append(
            Markup('<line class="mark" x1="44" x2="{}" y1="{:.1f}" y2="{:.1f}"><title>{}</title></line>').format(
                _WIDTH - _RIGHT, y, y, line_name
            )
        )
    return _svg(label, height, pieces)


def dots(
    label: str, rows: Sequence[ValueDot], *, low: float = 0.0, high: float = 1.0, line: float | None = None
) -> Markup:
    """Return a row for each value with its interval on an axis of shares from ``low`` to ``high``."""
    height = _ROW * len(rows) + 26
    scale = (_WIDTH - _NAMES - 24) / (high - low)

    def place(value: float) -> float:
        return _NAMES + (min(max(value, low), high) - low) * scale

    pieces: list[Markup] = []
    for tick in (low + (high - low) * part / 5 for part in range(6)):
        x = place(tick)
        pieces.append(
            Markup('<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="{1}"/>').format(x, height - 22)
            + Markup('<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
                x, height - 6, f"{tick:.0%}" if low >= 0 and high <= 1 else f"{tick:.1f}"
            )
        )
    if line is not None:
        pieces.append(
            Markup('<line class="mark" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="{1}"/>').format(place(line), height - 22)
        )
    pieces += [_dot(row, _ROW * number + _ROW / 2, place) for number, row in enumerate(rows)]
    return _svg(label, height, pieces)


def _dot(row: ValueDot, y: float, place) -> Markup:  # noqa: ANN001 - a function of the axis
    name = row.name if len(row.name) <= 26 else row.name[:25] + "…"
    drawn = Markup('<text class="name" x="{}" y="{:.1f}" text-anchor="end">{}</text>').format(_NAMES - 12, y + 4, name)
    estimate, tone = row.estimate, "alert" if row.is_marked else "tone-1"
    if estimate.value is None:
        return drawn
    if estimate.low is not None and estimate.high is not None:
        drawn += Markup('<line class="whisker {}" x1="{:.1f}" x2="{:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>').format(
            tone, place(estimate.low), place(estimate.high), y=y
        )
    return drawn + Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="5"><title>{}</title></circle>').format(
        tone, place(estimate.value), y, f"{row.name}: {estimate!r}"
    )


def _level(y: float, label: str) -> Markup:
    return Markup(
        '<line class="grid" x1="44" x2="{}" y1="{y:.1f}" y2="{y:.1f}"/>'
        '<text class="tick" x="38" y="{text:.1f}" text-anchor="end">{}</text>'
    ).format(_WIDTH - _RIGHT, label, y=y, text=y + 4)


def _axis(highest: float) -> tuple[float, float]:
    """Return the end of an axis and the step of its ticks: 1, 2 or 5 times a power of ten."""
    power = 10 ** floor(log10(highest))
    step = next(power * factor for factor in (0.2, 0.5, 1, 2, 5) if highest / (power * factor) <= 5)
    step = max(step, 1.0)
    return step * ceil(highest / step), step


def _ticks(top: float, step: float) -> list[float]:
    return [step * number for number in range(round(top / step) + 1)]


def _svg(label: str, height: float, pieces: Sequence[Markup]) -> Markup:
    start = Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}" preserveAspectRatio="xMinYMin">')
    return start.format(_WIDTH, height, label) + Markup("").join(pieces) + Markup("</svg>")
