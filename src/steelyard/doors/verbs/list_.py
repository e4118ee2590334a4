"""The verb `list`: what each plug-in room holds."""

import json
from typing import Annotated

import typer


def command(
    room: Annotated[str | None, typer.Argument(help="formats, models, benches or engines; all without it.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the plug-ins: formats, reward models, benches and engines.

    Example: `steelyard list formats`
    """
    from steelyard.core.errors import KindError, choices
    from steelyard.core.plugins import describe, kinds, rooms

    if room is not None and room not in rooms():
        raise KindError(f"there is no room {room!r}", allowed=choices(room, rooms()))
    listed = {name: {kind: describe(name, kind) for kind in kinds(name)} for name in ([room] if room else rooms())}
    if as_json:
        typer.echo(json.dumps(listed, indent=2, ensure_ascii=False))
        return
    for name, found in listed.items():
        typer.echo(name)
        for kind, about in found.items():
            typer.echo(f"  {kind:22} {about}")
