"""A leaderboard as a page to sort, as CSV, as Markdown, and as a section of a report."""

import csv
import io
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from msgspec.structs import replace

from steelyard.core.types import InputFinding
from steelyard.evaluation.leaderboard import HALF_POINTS, LeaderboardRow, LeaderboardSummary, Number
from steelyard.evaluation.measure import BenchCeiling
from steelyard.evaluation.measures.accuracy import baseline_word
from steelyard.evaluation.tables import (
    DASH,
    PERCENT,
    Grouped,
    Sentence,
    category_word,
    count,
    language_word,
    percent,
    points,
    points_spread,
    spread,
    table,
    word,
)
from steelyard.report.bench_texts import coverage_words, fact_words, headline_word, reason_words
from steelyard.report.findings import finding_sentences
from steelyard.report.page import (
    COMMA,
    Strings,
    code_markup,
    json_markup,
    page_strings,
    read_template,
    script_hash,
    template_environment,
)
from steelyard.report.text_tables import safe_cell
from steelyard.statistics.intervals import Estimate

_FIXED = (
    "name", "kind", "best_rank", "worst_rank", "share_first", "group", "self_test", "share_cut", "share_unscored",
)  # fmt: skip
_MARKS = re.compile(r"([\\`*_\[\]|~])")
_FOLDER = "leaderboard"


def rank_range(best: int, worst: int) -> str:
    """Return ``2``, or ``1–3`` where the data leave it open."""
    return str(best) if best == worst else f"{best}{DASH}{worst}"


def value_with_interval(number: Number | None) -> str:
    """Return ``81.2% [79.0–83.3%]``, as the terminal and the page write it; empty without a value."""
    if number is None or number.value is None:
        return ""
    interval = _interval(number)
    return f"{percent(number.value)} [{interval}]" if interval else percent(number.value)


def as_csv(summary: LeaderboardSummary) -> str:
    """Return a line for each model, the best first, with three columns for each number, a share from 0 to 1.

    A name that a spreadsheet would run is quoted. Evaluations without a headline have no line.
    """
    titles = [
        column.name if column.group == "headline" else f"{column.group}.{column.name}" for column in summary.columns
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_FIXED, *(f"{title}{end}" for title in titles for end in ("", ".low", ".high"))])
    for row in summary.rows:
        numbers = row.by_column
        cells: list[Any] = [
            *(row.name, row.kind, row.best_rank, row.worst_rank, row.rank_shares[0], row.group, row.self_test),
            *(row.share_read(name) for name in ("num_cut", "num_unscored")),
        ]
        for column in summary.columns:
            number = numbers.get((column.group, column.name))
            cells += ("", "", "") if number is None else (number.value, number.low, number.high)
        writer.writerow(["" if cell is None else safe_cell(cell) if isinstance(cell, str) else cell for cell in cells])
    return text.getvalue()


def as_markdown(summary: LeaderboardSummary) -> str:
    """Return headlines and sections, or subsets where there are none, as a Markdown table with remarks below it."""
    has_sections = any(column.group == "sections" for column in summary.columns)
    parts = ("sections",) if has_sections else ("subsets", "subsets_exact_match")
    columns = [column for column in summary.columns if column.group in ("headline", HALF_POINTS, *parts)]
    environment = template_environment(Strings(f"{_FOLDER}/strings.toml"))
    environment.autoescape = False
    environment.filters["markdown"] = _escape_markdown
    return environment.from_string(read_template(f"{_FOLDER}/table.md")).render(
        summary=summary,
        columns=[(column.group, column.name) for column in columns],
        titles=[_title(column.group, column.name) for column in columns],
        rank_range=rank_range,
        value_with_interval=value_with_interval,
        ceiling=None if summary.ceiling is None else ceiling_cells(summary.ceiling),
        share_of=_share_of,
    )


def _title(group: str, name: str) -> str:
    """Return a column's name, with what distinguishes it from another of the same name."""
    more = {"subsets_exact_match": ", exact match", HALF_POINTS: ", ties and failures half"}.get(group, "")
    return name.replace("_", " ") + more


def _share_of(row: LeaderboardRow, name: str) -> str:
    """Return ``27.9%``; empty where the coverage is not known."""
    share = row.share_read(name)
    return "" if share is None else f"{share:.1%}"


def _escape_markdown(text: str) -> str:
    """Return a name as plain Markdown text on one line: no column, mark, HTML, link or invisible character."""
    line = "".join(sign if sign.isprintable() else " " for sign in text).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKS.sub(r"\\\1", line).replace("://", "&#58;//")


def as_page(
    summary: LeaderboardSummary, reports: Mapping[str, str] | None = None, findings: Sequence[InputFinding] = ()
) -> str:
    """Return the leaderboard as one HTML file in the dress of the report, sortable, which loads nothing.

    ``reports`` are links to the page of a model's evaluation, by the model's name; ``findings`` those of evaluations.
    """
    strings = page_strings(tomllib.loads(read_template(f"{_FOLDER}/strings.toml")))
    scripts = [read_template(name) for name in ("page.js", "downloads.js", f"{_FOLDER}/page.js")]
    styles = "".join(map(read_template, ("page.css", "downloads.css", f"{_FOLDER}/page.css")))
    groups: dict[str, list[str]] = {}
    for column in summary.columns:
        groups.setdefault(column.group, []).append(column.name)
    others = [group for group in groups if group != "headline"]
    return (
        template_environment(strings)
        .from_string(read_template(f"{_FOLDER}/page.html"))
        .render(
            summary=summary,
            sentences=leaderboard_sentences(summary),
            about=headline_word(summary.about),
            remarks=_remarks(summary),
            findings=list(finding_sentences([summary.bench], findings)),
            column_word=_column_word,
            fact=fact_words,
            groups=groups,
            others=others,
            is_cut=any(row.share_read(name) for row in summary.rows for name in ("num_cut", "num_unscored")),
            details={row.name: _detail_tables(row) for row in summary.rows},
            reports=reports or {},
            rank_range=rank_range,
            share_of=_share_of,
            percent=percent,
            interval=_interval,
            strings=json_markup(_words_of(strings, scripts)),
            style=code_markup(styles),
            scripts=[code_markup(script) for script in scripts],
            hashes=[script_hash(script) for script in scripts],
            version=version("steelyard"),
        )
    )


def _remarks(summary: LeaderboardSummary) -> dict[str, list[tuple[str, str]]]:
    """Return what the table needs to be read, by the word of its title: names, and what is said of each."""
    unlike = [(row.name, row.coverage) for row in summary.rows] if summary.unlike_coverage else []
    remarks = {
        "say_unlike_coverage": [(name, coverage_words(coverage)) for name, coverage in unlike if coverage is not None],
        "say_missing": [(name, reason_words(why)) for name, why in summary.missing.items()],
        "say_partial": [(unranked.name, reason_words(unranked.why)) for unranked in summary.partial],
    }
    return {title: lines for title, lines in remarks.items() if lines}


def _column_word(group: str, name: str) -> str:
    """Return the name of a column for the page; prompts without a category have a translated one."""
    if group in ("by_category", "subset_categories"):
        *subset, category = name.split(": ", 1) if group == "subset_categories" else [name]
        return ": ".join([*subset, category_word(category)])
    return language_word(name) if group == "by_language" else name


def _words_of(strings: Strings, scripts: Sequence[str]) -> dict[str, Mapping[str, str]]:
    """Return the words that the scripts name."""
    code = "".join(scripts)
    return {key: texts for key, texts in strings.table.items() if f'"{key}"' in code}


def _interval(number: Number) -> str:
    return "" if number.low is None else spread(Estimate(number.value, number.low, number.high, number.n))


def _detail_tables(row: LeaderboardRow) -> tuple[Grouped, ...]:
    """Return the numbers of one model by group, its baselines, and its protocol."""
    groups: dict[str, list[tuple[str, str, str, str]]] = {}
    for number in row.numbers:
        if number.value is not None:
            name = word(number.name) if number.group == "headline" else _column_word(number.group, number.name)
            cells = (name, percent(number.value), _interval(number) or DASH, count(number.n))
            groups.setdefault(number.group, []).append(cells)
    tables = [Grouped(group, table(("part", "value", "interval", "n"), rows)) for group, rows in groups.items()]
    if row.baselines:
        rows = [
            (
                baseline_word(name),
                *PERCENT.cells(baseline.accuracy),
                points(baseline.lead.value),
                points_spread(baseline.lead),
            )
            for name, baseline in row.baselines.items()
        ]
        columns = ("scorer", "accuracy", "interval", "lead", "interval_of_lead")
        tables.append(Grouped("baselines_of_model", table(columns, rows)))
    protocol = {
        "kind": row.kind,
        "self_test": word(f"state_{row.self_test.replace(' ', '_')}", row.self_test),
        "number_type": row.protocol.dtype or DASH,
        "length_limit": count(row.protocol.max_length),
    }
    settings = [(word(key), value) for key, value in protocol.items()]
    return (*tables, Grouped("protocol", table(("setting", "value"), settings)))


def leaderboard_sentences(summary: LeaderboardSummary) -> tuple[Sentence, ...]:
    """Return the first model, or those that the data cannot tell apart at the top, in words."""
    if not summary.rows:
        return (Sentence("say_none_ranked"),)
    ceiling = ceiling_sentences(summary.bench, summary.ceiling)
    leading = [row for row in summary.rows if row.best_rank == 1]
    first = summary.rows[0]
    number = first.by_column.get(("headline", summary.ranked_by))
    values = {
        "model": first.name,
        "models": count(len(summary.rows)),
        "bench": summary.bench,
        "value": percent(first.value),
        "interval": DASH if number is None else _interval(number) or DASH,
        "prompts": count(summary.num_prompts),
    }
    if len(leading) == 1:
        return (Sentence("say_first", values), *ceiling)
    names = COMMA.join(row.name for row in leading)
    return (Sentence("say_first_shared", values | {"leading": count(len(leading)), "names": names}), *ceiling)


def ceiling_sentences(bench: str, ceiling: BenchCeiling | None) -> tuple[Sentence, ...]:
    """Return what a perfect model reaches, in words."""
    if ceiling is None or ceiling.accuracy.value is None:
        return ()
    value, interval = ceiling_cells(ceiling)
    sentences = [Sentence("say_ceiling", {"bench": bench, "value": value, "interval": interval})]
    if ceiling.exact_match is not None and ceiling.exact_match.value is not None:
        exact = {"value": percent(ceiling.exact_match.value), "interval": spread(ceiling.exact_match)}
        sentences.append(Sentence("say_ceiling_exact", exact))
    return tuple(sentences)


def ceiling_cells(ceiling: BenchCeiling) -> tuple[str, str]:
    """Return the accuracy of a perfect model with its interval; between two values where errors may gather or not."""
    least, most = ceiling.least, ceiling.accuracy
    if least is None or least.value is None:
        return percent(most.value), spread(most)
    return f"{percent(least.value)}{DASH}{percent(most.value)}", spread(replace(most, low=least.low))
