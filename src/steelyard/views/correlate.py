"""Correlations over models: benches against outcomes, the models of the best pairs, and which bench predicts better."""

from collections.abc import Iterator, Sequence

import msgspec

from steelyard.core.types import JsonObject
from steelyard.evaluation.correlation import (
    COEFFICIENTS,
    BenchContrast,
    BenchCorrelation,
    CorrelateSummary,
    value_of,
)
from steelyard.evaluation.tables import (
    DECIMAL,
    Grouped,
    Panel,
    Sentence,
    Table,
    count,
    decimal,
    decimal_interval,
    isolate,
    p_relation,
    p_value,
    pair_name,
    reason,
    table,
    with_level,
    word,
)
from steelyard.report.correlation_figures import CorrelationCell, PlacedModel, correlation_map, model_scatter
from steelyard.report.page import COMMA, first_names
from steelyard.statistics.correlation import FEWEST_MODELS
from steelyard.statistics.intervals import Estimate
from steelyard.views.records import flat_row
from steelyard.views.view import HeadlineRule, PageSources, RunHeadline, StageRun, View, report_step

_LEVEL = 0.05
_MOST_FIGURES, _MOST_OUTCOMES = 4, 3


def _panels(run: StageRun[CorrelateSummary], sources: PageSources) -> Iterator[Panel]:
    """Yield the correlations, the models of the best bench of each outcome, the contrasts, and what is left out."""
    summary = run.summary
    cells = [
        CorrelationCell(each.bench, each.outcome, value_of(each, summary.coefficient).value)
        for bench in summary.benches
        for each in summary.correlations
        if each.bench == bench
    ]
    title = f"{word('benches_and_outcomes')} · {word(summary.coefficient)}"
    figure = correlation_map("figure_correlations", cells)
    yield Panel(title, figure, (Grouped("", _correlation_table(summary)),), "note_correlations")
    for best in _best(summary)[:_MOST_FIGURES]:
        points = [
            PlacedModel(model.name, model.family, model.benches[best.bench], model.outcomes[best.outcome])
            for model in summary.models
            if best.bench in model.benches and best.outcome in model.outcomes
        ]
        scatter = model_scatter("figure_models_as_points", points, bench=best.bench, outcome=best.outcome)
        names = f"{isolate(best.bench)} · {isolate(best.outcome)}"
        yield Panel(names, scatter, (), "note_models_as_points")
    if summary.contrasts:
        yield Panel(word("better_predictors"), None, (Grouped("", _contrast_table(summary)),), "note_better_predictors")
    yield from _left_out_panels(summary)


def _left_out_panels(summary: CorrelateSummary) -> Iterator[Panel]:
    """Yield the models of one side, the missing values, and the columns without numbers."""
    rows = [
        *((name, word("only_in_benches")) for name in summary.unmatched_benches),
        *((name, word("only_in_outcomes")) for name in summary.unmatched_outcomes),
        *((name, word("missing_value")) for name in summary.empty),
        *((name, word("column_of_text")) for name in summary.text_columns),
    ]
    if rows:
        yield Panel(word("left_out_of_correlations"), None, (Grouped("", table(("part", "reason"), rows)),))


def _best(summary: CorrelateSummary) -> list[BenchCorrelation]:
    """Return the bench that correlates most with each outcome; none where no bench has a value."""
    first: dict[str, BenchCorrelation] = {}
    for each in summary.correlations:
        if value_of(each, summary.coefficient).value is not None:
            first.setdefault(each.outcome, each)
    return list(first.values())


def _correlation_table(summary: CorrelateSummary) -> Table:
    order = sorted(COEFFICIENTS, key=lambda name: name != summary.coefficient)
    rows = [
        (
            each.outcome,
            each.bench,
            count(each.num_models),
            count(each.num_families),
            *(cell for name in order for cell in DECIMAL.cells(value_of(each, name))),
        )
        for each in summary.correlations
    ]
    columns = [column for name in order for column in (name, "interval")]
    return table(("correlated_outcome", "correlated_bench", "number_of_models", "number_of_families", *columns), rows)


def _contrast_table(summary: CorrelateSummary) -> Table:
    rows = [
        (
            pair_name(each.first, each.second),
            each.outcome,
            count(each.difference.n),
            *DECIMAL.cells(each.difference),
            p_value(each.p_corrected),
            decimal(each.detectable),
            decimal(each.between),
        )
        for each in summary.contrasts
    ]
    columns = (
        "correlated_bench", "correlated_outcome", "number_of_models", "difference", "interval", "p_corrected",
        "detectable", "between_benches",
    )  # fmt: skip
    return table(columns, rows)


def _sentences(run: StageRun[CorrelateSummary]) -> Iterator[Sentence]:
    """Yield the best bench of each outcome, the test between benches, the families, and what is left out."""
    summary = run.summary
    for best in _best(summary)[:_MOST_OUTCOMES]:
        estimate = value_of(best, summary.coefficient)
        values = {
            "bench": isolate(best.bench),
            "outcome": isolate(best.outcome),
            "models": count(best.num_models),
            "coefficient": word(summary.coefficient),
            "value": decimal(estimate.value),
            "fewest": count(FEWEST_MODELS),
        }
        if estimate.low is None:
            yield Sentence("say_correlation_no_evidence", {**values, "reason": reason(estimate)})
        else:
            key = "say_only_bench" if len(summary.benches) == 1 else "say_best_bench"
            yield Sentence(key, {**values, "interval": decimal_interval(estimate)})
    yield from _contrast_sentences(summary.contrasts)
    yield _family_sentence(summary)
    if not any(each.over_items for each in summary.correlations):
        yield Sentence("say_models_alone")
    negative, equal = _odd_correlations(summary)
    for key, names in (
        ("say_equal_series", equal),
        ("say_negative_correlations", negative),
        ("say_constant_values", summary.constant),
        ("say_alike_models", _alike_models(summary)),
        ("say_only_benches", summary.unmatched_benches),
        ("say_only_outcomes", summary.unmatched_outcomes),
        ("say_missing_values", summary.empty),
        ("say_without_family", summary.without_family),
        ("say_text_columns", summary.text_columns),
    ):
        if names:
            yield Sentence(key, {"number": count(len(names)), "names": first_names([*map(isolate, names)])})


def _odd_correlations(summary: CorrelateSummary) -> tuple[list[str], list[str]]:
    """Return the pairs of bench and outcome that correlate negatively, and those of equal values for all models."""
    negative: list[str] = []
    equal: list[str] = []
    for each in summary.correlations:
        name = f"{isolate(each.bench)} · {isolate(each.outcome)}"
        high = value_of(each, summary.coefficient).high
        if high is not None and high < 0:
            negative.append(name)
        values = {
            (model.benches[each.bench], model.outcomes[each.outcome])
            for model in summary.models
            if each.bench in model.benches and each.outcome in model.outcomes
        }
        if len(values) > 1 and all(bench == outcome for bench, outcome in values):
            equal.append(name)
    return negative, equal


def _alike_models(summary: CorrelateSummary) -> list[str]:
    """Return the unmatched models of both sides whose names differ in marks, spaces, case or an owner before them."""

    def spelled(name: str) -> str:
        return "".join(filter(str.isalnum, name.rpartition("/")[2].casefold()))

    outcomes = {spelled(name): name for name in summary.unmatched_outcomes}
    alike = ((name, outcomes.get(spelled(name))) for name in summary.unmatched_benches)
    return [f"{name} = {other}" for name, other in alike if other is not None]


def _contrast_sentences(contrasts: Sequence[BenchContrast]) -> Iterator[Sentence]:
    """Yield the significant contrasts, or that there are none, with the difference that could have been shown."""
    tested = [each for each in contrasts if each.p_corrected is not None]
    significant = [each for each in tested if each.p_corrected is not None and each.p_corrected < _LEVEL]
    for each in significant[:_MOST_OUTCOMES]:
        is_first = (each.difference.value or 0.0) > 0
        better, worse = (each.first, each.second) if is_first else (each.second, each.first)
        values = {
            "better": isolate(better),
            "worse": isolate(worse),
            "outcome": isolate(each.outcome),
            "difference": decimal(abs(each.difference.value or 0.0)),
            "p": p_relation(each.p_corrected or 0.0),
        }
        yield Sentence("say_better_bench", values)
    if not tested and contrasts:
        yield Sentence("say_untested_benches", {"fewest": count(FEWEST_MODELS)})
    detectable = sorted(each.detectable for each in tested if each.detectable is not None)
    if tested and detectable:
        middle = detectable[len(detectable) // 2]
        values = {
            "pairs": count(len(tested)),
            "significant": count(len(significant)),
            "models": count(max(each.difference.n for each in tested)),
            "detectable": decimal(middle),
        }
        yield Sentence("say_better_benches" if significant else "say_no_better_bench", values)


def _family_sentence(summary: CorrelateSummary) -> Sentence:
    number = max((each.num_families or 0 for each in summary.correlations), default=0)
    values = {"models": count(len(summary.models)), "families": count(number)}
    key = "say_independent_models" if summary.families_from is None else f"say_families_{summary.families_from}"
    return Sentence(key, values)


class _Correlation(msgspec.Struct):
    bench: str
    outcome: str
    pearson: Estimate
    spearman: Estimate
    kendall: Estimate


class _Correlations(msgspec.Struct):
    correlations: tuple[_Correlation, ...]
    coefficient: str = "spearman"


def _headline(run: _Correlations) -> RunHeadline:
    first = run.correlations[0]
    estimate: Estimate = getattr(first, run.coefficient)
    about = f"{word(run.coefficient)}{COMMA}{with_level(estimate, decimal_interval)} · {isolate(first.outcome)}"
    return RunHeadline(decimal(estimate.value), about, first.bench)


def _records(summary: CorrelateSummary) -> Iterator[JsonObject]:
    return map(flat_row, summary.correlations)


VIEW = View(
    42, "correlate", CorrelateSummary, "correlations", _sentences, _panels,
    records=_records, headline=HeadlineRule(_Correlations, _headline), lead=1,
    next_step=report_step("shows models as points, and which bench predicts better"),
)  # fmt: skip
