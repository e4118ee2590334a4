"""Comparisons on the page: models with their paired differences (`compare`), and languages of one (`languages`)."""

from collections.abc import Mapping, Sequence

from steelyard.evaluation.comparison import LEVEL, ComparisonSummary
from steelyard.evaluation.languages import LanguagesSummary, LanguageValues
from steelyard.evaluation.tables import (
    DASH,
    PERCENT,
    Figure,
    Form,
    Grouped,
    Mark,
    Panel,
    Sentence,
    Table,
    count,
    decimal,
    isolate,
    pair_name,
    percent,
    points,
    points_spread,
    table,
    word,
)
from steelyard.evaluation.vega import ALERT, FAINT, MODEL_COLOURS, Dot, interval_rows, share_axis
from steelyard.report.bars import stacked_bars
from steelyard.report.bench_texts import reason_words
from steelyard.report.leaderboard import rank_range
from steelyard.report.page import Section

_POINTS = Form(points, points_spread)


def comparison_section(comparisons: Mapping[str, ComparisonSummary], evidence: Sequence[str]) -> Section:
    """Return the models of each comparison with their ranks, and the differences of every two."""
    panels: list[Panel] = []
    for name, summary in comparisons.items():
        prefix = f"{isolate(name)} · " if len(comparisons) > 1 else ""
        panels += [
            Panel(
                f"{prefix}{word('compared_models')} · {summary.bench}",
                _model_figure(summary),
                (Grouped("", _model_table(summary)),),
                "note_compared_models",
            ),
            Panel(
                prefix + word("differences"),
                _difference_figure(summary),
                (Grouped("", _difference_table(summary)),),
                "note_differences",
            ),
        ]
        if any(difference.prediction_powered is not None for difference in summary.comparisons):
            rows = _powered_table(summary)
            panels.append(Panel(prefix + word("few_differences"), None, (Grouped("", rows),), "note_few_differences"))
        if summary.missing:
            rows = table(("part", "n"), [(name, reason_words(why)) for name, why in summary.missing.items()])
            panels.append(Panel(prefix + word("missing_of_bench"), None, (Grouped("", rows),)))
    sentences = tuple(sentence for summary in comparisons.values() for sentence in comparison_sentences(summary))
    return Section("comparison", tuple(evidence), tuple(panels), sentences)


def _powered_table(summary: ComparisonSummary) -> Table:
    """Return the differences in accuracy from human and judge labels, next to those from human labels alone."""
    rows = [
        (
            pair_name(difference.first, difference.second),
            *_POINTS.cells(powered.estimate),
            DASH if powered.p is None else _p_value(powered.p),
            *_POINTS.cells(powered.human_only),
            decimal(powered.worth, 2),
        )
        for difference in summary.comparisons
        if (powered := difference.prediction_powered) is not None
    ]
    columns = ("pair_of_models", "few_both", "interval", "p_corrected", "few_alone", "interval", "few_worth")
    return table(columns, rows)


def comparison_sentences(summary: ComparisonSummary) -> tuple[Sentence, ...]:
    """Return what ranks the models, and how many of the differences are significant."""
    significant = sum(difference.p_ranked < LEVEL for difference in summary.comparisons)
    values = {
        "models": count(len(summary.models)),
        "bench": summary.bench,
        "ranked_by": _ranked_by(summary),
        "significant": count(significant),
        "all": count(len(summary.comparisons)),
    }
    return (Sentence("say_compared", values),)


def _model_table(summary: ComparisonSummary) -> Table:
    rows = [
        (
            model.name,
            rank_range(model.best_rank, model.worst_rank),
            *(PERCENT.cells(model.value) if _has_headline(summary) else ()),
            *PERCENT.cells(model.accuracy),
            *PERCENT.cells(model.exact_match),
        )
        for model in summary.models
    ]
    headline = ("bench_overall", "interval") if _has_headline(summary) else ()
    return table(("scorer", "rank", *headline, "accuracy", "interval", "exact_match", "interval"), rows)


def _difference_table(summary: ComparisonSummary) -> Table:
    rows = [
        (
            pair_name(difference.first, difference.second),
            *((*_POINTS.cells(difference.ranked), _p_value(difference.p_ranked)) if _has_headline(summary) else ()),
            *(*_POINTS.cells(difference.accuracy), _p_value(difference.p_accuracy_corrected)),
            points(difference.detectable),
            *(*_POINTS.cells(difference.exact_match), _p_value(difference.p_exact_match_corrected)),
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


def _p_value(value: float) -> str:
    return f"{value:.4f}" if value >= 0.0001 else "< 0.0001"


def languages_section(summaries: Sequence[LanguagesSummary], evidence: Sequence[str]) -> Section:
    """Return each evaluation by language: values, drops from English, agreement with it, and what the limit cut."""
    panels: list[Panel] = []
    for summary in summaries:
        title = f"{isolate(summary.model)} · {summary.bench}"
        note = "note_languages" if summary.are_read_alike else "note_languages_not_alike"
        panels.append(Panel(title, _language_figure(summary), (Grouped("", _language_table(summary)),), note))
        panels += _cut_panels(summary, f"{title} · " if len(summaries) > 1 else "")
    sentences = [sentence for summary in summaries for sentence in language_sentences(summary)]
    sentences += [sentence for summary in summaries for sentence in _cut_sentences(summary)]
    return Section("languages", tuple(evidence), tuple(panels), tuple(sentences))


def _language_figure(summary: LanguagesSummary) -> Figure:
    """Return the value of each language with its interval, the best first, next to the one compared with."""
    ordered = sorted(summary.languages.items(), key=lambda item: -(item[1].overall.value or 0.0))
    dots = [Dot(name, name, values.overall) for name, values in ordered]
    reference = summary.languages[summary.baseline_language].overall.value
    channel = {"axis": share_axis("ranked_value"), "scale": {"zero": False}}
    return Figure("figure_languages", interval_rows(dots, channel, row="language", form=".1%", line=reference))


def _cut_panels(summary: LanguagesSummary, prefix: str) -> list[Panel]:
    """Return how much of each language's answers is cut or unscored; nothing where every answer was read whole."""
    by_language = {} if summary.coverage is None else summary.coverage.by_language
    rows = sorted(by_language.items(), key=lambda item: -sum(item[1].shares))
    if not any(sum(counts.shares) for _, counts in rows):
        return []
    parts = {
        name: {
            word("read_whole"): counts.num_responses - counts.num_cut - counts.num_unscored,
            word("share_cut"): counts.num_cut,
            word("share_unscored"): counts.num_unscored,
        }
        for name, counts in rows
    }
    marks = [
        Mark(word("read_whole"), FAINT, "square"),
        Mark(word("share_cut"), ALERT, "square"),
        Mark(word("share_unscored"), MODEL_COLOURS[2], "square"),
    ]
    cells = [(name, count(counts.num_responses), *map(percent, counts.shares)) for name, counts in rows]
    numbers = table(("language", "responses", "share_cut", "share_unscored"), cells)
    figure = stacked_bars("figure_cut", parts, marks)
    return [Panel(prefix + word("cut_by_language"), figure, (Grouped("", numbers),), "note_cut_by_language")]


def _cut_sentences(summary: LanguagesSummary) -> tuple[Sentence, ...]:
    """Return the language whose answers are cut most; nothing where none is cut."""
    by_language = {} if summary.coverage is None else summary.coverage.by_language
    shares = {name: counts.shares[0] for name, counts in by_language.items()}
    if not any(shares.values()):
        return ()
    most, least = max(shares, key=lambda name: shares[name]), min(shares, key=lambda name: shares[name])
    values = {"most": most, "share": percent(shares[most]), "least": least, "smallest": percent(shares[least])}
    return (Sentence("say_cut_most", values),)


def language_sentences(summary: LanguagesSummary) -> tuple[Sentence, ...]:
    """Return the mean over languages, and how far it lies below English."""
    values = {
        "model": summary.model,
        "languages": count(len(summary.languages)),
        "items": count(summary.num_shared),
        "baseline": _language_word(summary.baseline_language),
        "mean": percent(summary.mean.value),
        "drop": points(summary.drop.absolute.value),
        "spread": points_spread(summary.drop.absolute),
    }
    return (Sentence("say_languages", values),)


def _language_word(code: str) -> str:
    """Return English by its name, and every other language by its code."""
    return word("english") if code in {"en", "eng", "eng_Latn"} else code


def _language_table(summary: LanguagesSummary) -> Table:
    """Return a row for each language, the best first."""
    languages = sorted(summary.languages.items(), key=lambda item: -(item[1].overall.value or 0.0))
    rows = [
        (
            name,
            *PERCENT.cells(values.overall),
            *_drop_cells(values),
            decimal(None if values.kappa is None else values.kappa.value),
        )
        for name, values in languages
    ]
    return table(("language", "ranked_value", "interval", "drop", "interval", "relative_drop", "kappa"), rows)


def _drop_cells(values: LanguageValues) -> tuple[str, str, str]:
    """Return the drop with its interval, and relative to English; English itself has none."""
    drop = values.drop
    if drop is None or drop.absolute.value is None:
        return DASH, DASH, DASH if drop is None else percent(drop.relative.value)
    return *_POINTS.cells(drop.absolute), percent(drop.relative.value)
