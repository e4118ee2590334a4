"""The verb `steelyard workbench import`: cases in as tasks or as a qualification; and how verbs open a workbench."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from steelyard.cli.options import merge_settings
from steelyard.cli.output import print_lines
from steelyard.core.config import parse_settings, resolve_config
from steelyard.core.errors import ConfigError
from steelyard.core.text import number_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from steelyard.core.errors import Place
    from steelyard.core.types import Case, JsonObject
    from steelyard.workbench.storage.database import Database
    from steelyard.workbench.storage.tables import StoredProject

DEFAULT_DATABASE = "sqlite:///workbench.db"
DatabaseAddress = Annotated[
    str,
    typer.Option(
        "--database",
        envvar="STEELYARD_WORKBENCH_DATABASE",
        show_envvar=True,
        help="Where everything is stored: sqlite:///FILE, or postgresql://USER:PASSWORD@HOST/NAME.",
    ),
]
ProjectName = Annotated[str, typer.Option("--project", help="The name of the project.")]
Evidence = Literal["aligned", "both"]
SAME = " It was there, with equal content."
Force = Annotated[bool, typer.Option("--force", help="Replace a file that holds something else.")]


def import_cases_of_file(
    cases: Annotated[Path, typer.Argument(help="A case file. Cases of two responses become pairs, of more triples.")],
    *,
    project: ProjectName,
    batch: Annotated[str, typer.Option("--batch", help="The name of this batch. Default: that of the file.")] = "",
    database: DatabaseAddress = DEFAULT_DATABASE,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of a new project: KEY=VALUE; may be repeated.")
    ] = None,
    is_unreviewed: Annotated[
        bool,
        typer.Option(
            "--without-review", help="A new project needs no reviewers: items on which people agree are done."
        ),
    ] = False,
    is_qualification: Annotated[
        bool, typer.Option("--qualification", help="Make tasks of a qualification, of cases with reference answers.")
    ] = False,
) -> None:
    """Make tasks of a case file: all of it as one batch, or nothing where a line is wrong.

    A project that is not there yet is made, with the settings of `--set`. People get the items in the order of the
    file. With `--qualification` new annotators of a project learn on the cases before real ones, as
    qualification.num_tasks says; the reference answers are those of an export.

    Example: `steelyard workbench import sampled.jsonl --project bench --set rules.num_annotators=3`

    Example: `steelyard workbench import cases.jsonl --project bench --without-review`

    Example: `steelyard workbench import reference.jsonl --project bench --qualification`
    """
    from steelyard.annotation.pipeline import WITHOUT_REVIEW
    from steelyard.io.cases import read_placed_cases
    from steelyard.workbench.pipeline.case_import import import_cases
    from steelyard.workbench.pipeline.projects import ProjectSettings, add_project, project_named

    if is_qualification:
        real_work = {"--batch": batch, "--set": settings, "--without-review": is_unreviewed}
        if option := next((name for name, value in real_work.items() if value), None):
            raise ConfigError(
                "a qualification has no tasks of real work, for which this is",
                where=option,
                do=f"omit {option}, or omit --qualification",
            )
        _import_qualification(list(read_placed_cases(cases)), project, database)
        return
    read = list(read_placed_cases(cases))
    opened = open_workbench(database, is_made=True)
    values = merge_settings({"rules": WITHOUT_REVIEW} if is_unreviewed else {}, parse_settings(settings or ()))
    chosen = resolve_config(ProjectSettings, values, where="--set")

    def work(session: "Session") -> str:
        stored, at = project_named(session, project), time.time()
        if stored is not None and values:
            raise ConfigError(
                f"the project {project!r} has its settings",
                where="--without-review" if is_unreviewed else "--set",
                do="change them on its page, or leave out what sets them here",
            )
        stored = stored or add_project(session, project, chosen, by=None, at=at)
        name = batch or cases.stem
        places = {case.key: place for place, case in read}
        made = import_cases(session, stored, [case for _, case in read], batch=name, by=None, at=at, places=places)
        skipped = f"; {number_of(made.num_skipped, 'case')} left out" if made.num_skipped else ""
        items, tasks = number_of(made.num_items, "item"), number_of(made.num_tasks, "task")
        return f"{items} with {tasks} in project {project}{skipped}."

    print_lines([opened.write(work)])


def _import_qualification(read: "list[tuple[Place, Case]]", project: str, database: str) -> None:
    from steelyard.workbench.pipeline.projects import settings_of
    from steelyard.workbench.qualification.material import import_qualification

    def work(session: "Session") -> list[str]:
        stored = existing_project(session, project)
        places = {case.key: place for place, case in read}
        cases = [case for _, case in read]
        imported = import_qualification(session, stored, cases, by=None, at=time.time(), places=places)
        before = f" {imported.num_before} were there before." if imported.num_before else ""
        undecided = number_of(imported.num_undecided, "task")
        left_out = f" {undecided} on which people differ left out." if imported.num_undecided else ""
        made = f"{number_of(imported.num_tasks, 'qualification task')} in project {project}.{before}{left_out}"
        is_on = settings_of(stored).qualification.num_tasks > 0
        return [made] if is_on else [made, "  none is asked for yet: set qualification.num_tasks on the project's page"]

    print_lines(open_workbench(database).write(work))


def open_workbench(address: str, *, is_made: bool = False) -> "Database":
    """Open a workbench and bring it to this version. Raises FileError for a file that is not there."""
    from steelyard.workbench.storage import database

    return database.open_workbench(address, is_made=is_made)


def existing_project(session: "Session", name: str) -> "StoredProject":
    """Return the project of a name. Raises ConfigError with the names that there are."""
    from sqlalchemy import select

    from steelyard.workbench.pipeline.projects import project_named
    from steelyard.workbench.storage.tables import StoredProject

    project = project_named(session, name)
    if project is None:
        names = ", ".join(session.scalars(select(StoredProject.name).order_by(StoredProject.id).limit(20)))
        raise ConfigError(f"there is no project {name!r}", where="--project", allowed=names or "none yet: import one")
    return project


def record_export(opened: "Database", project: str, detail: "JsonObject") -> None:
    """Write into the audit log that data of a project are taken out."""
    from steelyard.workbench.storage.audit_log import AuditEvent, record

    def work(session: "Session") -> None:
        stored = existing_project(session, project)
        record(session, AuditEvent("exported", "project", stored.id, None, detail), at=time.time())

    opened.write(work)
