"""Evaluations as functions: compare models, rank them, compare languages, write one report, and view all runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steelyard.api.arguments import checked
from steelyard.api.calls import Call, PathText, config_of, verb
from steelyard.api.outcomes import Outcome, RunViewer
from steelyard.api.stage_outcomes import ReportPage
from steelyard.api.wording import in_python
from steelyard.core.errors import ConfigError, UserError

RunLike = PathText | Outcome[Any]


@verb("report")
def report(
    runs: Sequence[PathText | Outcome[Any]], *, out: PathText | None = None, force: bool = False, **settings: Any
) -> ReportPage:
    """Write one self-contained HTML page about finished runs; it needs no network.

    ``out`` is a file (``report.html``) or a folder. Without it the page is in memory: `.html`, `.save`. Raises
    FileError for a run that is not finished, EvidenceError for runs that hold nothing that a page shows.

    >>> page = sy.report([sy.resolve(cases), sy.evaluate("longer", cases)], title="A test")
    >>> page.summary.runs
    {'resolve': 'resolve', 'evaluate': 'evaluate'}
    >>> page.save("report.html")
    """
    from steelyard.stages import report as stage

    with Call("report", out) as call:
        for run in runs:
            if isinstance(run, Outcome):
                call.owners.append(run)
        folders = [run.folder if isinstance(run, Outcome) else Path(run) for run in runs]
        return ReportPage.of(
            call, stage.report(folders, call.out, config_of(stage.Config, settings, where="report"), force=force)
        )


@checked
def view(folder: PathText = ".", *, host: str = "127.0.0.1", port: int = 0) -> RunViewer:
    """Serve the runs of a folder as web pages that follow running stages, without blocking: for notebooks.

    The result is a link in a notebook, and has ``.url`` and ``.stop()``; as a context it stops at the end. ``port`` 0
    takes a free one. ``host`` is this machine only, unless another address is named: no password protects the pages.

    Raises FileError for a folder that is not there, OutputError for a port that is taken, MissingPartError without the
    extra ``view``.

    >>> evaluation = sy.evaluate("longer", cases, out="runs/longer")
    >>> with sy.view("runs") as viewer:
    ...     viewer.url.startswith("http://127.0.0.1:")
    True
    """
    if not 0 <= port <= 65_535:
        raise ConfigError(f"port is {port}", allowed="0 to 65535; 0 takes a free one")
    try:
        return RunViewer(Path(folder), host=host, port=port)
    except UserError as error:
        raise in_python(error, {}) from error
