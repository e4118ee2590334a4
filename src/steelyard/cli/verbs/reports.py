"""Comparisons and reports: finished evaluations side by side and by language, and pages of runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import SettingOption, StageArgument, StageOption, Values
from steelyard.cli.output import report_step
from steelyard.cli.verb import FunctionVerb, StageVerb
from steelyard.core.errors import OutputError
from steelyard.core.text import number_of
from steelyard.core.types import Run
from steelyard.io.progress import log

if TYPE_CHECKING:
    from steelyard.stages.report import ReportSummary

_LEVEL = 0.05
_HOST = "127.0.0.1"
_MAX_ROWS = 5
_MAX_LOWEST = 3
_PAGES = (".html", ".htm")
_OTHER_FORMATS = (".pdf", ".txt", ".json", ".docx", ".png", ".svg")


COMPARE = StageVerb(
    "compare",
    """Compare models on the same prompts: significant differences, and the smallest that this many prompts can show.

    Each bootstrap sample of prompts serves both models of a pair; p-values are corrected for the number of pairs.
    Evaluations of different prompts, or by different rules, are refused.

    Example: `steelyard compare evaluated-a evaluated-b --out compared`
    """,
    (
        StageArgument("runs", "Evaluations of the same file: --out folders, folders of runs, or quoted patterns."),
        StageOption("out", "The folder for the result, run.json."),
    ),
    next_step=report_step("shows it"),
)


LANGUAGES = StageVerb(
    "languages",
    """Break one evaluation down by language: the drop from English, agreement with it, families, scripts, resources.

    All numbers follow the bench's own sections and weights, on the items that all compared languages have. Kappa
    measures how far the model prefers the same answers in a language as in English. Translations of one item are
    resampled together.

    Example: `steelyard languages evaluated --out languages`
    """,
    (
        StageArgument("evaluated", "The --out folder of an evaluation of parallel items."),
        StageOption("out", "The folder for the result, run.json."),
        SettingOption("baseline_language"),
        SettingOption("languages", note="Repeat."),
    ),
    next_step=report_step("shows families, scripts and sections"),
)


LEADERBOARD = StageVerb(
    "leaderboard",
    """One table of many evaluations, with the ranks that the data allow: a page to sort, CSV, Markdown and JSON.

    Evaluations by different protocols are refused, with a list of the differences: another bench, other pairs, no
    self-tests, another number type or length within a family of models. Partial evaluations are listed apart.

    Example: `steelyard leaderboard evaluated-a evaluated-b --out board`

    Example: `steelyard leaderboard evaluated-a evaluated-b --set 'allow_differing=["max_length"]' --out board`
    """,
    (
        StageArgument("runs", "Evaluations of one bench: --out folders, folders of runs, or quoted patterns."),
        StageOption("out", "The folder for leaderboard.html, .csv, .md and run.json."),
    ),
)


def _check_page_name(inputs: Values, settings: Values) -> None:
    """Raise OutputError for a file that is not a page of HTML."""
    out: Path = inputs["out"]
    if out.suffix.lower() in _OTHER_FORMATS and not out.is_dir():
        raise OutputError(
            "a report is a page of HTML, or the tables as text",
            where=str(out),
            allowed="a name ending in .html, .tex, .md or .csv, or a folder",
            do="open the page in a browser and print it, where another kind is needed",
        )


def _report_lines(run: "Run[ReportSummary]", out: Path) -> Iterator[str]:
    page = out if out.suffix.lower() in _PAGES else out / "report.html"
    summary = run.summary
    if summary.num_tables is not None:
        yield f"{out} has {number_of(summary.num_tables, 'table')} of {number_of(len(summary.runs), 'run')}."
        return
    yield (
        f"{page} shows {number_of(len(summary.runs), 'run')} and {number_of(summary.num_items, 'item')} "
        f"({summary.num_bytes / 2**20:.1f} MB): open it in a browser."
    )


REPORT = StageVerb(
    "report",
    """Write one HTML page about finished runs: numbers with intervals, figures, and every prompt to look into.

    The page is one file and needs no network. It is in English and Chinese, with light and dark colours, for phones
    too.

    Example: `steelyard report resolved model evaluated --out report.html`

    A name that ends in .tex, .md or .csv gets the tables of the runs alone, with their intervals: for a paper.

    Example: `steelyard report evaluated --out tables.tex`
    """,
    (
        StageArgument("runs", "The --out folders of finished runs: resolve, train, evaluate …"),
        StageOption("out", "FILE.html, .tex, .md or .csv, or a folder for report.html."),
        SettingOption("language"),
        SettingOption("title"),
    ),
    _report_lines,
    prepare=_check_page_name,
)


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


VERBS = (COMPARE, LANGUAGES, LEADERBOARD, REPORT, FunctionVerb("view", _view))
