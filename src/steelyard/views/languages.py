"""Languages: one evaluation by language, its drops from English, agreement with it, and what the limit cut."""

import re
from collections.abc import Iterator, Mapping

import msgspec

from steelyard.core.types import JsonObject
from steelyard.evaluation.language_groups import english_of
from steelyard.evaluation.languages import LanguagesSummary, LanguageValues
from steelyard.evaluation.tables import (
    DASH,
    PERCENT,
    POINTS,
    Figure,
    Grouped,
    Mark,
    Panel,
    Sentence,
    Table,
    count,
    decimal,
    isolate,
    language_title,
    percent,
    points,
    points_spread,
    table,
    with_level,
    word,
)
from steelyard.evaluation.vega import ALERT, FAINT, MODEL_COLOURS, Dot, interval_rows, share_axis
from steelyard.report.bars import stacked_bars
from steelyard.report.bench_texts import reason_words
from steelyard.report.page import COLON, COMMA, first_names
from steelyard.report.run_records import last_part
from steelyard.statistics.intervals import Estimate
from steelyard.views.records import flat_row
from steelyard.views.view import HeadlineRule, PageSources, RunHeadline, StageRun, View, report_step


def _panels(run: StageRun[LanguagesSummary], sources: PageSources) -> Iterator[Panel]:
    """Yield values, drops from English and agreement with it by language, and what the length limit cut."""
    summary = run.summary
    note = "note_languages" if summary.are_read_alike else "note_languages_not_alike"
    title = f"{isolate(summary.model)} · {summary.bench}"
    yield Panel(title, _language_figure(summary), (Grouped("", _language_table(summary)),), note)
    yield from _group_panels(summary)
    yield from _cut_panels(summary)


def _group_panels(summary: LanguagesSummary) -> Iterator[Panel]:
    """Yield the means of families, scripts and other groups of languages, and the drop of each section."""
    rows = [
        (group_title(field, name), *PERCENT.cells(group.mean), COMMA.join(map(language_title, group.languages)))
        for field, groups in summary.kin.items()
        for name, group in groups.items()
    ]
    if rows:
        tables = (Grouped("", table(("language_group", "ranked_value", "interval", "members_of_group"), rows)),)
        yield Panel(word("language_groups"), None, tables, "note_language_groups")
    # One section is the whole bench, whose drop is the overall one.
    if len(summary.drop.sections) > 1:
        drops = [
            (name, *POINTS.cells(drop.absolute), percent(drop.relative.value))
            for name, drop in summary.drop.sections.items()
        ]
        tables = (Grouped("", table(("part", "drop", "interval", "relative_drop"), drops)),)
        yield Panel(word("language_sections"), None, tables)


def _language_figure(summary: LanguagesSummary) -> Figure:
    """Return the value of each language with its interval, the best first, next to the one compared with."""
    ordered = sorted(summary.languages.items(), key=lambda item: -(item[1].overall.value or 0.0))
    dots = [Dot(language_title(name), name, values.overall) for name, values in ordered]
    reference = summary.languages[summary.baseline_language].overall.value
    channel = {"axis": share_axis("ranked_value"), "scale": {"zero": False}}
    return Figure("figure_languages", interval_rows(dots, channel, row="language", form=".1%", line=reference))


def _cut_panels(summary: LanguagesSummary) -> list[Panel]:
    """Return how much of each language's answers is cut or unscored; nothing where every answer was read whole."""
    by_language = {} if summary.coverage is None else summary.coverage.by_language
    rows = sorted(by_language.items(), key=lambda item: -sum(item[1].shares))
    if not any(sum(counts.shares) for _, counts in rows):
        return []
    parts = {
        language_title(name): {
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
    cells = [(language_title(name), count(counts.num_responses), *map(percent, counts.shares)) for name, counts in rows]
    numbers = table(("language", "responses", "share_cut", "share_unscored"), cells)
    figure = stacked_bars("figure_cut", parts, marks)
    return [Panel(word("cut_by_language"), figure, (Grouped("", numbers),), "note_cut_by_language")]


def _cut_sentences(summary: LanguagesSummary) -> tuple[Sentence, ...]:
    """Return the language whose answers are cut most; nothing where none is cut."""
    by_language = {} if summary.coverage is None else summary.coverage.by_language
    shares = {name: counts.shares[0] for name, counts in by_language.items()}
    if not any(shares.values()):
        return ()
    most, least = max(shares, key=lambda name: shares[name]), min(shares, key=lambda name: shares[name])
    values = {
        "most": language_title(most), "share": percent(shares[most]),
        "least": language_title(least), "smallest": percent(shares[least]),
    }  # fmt: skip
    return (Sentence("say_cut_most", values),)


def _sentences(run: StageRun[LanguagesSummary]) -> tuple[Sentence, ...]:
    """Return the mean over languages, how far it lies below English, and the language that is cut most."""
    summary = run.summary
    values = {
        "model": summary.model,
        "languages": count(len(summary.languages)),
        "items": count(summary.num_shared),
        "baseline": language_title(summary.baseline_language),
        "mean": percent(summary.mean.value),
        "drop": points(summary.drop.absolute.value),
        "spread": points_spread(summary.drop.absolute),
    }
    alike = () if summary.are_read_alike else (Sentence("say_languages_not_alike"),)
    chosen = chosen_baseline(run, summary.baseline_language)
    missing = missing_parts(summary.missing)
    return (Sentence("say_languages", values), *chosen, *missing, *alike, *_cut_sentences(summary))


def missing_parts(missing: Mapping[str, str]) -> tuple[Sentence, ...]:
    """Return that the shared items are not the whole bench: its sections are means over what they have."""
    parts = first_names([f"{isolate(name)} ({reason_words(why)})" for name, why in missing.items()])
    return (Sentence("say_part_of_bench", {"missing": parts}),) if missing else ()


def chosen_baseline(run: StageRun, baseline: str | None) -> tuple[Sentence, ...]:
    """Return how the language was chosen that others are compared with, where no setting and no English decided."""
    if baseline is None or english_of([baseline]) or run.source.run.config.get("baseline_language") is not None:
        return ()
    return (Sentence("say_chosen_baseline", {"baseline": language_title(baseline)}),)


def group_title(field: str, name: str) -> str:
    """Return the name of a group of languages for the page, with the kind of the group."""
    key = re.sub(r"\W", "_", name.lower())
    title = name if name.isdecimal() else word(f"group_of_languages_{key}", name)
    return f"{word(f'kin_{field}')}{COLON}{title}"


def _language_table(summary: LanguagesSummary) -> Table:
    """Return a row for each language, the best first."""
    languages = sorted(summary.languages.items(), key=lambda item: -(item[1].overall.value or 0.0))
    rows = [
        (
            language_title(name),
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
    return *POINTS.cells(drop.absolute), percent(drop.relative.value)


class _Difference(msgspec.Struct):
    absolute: Estimate


class _ByLanguage(msgspec.Struct):
    mean: Estimate
    baseline_language: str = ""
    model: str = ""
    drop: _Difference | None = None


def _by_language(run: _ByLanguage) -> RunHeadline:
    about = f"{word('view_mean_without')}{language_title(run.baseline_language)}{COMMA}{with_level(run.mean)}"
    if run.drop is not None:
        about += f"{COMMA}{word('view_drop')}{COLON}{points(run.drop.absolute.value)}"
    return RunHeadline(percent(run.mean.value), about, last_part(run.model))


def _records(summary: LanguagesSummary) -> Iterator[JsonObject]:
    return ({"language": name} | flat_row(values) for name, values in summary.languages.items())


VIEW = View(
    40, "languages", LanguagesSummary, "languages", _sentences, _panels,
    records=_records, headline=HeadlineRule(_ByLanguage, _by_language), lead=1,
    next_step=report_step("shows families, scripts and sections"),
)  # fmt: skip
