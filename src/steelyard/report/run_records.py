"""The record of a run on the page: what it read and dropped, its settings, files and versions."""

import re
from collections.abc import Mapping, Sequence

from steelyard.core.types import Counts, Run
from steelyard.evaluation.tables import Grouped, Panel, Sentence, Table, count, table, word
from steelyard.io.terminal_text import rule_counts
from steelyard.report.page import COLON, COMMA, Protocol, Section, section_texts
from steelyard.report.sources import FinishedRun

_PART = re.compile(r"(.*?)(?:(, |: )(.*))?", re.DOTALL)
_SLUG = re.compile(r"[^a-z0-9]+")


def rule_word(rule: str) -> str:
    """Return the word of a rule or observation; one without a translation is its own word.

    A rule ``TOTAL, PART`` or ``TOTAL: PART`` without a word of its own counts a part of the rule ``TOTAL``: only the
    total is translated.
    """
    if (whole := f"rule_{_slug(rule)}") in section_texts():
        return word(whole, rule)
    parts = _PART.fullmatch(rule.replace("_", " "))
    assert parts is not None, "it matches every text"
    total, mark, part = parts.groups("")
    return f"{word(f'rule_{_slug(total)}', total)}{COLON if mark == ': ' else mark}{part}"


def _slug(rule: str) -> str:
    return _SLUG.sub("_", rule.lower()).strip("_")


def counts_line(name: str, counts: Counts) -> str:
    """Return what went in, was used, was dropped by which rule, and was noted, in one line."""
    parts = [f"{count(counts.num_in)} {word('num_in')}", f"{count(counts.num_used)} {word('used')}"]
    for title, rules in (("dropped", counts.dropped), ("noted", counts.noted)):
        if rules:
            numbers = rule_counts({rule_word(rule): number for rule, number in rules.items()})
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
        Panel(f"{source.name} \N{MIDDLE DOT} {source.run.stage}", None, _record_tables(source.run))
        for source in sources
    )
    stages = sorted({source.run.stage for source in sources})
    sentence = Sentence("say_records", {"runs": count(len(sources)), "stages": COMMA.join(stages)})
    return Section(
        "other_runs", tuple(counts_line(source.name, source.run.counts) for source in sources), panels, (sentence,)
    )


def _record_tables(run: Run) -> tuple[Grouped, ...]:
    parts = {"counts": _pairs(_counts(run.counts)), "numbers": _pairs(_flat(run.summary))}
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


def _without_folders(value: str) -> str:
    """Return the last part of an absolute path, any other text unchanged: a page must not show a user's folders."""
    return last_part(value) if value.startswith(("/", "\\")) or value[1:3] == ":\\" else value


def last_part(path: str) -> str:
    """Return the last part of a path of any system."""
    return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
