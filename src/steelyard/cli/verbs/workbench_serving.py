"""The verbs `serve` and `demo` of the workbench: a server in the terminal, until Ctrl-C ends it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.output import print_lines
from steelyard.cli.verbs.workbench_import import DEFAULT_DATABASE, DatabaseAddress, open_workbench
from steelyard.core.errors import ConfigError
from steelyard.io.progress import log

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from steelyard.workbench.storage.database import Database

_PORT = 8766
_Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")]


def serve_workbench(
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


def open_demonstration(
    *,
    out: Annotated[Path, typer.Option("--out", help="The folder of the demonstration.")] = Path("workbench-demo"),
    port: _Port = _PORT,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the simulated people.")] = 0,
) -> None:
    """Open a workbench in the midst of a project of simulated people, with an account of each role to look around.

    Everything in it is simulated, as every page says. It is made within a minute and stays in its folder.

    Example: `steelyard workbench demo`
    """
    from steelyard.workbench.demo import open_demo
    from steelyard.workbench.serving import Reach
    from steelyard.workbench.simulated_projects import PASSWORD

    database = open_demo(out, seed)
    print_lines(
        [
            "log in as annotator, delivery, operations, researcher or administrator",
            f"  password: {PASSWORD}",
        ]
    )
    _run_server(database, Reach("127.0.0.1", port, (), None, is_insecure=False), is_simulated=True)


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
