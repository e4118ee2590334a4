"""The verbs of `steelyard workbench`: serving it, and what is done on the server rather than in its pages."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from steelyard.cli.output import TerminalTable, echo_record, percent_text, print_lines
from steelyard.cli.verb import FunctionVerb, VerbGroup
from steelyard.core.config import parse_settings, resolve_config
from steelyard.core.errors import ConfigError, FileError
from steelyard.core.text import number_of
from steelyard.io.progress import log

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from steelyard.workbench.database import Database
    from steelyard.workbench.tables import StoredPerson, StoredProject

_ABOUT = """Annotate with people: tasks, alignment, review and gold questions in the browser, for one person or a team.

Example: `steelyard workbench demo`
"""
_FILE = "sqlite:///workbench.db"
_PORT = 8766
_Address = Annotated[
    str,
    typer.Option(
        "--database",
        envvar="STEELYARD_WORKBENCH_DATABASE",
        show_envvar=True,
        help="Where everything is stored: sqlite:///FILE, or postgresql://USER:PASSWORD@HOST/NAME.",
    ),
]
_Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")]
_Project = Annotated[str, typer.Option("--project", help="The name of the project.")]


def _serve(
    *,
    database: _Address = _FILE,
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
    from steelyard.workbench.people import has_public_passwords
    from steelyard.workbench.projects import is_simulated
    from steelyard.workbench.serving import Reach, options_of

    reach = Reach(host, port, tuple(public_names or ()), proxy if is_behind_https else None, is_insecure)
    options_of(reach)
    opened = _open(database, is_made=True)
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
    _run_server(opened, reach, is_simulated=is_simulated(opened), num_processes=num_processes)


def _add_person(
    name: Annotated[str, typer.Argument(help="The name to log in with.")],
    *,
    role: Annotated[
        Literal["annotator", "delivery", "operations", "researcher", "administrator"],
        typer.Option("--role", help="What the person does."),
    ] = "annotator",
    database: _Address = _FILE,
    display_name: Annotated[str, typer.Option("--display-name", help="The name shown. Default: NAME.")] = "",
    language: Annotated[Literal["en", "zh"], typer.Option("--language", help="The language of the pages.")] = "en",
    skills: Annotated[
        list[str] | None,
        typer.Option("--skill", help="A category whose tasks the person gets; may be repeated. Default: all."),
    ] = None,
) -> None:
    """Make an account. Its first password is printed this once: the person changes it after the first login.

    Example: `steelyard workbench add-person ada --role administrator`
    """
    from steelyard.workbench.people import NewPerson, add_person, first_password

    password = first_password()
    new = NewPerson(name, role, password, display_name, language, tuple(skills or ()))
    _open(database, is_made=True).write(lambda session: add_person(session, new, by=None, at=time.time()))
    print_lines([f"{name.strip()} has an account with the role {role}.", f"  first password: {password}"])


def _import(
    cases: Annotated[Path, typer.Argument(help="A case file. Cases of two responses become pairs, of more triples.")],
    *,
    project: _Project,
    batch: Annotated[str, typer.Option("--batch", help="The name of this batch. Default: that of the file.")] = "",
    database: _Address = _FILE,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of a new project: KEY=VALUE; may be repeated.")
    ] = None,
) -> None:
    """Make tasks of a case file: all of it as one batch, or nothing where a line is wrong.

    A project that is not there yet is made, with the settings of `--set`.

    Example: `steelyard workbench import sampled.jsonl --project bench --set rules.num_annotators=3`
    """
    from steelyard.io.cases import read_cases
    from steelyard.workbench.projects import ProjectSettings, add_project, import_cases

    read = list(read_cases(cases))
    opened = _open(database, is_made=True)
    values = parse_settings(settings or ())
    chosen = resolve_config(ProjectSettings, values, where="--set")

    def work(session: "Session") -> str:
        stored, at = _project(session, project), time.time()
        if stored is not None and values:
            raise ConfigError(
                f"the project {project!r} has its settings", where="--set", do="change them on its page, or omit --set"
            )
        stored = stored or add_project(session, project, chosen, by=None, at=at)
        made = import_cases(session, stored, read, batch=batch or cases.stem, by=None, at=at)
        skipped = f"; {number_of(made.num_skipped, 'case')} left out" if made.num_skipped else ""
        items, tasks = number_of(made.num_items, "item"), number_of(made.num_tasks, "task")
        return f"{items} with {tasks} in project {project}{skipped}."

    print_lines([opened.write(work)])


def _export(
    *,
    project: _Project,
    out: Annotated[Path, typer.Option("--out", help="The case file to write.")],
    evidence: Annotated[
        Literal["both", "aligned"],
        typer.Option("--evidence", help="The judgments of both people, or only what stands after alignment."),
    ] = "both",
    database: _Address = _FILE,
) -> None:
    """Write the finished items of a project as a case file with every judgment and where it came from.

    Example: `steelyard workbench export --project bench --out bench.jsonl`
    """
    from steelyard.io.cases import write_cases
    from steelyard.workbench.audit_log import Deed, record
    from steelyard.workbench.projects import count_states, export_cases

    opened = _open(database)

    def note(session: "Session") -> int:
        stored = _existing(session, project)
        record(session, Deed("exported", "project", stored.id, None, {"evidence": evidence}), at=time.time())
        return stored.id

    opened.write(note)
    with opened.reading() as session:
        stored = _existing(session, project)
        num_dropped = count_states(session, stored.id).get("finished", 0)
        number = write_cases(out, export_cases(session, stored, evidence=evidence))
    dropped = f" {number_of(num_dropped - number, 'prompt')} dropped by review." if num_dropped > number else ""
    print_lines([f"{number_of(number, 'finished item')} in {out}.{dropped}"])


def _native(
    *,
    project: _Project,
    database: _Address = _FILE,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Print what native speakers say of the finished items of a project of the kind native_check, by language.

    Each figure is a share of items with its 95% interval: people prefer the reference's better response, call both the
    same, find the texts written as by a native speaker, find the item suited to the language; then agreement with each
    judge that the cases came with.

    Example: `steelyard workbench native --project natives`
    """
    from steelyard.annotation.native_results import native_results
    from steelyard.workbench.projects import export_cases

    with _open(database).reading() as session:
        results = native_results(export_cases(session, _existing(session, project), evidence="aligned"))
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


def _backup(
    out: Annotated[Path, typer.Argument(help="The file to write, which must not exist yet.")],
    *,
    database: _Address = _FILE,
) -> None:
    """Copy a workbench on SQLite into a file while people work: one state of it. PostgreSQL is copied by `pg_dump`.

    The copy is a workbench: `steelyard workbench serve --database sqlite:///COPY` opens it.

    Example: `steelyard workbench backup monday.db`
    """
    _open(database).backup(out)
    print_lines([f"{out} has everything."])


def _erase(
    name: Annotated[str, typer.Argument(help="The name of the account.")],
    *,
    is_certain: Annotated[bool, typer.Option("--yes", help="This cannot be undone.")] = False,
    database: _Address = _FILE,
) -> None:
    """Forget a person: name, password, sessions and tokens. The judgments stay, under a pseudonym.

    Copies made by `backup` still have the name: delete those, too.

    Example: `steelyard workbench erase ada --yes`
    """
    from steelyard.workbench.people import erase_person

    opened = _open(database)

    def work(session: "Session") -> str:
        person = _person(session, name)
        if not is_certain:
            raise ConfigError(f"{name!r} would be forgotten for ever", where="--yes", do="add --yes if that is meant")
        erase_person(session, person, by=None, at=time.time())
        return person.pseudonym

    print_lines([f"{name} is forgotten; the judgments are those of {opened.write(work)}."])


def _demo(
    *,
    out: Annotated[Path, typer.Option("--out", help="The folder of the demonstration.")] = Path("workbench-demo"),
    port: _Port = _PORT,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the simulated people.")] = 0,
) -> None:
    """Open a workbench in the midst of a project of simulated people, with an account of each role to look around.

    Everything in it is simulated, as every page says. It is made in seconds and stays in its folder.

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
        Literal["both", "aligned"],
        typer.Option("--evidence", help="The judgments of both people, or only what stands after alignment."),
    ] = "aligned",
    seed: Annotated[int, typer.Option("--seed", help="The seed of the simulated people.")] = 0,
) -> None:
    """Take cases through the whole pipeline with 29 simulated people: gate, alignment, three layers of review, gold.

    It tries the machinery before people are paid. The judgments say nothing about the responses.

    Example: `steelyard workbench simulate sampled.jsonl --out rehearsal`
    """
    from steelyard.workbench.demo import simulate_to_bench

    states = simulate_to_bench(cases, out, seed=seed, evidence=evidence)
    counted = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
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


def _open(address: str, *, is_made: bool = False) -> "Database":
    """Open a workbench and bring it to this version. Raises FileError for a file that is not there."""
    from steelyard.workbench.database import Database

    database = Database(address)
    file = database.engine.url.database
    if database.is_sqlite and not is_made and file and not Path(file).exists():
        raise FileError("there is no such file", where=file, do="name the database of the workbench: --database")
    database.migrate()
    return database


def _has_administrator(session: "Session") -> bool:
    from sqlalchemy import select

    from steelyard.workbench.tables import StoredPerson

    administrators = select(StoredPerson.id).where(
        StoredPerson.role == "administrator", StoredPerson.is_active.is_(True)
    )
    return session.scalar(administrators.limit(1)) is not None


def _project(session: "Session", name: str) -> "StoredProject | None":
    from sqlalchemy import select

    from steelyard.workbench.tables import StoredProject

    return session.scalar(select(StoredProject).where(StoredProject.name == name.strip()))


def _existing(session: "Session", name: str) -> "StoredProject":
    from sqlalchemy import select

    from steelyard.workbench.tables import StoredProject

    project = _project(session, name)
    if project is None:
        names = ", ".join(session.scalars(select(StoredProject.name).order_by(StoredProject.id).limit(20)))
        raise ConfigError(f"there is no project {name!r}", where="--project", allowed=names or "none yet: import one")
    return project


def _person(session: "Session", name: str) -> "StoredPerson":
    from sqlalchemy import select

    from steelyard.workbench.tables import StoredPerson

    person = session.scalar(select(StoredPerson).where(StoredPerson.name == name.strip()))
    if person is None or person.erased_at is not None:
        raise ConfigError(f"{name!r} has no account", where="NAME", do="name an account: its page is Manage, People")
    return person


WORKBENCH = VerbGroup(
    "workbench",
    _ABOUT,
    (
        FunctionVerb("demo", _demo),
        FunctionVerb("serve", _serve),
        FunctionVerb("add-person", _add_person),
        FunctionVerb("import", _import),
        FunctionVerb("export", _export),
        FunctionVerb("native", _native),
        FunctionVerb("backup", _backup),
        FunctionVerb("erase", _erase),
        FunctionVerb("simulate", _simulate),
    ),
)
