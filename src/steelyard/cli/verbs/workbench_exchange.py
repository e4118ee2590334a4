"""The verbs of `steelyard workbench` that exchange tasks and answers with other annotation tools."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from steelyard.cli.output import echo_record, print_lines
from steelyard.cli.verbs.workbench_import import (
    DEFAULT_DATABASE,
    DatabaseAddress,
    Force,
    existing_project,
    open_workbench,
)
from steelyard.core.errors import ConfigError, OutputError
from steelyard.core.text import number_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from steelyard.workbench.exchange.answer_import import ImportedAnswers
    from steelyard.workbench.exchange.answered_cases import AnswerCounts
    from steelyard.workbench.exchange.external_tasks import ExternalTasks

_MOST_SHOWN = 10


def write_tasks(
    cases: Annotated[
        Path | None, typer.Argument(help="A case file whose tasks are written; else those of --project.")
    ] = None,
    *,
    tool: Annotated[Literal["argilla", "label_studio", "potato"], typer.Option("--format", help="The tool.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to write.")],
    project: Annotated[str | None, typer.Option("--project", help="The project whose open tasks are written.")] = None,
    num_people: Annotated[int, typer.Option("--people", min=1, help="People for each task of a case file.")] = 2,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the order of the responses in each task.")] = 0,
    database: DatabaseAddress = DEFAULT_DATABASE,
) -> None:
    """Write open tasks for another annotation tool: triples with scores, a ranking with ties, reasons and comments.

    Authors are hidden, names by which models call themselves are masked, and each task has an order of its own, drawn
    by the seed. OUT has a folder for each form; manifest.json beside them says which response is A: keep it from
    annotators. Tasks of the workbench stay open in it: an answer that comes after the last place is taken is left out.

    Example: `steelyard workbench tasks --project bench --format argilla --out for-argilla`

    Example: `steelyard workbench tasks sampled.jsonl --format argilla --out for-argilla --people 3`
    """
    from steelyard.annotation.task_kinds import TaskRules
    from steelyard.io.atomic import write_folder_once
    from steelyard.io.cases import read_cases
    from steelyard.workbench.exchange.external_tasks import tasks_of_cases

    if (cases is None) == (project is None):
        raise ConfigError("tasks come from one place", where="CASES", do="name a case file, or --project NAME")
    made = (
        tasks_of_cases(read_cases(cases), TaskRules(), tool, seed=seed, wanted=num_people)
        if cases
        else _tasks_of_project(project or "", tool, seed, database)
    )
    if not made.tasks:
        print_lines([f"No task of project {project} is open."])
        return
    _, is_new = write_folder_once(out, lambda folder: _write_folder(made, tool, folder))
    same = "" if is_new else " It was there, with equal content."
    print_lines(
        [
            f"{number_of(len(made.tasks), 'task')} in {out}; manifest.json says which response is A.{same}",
            *(f"  {out / name}: {number_of(len(group), 'task')}" for name, group in made.groups().items()),
        ]
    )


def read_answers(
    export: Annotated[list[Path], typer.Argument(help="What the tool exported: files, or folders that have them.")],
    *,
    tasks: Annotated[Path, typer.Option("--tasks", help="The folder that the tasks were written to.")],
    project: Annotated[str | None, typer.Option("--project", help="The project that gets the answers.")] = None,
    cases: Annotated[Path | None, typer.Option("--cases", help="The case file that the tasks were made of.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="With --cases: the case file to write.")] = None,
    people: Annotated[
        list[str] | None,
        typer.Option("--person", help="A person of the tool and the name here: THERE=NAME; may be repeated."),
    ] = None,
    force: Force = False,
    database: DatabaseAddress = DEFAULT_DATABASE,
    as_json: Annotated[bool, typer.Option("--json", help="Print what became of the answers as JSON.")] = False,
) -> None:
    """Read the answers of another annotation tool, into the workbench or a case file.

    Into a project they go as answers of the accounts of the same name, or of --person, through the same gate. Unknown
    tasks and people and second answers are errors; answers that contradict themselves are counted and left out. The
    same export can be read again: nothing is stored twice. Into a case file everything is written as it was given; one
    that holds something else stays, unless `--force` replaces it.

    Example: `steelyard workbench answers exported --tasks for-argilla --project bench --person 5f0c9a6e=ada`

    Example: `steelyard workbench answers exported --tasks for-argilla --cases sampled.jsonl --out judged.jsonl`
    """
    from steelyard.workbench.exchange.external_tools import read_export

    if (project is None) == (cases is None) or (cases is None) != (out is None):
        raise ConfigError(
            "answers go to one place", where="--project", do="name --project NAME, or --cases CASES with --out OUT"
        )
    if cases is not None and out is not None and out.exists() and cases.exists() and out.samefile(cases):
        raise OutputError("is the case file that is read", where=str(out), do="name another: --out OUT")
    names = _people(people or ())
    exported = read_export(export, tasks)
    if project is not None:
        from steelyard.workbench.exchange.answer_import import import_answers

        opened = open_workbench(database)
        made = import_answers(opened, project, exported, people=names, at=time.time())
        echo_record(made) if as_json else print_lines(_import_lines(made, project))
        return
    from steelyard.io.atomic import write_once
    from steelyard.io.cases import read_cases, write_cases
    from steelyard.workbench.exchange.answered_cases import add_answers

    assert cases is not None, "checked above"
    assert out is not None, "checked above"
    answered = add_answers(read_cases(cases), exported, people=names)
    _, is_new = write_once(out, lambda place: write_cases(place, answered.cases), force=force)
    echo_record(answered.counts) if as_json else print_lines(_case_lines(answered.counts, out, is_new=is_new))


def _tasks_of_project(project: str, tool: str, seed: int, database: str) -> "ExternalTasks":
    from steelyard.workbench.exchange.external_tasks import tasks_of_project
    from steelyard.workbench.storage.audit_log import AuditEvent, record

    opened = open_workbench(database)
    with opened.reading() as session:
        stored = existing_project(session, project)
        made = tasks_of_project(session, stored, tool, seed=seed)
    detail = {"tool": tool, "seed": seed, "tasks": len(made.tasks)}

    def note(session: "Session") -> None:
        record(session, AuditEvent("tasks exported", "project", stored.id, None, detail), at=time.time())

    opened.write(note)
    return made


def _write_folder(made: "ExternalTasks", tool: str, folder: Path) -> None:
    """Write the tasks for a tool into an empty folder, each group into its own."""
    import msgspec

    from steelyard.io.atomic import write_text
    from steelyard.workbench.exchange.external_tasks import MANIFEST
    from steelyard.workbench.exchange.external_tools import TOOLS

    for name in made.groups():
        for path, text in TOOLS[tool].write(made, name).items():
            write_text(folder / name / path, text)
    write_text(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(made.manifest), indent=1).decode() + "\n")


def _people(words: Sequence[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for word in words:
        there, equals, name = word.rpartition("=")
        if not equals or not there or not name:
            raise ConfigError(f"{word!r} names nobody", where="--person", allowed="THERE=NAME, as --person 7=ada")
        names[there] = name
    return names


def _import_lines(made: "ImportedAnswers", project: str) -> list[str]:
    lines = [f"{number_of(made.stored, 'answer')} of {made.answers} stored in project {project}."]
    if made.before:
        lines.append(f"  stored before: {made.before}")
    for what, number in (
        ("incomplete, left out", made.incomplete),
        ("contradictory, left out", made.contradictory),
        ("too late, left out", made.too_late),
        *made.not_answers.items(),
    ):
        if number:
            lines.append(f"  {what}: {number}")
    if made.without_time:
        lines.append(f"  without a time, which the tool does not record: {made.without_time}")
    shown = made.left_out[:_MOST_SHOWN]
    lines += [f"  {each.source}: {each.task} of {each.person}: {each.reason}" for each in shown]
    if len(made.left_out) > len(shown):
        lines.append(f"  … and {len(made.left_out) - len(shown)} more: --json lists all")
    return lines


def _case_lines(counts: "AnswerCounts", out: Path, *, is_new: bool) -> list[str]:
    same = "" if is_new else " It was there, with equal content."
    lines = [f"{number_of(counts.written, 'answer')} of {counts.answers} added to {out}.{same}"]
    for what, number in (
        ("there before", counts.before),
        ("incomplete, written as far as they go", counts.incomplete),
        ("contradictory, written as they are: meta.contradictions says what", counts.contradictory),
        *counts.not_answers.items(),
    ):
        if number:
            lines.append(f"  {what}: {number}")
    return lines
