"""Conversions: what was read, what became of its columns, the contents of the cases, and what was joined or lost."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import number_of, verb_for
from steelyard.curation.conversion import OTHERS, Conversion, ConversionSummary
from steelyard.evaluation.tables import Grouped, Panel, Sentence, count, isolate, table, word
from steelyard.report.judgment_sections import kind_word
from steelyard.report.page import COLON, COMMA
from steelyard.report.run_records import last_part, rule_word
from steelyard.views.view import HeadlineRule, PageSources, RunHeadline, StageRun, View

_MOST_FILES = 15
_MOST_GROUPS = 50
_DIGITS = 12
"""Of a hash: the whole is in the record of the run."""
_CASES = "cases"


def _sentences(run: StageRun[ConversionSummary]) -> Iterator[Sentence]:
    summary = run.summary
    yield Sentence(
        "say_converted" if summary.to_kind == _CASES else "say_converted_rows",
        {
            "run": run.name,
            "written": count(summary.num_written),
            "from": _format_word(summary.from_kind),
            "to": _format_word(summary.to_kind),
            "rows": count(summary.num_rows),
            "cases": count(_num_cases(summary)),
            "responses": count(summary.num_responses),
            "judgments": count(sum(summary.judgments.values())),
            "ratings": count(sum(summary.ratings.values())),
        },
    )
    if (pairs := summary.translations) is not None:
        numbers = {level: count(number) for level, number in pairs.pairs.items()}
        values = {"direction": isolate(pairs.direction), "sources": count(pairs.num_sources), **numbers}
        yield Sentence("say_translation_pairs", {"run": run.name, **values})
    if summary.lost:
        yield Sentence("say_converted_lost", {"run": run.name, "to": _format_word(summary.to_kind)})


def _panels(run: StageRun[ConversionSummary], sources: PageSources) -> Iterator[Panel]:
    tables = {
        "convert_read": (_read(run), ""),
        "convert_columns": (_columns(run.summary), "note_convert_columns"),
        "convert_contents": (_cases(run.summary), ""),
        "convert_groups": (_groups(run.summary), ""),
        "convert_translations": (_translations(run.summary), "note_convert_translations"),
        "convert_changes": (_changes(run), "note_convert_changes"),
    }
    for title, (grouped, note) in tables.items():
        if grouped.table.rows:
            yield Panel(word(title), None, (grouped,), note)


def _read(run: StageRun[ConversionSummary]) -> Grouped:
    """Return the format, the files with their hashes, the data sets and the licences that the data name."""
    summary, record = run.summary, run.source.run
    rows = [
        (word("convert_format"), f"{_format_word(summary.from_kind)} → {_format_word(summary.to_kind)}"),
        (word("convert_num_rows"), count(summary.num_rows)),
        (word("convert_num_bytes"), count(summary.num_bytes)),
        (word("convert_datasets"), COMMA.join(record.datasets) or word("convert_unknown")),
        (word("convert_licences"), COMMA.join(summary.licences) or word("convert_unnamed")),
    ]
    files = [*record.inputs.values()]
    rows += [(last_part(file.path), f"SHA-256 {file.sha256[:_DIGITS]}…") for file in files[:_MOST_FILES]]
    if len(files) > _MOST_FILES:
        rows.append((word("convert_more_files"), count(len(files) - _MOST_FILES)))
    return Grouped("", table(("setting", "value"), rows))


def _columns(summary: ConversionSummary) -> Grouped:
    rows = [
        (_group_word(name), count(column.num_rows), word(f"convert_use_{column.use}"))
        for name, column in sorted(summary.columns.items(), key=lambda item: (item[1].use != "read", item[0]))
    ]
    return Grouped("", table(("convert_column", "convert_num_rows", "convert_use"), rows))


def _cases(summary: ConversionSummary) -> Grouped:
    """Return what the cases contain, in numbers."""
    rows = [
        (word("convert_num_cases"), _num_cases(summary)),
        (word("responses"), summary.num_responses),
        *((f"{word('convert_judgments')}{COLON}{kind_word(kind)}", n) for kind, n in summary.judgments.items()),
        *((f"{word('convert_ratings')}{COLON}{kind_word(kind)}", n) for kind, n in summary.ratings.items()),
        (word("convert_rankings"), summary.num_rankings),
        (word("convert_pairs"), summary.num_pairs),
    ]
    return Grouped("", table(("setting", "n"), [(title, count(number)) for title, number in rows if number]))


def _num_cases(summary: ConversionSummary) -> int:
    """Return the number of cases with the counted contents: of pairs of translations, or of everything read."""
    return summary.num_cases if summary.translations is None else summary.num_written


def _translations(summary: ConversionSummary) -> Grouped:
    """Return the pairs of each level, the sources without one by reason, and what was noted."""
    if (pairs := summary.translations) is None:
        return Grouped("", table((), ()))
    rows: list[tuple[str, str, str]] = []
    for level, dropped in pairs.dropped.items():
        title = word(f"level_{level}")
        rows += [(title, word("convert_pairs_taken"), count(pairs.pairs[level]))]
        rows += [(title, word("convert_pairs_available"), count(pairs.available[level]))]
        rows += [(title, rule_word(reason), count(number)) for reason, number in dropped.items()]
    rows += [(word("noted"), rule_word(rule), count(number)) for rule, number in pairs.noted.items()]
    return Grouped("", table(("convert_level", "setting", "n"), rows))


def _groups(summary: ConversionSummary) -> Grouped:
    """Return the cases by language, and by source where some are named."""
    groups = {"language": summary.languages}
    if set(summary.sources) - {""}:
        groups["convert_source"] = summary.sources
    rows = [
        (f"{word(title)}{COLON}{_group_word(name) if name else word('convert_unknown')}", count(number))
        for title, numbers in groups.items()
        for name, number in _largest(numbers).items()
    ]
    return Grouped("", table(("group", "convert_num_cases"), rows))


def _largest(numbers: Mapping[str, int]) -> Mapping[str, int]:
    """Return the largest groups, and the sum of the others."""
    ordered = sorted(numbers.items(), key=lambda item: (item[0] == OTHERS, -item[1]))
    shown, others = dict(ordered[:_MOST_GROUPS]), sum(number for _, number in ordered[_MOST_GROUPS:])
    return shown | ({OTHERS: shown.get(OTHERS, 0) + others} if others else {})


def _changes(run: StageRun[ConversionSummary]) -> Grouped:
    """Return what was joined, noted, and lost in the format that was written."""
    summary, noted = run.summary, run.source.run.counts.noted
    rows = [(word("noted"), rule_word(rule), count(number)) for rule, number in sorted(noted.items())]
    rows += [(word("convert_lost"), rule_word(rule), count(number)) for rule, number in sorted(summary.lost.items())]
    if summary.to_kind == _CASES and summary.num_rows > summary.num_cases:
        joined = summary.num_rows - summary.num_cases
        rows.insert(0, (word("convert_joined"), word("convert_rows_joined"), count(joined)))
    return Grouped("", table(("convert_change", "setting", "n"), rows))


def _format_word(kind: str) -> str:
    return word("convert_case_file") if kind == _CASES else kind


def _group_word(name: str) -> str:
    return word("convert_others") if name == OTHERS else name


class _Converted(msgspec.Struct):
    from_kind: str
    to_kind: str
    num_written: int


def _converted(run: _Converted) -> RunHeadline:
    title = word("view_cases_written" if run.to_kind == _CASES else "view_rows_written")
    return RunHeadline(count(run.num_written), f"{title} · {_format_word(run.from_kind)} → {_format_word(run.to_kind)}")


def _converted_file(conversion: Conversion, out: Path) -> Iterator[str]:
    num_cases, num_rows, num_written = conversion.num_cases, conversion.num_rows, conversion.num_written
    written = (
        number_of(num_written, "case")
        if conversion.to_kind == "cases"
        else f"{number_of(num_written, 'row')} of {number_of(num_cases, 'case')}"
    )
    yield f"{out} has {written} ({conversion.from_kind} to {conversion.to_kind})."
    if (pairs := conversion.translations) is not None:
        for level, dropped in pairs.dropped.items():
            reasons = "".join(f"; {reason} {number:,}" for reason, number in dropped.items())
            yield f"  {level}: {pairs.pairs[level]:,} of {number_of(pairs.available[level], 'pair')}{reasons}"
    if conversion.columns:
        parts = [
            f"{key.removesuffix('_column').replace('_', ' ')}: {value if isinstance(value, str) else ' + '.join(value)}"
            for key, value in conversion.columns.items()
            if key.endswith("_column") and value
        ]
        yield f"  columns taken by their names: {'; '.join(parts)}"
    if num_rows > num_cases:
        line = f"  {number_of(num_rows, 'row')} {verb_for(num_rows, 'is', 'are')} {number_of(num_cases, 'prompt')}; "
        yield Advice(line, Remedy("rows", "apart"), " keeps each row a case")
    noted = conversion.noted | ({} if pairs is None else pairs.noted)
    for title, counts in (("noted", noted), ("lost", conversion.lost)):
        for name, number in sorted(counts.items()):
            yield f"  {title}: {name} {number:,}"


VIEW = View(
    140,
    "convert",
    ConversionSummary,
    "conversion",
    _sentences,
    _panels,
    headline=HeadlineRule(_Converted, _converted),
    unrecorded=_converted_file,
)
