"""A run of `languages` on the page: one model in many languages, their drops from English and agreement with it."""

from collections.abc import Sequence

from steelyard.evaluation.languages import LanguagesSummary, LanguageValues
from steelyard.evaluation.tables import (
    DASH,
    Grouped,
    Panel,
    Sentence,
    Table,
    count,
    decimal,
    percent,
    points,
    points_spread,
    spread,
    table,
)
from steelyard.report.sections import Section


def languages_section(summaries: Sequence[LanguagesSummary], evidence: Sequence[str]) -> Section:
    """Return each evaluation by language: values, drops from English, and agreement with it."""
    panels = [
        Panel(
            f"{summary.model} · {summary.bench}",
            None,
            (Grouped("", _language_table(summary)),),
            "note_languages" if summary.are_read_alike else "note_languages_not_alike",
        )
        for summary in summaries
    ]
    return Section("languages", tuple(evidence), tuple(panels))


def language_sentences(summary: LanguagesSummary) -> tuple[Sentence, ...]:
    """Return the mean over languages, and how far it lies below English."""
    values = {
        "model": summary.model,
        "languages": count(len(summary.languages)),
        "items": count(summary.num_shared),
        "mean": percent(summary.mean.value),
        "drop": points(summary.drop.absolute.value),
        "spread": points_spread(summary.drop.absolute),
    }
    return (Sentence("say_languages", values),)


def _language_table(summary: LanguagesSummary) -> Table:
    """Return a row for each language, the best first."""
    languages = sorted(summary.languages.items(), key=lambda item: -(item[1].overall.value or 0.0))
    rows = [
        (
            name,
            percent(values.overall.value),
            spread(values.overall),
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
    return points(drop.absolute.value), points_spread(drop.absolute), percent(drop.relative.value)
