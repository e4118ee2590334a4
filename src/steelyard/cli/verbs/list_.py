"""The verb `list`: what each plug-in room holds, and the reward models that the papers name."""

import json
from typing import Annotated, Any

import typer

from steelyard.cli.completion import complete_room


def command(
    room: Annotated[
        str | None,
        typer.Argument(autocompletion=complete_room, help="formats, models, benches or engines; all without it."),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the plug-ins: formats, reward models, benches and engines.

    Example: `steelyard list formats`

    `steelyard list models` also lists every model that the two papers' tables name: the kind that scores it, and how
    far that was tested. `--json` adds what moves its scores unnoticed.
    """
    from steelyard.cli.shown import echo
    from steelyard.core.errors import KindError, choices
    from steelyard.core.plugins import describe, kinds, packages

    if room is not None and room not in packages():
        raise KindError(f"there is no room {room!r}", allowed=choices(room, packages()))
    listed: dict[str, Any] = {
        name: {kind: describe(name, kind) for kind in kinds(name)} for name in ([room] if room else packages())
    }
    if as_json:
        named = {"published": _published()} if room == "models" else {}
        typer.echo(json.dumps(listed | named, indent=2, ensure_ascii=False))
        return
    for name, found in listed.items():
        echo(name)
        for kind, about in found.items():
            echo(f"  {kind:22} {about}")
    if room == "models":
        _print_published()


def _published() -> list[dict[str, Any]]:
    import msgspec

    from steelyard.plugins.published_models import published_models

    return [msgspec.to_builtins(row) for row in published_models()]


def _print_published() -> None:
    from steelyard.cli.shown import echo
    from steelyard.plugins.published_models import published_models

    rows = published_models()
    columns = ([row.name for row in rows], [row.kind for row in rows], [row.adapter for row in rows])
    widths = [max(map(len, column)) for column in columns]
    echo("\nnamed in the papers' tables")
    for row in rows:
        cells = zip((row.name, row.kind, row.adapter), widths, strict=True)
        echo("  " + "  ".join(f"{text:{width}}" for text, width in cells) + f"  {row.state:10}  {row.hub or ''}")
    echo("\ntested: on tiny random weights in the published layout, against another forward; the real weights")
    echo("were never run. unverified: the published code could not be read. endpoint, api: asked as a judge.")
