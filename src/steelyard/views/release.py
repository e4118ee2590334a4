"""A released bench: its parts with their sizes, and the canary."""

from collections.abc import Iterator

from steelyard.annotation.people_runs import ReleaseSummary
from steelyard.core.types import JsonObject
from steelyard.evaluation.tables import Grouped, Panel, Sentence, Table, count, word
from steelyard.report.page import COMMA
from steelyard.views.view import PageSources, StageRun, View

_COLUMNS = ("prompts", "responses", "ordered_pairs", "judgments")


def _sentences(run: StageRun[ReleaseSummary]) -> Iterator[Sentence]:
    summary = run.summary
    parts = COMMA.join(f"{word(f'part_{part}', part)} {count(number)}" for part, number in summary.prompts.items())
    total = count(sum(summary.prompts.values()))
    values = {"run": run.name, "name": summary.name, "version": summary.version, "prompts": total, "parts": parts}
    yield Sentence("say_released", values)
    if summary.is_simulated:
        yield Sentence("say_release_simulated", {"name": summary.name})
    if summary.canary:
        yield Sentence("say_canary", {"canary": summary.canary})


def _panels(run: StageRun[ReleaseSummary], sources: PageSources) -> Iterator[Panel]:
    rows = tuple(
        (word(f"part_{row['part']}", str(row["part"])), *(count(row[column]) for column in _COLUMNS))
        for row in _records(run.summary)
    )
    heads = (word("release_part"), *(word(f"release_{column}") for column in _COLUMNS))
    yield Panel(word("release_parts"), None, (Grouped("", Table(heads, rows)),))


def _records(summary: ReleaseSummary) -> Iterator[JsonObject]:
    for part in summary.prompts:
        yield {"part": part} | {column: getattr(summary, column)[part] for column in _COLUMNS}


VIEW = View(160, "release", ReleaseSummary, "released", _sentences, _panels, records=_records)
