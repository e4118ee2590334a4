"""The judgments of a case drawn in text: a column a response, best tier first, and an arrow for each outcome of a pair.

    A   B   C
    ├──>│   │   2 human, 1 llm
    │   ╞═══╡   1 human
    │<──┼───┤   1 llm !

An arrow that points left goes against the tiers; ``!`` marks judgments in conflict.
"""

from collections.abc import Sequence

from steelyard.io.terminal_text import Line, Span, hanging, joined_lines
from steelyard.report.opened import Arrow, Opened

MOST_ARROWS = 120
_SPACINGS = (5, 4, 3)
_GUTTER = 5
_GAP = "  "
_MEANINGS = {
    ">": ("├──>", "beats"),
    "=": ("╞══╡", "tie"),
    "?": ("├╌╌┤", "unreadable"),
}
# The left end, the line, the crossing of another column, and the right end, by outcome.
_STROKES = {">": "├─┼>", "<": "<─┼┤", "=": "╞═╪╡", "?": "├╌┼┤"}


def draw_graph(opened: Opened, width: int) -> list[Line]:
    """The graph in lines of at most ``width`` cells; a list of arrows where the columns would not fit."""
    if not opened.arrows:
        return []
    columns = _columns(opened)
    arrows = sorted(opened.arrows, key=lambda arrow: _place(arrow, columns))
    shown = arrows[:MOST_ARROWS]
    longest = max(len(_counted(arrow)) for arrow in shown)
    room = width - _GUTTER - len(_GAP) - longest - len(opened.labels[columns[-1]])
    spacing = next((one for one in _SPACINGS if (len(columns) - 1) * one <= room), None)
    if spacing is None:
        lines = [line for arrow in shown for line in _listed(opened, arrow, width)]
    else:
        lines = [*_head(opened, columns, spacing), *(_drawn(arrow, columns, spacing) for arrow in shown)]
    if len(arrows) > len(shown):
        lines += joined_lines([f"… {len(arrows) - len(shown)} more: --json has them all"], width, style="quiet")
    return lines


def legend(opened: Opened, width: int) -> list[Line]:
    """What the signs that stand in this graph mean."""
    outcomes = {arrow.outcome for arrow in opened.arrows}
    parts = [f"{sign} {meaning}" for outcome, (sign, meaning) in _MEANINGS.items() if outcome in outcomes]
    if opened.num_conflicting:
        parts.append("! in conflict: the tiers do not keep it")
    return joined_lines(parts, width, style="quiet")


def _columns(opened: Opened) -> tuple[str, ...]:
    """The judged responses, best tier first, in a tier by the order of the case."""
    judged = {name for arrow in opened.arrows for name in (arrow.first, arrow.second)}
    ranked = [name for tier in opened.ranking or () for name in tier]
    order = dict.fromkeys([*ranked, *opened.labels])
    return tuple(name for name in order if name in judged)


def _place(arrow: Arrow, columns: Sequence[str]) -> tuple[int, int, bool]:
    ends = (columns.index(arrow.first), columns.index(arrow.second))
    return (min(ends), max(ends), ends[0] > ends[1])


def _counted(arrow: Arrow) -> str:
    counted = ", ".join(f"{number} {kind}" for kind, number in arrow.by_kind.items())
    return counted + (" !" if arrow.is_conflicting else "")


def _remark(arrow: Arrow) -> Span:
    return Span(_counted(arrow), "bad" if arrow.is_conflicting else "plain")


def _head(opened: Opened, columns: Sequence[str], spacing: int) -> list[Line]:
    names = [opened.labels[name] for name in columns]
    tiers = [str(opened.tier_of(name) or "-") for name in columns]
    return [
        (Span("tier ", "quiet"), Span("".join(one.ljust(spacing) for one in tiers).rstrip(), "quiet")),
        (Span(" " * _GUTTER), Span("".join(one.ljust(spacing) for one in names).rstrip(), "title")),
    ]


def _drawn(arrow: Arrow, columns: Sequence[str], spacing: int) -> Line:
    start, end = columns.index(arrow.first), columns.index(arrow.second)
    outcome = "<" if arrow.outcome == ">" and start > end else arrow.outcome
    low, high = min(start, end), max(start, end)
    left, stroke, crossing, right = _STROKES[outcome]
    drawn = ""
    for column in range(len(columns)):
        at = {low: left, high: right}.get(column, crossing if low < column < high else "│")
        drawn += at + (stroke if low <= column < high else " ") * (spacing - 1)
    # An arrowhead stands before the column that it points at, whose own line goes on.
    if outcome == ">":
        drawn = f"{drawn[: high * spacing - 1]}>│{drawn[high * spacing + 1 :]}"
    elif outcome == "<":
        drawn = f"{drawn[: low * spacing]}│<{drawn[low * spacing + 2 :]}"
    style = "bad" if arrow.is_conflicting else "plain"
    return (Span(" " * _GUTTER), Span(drawn.rstrip(), style), Span(_GAP), _remark(arrow))


def _listed(opened: Opened, arrow: Arrow, width: int) -> list[Line]:
    ends = f"{opened.labels[arrow.first]} {arrow.outcome} {opened.labels[arrow.second]}"
    remark = _remark(arrow)
    return hanging([Span(ends + _GAP, remark.style)], remark.text, width, style=remark.style)
