"""The verb `doctor` on the command line."""

import json
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.output import columns, print_lines

_STATES = {True: "ok", False: "lacks", None: "-"}


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
        rows: list[tuple[str, str, str]] = []
        for check in checks:
            rows.append((_STATES[check.is_fine], check.name, check.result))
            if check.is_fine is False:
                rows.append(("", "", f"do: {check.do}"))
        print_lines(columns(rows))
    if any(check.is_fine is False for check in checks):
        raise typer.Exit(2)
