"""The verb `view`: the runs of a folder in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.verb import FunctionVerb
from steelyard.io.progress import log

_HOST = "127.0.0.1"


def _view(
    folder: Annotated[Path, typer.Argument(help="The folder whose runs are shown, at any depth.")] = Path(),
    *,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")] = 8765,
    host: Annotated[str, typer.Option("--host", help="The address to serve on. Default: this machine only.")] = _HOST,
    is_opened: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = False,
) -> None:
    """Serve the runs of a folder as web pages that follow running stages: progress, time left, curves, cost.

    The list shows each run with its state and result; a click opens its report, and selected runs give one report, a
    comparison or a leaderboard. A run that was stopped is shown with the command that continues it. Nothing is changed.
    Ctrl-C ends it.

    Example: `steelyard view steelyard-demo`
    """
    from steelyard.viewing.server import is_loopback, serve

    if not is_loopback(host):
        log(f"{host}: everyone who reaches this machine can read these runs: there is no password")

    def announce(address: str) -> None:
        typer.echo(f"{folder.resolve()}: {address}")
        log("Ctrl-C ends it")
        if is_opened:
            import webbrowser

            webbrowser.open(address)

    try:
        serve(folder, host=host, port=port, announce=announce)
    except KeyboardInterrupt:
        log("stopped")


VIEW = FunctionVerb("view", _view)
