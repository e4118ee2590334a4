"""Experiments on the page: arms with their seeds, differences between arms, and growth with data and weights."""

from collections.abc import Iterator, Sequence

import msgspec

from steelyard.evaluation.experiments import Arm, ArmDifferenceRecord, GrowthRecord
from steelyard.evaluation.tables import (
    DASH,
    PERCENT,
    Figure,
    Form,
    Grouped,
    Panel,
    Sentence,
    count,
    isolate,
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
from steelyard.views.view import HeadlineRule, RunHeadline

LEVEL = 0.05
_POINTS = Form(points, points_spread)


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


def _seeds(arms: Sequence[Arm]) -> Spec:
    values = [{"row": arm.name, "value": value} for arm in arms for value in arm.accuracy_by_seed]
    mark = {"type": "tick", "color": BASELINE_COLOUR, "thickness": 2, "size": 12}
    y = {"field": "row", "type": "nominal", "sort": [arm.name for arm in arms]}
    x = {"field": "value", "type": "quantitative", "scale": {"zero": False}}
    return {"data": {"values": values}, "mark": mark, "encoding": {"y": y, "x": x}}


def difference_panels(title: str, differences: Sequence[ArmDifferenceRecord]) -> Iterator[Panel]:
    """Yield the differences of arms with intervals and corrected p-values; nothing without differences."""
    if not differences:
        return
    names = [pair_name(each.first, each.second, separator="\n") for each in differences]
    dots = [Dot(name, name, each.accuracy) for name, each in zip(names, differences, strict=True)]
    axis = {"title": word("difference"), "format": "+.0%", "tickCount": 6}
    figure = Figure(title, interval_rows(dots, {"axis": axis}, row="arm", form="+.1%", line=0.0))
    rows = [
        (
            pair_name(each.first, each.second),
            *_POINTS.cells(each.accuracy),
            f"{each.p_corrected:.4f}",
            points(each.detectable),
            *_POINTS.cells(each.exact_match),
        )
        for each in differences
    ]
    columns = ("arm", "accuracy", "interval", "p_corrected", "detectable", "exact_match", "interval")
    yield Panel(word(title), figure, (Grouped("", table(columns, rows)),), "note_arm_differences")


def growth_panels(growth: Sequence[GrowthRecord]) -> Iterator[Panel]:
    """Yield the gain of each doubling of pairs or weights, a row for each line; nothing without a line."""
    if not growth:
        return
    rows = [
        (
            line.name,
            word(f"by_{line.by}"),
            *_POINTS.cells(line.per_doubling),
            f"{line.p:.4f}",
            f"{count(round(min(line.sizes)))} {DASH} {count(round(max(line.sizes)))}",
        )
        for line in growth
    ]
    dots = [Dot(f"{isolate(line.name)} · {word(f'by_{line.by}')}", line.name, line.per_doubling) for line in growth]
    axis = {"title": word("per_doubling"), "format": "+.1%", "tickCount": 6}
    figure = Figure("growth", interval_rows(dots, {"axis": axis}, row="arm", form="+.2%", line=0.0))
    tables = (Grouped("", table(("arm", "growth_by", "per_doubling", "interval", "p_value", "sizes"), rows)),)
    yield Panel(word("growth"), figure, tables, "note_growth")


def experiment_sentences(
    name: str, arms: Sequence[Arm], differences: Sequence[ArmDifferenceRecord]
) -> Iterator[Sentence]:
    """Yield the best arm for each kind of bench, and how many of all differences are significant."""
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
            "significant": count(sum(each.p_corrected < LEVEL for each in differences)),
            "all": count(len(differences)),
        }
        yield Sentence("say_experiment" if differences else "say_experiment_alone", values)


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
