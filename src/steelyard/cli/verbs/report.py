"""The verb `report` on the command line."""

from pathlib import Path
from typing import Annotated

import typer

_OTHER_KINDS = (".pdf", ".md", ".txt", ".json", ".docx", ".png", ".svg")


def command(
    runs: Annotated[list[Path], typer.Argument(help="The --out folders of finished runs: resolve, train, evaluate …")],
    *,
    out: Annotated[Path, typer.Option(help="FILE.html, or a folder that gets report.html and run.json.")],
    language: Annotated[str, typer.Option(help="The language in which the page opens: en or zh.")] = "en",
    title: Annotated[str | None, typer.Option(help="What stands at the top of the page.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE, such as max_megabytes=12; repeat.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """Write one HTML page about finished runs: numbers with intervals, figures, and every prompt to look into.

    The page needs no network and no other file. It reads in English and Chinese, by day and night, on a phone too.

    Example: `steelyard report resolved model evaluated --out report.html`
    """
    from steelyard.cli.shown import show
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.core.errors import OutputError
    from steelyard.stages.report import Config, report

    if out.suffix.lower() in _OTHER_KINDS and not out.is_dir():
        raise OutputError(
            "a report is a page of HTML",
            where=str(out),
            allowed="a name ending in .html, or a folder",
            do="open the page in a browser and print it, where another kind is needed",
        )
    given = {"language": language, **({"title": title} if title else {}), **parse_settings(settings or ())}
    run = report(runs, out, resolve_config(Config, given, where="report"), force=force)
    summary = run.summary
    page = out if out.suffix.lower() in (".html", ".htm") else out / "report.html"
    lines = [f"{page}: {len(summary.runs)} runs, {summary.num_items} items, {summary.num_bytes / 2**20:.1f} MB"]
    show(run, lines, as_json=as_json)
