"""Reliability of raters: the accuracy and the share of ties of everybody who judged, with intervals."""

from collections.abc import Sequence

from steelyard.annotation.case_answers import RatersSummary
from steelyard.evaluation.tables import Grouped, Panel, Sentence, count, isolate, table, word
from steelyard.report.page import Section
from steelyard.report.rater_table import rater_cells
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection

_COLUMNS = ("rater", "n", "rater_accuracy", "interval", "rater_ties", "interval")


def _contents(runs: Sequence[StageRun[RatersSummary]], sources: PageSources) -> StageContents:
    panels = [_panel(run, is_alone=len(runs) == 1) for run in runs]
    sentences = tuple(_sentence(run) for run in runs)
    return StageContents((Section("raters", tuple(run.evidence for run in runs), tuple(panels), sentences),))


def _panel(run: StageRun[RatersSummary], *, is_alone: bool) -> Panel:
    rows = [(isolate(row.rater), *rater_cells(row)) for row in run.summary.raters]
    title = word("rater_table") if is_alone else run.name
    return Panel(title, None, (Grouped("", table(_COLUMNS, rows)),), "note_raters")


def _sentence(run: StageRun[RatersSummary]) -> Sentence:
    summary = run.summary
    values = {
        "run": run.name,
        "raters": count(len(summary.raters)),
        "answers": count(summary.num_answers),
        "shared": count(summary.num_shared),
        "cases": count(summary.num_cases),
    }
    return Sentence("say_raters", values)


SECTION = StageSection(135, "raters", RatersSummary, _contents)
