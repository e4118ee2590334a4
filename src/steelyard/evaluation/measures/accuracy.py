"""Accuracy and exact match: the types of the headline, and its tables and figures with parts and baselines.

The headline is at the top of an evaluation's summary, not among its measures. Benches add values of their own.
"""

from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec import UNSET, UnsetType

from steelyard.core.types import Record
from steelyard.evaluation.tables import (
    DASH,
    PERCENT,
    Figure,
    Mark,
    Table,
    category_word,
    count,
    group_word,
    percent,
    points,
    points_spread,
    spread,
    table,
    word,
)
from steelyard.evaluation.vega import (
    CHANCE,
    Dot,
    Spec,
    baseline_marks,
    colour_of,
    framed,
    model_marks,
    records,
    row_axis,
    share_axis,
    symbol_of,
    tooltip,
    vertical_line,
)
from steelyard.statistics.intervals import Estimate

ValueT = TypeVar("ValueT")


class Range(Record, frozen=True, kw_only=True):
    """The bounds of a value: with every unscored pair wrong, and right."""

    low: float | None
    high: float | None


class GroupResult(Record, Generic[ValueT], frozen=True, kw_only=True):
    """Accuracy and exact match of one group of prompts; half credits leave out exact match."""

    accuracy: ValueT
    exact_match: ValueT | None = None


class SubsetAccuracy(GroupResult[ValueT], Generic[ValueT], frozen=True, kw_only=True):
    """One subset of a bench; ``by_category`` if it has categories of its own."""

    by_category: dict[str, GroupResult[ValueT]] | None = None


class Accuracy(GroupResult[ValueT], Generic[ValueT], frozen=True, kw_only=True):
    """Accuracy and exact match: mean over first-tier categories, over everything (``micro``), and by group."""

    accuracy_micro: ValueT
    exact_match_micro: ValueT | None = None
    by_category: dict[str, GroupResult[ValueT]]
    by_language: dict[str, GroupResult[ValueT]] | None = None


class LanguageResult(Record, Generic[ValueT], frozen=True, kw_only=True):
    """One language of a bench: its sections, and its overall value or the ``missing`` subsets."""

    sections: dict[str, ValueT]
    overall: ValueT | None = None
    missing: dict[str, str] | None = None


class SectionDrop(Record, Generic[ValueT], frozen=True, kw_only=True):
    """The drop of a mean over languages from a baseline language, absolute and relative."""

    absolute: ValueT
    relative: ValueT | None = None


class BaselineDrop(SectionDrop[ValueT], Generic[ValueT], frozen=True, kw_only=True):
    """The drop from the baseline language, overall and by section; ``why`` states the reason if it is undefined."""

    sections: dict[str, SectionDrop[ValueT]] | None = None
    why: str | None = None


class BenchAccuracy(Accuracy[ValueT], Generic[ValueT], frozen=True, kw_only=True):
    """Accuracy with the values that some benches add.

    ``headline`` names the value by which models are ranked, null where parts of the bench are ``missing``.
    """

    headline: str | UnsetType | None = UNSET
    missing: dict[str, str] | None = None
    overall: ValueT | None = None
    overall_with_prior_sets: ValueT | None = None
    prior_sets_missing: dict[str, str] | None = None
    subsets: dict[str, SubsetAccuracy[ValueT]] | None = None
    sections: dict[str, ValueT] | None = None
    languages: dict[str, LanguageResult[ValueT]] | None = None
    variance: ValueT | None = None
    drop_from_baseline: BaselineDrop[ValueT] | None = None
    gaps: dict[str, ValueT] | None = None


class Baseline(Accuracy[Estimate], frozen=True, kw_only=True):
    """The accuracy of a baseline; ``difference`` is the model's accuracy minus the baseline's."""

    difference: Estimate


class HeadlineSummary(BenchAccuracy[Estimate], frozen=True, kw_only=True):
    """The headline of an evaluation with its baselines, by name."""

    baselines: dict[str, Baseline]


class Named(NamedTuple):
    """A headline with the names of its model and of its bench on the page, and its best baseline."""

    name: str
    headline: HeadlineSummary
    bench: str = ""
    best: str | None = None


def baseline_word(name: str) -> str:
    """Return the translated name of a baseline; an unknown one keeps its own name."""
    return word(f"baseline_{name}", name)


def overview_table(model: Named) -> Table:
    """Return accuracy and exact match of the model and its baselines, and the model's lead with its interval."""
    headline = model.headline
    rows = [_overview_row(model.name, headline, "", "")]
    for name, baseline in sorted(headline.baselines.items(), key=lambda pair: -(pair[1].accuracy.value or 0.0)):
        lead, interval = points(baseline.difference.value), points_spread(baseline.difference)
        rows.append(_overview_row(baseline_word(name), baseline, lead, interval))
    columns = ("scorer", "accuracy", "interval", "exact_match", "interval", "lead", "interval_of_lead")
    return table(columns, rows)


def shared_table(models: Sequence[Named]) -> Table:
    """Return accuracy and exact match of the models of one bench, each with its lead, and of its baselines."""
    rows = []
    for model in models:
        lead = None if model.best is None else model.headline.baselines[model.best].difference
        cells = (DASH, DASH) if lead is None else (points(lead.value), points_spread(lead))
        rows.append(_overview_row(model.name, model.headline, *cells))
    rows += [_overview_row(name, baseline, "", "") for name, baseline in _shared_baselines(models)]
    columns = ("scorer", "accuracy", "interval", "exact_match", "interval", "lead_over_best", "interval_of_lead")
    return table(columns, rows)


def overview_figure(models: Sequence[Named]) -> Figure:
    """Draw the accuracy of the models of one bench and of every baseline with intervals and the chance level."""
    baselines = _shared_baselines(models)
    dots = [Dot(model.name, model.name, model.headline.accuracy) for model in models]
    dots += [Dot(name, name, baseline.accuracy) for name, baseline in baselines]
    marks = (*model_marks([model.name for model in models]), *baseline_marks([name for name, _ in baselines]))
    order = [dot.row for dot in dots]
    return Figure("figure_overview", framed(_interval_layers(records(dots), order, marks, "scorer"), 26 * len(order)))


def group_table(
    group: str,
    results: Mapping[str, GroupResult[Estimate]],
    baselines: Mapping[str, Mapping[str, GroupResult[Estimate]]],
) -> Table:
    """Return accuracy and exact match by ``group`` with n and intervals, and one column for every baseline."""
    names = list(baselines)
    rows = [
        (
            group_word(group, name),
            count(result.accuracy.n),
            percent(result.accuracy.value),
            spread(result.accuracy),
            *(percent(baselines[other][name].accuracy.value if name in baselines[other] else None) for other in names),
            count(None if result.exact_match is None else result.exact_match.n),
            *PERCENT.cells(result.exact_match),
        )
        for name, result in results.items()
    ]
    columns = ("group", "pairs", "accuracy", "interval", "prompts", "exact_match", "interval")
    headed = (
        table(columns[:4], []).columns + tuple(baseline_word(name) for name in names) + table(columns[4:], []).columns
    )
    return Table(headed, tuple(rows))


def bench_table(headline: HeadlineSummary) -> Table | None:
    """Return the bench's sections (n counts prompts), subsets and their categories (n counts pairs); None if empty."""
    rows: list[tuple[str, ...]] = [
        (name, word("section"), count(section.n), *PERCENT.cells(section), "", "")
        for name, section in (headline.sections or {}).items()
    ]
    for name, subset in (headline.subsets or {}).items():
        rows.append(_part_row(name, "subset", subset))
        categories = (subset.by_category or {}).items()
        rows += [_part_row(f"{name} · {category_word(group)}", "category", category) for group, category in categories]
    columns = ("group", "part", "n", "accuracy", "interval", "exact_match", "interval")
    return table(columns, rows) if rows else None


def _part_row(name: str, part: str, group: GroupResult[Estimate]) -> tuple[str, ...]:
    cells = (*PERCENT.cells(group.accuracy), *PERCENT.cells(group.exact_match))
    return (name, word(part), count(group.accuracy.n), *cells)


def group_figure(compared: Sequence[Named], group: str) -> Figure:
    """Draw accuracy by ``group`` (``category`` or ``language``): models with intervals, baselines as symbols.

    The label of a group has its n.
    """
    first = compared[0].headline
    groups = {name: result for model in reversed(compared) for name, result in groups_of(model.headline, group).items()}
    labels = {name: f"{group_word(group, name)}\nn = {count(result.accuracy.n)}" for name, result in groups.items()}
    order = [labels[name] for name in sorted(groups, key=lambda name: -(groups[name].accuracy.value or 0.0))]
    dots = [
        Dot(labels[name], model.name, result.accuracy)
        for model in compared
        for name, result in groups_of(model.headline, group).items()
        if name in labels
    ]
    names = list(first.baselines) if group == "category" else []
    quiet = [
        Dot(labels[name], baseline_word(other), result.accuracy)
        for other in names
        for name, result in first.baselines[other].by_category.items()
        if name in labels
    ]
    strong = model_marks([model.name for model in compared])
    marks = (*strong, *baseline_marks([baseline_word(name) for name in names]))
    layers = [
        *_symbol_layer(records(quiet), order, marks, group),
        *_interval_layers(records(dots), order, marks, group),
    ]
    height = (26 + 12 * len(compared)) * max(1, len(order))
    return Figure(f"figure_{group}", framed(layers, height), marks)


def groups_of(headline: HeadlineSummary, group: str) -> Mapping[str, GroupResult[Estimate]]:
    """Return the results by ``category`` or ``language``."""
    return headline.by_category if group == "category" else headline.by_language or {}


def _shared_baselines(models: Sequence[Named]) -> list[tuple[str, Baseline]]:
    """Return the baselines of one bench by title, the best first.

    Evaluations that scored other pairs have other values of a baseline: then its title names the model, too.
    """
    values: dict[str, dict[Estimate, tuple[str, Baseline]]] = {}
    for model in models:
        for name, baseline in model.headline.baselines.items():
            values.setdefault(name, {}).setdefault(baseline.accuracy, (model.name, baseline))
    titled = [
        (baseline_word(name) if len(different) == 1 else f"{baseline_word(name)} · {model}", baseline)
        for name, different in values.items()
        for model, baseline in different.values()
    ]
    return sorted(titled, key=lambda pair: -(pair[1].accuracy.value or 0.0))


def _overview_row(name: str, accuracy: Accuracy[Estimate], lead: str, interval: str) -> tuple[str, ...]:
    return (name, *PERCENT.cells(accuracy.accuracy), *PERCENT.cells(accuracy.exact_match), lead, interval)


def _rows_of(order: Sequence[str]) -> Spec:
    return {
        "field": "row",
        "type": "nominal",
        "sort": list(order),
        "scale": {"domain": list(order)},
        "axis": row_axis(num_lines=1 + ("\n" in order[0])),
    }


def _interval_layers(values: list[Spec], order: Sequence[str], marks: Sequence[Mark], row: str) -> list[Spec]:
    across = {"type": "quantitative", "scale": {"domain": [0, 1]}, "axis": share_axis("accuracy")}
    offset = {"field": "series", "type": "nominal", "sort": [mark.name for mark in marks]}
    is_shared = len({value["row"] for value in values}) < len(values)
    rows = {"y": _rows_of(order), **({"yOffset": offset} if is_shared else {})}
    shown = {**rows, "color": colour_of(marks), "tooltip": tooltip(row)}
    return [
        vertical_line(CHANCE),
        {
            "data": {"values": [value for value in values if value["low"] is not None and value["high"] is not None]},
            "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.45, "strokeCap": "round"},
            "encoding": {**shown, "x": {"field": "low", **across}, "x2": {"field": "high"}},
        },
        {
            "data": {"values": values},
            "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
            "encoding": {**shown, "shape": symbol_of(marks), "x": {"field": "value", **across}},
        },
    ]


def _symbol_layer(values: list[Spec], order: Sequence[str], marks: Sequence[Mark], row: str) -> list[Spec]:
    if not values:
        return []
    encoding = {
        "y": _rows_of(order),
        "x": {"field": "value", "type": "quantitative", "scale": {"domain": [0, 1]}, "axis": share_axis("accuracy")},
        "color": colour_of(marks),
        "shape": symbol_of(marks),
        "tooltip": tooltip(row),
    }
    return [
        {
            "data": {"values": values},
            "mark": {"type": "point", "size": 48, "strokeWidth": 1.6, "opacity": 0.9},
            "encoding": encoding,
        }
    ]
