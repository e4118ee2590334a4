"""Bias and agreement of judges as figures and tables: the four panels of CHEEMS, figure 15, and what stands beside."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from steelyard.evaluation.marks import (
    CHANCE,
    STRONG,
    Dot,
    Spec,
    framed,
    records,
    row_axis,
    share_axis,
    tooltip,
    vertical_line,
)
from steelyard.evaluation.tables import Figure, Table, count, decimal, percent, spread, table, word
from steelyard.report.judge_contents import Agreement, Authors, Length, PlacedPair, Position, Rater
from steelyard.report.summary_readers import Estimate


class Panel(NamedTuple):
    """One panel: whose it is (a kind or a judge), ``length`` or ``position``, and the figure."""

    name: str
    about: str
    figure: Figure


def bias_panels(raters: Mapping[str, Rater]) -> tuple[Panel, ...]:
    """Length and position bias of each kind (or judge), the panels of figure 15; one without a verdict is left out."""
    panels = []
    for name, rater in raters.items():
        if rater.length.longer.n:
            panels.append(Panel(name, "length", length_figure(rater.length)))
        if rater.position.earlier.n:
            panels.append(Panel(name, "position", position_figure(rater.position)))
    return tuple(panels)


def length_figure(length: Length) -> Figure:
    """How often the longer answer is preferred, by how much longer it is."""
    dots = [Dot(word("all"), "longer", length.longer)]
    dots += [Dot(f"{percent_range(one.above, one.up_to)}", "longer", one) for one in length.bins]
    return Figure("figure_length_bias", _shares(dots, "longer_preferred", "length_difference"))


def position_figure(position: Position) -> Figure:
    """How often the earlier shown answer is preferred, over all and by the two places within what was shown."""
    dots = [Dot(word("all"), "earlier", position.earlier)]
    dots += [Dot(_placed(one), "earlier", one) for one in position.pairs]
    return Figure("figure_position_bias", _shares(dots, "earlier_preferred", "places"))


def author_figure(authors: Authors) -> Figure:
    """The strength of each author with its interval, the strongest first."""
    dots = [Dot(one.author, "strength", one) for one in authors.strengths]
    axis = {"title": word("strength", "strength (log odds)"), "tickCount": 6}
    return Figure("figure_authors", _intervals(dots, axis, middle=0.0, form=".2f", row="author"))


def judge_table(raters: Mapping[str, Rater]) -> Table:
    """A row a judge (or kind): how many judgments, conflicts, agreement with the others, position and length bias."""
    columns = ("judge", "judgments", "conflict_ratio", "interval", "agreement_with_others", "coverage_of_others")
    columns = (*columns, "coverage_of_ranking", "earlier_preferred", "interval", "longer_preferred", "interval")
    rows = [
        (
            name,
            count(one.num_judgments),
            percent(one.conflict_ratio.value),
            spread(one.conflict_ratio),
            percent(one.others.agreement.value),
            percent(one.others.coverage.value),
            percent(one.ranking.coverage.value),
            percent(one.position.earlier.value),
            spread(one.position.earlier),
            percent(one.length.longer.value),
            spread(one.length.longer),
        )
        for name, one in raters.items()
    ]
    return table(columns, rows)


def agreement_table(agreement: Agreement) -> Table:
    """A row for every two judges and every two kinds: agreement, that of strict verdicts, kappa, and on how many."""
    columns = ("raters", "agreement", "interval", "of_strict", "kappa", "interval", "pairs")
    rows = [
        (
            " · ".join(one.judges if one.judges[0] else one.kinds),
            percent(one.agreement.value),
            spread(one.agreement),
            percent(one.agreement_of_strict.value),
            decimal(one.kappa.value),
            _ends(one.kappa),
            count(one.agreement.n),
        )
        for one in (*agreement.judges, *agreement.kinds)
    ]
    return table(columns, rows)


def percent_range(above: float, up_to: float) -> str:
    """``5 to 10%``."""
    return f"{above * 100:.0f} {word('to')} {up_to * 100:.0f}%"


def _placed(one: PlacedPair) -> str:
    if one.num_shown is None:
        return word("more_shown", "more shown")
    return f"{one.earlier} | {one.later} {word('of')} {one.num_shown}"


def _ends(estimate: Estimate) -> str:
    return f"{decimal(estimate.low)} … {decimal(estimate.high)}" if estimate.low is not None else decimal(None)


def _shares(dots: Sequence[Dot], title: str, row: str) -> Spec:
    return _intervals(dots, share_axis(title), middle=CHANCE, form=".1%", row=row)


def _intervals(dots: Sequence[Dot], axis: Spec, *, middle: float, form: str, row: str) -> Spec:
    """Values with intervals in rows, as Vega-Lite: a dashed line at the middle, a rule and a point a row."""
    values = records(dots)
    rows = {"field": "row", "type": "nominal", "sort": [one["row"] for one in values], "axis": row_axis(num_lines=1)}
    across = {"type": "quantitative", "scale": {"zero": False}, "axis": axis}
    shown = {"y": rows, "tooltip": tooltip(row, form=form)}
    rule = {"type": "rule", "strokeWidth": 2, "color": STRONG, "opacity": 0.6}
    point = {"type": "point", "filled": True, "size": 70, "color": STRONG, "opacity": 1}
    layers = [
        vertical_line(middle),
        {"mark": rule, "encoding": {**shown, "x": {"field": "low", **across}, "x2": {"field": "high"}}},
        {"mark": point, "encoding": {**shown, "x": {"field": "value", **across}}},
    ]
    return {**framed(layers, 26 * max(1, len(values))), "data": {"values": values}}
