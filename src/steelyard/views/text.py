"""A result as plain text in one language: its sentences for the terminal, and its tables for papers."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from steelyard.core.types import Run
from steelyard.evaluation.tables import DASH, Panel, Table
from steelyard.report.missing_verdicts import text_key
from steelyard.report.page import page_strings
from steelyard.report.run_records import record_tables
from steelyard.report.sources import FinishedRun, summary_of
from steelyard.report.text_tables import TextTable, safe_cell
from steelyard.views.view import NO_SOURCES, StageRun, View, view_of

_INTERVAL = ("@@interval|", "@@interval_of_lead|")
_BRACKETS = {"en": " ({})", "zh": "（{}）"}
_RUN = re.compile(r"\{run\}[:：,，] ?")
"""The name of the run before a sentence, which a result that is shown alone does not need."""


def result_sentences(run: Run[Any], folder: Path, language: str = "en") -> Iterator[str]:
    """Yield the result of a finished run in words, most important first; nothing for a stage without a view."""
    if (view := view_of(run.stage)) is None:
        return
    strings = page_strings()
    for sentence in view.sentences(_stage_run(view, run, folder)):
        template = strings.table[sentence.key][language]
        alone = _RUN.sub("", template, count=1) if _RUN.match(template) else template
        text = strings.fill(alone, sentence.values, language)
        yield text[:1].upper() + text[1:] if alone[:1].islower() else text


def result_tables(
    run: Run[Any], folder: Path, language: str = "en", *, name: str = "", label: str = "", has_counts: bool = True
) -> Iterator[TextTable]:
    """Yield the tables that the report shows of a finished run, with an interval in the cell of its value.

    The last table of a panel has its note; that of a figure describes the figure. A run without a table in its view,
    or without a view, has one of its counts where ``has_counts``.

    ``name`` is shown for the run, and ``label`` begins the labels of its tables; by default both are the folder's name.
    """
    strings, label = page_strings(), label or text_key(name or folder.name) or run.stage
    view = view_of(run.stage)
    panels = () if view is None else tuple(view.panels(_stage_run(view, run, folder), NO_SOURCES))
    if not any(panel.tables for panel in panels):
        title = f"{name or folder.name} \N{MIDDLE DOT} {run.stage}"
        panels = (Panel(title, None, record_tables(run, has_view=view is not None, has_counts=has_counts)),)
    for number, panel in enumerate(panels, start=1):
        note = strings.table[panel.note][language] if panel.note and panel.figure is None else ""
        for grouped in panel.tables:
            title = strings.translate(panel.title, language)
            by = strings.table.get(grouped.by, {}).get(language, grouped.by)
            heads, *rows = _joined(grouped.table)
            yield TextTable(
                label=f"{label}-{number}" + (f"-{text_key(grouped.by)}" if grouped.by else ""),
                caption=title + (_BRACKETS[language].format(by) if by else ""),
                heads=tuple(strings.translate(head, language) for head in heads),
                rows=tuple(tuple(strings.translate(cell, language) for cell in row) for row in rows),
                note=note if grouped is panel.tables[-1] else "",
            )


def csv_table(table: TextTable) -> str:
    """Return the table as CSV below its caption, if it has one.

    A cell that a spreadsheet would run begins with an apostrophe.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in (*([[table.caption]] if table.caption else ()), table.heads, *table.rows):
        writer.writerow(map(safe_cell, row))
    return text.getvalue()


def _stage_run(view: View[Any], run: Run[Any], folder: Path) -> StageRun[Any]:
    source = FinishedRun(folder.name, folder, run)
    summary = run.summary if isinstance(run.summary, view.summary) else summary_of(source, view.summary)
    title = "" if view.title is None else view.title(summary)
    return StageRun(title or folder.name, source, summary)


def _joined(table: Table) -> Iterator[Sequence[str]]:
    """Yield the headings and the rows of a table, each interval in brackets behind the value before it."""
    intervals = {place for place, head in enumerate(table.columns) if head.startswith(_INTERVAL) and place}
    for row in (table.columns, *table.rows):
        is_head = row is table.columns
        cells: list[str] = []
        for place, cell in enumerate(row):
            if place not in intervals:
                cells.append(cell)
            elif not is_head and cell not in ("", DASH):
                cells[-1] += f" {cell}" if cell.startswith("[") else f" [{cell}]"
        yield cells
