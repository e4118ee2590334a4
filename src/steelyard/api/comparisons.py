"""Evaluations as functions: compare models, rank them, compare languages, write one report, and view all runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steelyard.api.arguments import checked
from steelyard.api.calls import Call, PathText, config_of, verb
from steelyard.api.outcomes import ModelEvaluation, Outcome, ReportPage, RunViewer
from steelyard.api.wording import in_python
from steelyard.core.errors import ConfigError, EvidenceError, UserError
from steelyard.evaluation.comparison import ComparisonSummary
from steelyard.evaluation.languages import LanguagesSummary
from steelyard.evaluation.leaderboard import LeaderboardSummary

RunLike = PathText | Outcome[Any]


def _folders(call: Call, runs: Sequence[RunLike]) -> list[Path]:
    """Return the folders of runs. Raises EvidenceError where a kept result would name a temporary one."""
    for run in runs:
        if isinstance(run, Outcome) and run.is_temporary:
            if call.is_kept:
                problem = f"a result with out= names the folders of its runs, and that of {run!r} is temporary"
                raise EvidenceError(problem, do="give each of these runs an out= of its own")
            call.owners.append(run)
    return [run.folder if isinstance(run, Outcome) else Path(run) for run in runs]


@verb("compare")
def compare(
    evaluations: Sequence[PathText | ModelEvaluation],
    *,
    out: PathText | None = None,
    force: bool = False,
    **settings: Any,
) -> Outcome[ComparisonSummary]:
    """Compare evaluations of the same prompts: every pairwise difference, corrected for their number, and ranks.

    Raises EvidenceError for fewer than two, or for evaluations of other prompts or settings.

    >>> compared = sy.compare([sy.evaluate("longer", cases), sy.evaluate("shorter", cases)])
    >>> compared.summary.comparisons[0].accuracy.value
    1.0
    >>> compared.table[0]["first"]
    'longer'
    """
    from steelyard.stages import compare as stage

    with Call("compare", out) as call:
        config = config_of(stage.Config, settings, where="compare")
        return Outcome.of(call, stage.compare(_folders(call, evaluations), call.out, config, force=force))


@verb("leaderboard")
def leaderboard(
    evaluations: Sequence[PathText | ModelEvaluation],
    *,
    out: PathText | None = None,
    force: bool = False,
    **settings: Any,
) -> Outcome[LeaderboardSummary]:
    """Rank evaluations of one benchmark in one table, with the range of ranks that the data allow.

    The folder has the table as HTML, CSV and Markdown. Raises EvidenceError for fewer than two, and for protocols that
    differ, naming every difference; ``allow_differing`` admits it.

    >>> ranked = sy.leaderboard([sy.evaluate("longer", cases), sy.evaluate("shorter", cases)], num_resamples=200)
    >>> [row["name"] for row in ranked.table]
    ['longer', 'shorter']
    """
    from steelyard.stages import leaderboard as stage

    with Call("leaderboard", out) as call:
        config = config_of(stage.Config, settings, where="leaderboard")
        return Outcome.of(call, stage.leaderboard(_folders(call, evaluations), call.out, config, force=force))


@verb("languages")
def languages(
    evaluation: PathText | ModelEvaluation, *, out: PathText | None = None, force: bool = False, **settings: Any
) -> Outcome[LanguagesSummary]:
    """Compare the languages of an evaluation on the items that all of them have: drops from English, agreement.

    Raises EvidenceError for a single language, for no English, or for no shared item.

    >>> by_language = sy.languages(sy.evaluate("longer", cases), num_resamples=200)
    >>> [row["language"] for row in by_language.table]
    ['en', 'zh']
    """
    from steelyard.stages import languages as stage

    with Call("languages", out) as call:
        (folder,) = _folders(call, [evaluation])
        config = config_of(stage.Config, settings, where="languages")
        return Outcome.of(call, stage.languages(folder, call.out, config, force=force))


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
