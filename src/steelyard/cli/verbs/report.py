"""Write one HTML page about finished runs: numbers with intervals, figures, and every prompt to look into.

The page is one file and needs no network. It is in English and Chinese, with light and dark colours, for phones too.

Example: `steelyard report resolved model evaluated --out report.html`
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.stage_verb import SettingOption, StageArgument, StageOption, StageVerb, Values
from steelyard.core.errors import OutputError
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.stages.report import ReportSummary

_PAGES = (".html", ".htm")
_OTHER_KINDS = (".pdf", ".md", ".txt", ".json", ".docx", ".png", ".svg")


def prepare(inputs: Values, settings: Values) -> None:
    """Raise OutputError for a file that is not a page of HTML."""
    out: Path = inputs["out"]
    if out.suffix.lower() in _OTHER_KINDS and not out.is_dir():
        raise OutputError(
            "a report is a page of HTML",
            where=str(out),
            allowed="a name ending in .html, or a folder",
            do="open the page in a browser and print it, where another kind is needed",
        )


def lines(run: "Run[ReportSummary]", out: Path) -> Iterator[str]:
    """Yield the page with its number of runs and items, and its size."""
    page = out if out.suffix.lower() in _PAGES else out / "report.html"
    summary = run.summary
    yield f"{page}: {len(summary.runs)} runs, {summary.num_items} items, {summary.num_bytes / 2**20:.1f} MB"


command = StageVerb(
    "report",
    (
        StageArgument("runs", "The --out folders of finished runs: resolve, train, evaluate …"),
        StageOption("out", "FILE.html, or a folder that gets report.html and run.json."),
        SettingOption("language"),
        SettingOption("title"),
    ),
    lines,
    prepare,
)
