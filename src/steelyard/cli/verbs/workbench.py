"""The verbs of `steelyard workbench`: accounts, copies and rehearsals, and the list of those in other files."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from steelyard.cli.output import print_lines
from steelyard.cli.verb import FunctionVerb, VerbGroup
from steelyard.cli.verbs.workbench_exchange import read_answers, write_tasks
from steelyard.cli.verbs.workbench_export import export_project
from steelyard.cli.verbs.workbench_import import (
    DEFAULT_DATABASE,
    DatabaseAddress,
    import_cases_of_file,
    open_workbench,
)
from steelyard.cli.verbs.workbench_serving import open_demonstration, serve_workbench
from steelyard.core.config import parse_settings, resolve_config
from steelyard.core.errors import ConfigError
from steelyard.core.text import number_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_ABOUT = """Annotate with people: tasks, alignment, review and gold questions in the browser, for one person or a team.

Example: `steelyard workbench demo`
"""


def _add_person(
    name: Annotated[str, typer.Argument(help="The name to log in with.")],
    *,
    role: Annotated[
        Literal["annotator", "delivery", "operations", "researcher", "administrator"],
        typer.Option("--role", help="What the person does."),
    ] = "annotator",
    database: DatabaseAddress = DEFAULT_DATABASE,
    display_name: Annotated[str, typer.Option("--display-name", help="The name shown. Default: NAME.")] = "",
    language: Annotated[Literal["en", "zh"], typer.Option("--language", help="The language of the pages.")] = "en",
    skills: Annotated[
        list[str] | None,
        typer.Option("--skill", help="A category or language whose tasks the person gets; repeat. Default: all."),
    ] = None,
) -> None:
    """Make an account. Its first password is printed this once, and is valid until it is changed on the page Account.

    Example: `steelyard workbench add-person ada --role administrator`
    """
    from steelyard.workbench.accounts.people import NewPerson, add_person, first_password

    password = first_password()
    new = NewPerson(name, role, password, display_name, language, tuple(skills or ()))
    open_workbench(database, is_made=True).write(lambda session: add_person(session, new, by=None, at=time.time()))
    print_lines([f"{name.strip()} has an account with the role {role}.", f"  first password: {password}"])


def _backup(
    out: Annotated[Path, typer.Argument(help="The file to write, which must not exist yet.")],
    *,
    database: DatabaseAddress = DEFAULT_DATABASE,
) -> None:
    """Copy a workbench on SQLite into a file while people work: one state of it. PostgreSQL is copied by `pg_dump`.

    The copy is a workbench: `steelyard workbench serve --database sqlite:///COPY` opens it.

    Example: `steelyard workbench backup monday.db`
    """
    open_workbench(database).backup(out)
    print_lines([f"{out} has everything."])


def _erase(
    name: Annotated[str, typer.Argument(help="The name of the account.")],
    *,
    is_certain: Annotated[bool, typer.Option("--yes", help="This cannot be undone.")] = False,
    database: DatabaseAddress = DEFAULT_DATABASE,
) -> None:
    """Forget a person: name, password, sessions and tokens. The judgments stay, under a pseudonym.

    Copies made by `backup` still have the name: delete those, too.

    Example: `steelyard workbench erase ada --yes`
    """
    from sqlalchemy import select

    from steelyard.core.names import normalize_name
    from steelyard.workbench.accounts.people import erase_person
    from steelyard.workbench.storage.tables import StoredPerson

    opened = open_workbench(database)
    names = (name.strip(), normalize_name(name))

    def work(session: "Session") -> str:
        people = session.scalars(select(StoredPerson).where(StoredPerson.name.in_(names)))
        person = min(people, key=lambda each: names.index(each.name), default=None)
        if person is None or person.erased_at is not None:
            raise ConfigError(
                f"{name!r} has no account", where="NAME", do="name an account: its page is Manage, People"
            )
        if not is_certain:
            raise ConfigError(f"{name!r} would be forgotten for ever", where="--yes", do="add --yes if that is meant")
        erase_person(session, person, by=None, at=time.time())
        return person.pseudonym

    pseudonym = opened.write(work)
    opened.forget_traces()
    print_lines([f"{name} is forgotten; the judgments are those of {pseudonym}."])


def _simulate(
    cases: Annotated[Path, typer.Argument(help="A case file, as sample writes it; each case has 3 responses or more.")],
    *,
    out: Annotated[Path, typer.Option("--out", help="The folder for workbench.db and bench.jsonl.")],
    evidence: Annotated[
        Literal["aligned", "both"],
        typer.Option("--evidence", help="What stands after alignment, or the first answers of both people, too."),
    ] = "aligned",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the project, of rules or tasks: KEY=VALUE; may be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the simulated people.")] = 0,
) -> None:
    """Take cases through the whole pipeline with 29 simulated people: gate, alignment, three layers of review, gold.

    It tries the machinery before people are paid. The judgments say nothing about the responses.

    Example: `steelyard workbench simulate sampled.jsonl --out rehearsal`

    Example: `steelyard workbench simulate sampled.jsonl --out rehearsal --set rules.num_annotators=3`
    """
    from steelyard.io.cases import read_cases
    from steelyard.workbench.demo import simulate_to_bench
    from steelyard.workbench.pipeline.projects import ProjectSettings

    values = parse_settings(settings or ())
    if others := values.keys() - {"rules", "tasks"}:
        raise ConfigError(f"{min(others)!r} is not of a rehearsal", where="--set", allowed="rules.… and tasks.…")
    chosen = resolve_config(ProjectSettings, values, where="--set")
    states = simulate_to_bench(cases, out, seed=seed, evidence=evidence, rules=chosen.rules, tasks=chosen.tasks)
    counted = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    if num_left_out := sum(1 for _ in read_cases(cases)) - sum(states.values()):
        counted += f"; {number_of(num_left_out, 'case')} left out"
    print_lines([f"Simulated people worked through {cases}: {counted}.", f"  resolve: {out / 'bench.jsonl'}"])


WORKBENCH = VerbGroup(
    "workbench",
    _ABOUT,
    (
        FunctionVerb("demo", open_demonstration),
        FunctionVerb("serve", serve_workbench),
        FunctionVerb("add-person", _add_person),
        FunctionVerb("import", import_cases_of_file, ("steelyard.workbench.pipeline.projects", "ProjectSettings")),
        FunctionVerb("export", export_project),
        FunctionVerb("tasks", write_tasks),
        FunctionVerb("answers", read_answers),
        FunctionVerb("backup", _backup),
        FunctionVerb("erase", _erase),
        FunctionVerb("simulate", _simulate),
    ),
)
