"""The verbs of `steelyard workbench`: serving it, and what is done on the server rather than in its pages."""

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
from steelyard.core.config import parse_settings, resolve_config
from steelyard.core.errors import ConfigError
from steelyard.core.text import number_of
from steelyard.io.progress import log

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from steelyard.workbench.storage.database import Database

_ABOUT = """Annotate with people: tasks, alignment, review and gold questions in the browser, for one person or a team.

Example: `steelyard workbench demo`
"""
_PORT = 8766
_Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")]


def _serve(
    *,
    database: DatabaseAddress = DEFAULT_DATABASE,
    host: Annotated[str, typer.Option("--host", help="The address to serve on. Default: this machine.")] = "127.0.0.1",
    port: _Port = _PORT,
    public_names: Annotated[
        list[str] | None,
        typer.Option("--public-name", help="A host name in the address that people open; may be repeated."),
    ] = None,
    is_behind_https: Annotated[
        bool, typer.Option("--behind-https", help="A proxy before it speaks HTTPS with the browsers.")
    ] = False,
    proxy: Annotated[str, typer.Option("--proxy", help="The address from which that proxy connects.")] = "127.0.0.1",
    is_insecure: Annotated[
        bool, typer.Option("--insecure", help="Serve the network by HTTP: passwords travel unencrypted.")
    ] = False,
    num_processes: Annotated[
        int, typer.Option("--processes", min=1, max=64, help="Processes that serve, on PostgreSQL: up to one a core.")
    ] = 1,
) -> None:
    """Serve a workbench, made or brought to this version if need be. Ctrl-C ends it; nothing that was answered is lost.

    Only this machine can reach it unless `--host` says otherwise, which takes a proxy with HTTPS and `--behind-https`.

    Example: `steelyard workbench serve --database sqlite:///workbench.db`

    Example: `steelyard workbench serve --behind-https --public-name label.example.org`
    """
    from steelyard.viewing.server import is_loopback
    from steelyard.workbench.accounts.people import has_public_passwords
    from steelyard.workbench.pipeline.projects import is_simulated
    from steelyard.workbench.serving import Reach, options_of

    reach = Reach(host, port, tuple(public_names or ()), proxy if is_behind_https else None, is_insecure)
    options_of(reach)
    opened = open_workbench(database, is_made=True)
    if opened.write(has_public_passwords):
        if is_behind_https or not is_loopback(host):
            raise ConfigError(
                f"the simulated people of {opened.shown_address} have a password that everybody knows",
                where="--database",
                allowed="a demonstration on this machine alone",
                do="omit --behind-https and --host, or name a database of your own",
            )
        log("this is a demonstration: everything in it is simulated, and the password of its people is public")
    if not opened.write(_has_administrator):
        log("nobody can manage it yet: steelyard workbench add-person NAME --role administrator")
    _run_server(opened, reach, is_simulated=opened.write(is_simulated), num_processes=num_processes)


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
        typer.Option("--skill", help="A category whose tasks the person gets; may be repeated. Default: all."),
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


def _demo(
    *,
    out: Annotated[Path, typer.Option("--out", help="The folder of the demonstration.")] = Path("workbench-demo"),
    port: _Port = _PORT,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the simulated people.")] = 0,
) -> None:
    """Open a workbench in the midst of a project of simulated people, with an account of each role to look around.

    Everything in it is simulated, as every page says. It is made within a minute and stays in its folder.

    Example: `steelyard workbench demo`
    """
    from steelyard.workbench.demo import PASSWORD, open_demo
    from steelyard.workbench.serving import Reach

    database = open_demo(out, seed)
    print_lines(
        [
            "log in as annotator, delivery, operations, researcher or administrator",
            f"  password: {PASSWORD}",
        ]
    )
    _run_server(database, Reach("127.0.0.1", port, (), None, is_insecure=False), is_simulated=True)


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


def _run_server(database: "Database", reach: object, *, is_simulated: bool, num_processes: int = 1) -> None:
    from steelyard.workbench.serving import Reach, options_of, serve

    assert isinstance(reach, Reach)

    def announce(address: str) -> None:
        typer.echo(f"{database.shown_address}: {address}")
        log("Ctrl-C ends it")

    try:
        options = options_of(reach, is_simulated=is_simulated)
        serve(database, options, reach, num_processes=num_processes, announce=announce)
    except KeyboardInterrupt:
        log("stopped")
    finally:
        database.close()


def _has_administrator(session: "Session") -> bool:
    from sqlalchemy import select

    from steelyard.workbench.storage.tables import StoredPerson

    administrators = select(StoredPerson.id).where(
        StoredPerson.role == "administrator", StoredPerson.is_active.is_(True)
    )
    return session.scalar(administrators.limit(1)) is not None


WORKBENCH = VerbGroup(
    "workbench",
    _ABOUT,
    (
        FunctionVerb("demo", _demo),
        FunctionVerb("serve", _serve),
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
