"""Figures of reward distributions: by tier, raw by best and last tier, and the margins of pairs."""

from collections.abc import Sequence

import numpy as np

from steelyard.core.arrays import Floats
from steelyard.evaluation.marks import (
    ALERT,
    MODEL_COLOURS,
    STRONG,
    Spec,
    colour_of,
    framed,
    row_axis,
    vertical_line,
)
from steelyard.evaluation.tables import Figure, Mark, count, word
from steelyard.report.rewards import QUANTILE_WORDS, Rewards, TierSpread

_MOST_BINS = 40


def tier_figure(spreads: Sequence[TierSpread]) -> Figure:
    """Each tier's middle half, its 5 to 95 % range and its median."""
    labels = [f"{word('tier')} {one.tier}\nn = {count(one.n)}" for one in spreads]
    values = [
        {"row": label, "n": one.n, **dict(zip(QUANTILE_WORDS, one.quantiles, strict=True))}
        for label, one in zip(labels, spreads, strict=True)
    ]
    rows = {"field": "row", "type": "nominal", "sort": labels, "axis": row_axis()}
    across = {"type": "quantitative", "axis": {"title": word("centred_reward"), "tickCount": 6}}
    shown = {"y": rows, "tooltip": [_tip("row", "tier"), *(_tip(name, name, ".3f") for name in QUANTILE_WORDS)]}
    box = {"type": "bar", "size": 16, "cornerRadius": 3, "color": STRONG, "opacity": 0.55}
    tick = {"type": "tick", "size": 22, "thickness": 3, "color": "var(--ink)"}
    layers = [
        vertical_line(0.0),
        _range(
            {"type": "rule", "strokeWidth": 2, "color": STRONG, "opacity": 0.5}, shown, across, "quantile_5 quantile_95"
        ),
        _range(box, shown, across, "quantile_25 quantile_75"),
        {"mark": tick, "encoding": {**shown, "x": {"field": "median", **across}}},
    ]
    return Figure("figure_tiers", {**framed(layers, 40 * max(1, len(spreads))), "data": {"values": values}})


def score_figure(rewards: Rewards) -> Figure:
    """Histograms of the raw rewards of best, middle and last tiers, each as a share of its own group."""
    is_best, is_last = rewards.tier == 1, (rewards.tier == rewards.last) & (rewards.last > 1)
    groups = (
        (Mark(word("tier_best"), MODEL_COLOURS[0], "circle"), rewards.scores[is_best]),
        (Mark(word("tier_middle"), "var(--muted)", "circle"), rewards.scores[~is_best & ~is_last]),
        (Mark(word("tier_last"), ALERT, "circle"), rewards.scores[is_last]),
    )
    edges = np.histogram_bin_edges(rewards.scores, bins=_num_bins(rewards.scores.size))
    marks = tuple(mark for mark, chosen in groups if chosen.size)
    values = [value for mark, chosen in groups if chosen.size for value in _binned(chosen, edges, mark.name)]
    bins = [_tip("from", "from", ".2f"), _tip("to", "to", ".2f")]
    share = {"title": word("share_of_tier"), "format": ".0%", "tickCount": 4}
    encoding = {
        "x": {"field": "middle", "type": "quantitative", "axis": {"title": word("reward"), "tickCount": 6}},
        "y": {"field": "share", "type": "quantitative", "stack": None, "axis": share},
        "color": colour_of(marks),
        "tooltip": [_tip("series", "tier"), *bins, _tip("share", "share", ".1%"), _tip("n", "responses", ",")],
    }
    mark = {"type": "area", "interpolate": "monotone", "opacity": 0.2, "line": {"strokeWidth": 2, "opacity": 1}}
    return Figure(
        "figure_scores", {**framed([{"mark": mark, "encoding": encoding}], 220), "data": {"values": values}}, marks
    )


def margin_figure(margins: Floats) -> Figure:
    """A histogram of the margins; what lies left of zero is ordered wrongly."""
    bound = float(np.abs(margins).max(initial=0.0)) or 1.0
    values = _binned(margins, np.linspace(-bound, bound, 2 * (_num_bins(margins.size) // 2) + 1), "")
    for value in values:
        value["series"] = word("wrong" if value["middle"] < 0 else "right")
    legend = (Mark(word("right"), STRONG, "square"), Mark(word("wrong"), ALERT, "square"))
    heights = {"title": word("pairs"), "format": ",d", "tickCount": 4, "tickMinStep": 1}
    encoding = {
        "x": {
            "field": "from",
            "type": "quantitative",
            "bin": "binned",
            "axis": {"title": word("margin"), "tickCount": 7},
        },
        "x2": {"field": "to"},
        "y": {"field": "n", "type": "quantitative", "axis": heights},
        "color": colour_of(legend),
        "tooltip": [_tip("from", "from", ".2f"), _tip("to", "to", ".2f"), _tip("n", "pairs", ",")],
    }
    layer = {"mark": {"type": "bar", "opacity": 0.8, "binSpacing": 1}, "encoding": encoding}
    return Figure("figure_margins", {**framed([layer], 200), "data": {"values": values}}, legend)


def _num_bins(num_values: int) -> int:
    """As many bins as the numbers can fill: their square root, from 8 to 40."""
    return max(8, min(_MOST_BINS, round(num_values**0.5 / 1.5)))


def _tip(field: str, title: str, form: str | None = None) -> Spec:
    shown: Spec = {"field": field, "title": word(title)}
    return shown if form is None else {**shown, "format": form}


def _binned(numbers: Floats, edges: Floats, series: str) -> list[Spec]:
    counts, _ = np.histogram(numbers, bins=edges)
    return [
        {
            "series": series,
            "from": round(float(low), 6),
            "to": round(float(high), 6),
            "middle": round(float(low + high) / 2, 6),
            "n": int(number),
            "share": round(float(number / numbers.size), 6),
        }
        for low, high, number in zip(edges[:-1], edges[1:], counts, strict=True)
    ]


def _range(mark: Spec, shown: Spec, across: Spec, ends: str) -> Spec:
    low, high = ends.split()
    return {"mark": mark, "encoding": {**shown, "x": {"field": low, **across}, "x2": {"field": high}}}
