"""The parts of the page as values: sections with their evidence, cards, and the record of each run."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from steelyard.core.types import Counts, Run
from steelyard.evaluation.tables import Grouped, Panel, Table, count, table, word
from steelyard.io.terminal_text import rule_counts


class Section(NamedTuple):
    """A part of the page: its anchor, whose word is the title, the runs that it rests on, and its panels."""

    anchor: str
    evidence: tuple[str, ...]
    panels: tuple[Panel, ...]


class Card(NamedTuple):
    """One number at the top of the page: its word, the number, a line below, and what it is about.

    ``tone`` is ``good``, ``bad`` or empty; it colours a small mark.
    """

    title: str
    number: str
    below: str
    tone: str = ""
    about: str = ""


class CardGroup(NamedTuple):
    """Cards that belong together, under a title; empty where the page has only one group."""

    title: str
    cards: tuple[Card, ...]


class Protocol(NamedTuple):
    """The record of one run: settings, files, versions and counts."""

    name: str
    stage: str
    tables: tuple[Grouped, ...]


def counts_line(name: str, counts: Counts) -> str:
    """Return what went in, was used, was dropped by which rule, and was noted, in one line."""
    parts = [f"{count(counts.num_in)} {word('num_in')}", f"{count(counts.num_used)} {word('used')}"]
    for title, rules in (("dropped", counts.dropped), ("noted", counts.noted)):
        if rules:
            numbers = rule_counts({rule.replace("_", " "): number for rule, number in rules.items()})
            parts.append(f"{word(title)}: {numbers}")
    return f"{name}: " + " · ".join(parts)


def protocol(name: str, run: Run) -> Protocol:
    """Return the run's settings, seed, inputs, versions, counts and time. Of a path only the last part is shown."""
    files = [(role, _last_part(source.path), source.sha256) for role, source in run.inputs.items()]
    written = [(word("output"), output, sha256) for output, sha256 in run.outputs.items()]
    settings = [(key, value) for key, value in _flat(run.config) if key != "seed"]
    whole = [(word("seed"), str(run.seed) if run.seed is not None else word("no_seed"))]
    whole.append((word("seconds"), f"{run.seconds:,.1f}"))
    counts = [(word("num_in"), count(run.counts.num_in)), (word("used"), count(run.counts.num_used))]
    for title, rules in (("dropped", run.counts.dropped), ("noted", run.counts.noted)):
        counts += [(f"{word(title)}: {rule}", count(number)) for rule, number in sorted(rules.items())]
    return Protocol(
        name,
        run.stage,
        (
            Grouped("counts", _pairs(counts)),
            Grouped("settings", _pairs([*whole, *settings])),
            Grouped("files", table(("role", "file", "sha256"), [*files, *written])),
            Grouped("versions", _pairs(sorted(run.versions.items()))),
        ),
    )


def _pairs(rows: Sequence[tuple[str, str]]) -> Table:
    return table(("setting", "value"), rows)


def _flat(settings: Mapping[str, object], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            rows += _flat(value, f"{prefix}{key}.")
        else:
            rows.append((prefix + key, _last_part(value) if isinstance(value, str) else str(value)))
    return rows


def _last_part(path: str) -> str:
    is_absolute = path.startswith(("/", "\\")) or path[1:3] == ":\\"
    return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] if is_absolute else path
