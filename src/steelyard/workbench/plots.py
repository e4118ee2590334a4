"""Plots as SVG in the page: bars of parts and columns by day.

Colours and type come from the style sheet (`figures.css`), so that a plot follows light and dark; no script runs. To a
screen reader a plot is an image with a label; what it shows is also a table behind it, which the page writes.
"""

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from markupsafe import Markup

_WIDTH = 720
_RIGHT = 12


class PlotPart(NamedTuple):
    """A part of a bar: its number, its name, and the class that colours it (``tone-1`` to ``tone-6``)."""

    number: float
    name: str
    tone: str


class DayColumn(NamedTuple):
    """A column of a day: what the axis says, and its parts from the bottom."""

    label: str
    parts: Sequence[PlotPart]


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
