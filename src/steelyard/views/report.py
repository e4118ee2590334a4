"""Reports: how many runs and items the page shows, or how many tables were written."""

from collections.abc import Iterator

from steelyard.core.types import Record
from steelyard.evaluation.tables import Sentence, count
from steelyard.views.view import StageRun, View


class ReportSummary(Record, frozen=True, kw_only=True):
    """The summary of a run of ``report``: the stage of each run by its name, and the size of the page or the tables."""

    runs: dict[str, str]
    num_items: int
    num_items_whole: int
    num_bytes: int
    simulated: bool
    num_tables: int | None = None


def _sentences(run: StageRun[ReportSummary]) -> Iterator[Sentence]:
    summary = run.summary
    values = {"run": run.name, "runs": count(len(summary.runs)), "items": count(summary.num_items)}
    if summary.num_tables is not None:
        yield Sentence("say_report_tables", values | {"tables": count(summary.num_tables)})
    else:
        yield Sentence("say_report_page", values | {"size": f"{summary.num_bytes / 2**20:.1f}"})


VIEW = View(
    900,
    "report",
    ReportSummary,
    "report_page",
    _sentences,
    unit="view_runs_shown",
)
