"""The verbs of `steelyard workbench` that move data: cases in as tasks, judgments and results out."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from steelyard.cli.options import merge_settings
from steelyard.cli.output import TerminalTable, echo_record, percent_text, print_lines
from steelyard.core.config import parse_settings, resolve_config
from steelyard.core.errors import ConfigError, EvidenceError, FileError, OutputError
from steelyard.core.remedies import Advice, joined
from steelyard.core.text import number_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

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
) -> None:
    """Make tasks of a case file: all of it as one batch, or nothing where a line is wrong.

    A project that is not there yet is made, with the settings of `--set`. People get the items in the order of the
    file.

    Example: `steelyard workbench import sampled.jsonl --project bench --set rules.num_annotators=3`

    Example: `steelyard workbench import cases.jsonl --project bench --without-review`

    """
    from steelyard.annotation.pipeline import WITHOUT_REVIEW
    from steelyard.io.cases import read_cases
    from steelyard.workbench.pipeline.projects import ProjectSettings, add_project, import_cases

    read = list(read_cases(cases))
    opened = open_workbench(database, is_made=True)
    values = merge_settings({"rules": WITHOUT_REVIEW} if is_unreviewed else {}, parse_settings(settings or ()))
    chosen = resolve_config(ProjectSettings, values, where="--set")

    def work(session: "Session") -> str:
        stored, at = _project(session, project), time.time()
        if stored is not None and values:
            raise ConfigError(
                f"the project {project!r} has its settings",
                where="--without-review" if is_unreviewed else "--set",
                do="change them on its page, or leave out what sets them here",
            )
        stored = stored or add_project(session, project, chosen, by=None, at=at)
        name = batch or cases.stem
        made = import_cases(session, stored, read, batch=name, by=None, at=at)
        skipped = f"; {number_of(made.num_skipped, 'case')} left out" if made.num_skipped else ""
        items, tasks = number_of(made.num_items, "item"), number_of(made.num_tasks, "task")
        return f"{items} with {tasks} in project {project}{skipped}."

    print_lines([opened.write(work)])


def import_qualification_cases(
    cases: Annotated[Path, typer.Argument(help="A case file with reference answers, as an export has them.")],
    *,
    project: ProjectName,
    database: DatabaseAddress = DEFAULT_DATABASE,
) -> None:
    """Make tasks of a qualification: new annotators learn on them before real ones, as qualification.num_tasks says.

    Example: `steelyard workbench qualification reference.jsonl --project bench`
    """
    from steelyard.io.cases import read_cases
    from steelyard.workbench.pipeline.projects import settings_of
    from steelyard.workbench.qualification.material import import_qualification

    read = list(read_cases(cases))

    def work(session: "Session") -> list[str]:
        stored = existing_project(session, project)
        imported = import_qualification(session, stored, read, by=None, at=time.time())
        before = f" {imported.num_before} were there before." if imported.num_before else ""
        undecided = number_of(imported.num_undecided, "task")
        left_out = f" {undecided} on which people differ left out." if imported.num_undecided else ""
        made = f"{number_of(imported.num_tasks, 'qualification task')} in project {project}.{before}{left_out}"
        is_on = settings_of(stored).qualification.num_tasks > 0
        return [made] if is_on else [made, "  none is asked for yet: set qualification.num_tasks on the project's page"]

    print_lines(open_workbench(database).write(work))


def export_items(
    *,
    project: ProjectName,
    out: Annotated[Path, typer.Option("--out", help="The case file to write.")],
    evidence: Annotated[
        Literal["aligned", "both"],
        typer.Option("--evidence", help="What stands after alignment, or the first answers of both people, too."),
    ] = "aligned",
    force: Force = False,
    database: DatabaseAddress = DEFAULT_DATABASE,
) -> None:
    """Write the finished items of a project as a case file with every judgment and where it came from.

    A file that holds something else stays, unless `--force` replaces it.

    Example: `steelyard workbench export --project bench --out bench.jsonl`
    """
    from steelyard.io.atomic import write_once
    from steelyard.io.cases import write_cases
    from steelyard.workbench.pipeline.case_export import export_cases
    from steelyard.workbench.pipeline.projects import count_states
    from steelyard.workbench.pipeline.waiting import waiting_lines
    from steelyard.workbench.storage.audit_log import AuditEvent, record

    opened = open_workbench(database)

    def note(session: "Session") -> int:
        stored = existing_project(session, project)
        record(session, AuditEvent("exported", "project", stored.id, None, {"evidence": evidence}), at=time.time())
        return stored.id

    with opened.reading() as session:
        number = existing_project(session, project).id
        num_finished = count_states(session, number).get("finished", 0)
        waiting = waiting_lines(session, number)
    if not num_finished:
        raise EvidenceError(
            Advice("no item is finished: ", joined(", ", list(waiting)) or "there are no items"),
            where=project,
            do="let these people act; a project made by import with --without-review needs no reviewers",
        )
    opened.write(note)
    with opened.reading() as session:
        stored = existing_project(session, project)
        number, is_new = write_once(
            out, lambda place: write_cases(place, export_cases(session, stored, evidence=evidence)), force=force
        )
    same = "" if is_new else " It was there, with equal content."
    dropped = f" {number_of(num_finished - number, 'prompt')} dropped by review." if num_finished > number else ""
    unfinished = [f"  not finished: {line}" for line in waiting]
    if evidence == "both":
        unfinished.append("  with the first answers of both people; of what stands: resolve --only evidence=aligned")
    print_lines([f"{number_of(number, 'finished item')} in {out}.{dropped}{same}", *unfinished])


def print_native_results(
    *,
    project: ProjectName,
    database: DatabaseAddress = DEFAULT_DATABASE,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Print what native speakers say of the finished items of a project of the kind native_check, by language.

    Each figure is a share of items with its 95% interval: people prefer the reference's better response, call both the
    same, find the texts written as by a native speaker, find the item suited to the language; then agreement with each
    judge that the cases came with.

    Example: `steelyard workbench native --project natives`
    """
    from steelyard.annotation.native_results import native_results
    from steelyard.workbench.pipeline.case_export import export_cases

    with open_workbench(database).reading() as session:
        results = native_results(export_cases(session, existing_project(session, project), evidence="aligned"))
    if as_json:
        echo_record([msgspec.to_builtins(each) for each in results])
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
    print_lines([TerminalTable(title, heads, rows) if rows else title])


def write_paper(
    *,
    project: ProjectName,
    out: Annotated[Path, typer.Option("--out", help="The folder to write: it gets paper.en.md, paper.en.tex, ….")],
    database: DatabaseAddress = DEFAULT_DATABASE,
) -> None:
    """Write how a project was annotated, for a paper: paragraph and tables, in Markdown and LaTeX, English and Chinese.

    The paragraph names people, gate, alignment, reviews, agreement with 95% intervals, gold tasks, time, guidelines and
    seed, as the data have them; the tables are by category, by layer, by annotator (under pseudonyms) and by version of
    the guidelines. figures.json has every number.

    Example: `steelyard workbench paper --project bench --out paper`
    """
    from steelyard.io.atomic import sweep_parts, write_text
    from steelyard.workbench.results.paper_figures import paper_figures
    from steelyard.workbench.results.paper_pages import paper_pages

    with open_workbench(database).reading() as session:
        made = paper_figures(session, existing_project(session, project), at=time.time())
    if out.exists() and not out.is_dir():
        raise OutputError("is a file", where=str(out), do="name a folder: --out DIR")
    out.mkdir(parents=True, exist_ok=True)
    pages = paper_pages(made)
    for name, text in pages.items():
        # What a run that was killed left.
        sweep_parts(out / name)
        write_text(out / name, text)
    simulated = " The people are simulated, as the paragraph says." if made.is_simulated else ""
    print_lines([f"{out} has {', '.join(sorted(pages))}.{simulated}"])


def open_workbench(address: str, *, is_made: bool = False) -> "Database":
    """Open a workbench and bring it to this version. Raises FileError for a file that is not there."""
    from steelyard.workbench.storage.database import Database

    database = Database(address)
    file = database.engine.url.database
    if database.is_sqlite and not is_made and file and not Path(file).exists():
        raise FileError("there is no such file", where=file, do="name the database of the workbench: --database")
    database.migrate()
    return database


def _project(session: "Session", name: str) -> "StoredProject | None":
    from sqlalchemy import select

    from steelyard.core.names import normalize_name
    from steelyard.workbench.storage.tables import StoredProject

    # Terminals differ in how they write letters with marks.
    return session.scalar(select(StoredProject).where(StoredProject.name.in_((name.strip(), normalize_name(name)))))


def existing_project(session: "Session", name: str) -> "StoredProject":
    """Return the project of a name. Raises ConfigError with the names that there are."""
    from sqlalchemy import select

    from steelyard.workbench.storage.tables import StoredProject

    project = _project(session, name)
    if project is None:
        names = ", ".join(session.scalars(select(StoredProject.name).order_by(StoredProject.id).limit(20)))
        raise ConfigError(f"there is no project {name!r}", where="--project", allowed=names or "none yet: import one")
    return project
