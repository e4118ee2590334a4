"""The verb `doctor` on the command line."""

import json
from pathlib import Path
from typing import Annotated

import typer


def command(
    folder: Annotated[Path, typer.Argument(help="Where results would go: the disk that is checked.")] = Path(),
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Check this installation: packages, GPU, threads, memory, terminal, fonts, database drivers, disk.

    `ok` is fine, `lacks` says what to do, `-` is only to know. The exit code is 2 when anything lacks. It changes
    nothing.

    Example: `steelyard doctor`
    """
    from steelyard.stages.doctor import doctor

    checks = doctor(folder)
    if as_json:
        typer.echo(json.dumps([check._asdict() for check in checks], indent=2))
    else:
        for check in checks:
            mark = {True: "ok", False: "lacks", None: "-"}[check.is_fine]
            typer.echo(f"{mark:6} {check.name:14} {check.found}")
            if check.is_fine is False:
                typer.echo(f"{'':6} {'':14} do: {check.do}")
    if any(check.is_fine is False for check in checks):
        raise typer.Exit(2)
