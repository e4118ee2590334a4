"""Comparisons: models on the same prompts with their ranks, and the paired differences of every two."""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from steelyard.evaluation.comparison import LEVEL, ComparisonSummary, ModelDifference
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
    decimal,
    p_relation,
    p_value,
    pair_name,
    points,
    points_spread,
    table,
    word,
)
from steelyard.evaluation.vega import Dot, interval_rows
from steelyard.report.bench_texts import missing_panels, reason_words
from steelyard.report.leaderboard import ceiling_cells, ceiling_sentences, rank_range
from steelyard.report.page import COMMA
from steelyard.views.records import RankedModel, flat_row, ranked_headline
from steelyard.views.view import HeadlineRule, PageSources, RunHeadline, StageRun, View, report_step


def _panels(run: StageRun[ComparisonSummary], sources: PageSources) -> Iterator[Panel]:
    """Yield the models with their ranks, and the differences of every two."""
    summary = run.summary
    models, differences = (Grouped("", _model_table(summary)),), (Grouped("", _difference_table(summary)),)
    title = f"{word('compared_models')} · {summary.bench}"
    yield Panel(title, _model_figure(summary), models, "note_compared_models")
    yield Panel(word("differences"), _difference_figure(summary), differences, "note_differences")
    if any(difference.prediction_powered is not None for difference in summary.comparisons):
        tables = (Grouped("", _powered_table(summary)),)
        yield Panel(word("few_differences"), None, tables, "note_few_differences")
    yield from missing_panels(summary.missing)


def _powered_table(summary: ComparisonSummary) -> Table:
    """Return the differences in accuracy from human and judge labels, next to those from human labels alone."""
    rows = [
        (
            pair_name(difference.first, difference.second),
            *POINTS.cells(powered.estimate),
            p_value(powered.p),
            *POINTS.cells(powered.human_only),
            decimal(powered.effective_labels, 2),
        )
        for difference in summary.comparisons
        if (powered := difference.prediction_powered) is not None
    ]
    columns = ("pair_of_models", "few_both", "interval", "p_corrected", "few_alone", "interval", "few_effective_labels")
    return table(columns, rows)


def _sentences(run: StageRun[ComparisonSummary]) -> tuple[Sentence, ...]:
    """Return what ranks the models, how many differences are significant, and which of two models is better."""
    summary = run.summary
    significant = sum(difference.p_ranked < LEVEL for difference in summary.comparisons)
    values = {
        "models": count(len(summary.models)),
        "bench": summary.bench,
        "ranked_by": _ranked_by(summary),
        "significant": count(significant),
        "all": count(len(summary.comparisons)),
    }
    sentences = [Sentence("say_compared", values)]
    if len(summary.comparisons) == 1:
        (difference,) = summary.comparisons
        sentences.insert(0, _pair_sentence(difference, _ranked_by(summary)))
        if (powered := difference.prediction_powered) is not None and powered.p is not None:
            values = {
                "first": difference.first,
                "second": difference.second,
                "points": points(powered.estimate.value),
                "interval": points_spread(powered.estimate),
                "p": p_relation(powered.p),
                "effective_labels": decimal(powered.effective_labels, 2),
            }
            sentences.insert(1, Sentence("say_few_difference", values))
    if summary.missing:
        missing = COMMA.join(f"{name} ({reason_words(why)})" for name, why in summary.missing.items())
        sentences.append(Sentence("say_no_bench_headline", {"missing": missing}))
    sentences += ceiling_sentences(summary.bench, summary.ceiling)
    if summary.unlike_coverage:
        sentences.append(Sentence("say_unlike_read", {"models": COMMA.join(summary.unlike_coverage)}))
    return tuple(sentences)


def _pair_sentence(difference: ModelDifference, measure: str) -> Sentence:
    """Return whether two models differ, the better one first, and which difference the prompts can show."""
    first, second, ranked = difference.first, difference.second, difference.ranked
    if ranked.value is not None and ranked.value < 0:
        first, second = second, first
        low, high = (None if end is None else -end for end in (ranked.high, ranked.low))
        ranked = replace(ranked, value=-ranked.value, low=low, high=high)
    values = {
        "first": first,
        "second": second,
        "points": points(ranked.value),
        "interval": points_spread(ranked),
        "measure": measure,
        "p": p_relation(difference.p_bounded),
        "detectable": points(difference.detectable).lstrip("+"),
    }
    if difference.p_bounded < LEVEL:
        return Sentence("say_better_model", values)
    return Sentence("say_no_better_model" if difference.detectable <= 1 else "say_no_detectable", values)


def _model_table(summary: ComparisonSummary) -> Table:
    rows: list[tuple[str, ...]] = [
        (
            model.name,
            rank_range(model.best_rank, model.worst_rank),
            *(PERCENT.cells(model.value) if _has_headline(summary) else ()),
            *PERCENT.cells(model.accuracy),
            *PERCENT.cells(model.exact_match),
        )
        for model in summary.models
    ]
    if (ceiling := summary.ceiling) is not None:
        exact = (DASH, DASH) if ceiling.exact_match is None else PERCENT.cells(ceiling.exact_match)
        overall = (DASH, DASH) if _has_headline(summary) else ()
        rows.append((word("perfect_model"), DASH, *overall, *ceiling_cells(ceiling), *exact))
    headline = ("bench_overall", "interval") if _has_headline(summary) else ()
    return table(("scorer", "rank", *headline, "accuracy", "interval", "exact_match", "interval"), rows)


def _difference_table(summary: ComparisonSummary) -> Table:
    rows = [
        (
            pair_name(difference.first, difference.second),
            *((*POINTS.cells(difference.ranked), p_value(difference.p_ranked)) if _has_headline(summary) else ()),
            *(*POINTS.cells(difference.accuracy), p_value(difference.p_accuracy_corrected)),
            points(difference.detectable).lstrip("+"),
            *(*POINTS.cells(difference.exact_match), p_value(difference.p_exact_match_corrected)),
        )
        for difference in summary.comparisons
    ]
    headline = ("bench_overall", "interval", "p_corrected") if _has_headline(summary) else ()
    accuracy = ("accuracy", "interval", "p_corrected", "detectable")
    return table(("pair_of_models", *headline, *accuracy, "exact_match", "interval", "p_corrected"), rows)


def _has_headline(summary: ComparisonSummary) -> bool:
    """Return whether the bench has a headline other than accuracy."""
    return summary.ranked_by != "accuracy"


def _ranked_by(summary: ComparisonSummary) -> str:
    return word("bench_overall") if _has_headline(summary) else word("accuracy")


def _model_figure(summary: ComparisonSummary) -> Figure:
    dots = [Dot(model.name, model.name, model.value) for model in summary.models]
    axis = {"title": _ranked_by(summary), "format": ".0%", "tickCount": 6}
    return Figure(
        "figure_compared_models",
        interval_rows(dots, {"axis": axis, "scale": {"zero": False}}, row="scorer", form=".1%", line=None),
    )


def _difference_figure(summary: ComparisonSummary) -> Figure:
    names = [pair_name(each.first, each.second, separator="\n") for each in summary.comparisons]
    dots = [Dot(name, name, each.ranked) for name, each in zip(names, summary.comparisons, strict=True)]
    axis = {"title": word("difference"), "format": "+.0%", "tickCount": 6}
    return Figure("figure_differences", interval_rows(dots, {"axis": axis}, row="scorer", form="+.1%", line=0.0))


class _Compared(msgspec.Struct):
    models: tuple[RankedModel, ...]
    bench: str = ""


def _compared(run: _Compared) -> RunHeadline:
    return ranked_headline(run.models, run.bench)


VIEW = View(
    20, "compare", ComparisonSummary, "comparison", _sentences, _panels,
    records=lambda summary: map(flat_row, summary.comparisons), headline=HeadlineRule(_Compared, _compared), lead=1,
    next_step=report_step("shows it"),
)  # fmt: skip
