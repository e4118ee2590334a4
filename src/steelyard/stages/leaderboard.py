"""The verb `leaderboard`: evaluations of one bench under one protocol in one table, with possible ranks."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import EvidenceError, FileError
from steelyard.core.remedies import Advice, Command
from steelyard.core.types import Counts, Run
from steelyard.evaluation.evaluations import Differing, check_protocols, join_evaluations, model_names, read_evaluation
from steelyard.evaluation.leaderboard import LeaderboardSummary, is_part, rank_models, what_lacks
from steelyard.io.atomic import write_text
from steelyard.io.data_files import find_runs
from steelyard.io.hashing import file_hash
from steelyard.io.run_folder import RUN_FILE, Result, read_run, run_stage
from steelyard.io.verbs import Argument, Option, RunFolder, Verb
from steelyard.report.leaderboard import as_csv, as_markdown, as_page


class Config(BaseConfig, frozen=True):
    """``allow_differing`` permits differences: ``self_test`` (off in some evaluations); ``dtype``, ``max_length`` or
    ``over_length`` within a model family; and ``template`` between runs of one model. The table shows them.
    """

    num_resamples: Positive = 10_000
    """The number of bootstrap resamples of prompts."""
    allow_differing: tuple[Differing, ...] = ()
    """What may differ between evaluations; it is shown in the table."""
    seed: int = 0
    """The seed of the resamples."""


_DEFAULT = Config()
REPORT_FILE = "report.html"


VERB = Verb(
    "Comparisons and reports",
    62,
    (
        Argument("runs", "Evaluations of one bench: their folders, folders of runs, or quoted patterns."),
        Option("out", "The folder for leaderboard.html, .csv, .md and run.json."),
    ),
)


def leaderboard(
    runs: Sequence[RunFolder], out: Path, config: Config = _DEFAULT, *, force: bool = False
) -> Run[LeaderboardSummary]:
    """One table of many evaluations, with the ranks that the data allow: a page to sort, CSV, Markdown and JSON.

    Evaluations by different protocols are refused, with a list of the differences: another bench, other pairs, no
    self-tests, another number type or length within a family of models. Partial evaluations are listed apart.

    Example: `steelyard leaderboard evaluated-a evaluated-b --out board`

    Example: `steelyard leaderboard evaluated-a evaluated-b --set 'allow_differing=["max_length"]' --out board`

    Raises EvidenceError for fewer than two to rank, for a repeated folder, and for different protocols, naming every
    difference; ``allow_differing`` admits it.

    >>> ranked = sy.leaderboard([sy.evaluate("longer", cases), sy.evaluate("shorter", cases)], num_resamples=200)
    >>> [row["name"] for row in ranked.table]
    ['longer', 'shorter']
    """
    runs = find_runs(runs, "evaluate")
    records = [read_evaluation(folder) for folder in runs]
    if len({folder.resolve() for folder in runs}) < len(runs):
        raise EvidenceError(
            "a folder is named twice", do=Advice("name each folder of `", Command("evaluate"), "` once")
        )
    names = model_names(runs, records)
    partial = {name: why for name, run in zip(names, records, strict=True) if (why := what_lacks(run)) is not None}
    if all(map(is_part, records)):
        partial = {}
    differing = check_protocols(dict(zip(names, records, strict=True)), config.allow_differing, apart=partial)
    ranked = [index for index, name in enumerate(names) if name not in partial]
    if len(ranked) < 2:
        reasons = "; ".join(f"{name}: {why}" for name, why in partial.items())
        number = f"{len(ranked)} of {len(runs)}" + (f" ({reasons})" if reasons else "")
        raise EvidenceError(
            f"a leaderboard needs two evaluations with a headline, got {number}",
            do=Advice("name two or more finished folders of `", Command("evaluate"), "`"),
        )
    evaluations = join_evaluations([runs[index] for index in ranked], [records[index] for index in ranked])
    inputs = {f"run.{number}": folder / "run.json" for number, folder in enumerate(runs, 1)}

    def write(result: Result) -> None:
        summary = rank_models(
            evaluations,
            [names[index] for index in ranked],
            differing=differing,
            partial=partial,
            num_resamples=config.num_resamples,
            seed=config.seed,
        )
        pages = {row.name: page for row in summary.rows if (page := report_of(Path(row.folder), out)) is not None}
        for ending, text in (("html", as_page(summary, pages)), ("csv", as_csv(summary)), ("md", as_markdown(summary))):
            write_text(result.path(f"leaderboard.{ending}"), text)
        result.summary = summary
        result.counts = Counts(
            num_in=len(runs),
            num_used=len(ranked),
            dropped={"no headline": len(partial)} if partial else {},
            noted={"prompts": summary.num_prompts},
        )

    return run_stage(out, "leaderboard", Run[LeaderboardSummary], write, config=config, inputs=inputs, force=force)


def report_of(evaluated: Path, out: Path) -> str | None:
    """Return the link from ``out`` to a report of this evaluation in a folder next to it; null if there is none."""
    record = file_hash(evaluated / RUN_FILE)
    for page in sorted(evaluated.parent.glob(f"*/{REPORT_FILE}")):
        with suppress(FileError):  # a folder without a record, or a broken one, that nobody named
            if any(file.sha256 == record for file in read_run(page.parent).inputs.values()):
                return quote(Path(os.path.relpath(page, out)).as_posix())
    return None
