"""The verb of `steelyard workbench` that writes answers one by one: of all kinds of tasks, and of gold tasks."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from steelyard.cli.output import TerminalTable, percent_text, print_lines
from steelyard.cli.verbs.workbench_data import (
    DEFAULT_DATABASE,
    DatabaseAddress,
    Force,
    existing_project,
    open_workbench,
)
from steelyard.core.errors import ConfigError
from steelyard.core.text import number_of
from steelyard.core.types import Record

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from steelyard.workbench.figures.people_figures import PeopleFigures


def write_records(
    *,
    project: Annotated[str, typer.Option("--project", help="The name of the project.")],
    out: Annotated[Path, typer.Option("--out", help="The file of JSON lines to write.")],
    is_gold: Annotated[bool, typer.Option("--gold", help="Gold tasks with their origin and results instead.")] = False,
    force: Force = False,
    database: DatabaseAddress = DEFAULT_DATABASE,
) -> None:
    """Write every answer of a project, one a line, with all of its origin, for any kind of tasks.

    Also what `export` leaves out: answers of unfinished items, dropped prompts and rejected rounds, to gold tasks, and
    of people who could not judge. With `--gold`, each gold task: its truth, whose answer that was, and everybody's
    result; the accuracy by person is printed.

    Example: `steelyard workbench records --project bench --out answers.jsonl`

    Example: `steelyard workbench records --project bench --gold --out gold.jsonl`
    """
    from steelyard.io.atomic import write_once
    from steelyard.workbench.figures.people_figures import people_figures
    from steelyard.workbench.results.answer_records import answer_records, gold_records
    from steelyard.workbench.storage.audit_log import AuditEvent, record

    if out.suffix != ".jsonl":
        raise ConfigError(f"{out.name!r} does not end in .jsonl", where="--out", do="name a file of JSON lines")
    opened = open_workbench(database)

    def note(session: "Session") -> None:
        stored = existing_project(session, project)
        detail = {"records": "gold" if is_gold else "answers"}
        record(session, AuditEvent("exported", "project", stored.id, None, detail), at=time.time())

    opened.write(note)
    with opened.reading() as session:
        stored = existing_project(session, project)
        # Read first: the records leave nothing of the project in the session.
        figures = people_figures(session, stored) if is_gold else None
        read = gold_records if is_gold else answer_records
        number, is_new = write_once(out, lambda place: _write(place, read(session, stored)), force=force)
    same = "" if is_new else " It was there, with equal content."
    what = number_of(number, "gold task" if is_gold else "answer")
    print_lines([f"{what} in {out}.{same}", *(_accuracy(figures) if figures else ())])


def _write(place: Path, records: Iterator[Record]) -> int:
    from steelyard.io.atomic import atomic_write

    number = 0
    with atomic_write(place) as file:
        for each in records:
            number += 1
            file.write(msgspec.json.encode(each) + b"\n")
    return number


def _accuracy(figures: "PeopleFigures") -> Iterator[TerminalTable]:
    """Yield the accuracy on gold tasks by person, and of all answers, with 95% intervals."""
    people = sorted((each for each in figures.people if each.gold_answers), key=lambda each: each.pseudonym)
    if people:
        rows = [[each.pseudonym, str(each.gold_answers), percent_text(each.gold)] for each in people]
        rows.append(["all", str(sum(each.gold_answers for each in people)), percent_text(figures.gold)])
        yield TerminalTable("Accuracy on gold tasks", ["answers", "accuracy"], rows)
