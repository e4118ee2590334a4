"""The record of a run on the page: what it read and dropped, its settings, files and versions."""

import re
from collections.abc import Mapping, Sequence

from msgspec import to_builtins

from steelyard.core.types import Counts, Input, Run
from steelyard.evaluation.tables import DASH, Grouped, Panel, Sentence, Table, count, isolate, table, word
from steelyard.io.terminal_text import rule_counts
from steelyard.report.missing_verdicts import text_key
from steelyard.report.page import COLON, COMMA, Protocol, Section, section_texts
from steelyard.report.sources import FinishedRun

_PART = re.compile(r"(.*?)(?:(, |: )(.*))?", re.DOTALL)
_FINDINGS = {"harmful", "harmful by model", "language bound", "language bound by model", "private data"}
"""The rules whose parts are kinds of private data, harm, or English, which have words."""


def rule_word(rule: str) -> str:
    """Return the word of a rule or observation; one without a translation is its own word.

    A rule ``TOTAL, PART`` or ``TOTAL: PART`` without a word of its own counts a part of the rule ``TOTAL``; the part is
    translated where it is a rule itself.
    """
    if (whole := f"rule_{text_key(rule)}") in section_texts():
        return word(whole, rule)
    parts = _PART.fullmatch(rule)
    assert parts is not None, "it matches every text"
    total, mark, part = parts.groups("")
    total = total.replace("_", " ")
    # A code of a language, an id or the name of a subset keeps its underscores.
    shown = _without_folders(part)
    if (kind := f"found_{text_key(part)}") in section_texts() and total in _FINDINGS:
        shown = word(kind, part)
    elif (inner := f"rule_{text_key(part)}") in section_texts():
        shown = word(inner, part)
    return f"{word(f'rule_{text_key(total)}', total)}{COLON if mark == ': ' else mark}{shown}"


def counts_line(name: str, counts: Counts) -> str:
    """Return what went in, was used, was dropped by which rule, and was noted, in one line."""
    parts = [f"{count(counts.num_in)} {word('num_in')}", f"{count(counts.num_used)} {word('used')}"]
    for title, rules in (("dropped", counts.dropped), ("noted", counts.noted)):
        if numbers := rule_counts({rule_word(rule): number for rule, number in rules.items() if number}, COMMA):
            parts.append(f"{word(title)}{COLON}{numbers}")
    return f"{name}{COLON}{' · '.join(parts)}"


def protocol(name: str, run: Run) -> Protocol:
    """Return the run's settings, seed, inputs, versions, counts and time. Of a path only the last part is shown."""
    files = [(role, _without_folders(source.path), source.sha256) for role, source in run.inputs.items()]
    written = [(word("output"), output, sha256) for output, sha256 in run.outputs.items()]
    settings = [(key, value) for key, value in _flat(run.config) if key != "seed"]
    whole = [(word("seed"), str(run.seed) if run.seed is not None else word("no_seed"))]
    whole.append((word("seconds"), f"{run.seconds:,.1f}"))
    return Protocol(
        name,
        run.stage,
        (
            Grouped("counts", _pairs(_counts(run.counts))),
            Grouped("settings", _pairs([*whole, *settings])),
            Grouped("files", table(("role", "file", "sha256"), [*files, *written])),
            Grouped("versions", _pairs(sorted(run.versions.items()))),
        ),
    )


def records_section(sources: Sequence[FinishedRun]) -> Section:
    """Return the counts and the summary of each run, for stages that have no section of their own."""
    panels = tuple(
        Panel(f"{source.name} \N{MIDDLE DOT} {source.run.stage}", None, record_tables(source.run)) for source in sources
    )
    stages = sorted({source.run.stage for source in sources})
    sentence = Sentence("say_records", {"runs": count(len(sources)), "stages": COMMA.join(stages)})
    return Section(
        "other_runs", tuple(counts_line(source.name, source.run.counts) for source in sources), panels, (sentence,)
    )


def losses_section(sources: Sequence[FinishedRun]) -> Section:
    """Return what each run read, used, dropped by which rule, and noted."""
    rows = []
    for source in sources:
        counts = source.run.counts
        rules = [
            rule_counts({rule_word(rule): number for rule, number in numbers.items() if number}, COMMA) or DASH
            for numbers in (counts.dropped, counts.noted)
        ]
        rows.append((isolate(source.name), count(counts.num_in), count(counts.num_used), *rules))
    columns = ("loss_run", "loss_read", "loss_used", "loss_dropped", "loss_noted")
    return Section("losses", (), (Panel(word("loss_by_run"), None, (Grouped("", table(columns, rows)),)),))


def record_tables(run: Run, *, has_view: bool = False, has_counts: bool = True) -> tuple[Grouped, ...]:
    """Return the counts of a run if wanted, and the numbers of its summary where no view words them."""
    numbers = [] if has_view else _numbers(to_builtins(run.summary))
    parts = {"counts": _pairs(_counts(run.counts) if has_counts else []), "numbers": _pairs(numbers)}
    return tuple(Grouped(by, part) for by, part in parts.items() if part.rows)


def _counts(counts: Counts) -> list[tuple[str, str]]:
    """Return what went in and was used, and what was dropped and noted by each rule."""
    rows = [(word("num_in"), count(counts.num_in)), (word("used"), count(counts.num_used))]
    for title, rules in (("dropped", counts.dropped), ("noted", counts.noted)):
        rows += [(f"{word(title)}{COLON}{rule_word(rule)}", count(number)) for rule, number in sorted(rules.items())]
    return rows


def _pairs(rows: Sequence[tuple[str, str]]) -> Table:
    return table(("setting", "value"), rows)


def _flat(settings: Mapping[str, object], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            rows += _flat(value, f"{prefix}{key}.")
        else:
            rows.append((prefix + key, _without_folders(value) if isinstance(value, str) else str(value)))
    return rows


def _numbers(summary: Mapping[str, object], prefix: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Return the names and values of a summary in words; names of the data, which are within it, stay."""
    rows: list[tuple[str, str]] = []
    for key, value in summary.items():
        has_word = not prefix and f"record_{key}" in section_texts()
        names = (*prefix, word(f"record_{key}", key) if has_word else key)
        if isinstance(value, Mapping) and value:
            rows += _numbers(value, names)
        else:
            rows.append((" \N{MIDDLE DOT} ".join(names), _value(value)))
    return rows


def _value(value: object) -> str:
    """Return a value of a summary for the page."""
    if isinstance(value, bool):
        return word("record_yes" if value else "record_no")
    if isinstance(value, int):
        return count(value)
    return DASH if value is None else _without_folders(str(value))


def _without_folders(value: str) -> str:
    """Return the last part of an absolute path, any other text unchanged: a page must not show a user's folders."""
    return last_part(value) if value.startswith(("/", "\\")) or value[1:3] == ":\\" else value


def bench_files(run: Run) -> tuple[Input, ...]:
    """Return the files of the bench that an evaluation read."""
    return tuple(file for role, file in run.inputs.items() if role.split(".")[0] == "bench")


def last_part(path: str) -> str:
    """Return the last part of a path of any system."""
    return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
