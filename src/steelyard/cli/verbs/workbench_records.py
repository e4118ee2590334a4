"""Records of a project on the command line: its answers, its gold tasks, and what native speakers say."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from steelyard.cli.output import TerminalTable, echo_record, percent_text, print_lines
from steelyard.cli.verbs.workbench_import import SAME, existing_project, record_export
from steelyard.core.text import number_of

if TYPE_CHECKING:
    from steelyard.workbench.figures.people_figures import PeopleFigures
    from steelyard.workbench.storage.database import Database


def export_records(opened: "Database", project: str, out: Path, *, is_gold: bool, force: bool) -> None:
    """Write answers or gold tasks, one a line."""
    from steelyard.io.atomic import write_once
    from steelyard.io.rows import write_rows
    from steelyard.workbench.figures.people_figures import people_figures
    from steelyard.workbench.results.answer_records import answer_records, gold_records

    record_export(opened, project, {"records": "gold" if is_gold else "answers"})
    with opened.reading() as session:
        stored = existing_project(session, project)
        # Read first: the records leave nothing of the project in the session.
        figures = people_figures(session, stored) if is_gold else None
        read = gold_records if is_gold else answer_records
        number, is_new = write_once(
            out, lambda place: write_rows(place, map(msgspec.to_builtins, read(session, stored))), force=force
        )
    written = number_of(number, "gold task" if is_gold else "answer")
    print_lines([f"{written} in {out}.{'' if is_new else SAME}", *(_accuracy(figures) if figures else ())])


def _accuracy(figures: "PeopleFigures") -> Iterator[TerminalTable]:
    """Yield the accuracy on gold tasks by person, and of all answers, with 95% intervals."""
    people = sorted((each for each in figures.people if each.gold_answers), key=lambda each: each.pseudonym)
    if people:
        rows = [[each.pseudonym, str(each.gold_answers), percent_text(each.gold)] for each in people]
        rows.append(["all", str(sum(each.gold_answers for each in people)), percent_text(figures.gold)])
        yield TerminalTable("Accuracy on gold tasks", ["answers", "accuracy"], rows)


def export_native(opened: "Database", project: str, out: Path | None, *, force: bool, as_json: bool) -> None:
    """Print what native speakers say of the finished items of a project, or write it as JSON.

    A row for each language has the shares of the answers with their intervals.
    """
    from steelyard.annotation.native_results import native_results
    from steelyard.io.atomic import write_once
    from steelyard.io.rows import write_rows
    from steelyard.workbench.pipeline.case_export import export_cases

    with opened.reading() as session:
        results = native_results(export_cases(session, existing_project(session, project), evidence="aligned"))
    written: list[str] = []
    if out is not None:
        number, is_new = write_once(
            out, lambda place: write_rows(place, map(msgspec.to_builtins, results)), force=force
        )
        written = [f"{number_of(number, 'language')} in {out}.{'' if is_new else SAME}"]
    if as_json:
        echo_record(results)
        return
    judges = sorted({judge for each in results for judge in each.judges})
    heads = ["items", "as reference", "same", "reads native", "suited", *judges]
    rows = [
        [
            each.language or "none",
            str(each.num_items),
            *map(percent_text, (each.reference, each.same, each.native, each.suited)),
            *(percent_text(each.judges[judge]) if judge in each.judges else "" for judge in judges),
        ]
        for each in results
    ]
    note = " (simulated people: evidence of nothing)" if any(each.simulated for each in results) else ""
    title = f"Native speakers of project {project}{note}" if results else "No finished item of a native-speaker check."
    print_lines([TerminalTable(title, heads, rows) if rows else title, *written])
