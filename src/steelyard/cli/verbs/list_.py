"""The verb `list`: what each package of plug-ins holds, and the reward models that the papers name."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from steelyard.cli.completion import complete_package
from steelyard.cli.output import columns, print_lines


def command(
    package: Annotated[
        str | None,
        typer.Argument(autocompletion=complete_package, help="formats, models, benches or engines; all without it."),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the plug-ins: formats, reward models, benches and engines.

    Example: `steelyard list formats`

    `steelyard list models` also lists every model that the two papers' tables name: the kind that scores it, and how
    far that was tested. `--json` adds what moves its scores unnoticed.
    """
    import msgspec

    from steelyard.core.errors import KindError, choices
    from steelyard.core.plugins import describe, kinds, packages
    from steelyard.plugins.reward_models import published_models

    if package is not None and package not in packages():
        raise KindError(f"there is no package of plug-ins {package!r}", allowed=choices(package, packages()))
    contents = {
        name: {kind: describe(name, kind) for kind in kinds(name)} for name in ([package] if package else packages())
    }
    if as_json:
        published: dict[str, Any] = (
            {"published": msgspec.to_builtins(published_models())} if package == "models" else {}
        )
        typer.echo(json.dumps(contents | published, indent=2, ensure_ascii=False))
        return
    print_lines(_lines(contents))
    if package == "models":
        print_lines(_published_lines())


def _lines(contents: dict[str, dict[str, str]]) -> Iterator[str]:
    for name, kinds in contents.items():
        yield name
        yield from (f"  {kind:22} {about}" for kind, about in kinds.items())


def _published_lines() -> Iterator[str]:
    from steelyard.plugins.reward_models import published_models

    yield "\nnamed in the papers' tables"
    rows = [(row.name, row.kind, row.adapter, row.state, row.hub or "") for row in published_models()]
    yield from (f"  {line}" for line in columns(rows))
    yield "\ntested: on tiny random weights in the published layout, against another forward; the real weights"
    yield "were never run. unverified: the published code could not be read. endpoint, api: asked as a judge."
