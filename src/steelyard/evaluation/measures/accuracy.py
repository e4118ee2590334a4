"""Accuracy and exact match beside their baselines: the overview and the categories, as tables and figures."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from steelyard.evaluation.marks import (
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
from steelyard.evaluation.tables import (
    Figure,
    Mark,
    Table,
    count,
    percent,
    points,
    points_spread,
    spread,
    table,
    word,
)
from steelyard.report.summary_readers import Baseline, Evaluation, Measured


class Named(NamedTuple):
    """An evaluation and the name by which the page knows its model."""

    name: str
    evaluation: Evaluation


def baseline_word(name: str) -> str:
    """The name of a baseline as people say it; an unknown one keeps its own."""
    return word(f"baseline_{name}", name)


def overview_table(named: Named) -> Table:
    """The model and its baselines: accuracy, exact match, and the model's lead with its interval."""
    own = named.evaluation
    rows = [_overview_row(named.name, own, "", "")]
    for name, baseline in _sorted_baselines(own):
        lead, interval = points(baseline.difference.value), points_spread(baseline.difference)
        rows.append(_overview_row(baseline_word(name), baseline, lead, interval))
    columns = ("scorer", "accuracy", "interval", "exact_match", "interval", "lead", "interval_of_lead")
    return table(columns, rows)


def overview_figure(named: Named) -> Figure:
    """Accuracy of the model and of every baseline with their intervals, the chance level marked."""
    own = named.evaluation
    baselines = _sorted_baselines(own)
    dots = [Dot(named.name, named.name, own.accuracy)]
    dots += [Dot(baseline_word(name), baseline_word(name), baseline.accuracy) for name, baseline in baselines]
    marks = (*model_marks([named.name]), *baseline_marks([baseline_word(name) for name, _ in baselines]))
    order = [dot.row for dot in dots]
    return Figure("figure_overview", framed(_interval_layers(records(dots), order, marks, "scorer"), 26 * len(order)))


def group_table(groups: Mapping[str, Measured], baselines: Mapping[str, Mapping[str, Measured]]) -> Table:
    """Each group's accuracy and exact match with n and intervals; one more column for every baseline."""
    names = list(baselines)
    rows = [
        (
            name,
            count(group.accuracy.n),
            percent(group.accuracy.value),
            spread(group.accuracy),
            *(percent(baselines[other].get(name, Measured()).accuracy.value) for other in names),
            count(group.exact_match.n),
            percent(group.exact_match.value),
            spread(group.exact_match),
        )
        for name, group in groups.items()
    ]
    columns = ("group", "pairs", "accuracy", "interval", "prompts", "exact_match", "interval")
    headed = (
        table(columns[:4], []).columns + tuple(baseline_word(name) for name in names) + table(columns[4:], []).columns
    )
    return Table(headed, tuple(rows))


def bench_table(evaluation: Evaluation) -> Table | None:
    """The bench's own sections (n counts prompts), subsets and their categories (n counts pairs); None without any."""
    rows: list[tuple[str, ...]] = [
        (name, word("section"), count(own.n), percent(own.value), spread(own), "", "")
        for name, own in evaluation.sections.items()
    ]
    for name, own in evaluation.subsets.items():
        rows.append(_part_row(name, "subset", own))
        rows += [_part_row(f"{name} · {group}", "category", one) for group, one in own.by_category.items()]
    columns = ("group", "part", "n", "accuracy", "interval", "exact_match", "interval")
    return table(columns, rows) if rows else None


def _part_row(name: str, part: str, own: Measured) -> tuple[str, ...]:
    accuracy, exact = own.accuracy, own.exact_match
    measured = (percent(accuracy.value), spread(accuracy), percent(exact.value), spread(exact))
    return (name, word(part), count(accuracy.n), *measured)


def group_figure(compared: Sequence[Named], group: str) -> Figure:
    """Accuracy by category or language: the models with intervals, the first one's baselines as quiet symbols.

    ``group`` is ``category`` or ``language``; n stands under each name.
    """
    first = compared[0].evaluation
    groups = {name: own for named in reversed(compared) for name, own in _groups(named.evaluation, group).items()}
    labels = {name: f"{name}\nn = {count(own.accuracy.n)}" for name, own in groups.items()}
    order = [labels[name] for name in sorted(groups, key=lambda name: -(groups[name].accuracy.value or 0.0))]
    dots = [
        Dot(labels[name], named.name, measured.accuracy)
        for named in compared
        for name, measured in _groups(named.evaluation, group).items()
        if name in labels
    ]
    names = list(first.baselines) if group == "category" else []
    quiet = [
        Dot(labels[name], baseline_word(other), measured.accuracy)
        for other in names
        for name, measured in first.baselines[other].by_category.items()
        if name in labels
    ]
    strong = model_marks([named.name for named in compared])
    marks = (*strong, *baseline_marks([baseline_word(name) for name in names]))
    layers = [
        *_symbol_layer(records(quiet), order, marks, group),
        *_interval_layers(records(dots), order, marks, group),
    ]
    height = (26 + 12 * len(compared)) * max(1, len(order))
    return Figure(f"figure_{group}", framed(layers, height), marks)


def _groups(evaluation: Evaluation, group: str) -> Mapping[str, Measured]:
    return evaluation.by_category if group == "category" else evaluation.by_language


def _sorted_baselines(evaluation: Evaluation) -> list[tuple[str, Baseline]]:
    return sorted(evaluation.baselines.items(), key=lambda pair: -(pair[1].accuracy.value or 0.0))


def _overview_row(name: str, measured: Measured, lead: str, interval: str) -> tuple[str, ...]:
    accuracy, exact = measured.accuracy, measured.exact_match
    return (name, percent(accuracy.value), spread(accuracy), percent(exact.value), spread(exact), lead, interval)


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
