"""Installation: the plug-ins that it has, and whether it and the machine are fit for work."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.options import AsJson, Verbose, complete_package
from steelyard.cli.output import columns, echo_record, print_lines
from steelyard.cli.verb import FunctionVerb
from steelyard.core.plugins import packages
from steelyard.core.text import number_of
from steelyard.core.types import JsonObject

_STATES = {True: "ok", False: "lacks", None: "-"}


def _doctor(
    folder: Annotated[Path, typer.Argument(help="Where results would go: the disk that is checked.")] = Path(),
    *,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Check this installation: packages, GPU, threads, memory, terminal, fonts, database drivers, disk.

    It lists what is missing, with what to do about it; `--verbose` lists every check: `ok` is fine, `lacks` is missing,
    `-` is only to know. The exit code is 2 when anything is missing. It changes nothing.

    Example: `steelyard doctor`
    """
    from steelyard.stages.doctor import doctor

    checks = doctor(folder)
    if as_json:
        echo_record([check._asdict() for check in checks])
    else:
        missing = [check for check in checks if check.is_fine is False]
        number = number_of(len(checks), "check")
        print_lines([f"{len(missing)} of {number} found something missing." if missing else f"{number}: all is well."])
        rows: list[tuple[str, str, str]] = []
        for check in checks if verbose else missing:
            rows.append((_STATES[check.is_fine], check.name, check.result))
            if check.is_fine is False:
                rows.append(("", "", f"do: {check.do}"))
        print_lines(columns(rows) if rows else ["--verbose prints every check"])
    if any(check.is_fine is False for check in checks):
        raise typer.Exit(2)


def _list(
    package: Annotated[
        str | None,
        typer.Argument(autocompletion=complete_package, help=f"One of {', '.join(packages())}; all without it."),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List the plug-ins of one package, or of all packages.

    Example: `steelyard list formats`

    `steelyard list models` also lists every model that the two papers' tables name: the kind that scores it, and how
    far that was tested. `--json` adds what moves its scores unnoticed.
    """
    from steelyard.core.errors import KindError, choices
    from steelyard.core.plugins import describe, kinds
    from steelyard.plugins.reward_models import published_models

    if package is not None and package not in packages():
        raise KindError(f"there is no package of plug-ins {package!r}", allowed=choices(package, packages()))
    contents: JsonObject = {
        name: {kind: describe(name, kind) for kind in kinds(name)} for name in ([package] if package else packages())
    }
    if as_json:
        published = {"published": published_models()} if package == "models" else {}
        echo_record(contents | published)
        return
    for name, abouts in contents.items():
        print_lines([name, *(f"  {kind:22} {about}" for kind, about in abouts.items())])
    if package == "models":
        print_lines(_published_lines())


def _published_lines() -> Iterator[str]:
    from steelyard.plugins.reward_models import published_models

    yield "\nnamed in the papers' tables"
    rows = [(row.name, row.kind, row.adapter, row.state, row.hub or "") for row in published_models()]
    yield from (f"  {line}" for line in columns(rows))
    yield "\ntested: on tiny random weights in the published layout, against another forward; the real weights"
    yield "were never run. unverified: the published code could not be read. endpoint, api: queried as a judge."


VERBS = (FunctionVerb("list", _list), FunctionVerb("doctor", _doctor))
