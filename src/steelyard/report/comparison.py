"""A run of `compare` on the page: every model by what ranks them, and the paired difference of every two."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from steelyard.evaluation.marks import STRONG, Dot, Spec, framed, records, row_axis, tooltip, vertical_line
from steelyard.evaluation.tables import (
    DASH,
    Figure,
    Sentence,
    Table,
    count,
    percent,
    points,
    points_spread,
    spread,
    table,
    word,
)
from steelyard.report.conflicts import Grouped
from steelyard.report.sections import Panel, Section
from steelyard.report.summary_readers import Estimate, Seen

_LEVEL = 0.05
_ROW_HEIGHT = 30


class ComparedModel(Seen, frozen=True, kw_only=True):
    """One model of a comparison; ``value`` is what models are ranked by."""

    name: str
    value: Estimate = Estimate()
    accuracy: Estimate = Estimate()
    exact_match: Estimate = Estimate()
    best_rank: int | None = None
    worst_rank: int | None = None


class HeadlineDifference(Estimate, frozen=True, kw_only=True):
    """The first model's headline minus the second's."""

    p_corrected: float | None = None


class Difference(Seen, frozen=True, kw_only=True):
    """The first model minus the second; ``headline`` is null where models are ranked by accuracy."""

    first: str
    second: str
    accuracy: Estimate = Estimate()
    exact_match: Estimate = Estimate()
    p_accuracy_corrected: float | None = None
    p_exact_match_corrected: float | None = None
    detectable: float | None = None
    headline: HeadlineDifference | None = None


class Comparison(Seen, frozen=True, kw_only=True):
    """The summary of a run of ``compare``. ``missing``: what of the bench keeps its headline away."""

    bench: str = ""
    headline: str | None = None
    missing: dict[str, str] = msgspec.field(default_factory=dict)
    models: tuple[ComparedModel, ...] = ()
    comparisons: tuple[Difference, ...] = ()


class NamedComparison(NamedTuple):
    """A run of ``compare`` under its name."""

    name: str
    comparison: Comparison


def comparison_section(compared: Sequence[NamedComparison], evidence: Sequence[str]) -> Section:
    """The models of each comparison with their ranks, and the differences of every two."""
    panels: list[Panel] = []
    for name, own in compared:
        prefix = f"{name} · " if len(compared) > 1 else ""
        panels += [
            Panel(
                f"{prefix}{word('compared_models')} · {own.bench}",
                _model_figure(own),
                (Grouped("", _model_table(own)),),
                "note_compared_models",
            ),
            Panel(
                prefix + word("differences"),
                _difference_figure(own),
                (Grouped("", _difference_table(own)),),
                "note_differences",
            ),
        ]
        if own.missing:
            rows = table(("part", "n"), list(own.missing.items()))
            panels.append(Panel(prefix + word("missing_of_bench"), None, (Grouped("", rows),)))
    return Section("comparison", tuple(evidence), tuple(panels))


def comparison_sentences(own: Comparison) -> tuple[Sentence, ...]:
    """What ranks the models, and how many of the differences are significant."""
    significant = sum(_is_significant(one) for one in own.comparisons)
    values = {
        "models": count(len(own.models)),
        "bench": own.bench,
        "ranked_by": _ranked_by(own),
        "significant": count(significant),
        "all": count(len(own.comparisons)),
    }
    return (Sentence("say_compared", values),)


def _model_table(own: Comparison) -> Table:
    rows = [
        (
            one.name,
            _ranks(one),
            *((percent(one.value.value), spread(one.value)) if _has_own(own) else ()),
            percent(one.accuracy.value),
            spread(one.accuracy),
            percent(one.exact_match.value),
            spread(one.exact_match),
        )
        for one in own.models
    ]
    headline = ("bench_overall", "interval") if _has_own(own) else ()
    return table(("scorer", "rank", *headline, "accuracy", "interval", "exact_match", "interval"), rows)


def _difference_table(own: Comparison) -> Table:
    rows = [
        (
            _title(one),
            *((points(ranked.value), points_spread(ranked), _p(p_value)) if _has_own(own) else ()),
            points(one.accuracy.value),
            points_spread(one.accuracy),
            _p(one.p_accuracy_corrected),
            points(one.detectable),
            points(one.exact_match.value),
            points_spread(one.exact_match),
            _p(one.p_exact_match_corrected),
        )
        for one in own.comparisons
        for ranked, p_value in [_ranked_difference(one)]
    ]
    headline = ("bench_overall", "interval", "p_corrected") if _has_own(own) else ()
    accuracy = ("accuracy", "interval", "p_corrected", "detectable")
    return table(("pair_of_models", *headline, *accuracy, "exact_match", "interval", "p_corrected"), rows)


def _has_own(own: Comparison) -> bool:
    """Whether the bench has a headline of its own beside accuracy."""
    return own.headline not in (None, "accuracy")


def _ranked_by(own: Comparison) -> str:
    return word("bench_overall") if _has_own(own) else word("accuracy")


def _model_figure(own: Comparison) -> Figure:
    dots = [Dot(one.name, one.name, one.value) for one in own.models]
    axis = {"title": _ranked_by(own), "format": ".0%", "tickCount": 6}
    return Figure("figure_compared_models", _figure(dots, {"axis": axis, "scale": {"zero": False}}, [], ".1%"))


def _difference_figure(own: Comparison) -> Figure:
    dots = [Dot(_title(one), _title(one), _ranked_difference(one)[0]) for one in own.comparisons]
    axis = {"title": word("difference"), "format": "+.0%", "tickCount": 6}
    return Figure("figure_differences", _figure(dots, {"axis": axis}, [vertical_line(0.0)], "+.1%"))


def _figure(dots: Sequence[Dot], across: Spec, behind: list[Spec], form: str) -> Spec:
    """Values with their intervals, a row each, in the order given."""
    values = records(dots)
    order = [dot.row for dot in dots]
    rows = {"field": "row", "type": "nominal", "sort": order, "axis": {**row_axis(num_lines=1), "labelLimit": 260}}
    x: Spec = {"type": "quantitative", **across}
    shown: Spec = {"y": rows, "color": {"value": STRONG}, "tooltip": tooltip("scorer", form=form)}
    with_interval = [value for value in values if value["low"] is not None]
    layers = [
        *behind,
        {
            "data": {"values": with_interval},
            "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.45, "strokeCap": "round"},
            "encoding": {**shown, "x": {"field": "low", **x}, "x2": {"field": "high"}},
        },
        {
            "data": {"values": values},
            "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
            "encoding": {**shown, "x": {"field": "value", **x}},
        },
    ]
    return framed(layers, _ROW_HEIGHT * max(2, len(order)))


def _ranked_difference(one: Difference) -> tuple[Estimate, float | None]:
    if one.headline is not None:
        return one.headline, one.headline.p_corrected
    return one.accuracy, one.p_accuracy_corrected


def _is_significant(one: Difference) -> bool:
    _, p_value = _ranked_difference(one)
    return p_value is not None and p_value < _LEVEL


def _title(one: Difference) -> str:
    return f"{one.first} {DASH} {one.second}"


def _ranks(one: ComparedModel) -> str:
    if one.best_rank is None or one.worst_rank is None:
        return DASH
    is_sure = one.best_rank == one.worst_rank
    return str(one.best_rank) if is_sure else f"{one.best_rank}{DASH}{one.worst_rank}"


def _p(value: float | None) -> str:
    if value is None:
        return DASH
    return f"{value:.4f}" if value >= 0.0001 else "< 0.0001"
