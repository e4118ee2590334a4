"""Plots as SVG in the page: bars of parts, columns by day, and values with their intervals.

Each plot is drawn twice, for a wide screen and for a phone, so that its words stay readable; the style sheet shows one.
Colours and type come from the style sheet (`figures.css`), so that a plot follows light and dark; no script runs. To a
screen reader a plot is an image with a label; what it shows is also a table behind it, which the page writes.
"""

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from markupsafe import Markup

from steelyard.statistics.intervals import Estimate

_RIGHT = 12
_WIDEST_COLUMN = 96
_FEWEST_PIXELS = 34
"""A column that is narrower has no number above it."""


class _Frame(NamedTuple):
    """The size of a plot in pixels. ``names``: the width of the names at the left; 0 where each is above its row.

    ``values``: the width of the numbers at the right of rows.
    """

    style: str
    width: int
    names: int
    values: int
    row: int
    most_letters: int


_FRAMES = (_Frame("on-desk", 720, 190, 120, 30, 26), _Frame("on-phone", 340, 0, 0, 44, 26))


class PlotPart(NamedTuple):
    """A part of a bar: its number, its name, and the class that colours it, a ``tone-`` of the style sheet."""

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
    return _both(label, lambda frame: _bar(parts, frame))


def day_columns(label: str, columns: Sequence[DayColumn], *, up: str, across: str) -> Markup:
    """Return columns side by side. A phone shows the latest, as many as fit. ``up`` and ``across`` name the axes."""
    return _both(label, lambda frame: _columns(columns[-(frame.width // 6) :], frame, up=up, across=across))


def dots(label: str, rows: Sequence[ValueDot], *, low: float = 0.0, line: float | None = None) -> Markup:
    """Return a row for each value with its interval on an axis of shares from ``low`` to 1."""
    return _both(label, lambda frame: _dots(rows, frame, low=low, line=line))


class _Drawing(NamedTuple):
    height: float
    pieces: Sequence[Markup]


def _bar(parts: Sequence[PlotPart], frame: _Frame) -> _Drawing:
    total = sum(part.number for part in parts) or 1.0
    pieces, x = [], 0.0
    for part in parts:
        width = frame.width * part.number / total
        if width:
            pieces.append(
                Markup('<rect class="{}" x="{:.1f}" y="0" width="{:.1f}" height="22"><title>{}: {:,.0f}</title></rect>')
                .format(part.tone, x, max(width - 1, 1), part.name, part.number)
            )  # fmt: skip
        x += width
    return _Drawing(22, pieces)


def _columns(columns: Sequence[DayColumn], frame: _Frame, *, up: str, across: str) -> _Drawing:
    base, head = 208, 38
    top, step = _axis(max([1.0, *(sum(part.number for part in column.parts) for column in columns)]))
    ticks = [step * number for number in range(round(top / step) + 1)]
    pieces = [_level(base - (base - head) * value / top, f"{value:g}", frame) for value in ticks]
    width = min((frame.width - 44 - _RIGHT) / max(len(columns), 1), _WIDEST_COLUMN)
    shown_every = max(1, ceil(len(columns) * 62 / (frame.width - 44)))
    for place, column in enumerate(columns):
        x, y = 44 + place * width, float(base)
        for part in column.parts:
            size = (base - head) * part.number / top
            y -= size
            pieces.append(
                Markup(
                    '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">'
                    "<title>{} · {}: {:,.0f}</title></rect>"
                ).format(part.tone, x + width * 0.1, y, width * 0.8, size, column.label, part.name, part.number)
            )
        if width >= _FEWEST_PIXELS and y < base:
            pieces.append(
                Markup('<text x="{:.1f}" y="{:.1f}" class="value" text-anchor="middle">{:,.0f}</text>').format(
                    x + width / 2, y - 5, sum(part.number for part in column.parts)
                )
            )
        if place % shown_every == 0:
            pieces.append(
                Markup('<text x="{:.1f}" y="{}" class="tick" text-anchor="middle">{}</text>').format(
                    x + width / 2, base + 18, column.label
                )
            )
    pieces.append(Markup('<text x="0" y="12" class="tick">{}</text>').format(up))
    end = min(44 + width * len(columns), frame.width - _RIGHT)
    pieces.append(
        Markup('<text x="{:.1f}" y="{}" class="tick" text-anchor="middle">{}</text>').format(
            (44 + end) / 2, base + 38, across
        )
    )
    return _Drawing(base + 44, pieces)


def _dots(rows: Sequence[ValueDot], frame: _Frame, *, low: float, line: float | None) -> _Drawing:
    height, first = frame.row * len(rows) + 26, frame.names or 16
    scale = (frame.width - first - 24 - frame.values) / (1 - low)

    def place(value: float) -> float:
        return first + (min(max(value, low), 1) - low) * scale

    pieces: list[Markup] = []
    for tick in (low + (1 - low) * part / 5 for part in range(6)):
        x = place(tick)
        pieces.append(
            Markup('<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="{1}"/>').format(x, height - 22)
            + Markup('<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
                x, height - 6, f"{tick:.0%}" if low >= 0 else f"{tick:.1f}"
            )
        )
    if line is not None:
        pieces.append(
            Markup('<line class="mark" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="{1}"/>').format(place(line), height - 22)
        )
    pieces += [_dot(row, frame.row * number, frame, place) for number, row in enumerate(rows)]
    return _Drawing(height, pieces)


def _dot(row: ValueDot, top: float, frame: _Frame, place: Callable[[float], float]) -> Markup:
    is_beside = frame.names > 0
    name = row.name if len(row.name) <= frame.most_letters else row.name[: frame.most_letters - 1] + "…"
    y = top + (frame.row / 2 if is_beside else frame.row - 12)
    drawn = Markup('<text class="name" x="{}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        frame.names - 12 if is_beside else 0, y + 4 if is_beside else top + 16, "end" if is_beside else "start", name
    )
    estimate, tone = row.estimate, "alert" if row.is_marked else "tone-1"
    if estimate.value is None:
        return drawn
    drawn += Markup(
        '<text class="value" x="{}" y="{:.1f}" text-anchor="end">{:.0%} <tspan class="tick">n = {:,}</tspan></text>'
    ).format(frame.width, y + 4 if is_beside else top + 16, estimate.value, estimate.n)
    if estimate.low is not None and estimate.high is not None:
        drawn += Markup('<line class="whisker {}" x1="{:.1f}" x2="{:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>').format(
            tone, place(estimate.low), place(estimate.high), y=y
        )
    return drawn + Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="5"><title>{}</title></circle>').format(
        tone, place(estimate.value), y, f"{row.name}: {estimate!r}"
    )


def _level(y: float, label: str, frame: _Frame) -> Markup:
    return Markup(
        '<line class="grid" x1="44" x2="{}" y1="{y:.1f}" y2="{y:.1f}"/>'
        '<text class="tick" x="38" y="{text:.1f}" text-anchor="end">{}</text>'
    ).format(frame.width - _RIGHT, label, y=y, text=y + 4)


def _axis(highest: float) -> tuple[float, float]:
    """Return the end of an axis and the step of its ticks: 1, 2 or 5 times a power of ten."""
    power = 10 ** floor(log10(highest))
    step = next(power * factor for factor in (0.2, 0.5, 1, 2, 5) if highest / (power * factor) <= 5)
    step = max(step, 1.0)
    return step * ceil(highest / step), step


def _both(label: str, draw: Callable[[_Frame], _Drawing]) -> Markup:
    start = Markup(
        '<svg class="plot {}" viewBox="0 0 {} {}" role="img" aria-label="{}" preserveAspectRatio="xMinYMin">'
    )
    drawings = [(frame, draw(frame)) for frame in _FRAMES]
    return Markup("").join(
        start.format(frame.style, frame.width, drawing.height, label)
        + Markup("").join(drawing.pieces)
        + Markup("</svg>")
        for frame, drawing in drawings
    )
