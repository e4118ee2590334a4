"""Reliability of raters: the accuracy and the share of ties of everybody who judged, with intervals."""

from collections.abc import Iterator

from steelyard.annotation.case_answers import RatersSummary
from steelyard.evaluation.tables import Grouped, Panel, Sentence, count, isolate, table, word
from steelyard.report.rater_table import rater_cells
from steelyard.views.records import flat_row
from steelyard.views.view import PageSources, StageRun, View, report_step

_MOST_WITHHELD = 3
"""The largest number of raters without an estimate whose reasons are sentences."""
_COLUMNS = ("rater", "n", "rater_accuracy", "interval", "rater_ties", "interval")


def _panels(run: StageRun[RatersSummary], sources: PageSources) -> Iterator[Panel]:
    rows = [(isolate(row.rater), *rater_cells(row)) for row in run.summary.raters]
    yield Panel(word("rater_table"), None, (Grouped("", table(_COLUMNS, rows)),), "note_raters")


def _sentences(run: StageRun[RatersSummary]) -> Iterator[Sentence]:
    summary = run.summary
    values = {
        "run": run.name,
        "raters": count(len(summary.raters)),
        "answers": count(summary.num_answers),
        "shared": count(summary.num_shared),
        "cases": count(summary.num_cases),
    }
    yield Sentence("say_raters", values)
    withheld = [row for row in summary.raters if row.accuracy.value is None]
    for row in withheld[:_MOST_WITHHELD]:
        yield Sentence("say_withheld", {"rater": row.rater, "why": row.accuracy.why or ""})
    if len(withheld) > _MOST_WITHHELD:
        yield Sentence("say_more_withheld", {"number": count(len(withheld) - _MOST_WITHHELD)})


VIEW = View(
    135,
    "raters",
    RatersSummary,
    "raters",
    _sentences,
    _panels,
    records=lambda summary: map(flat_row, summary.raters),
    lead=1,
    next_step=report_step("shows them"),
)
