"""The rewards of a model on the page: by tier of the ranking, raw, and the margins of pairs."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from steelyard.core.numerics import Floats, histogram_edges
from steelyard.evaluation.items import ScoredItem
from steelyard.evaluation.tables import (
    Figure,
    Grouped,
    Mark,
    Panel,
    Table,
    count,
    decimal,
    isolate,
    percent,
    table,
    word,
)
from steelyard.evaluation.vega import (
    ALERT,
    INK,
    MODEL_COLOURS,
    MUTED,
    STRONG,
    Spec,
    colour_of,
    framed,
    row_axis,
    vertical_line,
)
from steelyard.report.page import Section

_QUANTILES = (5, 25, 50, 75, 95)
QUANTILE_WORDS = ("quantile_5", "quantile_25", "median", "quantile_75", "quantile_95")
_MOST_BINS = 40


def rewards_section(items: Mapping[str, Iterable[ScoredItem]], evidence: Sequence[str]) -> Section:
    """Return the distributions of each model's rewards; a model without scored and ranked responses has none."""
    panels: list[Panel] = []
    for name, results in items.items():
        rewards = rewards_of(results)
        if not rewards.scores.size:
            continue
        title = f"{isolate(name)} · " if len(items) > 1 else ""
        spreads = tier_spreads(rewards)
        panels += [
            Panel(title + word("by_tier"), tier_figure(spreads), (Grouped("", tier_table(spreads)),), "note_tiers"),
            Panel(title + word("raw_rewards"), score_figure(rewards), (), "note_scores"),
        ]
        if rewards.margins.size:
            numbers = (Grouped("", margin_table(rewards.margins)),)
            panels.append(Panel(title + word("margins"), margin_figure(rewards.margins), numbers, "note_margins"))
    return Section("rewards", tuple(evidence), tuple(panels))


class RewardColumns(NamedTuple):
    """Scores of ranked responses and margins of pairs, as flat arrays.

    ``tier`` counts from 1 (best) and ``last`` is the number of tiers of its prompt, both of shape (response,);
    ``margins`` has shape (pair,): the better response's score minus the worse one's.
    """

    scores: Floats
    centred: Floats
    tier: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    margins: Floats


class TierSpread(NamedTuple):
    """The rewards of one tier, minus the mean of each prompt: their number and five quantiles."""

    tier: int
    n: int
    quantiles: tuple[float, ...]


def rewards_of(items: Iterable[ScoredItem]) -> RewardColumns:
    """Return the scored, ranked responses of all prompts, and the margins of their pairs across tiers."""
    scores, tiers, sizes, depths = array("d"), array("q"), array("q"), array("q")
    for item in items:
        size = len(scores)
        for number, tier in enumerate(item.ranking or (), 1):
            scored = [score for name in tier if (score := item.scores.get(name)) is not None]
            scores.extend(scored)
            tiers.extend([number] * len(scored))
        sizes.append(len(scores) - size)
        depths.append(len(item.ranking or ()))
    score, tier, size = np.array(scores, float), np.array(tiers, np.int64), np.array(sizes, np.int64)
    prompt = np.repeat(np.arange(len(size)), size)
    middle = np.bincount(prompt, score, len(size)) / np.maximum(size, 1)
    return RewardColumns(
        score, score - middle[prompt], tier, np.array(depths, np.int64)[prompt], _margins(score, tier, size)
    )


def _margins(score: Floats, tier: npt.NDArray[np.int64], size: npt.NDArray[np.int64]) -> Floats:
    """Return the margin of every pair across tiers, prompts of one size together; scores go from best to worst tier."""
    starts = np.cumsum(size) - size
    margins: list[Floats] = [np.zeros(0)]
    for number in np.unique(size[size > 1]).tolist():
        better, worse = np.triu_indices(number, 1)
        rows = starts[size == number][:, None]
        first, second = rows + better, rows + worse
        margins.append((score[first] - score[second])[tier[first] < tier[second]])
    return np.concatenate(margins)


def tier_spreads(rewards: RewardColumns) -> tuple[TierSpread, ...]:
    """Return the spread of centred rewards in each tier, best tier first.

    Only differences within a prompt have meaning under Bradley-Terry, so each prompt's mean is subtracted.
    """
    return tuple(
        TierSpread(int(tier), int(chosen.size), tuple(float(value) for value in np.percentile(chosen, _QUANTILES)))
        for tier in np.unique(rewards.tier)
        if (chosen := rewards.centred[rewards.tier == tier]).size
    )


def tier_table(spreads: Sequence[TierSpread]) -> Table:
    """Return the quantiles of each tier."""
    columns = ("tier", "responses", *QUANTILE_WORDS)
    return table(columns, [(str(tier.tier), count(tier.n), *map(decimal, tier.quantiles)) for tier in spreads])


def margin_table(margins: Floats) -> Table:
    """Return the numbers of pairs of ranked responses that are ordered rightly, tied and wrongly."""
    total = max(1, margins.size)
    rows = [
        (word(key), count(int(number)), percent(number / total))
        for key, number in (
            ("right", (margins > 0).sum()),
            ("tied_pairs", (margins == 0).sum()),
            ("wrong", (margins < 0).sum()),
        )
    ]
    return table(("outcome", "pairs", "share"), rows)


def tier_figure(spreads: Sequence[TierSpread]) -> Figure:
    """Return each tier's middle half, its 5% to 95% range and its median."""
    labels = [f"{word('tier')} {tier.tier}\nn = {count(tier.n)}" for tier in spreads]
    values = [
        {"row": label, "n": tier.n, **dict(zip(QUANTILE_WORDS, tier.quantiles, strict=True))}
        for label, tier in zip(labels, spreads, strict=True)
    ]
    rows = {"field": "row", "type": "nominal", "sort": labels, "axis": row_axis()}
    across = {"type": "quantitative", "axis": {"title": word("centred_reward"), "tickCount": 6}}
    shown = {"y": rows, "tooltip": [_tip("row", "tier"), *(_tip(name, name, ".3f") for name in QUANTILE_WORDS)]}
    box = {"type": "bar", "size": 16, "cornerRadius": 3, "color": STRONG, "opacity": 0.55}
    tick = {"type": "tick", "size": 22, "thickness": 3, "color": INK}
    layers = [
        vertical_line(0.0),
        _range(
            {"type": "rule", "strokeWidth": 2, "color": STRONG, "opacity": 0.5}, shown, across, "quantile_5 quantile_95"
        ),
        _range(box, shown, across, "quantile_25 quantile_75"),
        {"mark": tick, "encoding": {**shown, "x": {"field": "median", **across}}},
    ]
    return Figure("figure_tiers", {**framed(layers, 40 * max(1, len(spreads))), "data": {"values": values}})


def score_figure(rewards: RewardColumns) -> Figure:
    """Return histograms of the raw rewards of best, middle and last tiers, as shares of each group."""
    is_best, is_last = rewards.tier == 1, (rewards.tier == rewards.last) & (rewards.last > 1)
    groups = (
        (Mark(word("tier_best"), MODEL_COLOURS[0], "circle"), rewards.scores[is_best]),
        (Mark(word("tier_middle"), MUTED, "circle"), rewards.scores[~is_best & ~is_last]),
        (Mark(word("tier_last"), ALERT, "circle"), rewards.scores[is_last]),
    )
    edges = histogram_edges(rewards.scores, _num_bins(rewards.scores.size))
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
    """Return a histogram of the margins; pairs left of zero are ordered wrongly."""
    bound = np.abs(margins).max(initial=0.0) or 1.0
    values = _binned(margins, histogram_edges(np.array([-bound, bound]), 2 * (_num_bins(margins.size) // 2)), "")
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
    """Return as many bins as the numbers can fill: their square root, from 8 to 40."""
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
