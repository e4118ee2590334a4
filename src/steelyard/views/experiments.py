"""Experiments on the page: arms with their seeds, differences between arms, and growth with data and weights."""

from collections.abc import Iterator, Sequence

import msgspec

from steelyard.core.types import JsonObject
from steelyard.evaluation.bench_table import SHARES, BenchColumn
from steelyard.evaluation.experiments import Arm, ArmDifference, ColumnDifference, Growth
from steelyard.evaluation.tables import (
    DASH,
    PERCENT,
    POINTS,
    Figure,
    Grouped,
    Panel,
    Sentence,
    Table,
    count,
    isolate,
    p_value,
    pair_name,
    percent,
    points,
    points_spread,
    spread,
    table,
    word,
)
from steelyard.evaluation.vega import BASELINE_COLOUR, Dot, Spec, interval_rows, share_axis
from steelyard.report.page import COMMA
from steelyard.statistics.intervals import Estimate
from steelyard.views.bench_table import ValueRow, column_head, value_table
from steelyard.views.records import flat_row
from steelyard.views.view import HeadlineRule, RunHeadline

LEVEL = 0.05


def arm_panel(arms: Sequence[Arm]) -> Panel:
    """Return the accuracy of each arm over all seeds with its interval, and the seeds as small marks."""
    dots = [Dot(arm.name, arm.name, arm.accuracy) for arm in arms]
    channel = {"axis": share_axis("accuracy"), "scale": {"zero": False}}
    spec = interval_rows(dots, channel, row="arm", form=".1%", line=None)
    spec["layer"].append(_seeds(arms))
    rows = [
        (
            arm.name,
            count(round(arm.num_prompts)),
            count(round(arm.num_pairs)),
            count(arm.num_weights),
            *PERCENT.cells(arm.accuracy),
            percent(arm.spread),
            *PERCENT.cells(arm.exact_match),
            count(arm.accuracy.n),
        )
        for arm in arms
    ]
    columns = ("arm", "prompts", "pairs", "num_weights", "accuracy", "interval", "spread_over_seeds", "exact_match")
    tables = (Grouped("", table((*columns, "interval", "n"), rows)),)
    return Panel(word("arms"), Figure("arms", spec), tables, "note_arms")


def arm_record(arm: Arm) -> JsonObject:
    """Return the arm as a row of plain numbers: its values by column, each with the seeds and their spread."""
    row = flat_row(arm, skip=("values",))
    for value in arm.values:
        row |= flat_row(value.value, value.column.key)
        row |= {f"{value.column.key}_by_seed": list(value.by_seed), f"{value.column.key}_spread": value.spread}
    return row


def _seeds(arms: Sequence[Arm]) -> Spec:
    values = [{"row": arm.name, "value": value} for arm in arms for value in arm.accuracy_by_seed]
    mark = {"type": "tick", "color": BASELINE_COLOUR, "thickness": 2, "size": 12}
    y = {"field": "row", "type": "nominal", "sort": [arm.name for arm in arms]}
    x = {"field": "value", "type": "quantitative", "scale": {"zero": False}}
    return {"data": {"values": values}, "mark": mark, "encoding": {"y": y, "x": x}}


def bench_panels(arms: Sequence[Arm], differences: Sequence[ArmDifference]) -> Iterator[Panel]:
    """Yield the arms with a group of columns for each bench (CHEEMS, Table 4), and their differences in each column.

    Nothing for one bench whose only columns are accuracy and exact match: they are in the tables by arm.
    """
    columns = list(dict.fromkeys(value.column for arm in arms for value in arm.values))
    is_several = len({column.bench for column in columns}) > 1
    if not is_several and not any(column.subset or column.measure not in SHARES for column in columns):
        return
    trained = {arm.name: arm.trained for arm in arms}
    values = {name: {value.column: value for arm in arms if arm.trained == name for value in arm.values}
              for name in dict.fromkeys(arm.trained for arm in arms)}  # fmt: skip
    names = list(values)
    rows = [
        ValueRow((name,), [value.value if (value := of_arm.get(column)) else None for column in columns], {})
        for name, of_arm in values.items()
    ]

    def form(row: int, place: int) -> str:
        value = values[names[row]][columns[place]]
        return f"{percent(value.value.value)} ± {100 * value.spread:.1f}"

    table_of_arms = value_table((word("arm"),), columns, rows, form)
    yield Panel(word("arms_on_benches"), None, (Grouped("", table_of_arms),), "note_arms_on_benches")
    by_pair: dict[str, dict[BenchColumn, ColumnDifference]] = {}
    for each in differences:
        for column in each.columns:
            pair = pair_name(trained[each.first], trained[each.second])
            by_pair.setdefault(pair, {})[column.column] = column
    if by_pair:
        cells = [(name, *(_difference_cell(of_pair.get(column)) for column in columns))
                 for name, of_pair in by_pair.items()]  # fmt: skip
        heads = (word("arm"), *(column_head(column, columns) for column in columns))
        numbers = Table(heads, tuple(cells))
        yield Panel(word("differences_on_benches"), None, (Grouped("", numbers),), "note_differences_on_benches")


def _difference_cell(difference: ColumnDifference | None) -> str:
    """Return the difference in points with its interval, and a mark where it is significant."""
    if difference is None:
        return DASH
    return f"{_marked(difference.difference, difference.p_corrected)} [{points_spread(difference.difference)}]"


def _marked(difference: Estimate, p_corrected: float) -> str:
    """Return a difference in points, with an asterisk where it is significant after the correction."""
    return f"{points(difference.value)}{'*' if p_corrected < LEVEL else ''}"


def difference_panels(title: str, differences: Sequence[ArmDifference]) -> Iterator[Panel]:
    """Yield the differences of arms with intervals and corrected p-values; nothing without differences."""
    if not differences:
        return
    names = [
        pair_name(each.first, f"{each.second}{' *' if each.p_accuracy_corrected < LEVEL else ''}", separator="\n")
        for each in differences
    ]
    dots = [Dot(name, name, each.accuracy) for name, each in zip(names, differences, strict=True)]
    axis = {"title": word("difference"), "format": "+.0%", "tickCount": 6}
    figure = Figure(title, interval_rows(dots, {"axis": axis}, row="arm", form="+.1%", line=0.0))
    rows = [
        (
            pair_name(each.first, each.second),
            _marked(each.accuracy, each.p_accuracy_corrected),
            points_spread(each.accuracy),
            p_value(each.p_accuracy_corrected),
            points(each.detectable),
            _marked(each.exact_match, each.p_exact_match_corrected),
            points_spread(each.exact_match),
            p_value(each.p_exact_match_corrected),
        )
        for each in differences
    ]
    accuracy, exact_match = (("accuracy", "interval", "p_corrected"), ("exact_match", "interval", "p_corrected"))
    columns = ("arm", *accuracy, "detectable", *exact_match)
    yield Panel(word(title), figure, (Grouped("", table(columns, rows)),), "note_arm_differences")


def growth_panels(growth: Sequence[Growth]) -> Iterator[Panel]:
    """Yield the gain of each doubling of pairs or weights, a row for each line; nothing without a line."""
    if not growth:
        return
    rows = [
        (
            line.name,
            word(f"by_{line.by}"),
            *POINTS.cells(line.per_doubling),
            p_value(line.p),
            f"{count(round(min(line.sizes)))} {DASH} {count(round(max(line.sizes)))}",
        )
        for line in growth
    ]
    dots = [Dot(f"{isolate(line.name)} · {word(f'by_{line.by}')}", line.name, line.per_doubling) for line in growth]
    axis = {"title": word("per_doubling"), "format": "+.1%", "tickCount": 6}
    figure = Figure("growth", interval_rows(dots, {"axis": axis}, row="arm", form="+.2%", line=0.0))
    tables = (Grouped("", table(("arm", "growth_by", "per_doubling", "interval", "p_value", "sizes"), rows)),)
    yield Panel(word("growth"), figure, tables, "note_growth")


def experiment_sentences(name: str, arms: Sequence[Arm], differences: Sequence[ArmDifference]) -> Iterator[Sentence]:
    """Yield the best arm for each kind of bench, and the differences that hold after the correction, by measure."""
    for bench in dict.fromkeys(arm.bench for arm in arms):
        same = [arm for arm in arms if arm.bench == bench]
        best = max(same, key=lambda arm: arm.accuracy.value or 0.0)
        values = {
            "run": name,
            "arms": count(len(same)),
            "seeds": count(len(best.accuracy_by_seed)),
            "best": best.name,
            "value": percent(best.accuracy.value),
            "interval": PERCENT.cells(best.accuracy)[1],
        }
        yield Sentence("say_experiment", values)
    for measure in ("accuracy", "exact_match") if differences else ():
        significant = [
            f"{pair_name(each.first, each.second)} ({points(getattr(each, measure).value)})"
            for each in differences
            if getattr(each, f"p_{measure}_corrected") < LEVEL
        ]
        values = {"measure": word(measure), "all": count(len(differences)), "significant": count(len(significant))}
        if significant:
            yield Sentence("say_significant_arms", {**values, "differences": COMMA.join(significant)})
        else:
            yield Sentence("say_no_significant_arms", values)


class _Arm(msgspec.Struct):
    name: str
    accuracy: Estimate


class _Experiment(msgspec.Struct):
    arms: tuple[_Arm, ...]


def _best_arm(run: _Experiment) -> RunHeadline:
    best = max(run.arms, key=lambda arm: arm.accuracy.value or 0.0, default=None)
    if best is None:
        return RunHeadline()
    about = f"{word('accuracy')}{COMMA}{spread(best.accuracy)} · {best.name}"
    return RunHeadline(percent(best.accuracy.value), f"{about}{COMMA}{word('view_best_of')} {count(len(run.arms))}")


BEST_ARM = HeadlineRule(_Experiment, _best_arm)
"""The best arm of an ablation or a sweep."""
