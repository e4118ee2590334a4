"""Studies of filters: the precision of what each filter keeps."""

import re
from collections.abc import Iterator

from steelyard.curation.filter_study import FilterStudySummary, PrecisionStudy
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
    percent,
    points,
    points_spread,
    table,
    word,
)
from steelyard.evaluation.vega import Dot, interval_rows, share_axis
from steelyard.statistics.intervals import Estimate
from steelyard.views.records import flat_row
from steelyard.views.view import PageSources, StageRun, View

_ABOVE = re.compile(r"agrees, margin above (\d+%)")
_SLUG = re.compile(r"[^a-z]+")


def _sentences(run: StageRun[FilterStudySummary]) -> Iterator[Sentence]:
    summary = run.summary
    names = {"run": run.name, "judge": summary.judge, "model": summary.model}
    rows = () if summary.precision is None else summary.precision.filters
    agrees = next((row for row in rows if row.filter == "agrees"), None)
    if summary.precision is None or agrees is None:
        yield Sentence("say_no_filter_precision", names)
    else:
        every = summary.precision.filters[0]
        yield Sentence(
            "say_filter_precision",
            {
                **names,
                "all": percent(every.precision.value),
                "agrees": percent(agrees.precision.value),
                "coverage": percent(agrees.coverage),
                "gain": points(agrees.gain.value),
                "interval": points_spread(agrees.gain),
            },
        )


def _panels(run: StageRun[FilterStudySummary], sources: PageSources) -> Iterator[Panel]:
    summary = run.summary
    if summary.precision is not None:
        dots = [Dot(filter_word(row.filter), row.filter, row.precision) for row in summary.precision.filters]
        channel = {"axis": share_axis("filter_precision"), "scale": {"zero": False}}
        figure = Figure("filter_precision", interval_rows(dots, channel, row="filter", form=".1%", line=None))
        tables = (Grouped("", _precision_table(summary.precision)),)
        yield Panel(word("filter_precision"), figure, tables, "note_filter_precision")
        yield from _detail_panels(summary.precision)


def _detail_panels(study: PrecisionStudy) -> Iterator[Panel]:
    """Yield precision by the length of the preferred answer, and the areas under the ROC curve."""
    groups = [
        (
            word(f"group_{_slug(row.group)}", row.group),
            *PERCENT.cells(row.all),
            *PERCENT.cells(row.agrees),
            *POINTS.cells(row.gain),
        )
        for row in study.by_preference
    ]
    columns = ("group", "filter_all", "interval", "filter_agrees", "interval", "gain", "interval")
    yield Panel(word("precision_by_preference"), None, (Grouped("", table(columns, groups)),))
    area = study.area_under_curve
    rows = [(word("margin_short"), *PERCENT.cells(area.margin)), (word("length_gap"), *PERCENT.cells(area.length))]
    tables = (Grouped("", table(("group", "value", "interval"), rows)),)
    yield Panel(word("area_under_curve"), None, tables, "note_area")


def _precision_table(study: PrecisionStudy) -> Table:
    rows = [
        (
            filter_word(row.filter),
            count(row.num_kept),
            percent(row.coverage),
            *PERCENT.cells(row.precision),
            *_difference(row.over_random),
            *_difference(row.over_length),
        )
        for row in study.filters
    ]
    columns = ("filter", "kept", "threshold_coverage", "filter_precision", "interval", "over_random", "interval")
    return table((*columns, "over_length", "interval"), rows)


def _difference(estimate: Estimate) -> tuple[str, str]:
    """Return a difference in points with its interval; a selection minus itself has none."""
    is_itself = estimate.value == 0 and estimate.low is not None and estimate.low == -(estimate.high or 0.0)
    return (points(0.0), DASH) if is_itself else POINTS.cells(estimate)


def filter_word(name: str) -> str:
    """Return the word of a filter: ``agrees, margin above 25%`` with its quantile."""
    if above := _ABOVE.fullmatch(name):
        return f"{word('filter_agrees', 'agrees')} · {word('margin_above', 'margin above')} {above[1]}"
    return word(f"filter_{_slug(name)}", name)


def _slug(name: str) -> str:
    return _SLUG.sub("_", name.lower()).strip("_")


VIEW = View(
    70,
    "filter-study",
    FilterStudySummary,
    "filter_study",
    _sentences,
    _panels,
    unit="view_verdicts_used",
    records=lambda summary: map(flat_row, summary.precision.filters if summary.precision else ()),
)
