"""The verb `leaderboard`: evaluations of one bench, or of several, in one table with possible ranks."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import ConfigError, EvidenceError, FileError
from steelyard.core.remedies import FILE, Advice, Command, Remedy
from steelyard.core.types import Counts, Run
from steelyard.evaluation.bench_table import BenchTable, EvaluatedModel, check_models, check_weights, join_boards
from steelyard.evaluation.evaluations import (
    Differing,
    EvaluationSet,
    check_protocols,
    join_evaluations,
    joined_findings,
    model_names,
    read_evaluation,
)
from steelyard.evaluation.leaderboard import LeaderboardSummary, is_part, rank_models, what_lacks
from steelyard.evaluation.published_benches import read_published_benches
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.io.atomic import write_text
from steelyard.io.data_files import find_runs
from steelyard.io.hashing import file_hash
from steelyard.io.run_folder import RUN_FILE, Result, read_run, run_stage
from steelyard.io.verbs import Argument, Option, RunFolder, Verb, refuse_ignored
from steelyard.report.leaderboard import as_csv, as_markdown, as_page


class Config(BaseConfig, frozen=True):
    """``allow_differing`` permits differences: ``self_test`` (off in some evaluations); ``dtype``, ``max_length`` or
    ``over_length`` within a model family; and ``template`` between runs of one model. The table shows them.
    """

    num_resamples: Positive = 10_000
    """The number of bootstrap resamples of prompts."""
    allow_differing: tuple[Differing, ...] = ()
    """Property that may differ between evaluations; it is shown in the table."""
    seed: int = 0
    """The seed of the resamples."""


_DEFAULT = Config()
REPORT_FILE = "report.html"
TABLE_STAGE = "bench_table"
"""The stage of a run over several benches, or over a published table."""


VERB = Verb(
    "Comparisons and reports",
    62,
    (
        Argument("runs", "Evaluations of one bench or more: their folders, folders of runs, or quoted patterns."),
        Option(
            "out", "The folder for run.json, and of one bench leaderboard.html, .md, and .csv with shares from 0 to 1."
        ),
        Option("table", "A CSV file of published numbers, instead of evaluations."),
    ),
)


def leaderboard(
    runs: Sequence[RunFolder] = (),
    *,
    out: Path,
    config: Config = _DEFAULT,
    table: Path | None = None,
    force: bool = False,
) -> Run[LeaderboardSummary] | Run[BenchTable]:
    """One table of many evaluations, with the ranks that the data allow: a page to sort, CSV, Markdown and JSON.

    Evaluations by different protocols are refused, with a list of the differences: another bench, other pairs, no
    self-tests, another number type or length within a family of models. Partial evaluations are listed apart.

    Evaluations of several benches make one table: a row a model, a group of columns a bench, and the rank within each
    bench. A model that lacks a bench has gaps there, and is named.

    With ``table`` the numbers are those of a CSV file, such as the tables of a paper: a row a model, data set or set of
    training data, and columns such as rewardbench, open_accuracy and overall. Rows that do not add up are named.

    Example: `steelyard leaderboard evaluated-a evaluated-b --out board`

    Example: `steelyard leaderboard evaluated-a evaluated-b --set 'allow_differing=["max_length"]' --out board`

    Example: `steelyard leaderboard --table published.csv --out board`

    Raises EvidenceError for fewer than two to rank, for a repeated folder, for two evaluations of one model where there
    are several benches, and for different protocols, naming every difference; ``allow_differing`` admits it.
    RecordError for a broken row of a table.

    >>> ranked = sy.leaderboard([sy.evaluate("longer", cases), sy.evaluate("shorter", cases)], num_resamples=200)
    >>> [row["name"] for row in ranked.table]
    ['longer', 'shorter']
    """
    if table is not None:
        return _published(table, runs, out, config, force=force)
    folders = find_runs(runs, "evaluate")
    if not folders:
        do = Advice("name folders of `", Command("evaluate"), "`, or a table: ", Remedy("table", FILE))
        raise EvidenceError("no evaluation is named", do=do)
    records = [read_evaluation(folder) for folder in folders]
    if len({folder.resolve() for folder in folders}) < len(folders):
        do = Advice("name each folder of `", Command("evaluate"), "` once")
        raise EvidenceError("a folder is named twice", do=do)
    by_bench: dict[str, list[int]] = {}
    for place, record in enumerate(records):
        by_bench.setdefault(record.summary.bench, []).append(place)
    parts = {
        bench: ([folders[place] for place in places], [records[place] for place in places])
        for bench, places in by_bench.items()
    }
    inputs = {f"run.{number}": folder / "run.json" for number, folder in enumerate(folders, 1)}
    if len(parts) > 1:
        return _several(parts, inputs, out, config, force=force)
    board = _prepare(folders, records, config)

    def write(result: Result) -> None:
        summary = board.rank(config)
        pages = {row.name: page for row in summary.rows if (page := report_of(Path(row.folder), out)) is not None}
        result.findings = joined_findings(dict(zip(model_names(folders, records), records, strict=True)))
        page = as_page(summary, pages, result.findings)
        for ending, text in (("html", page), ("csv", as_csv(summary)), ("md", as_markdown(summary))):
            write_text(result.path(f"leaderboard.{ending}"), text)
        result.summary = summary
        result.counts = _counts(folders, [board], {"prompts": summary.num_prompts})

    return run_stage(out, "leaderboard", Run[LeaderboardSummary], write, config=config, inputs=inputs, force=force)


class _Board(NamedTuple):
    """The evaluations of one bench that are ranked, their names, and the reason for each one that is not."""

    evaluations: EvaluationSet
    names: list[str]
    partial: dict[str, str]
    differing: dict[str, dict[str, list[str]]]

    def rank(self, config: Config) -> LeaderboardSummary:
        """Return the leaderboard of the bench."""
        return rank_models(
            self.evaluations,
            self.names,
            differing=self.differing,
            partial=self.partial,
            num_resamples=config.num_resamples,
            seed=config.seed,
        )


Records = Sequence[Run[EvaluationSummary]]


def _prepare(folders: Sequence[Path], records: Records, config: Config, *, fewest: int = 2) -> _Board:
    """Return the evaluations of one bench to rank. Raises EvidenceError for too few, and for different protocols."""
    names = model_names(folders, records)
    partial = {name: why for name, run in zip(names, records, strict=True) if (why := what_lacks(run)) is not None}
    if all(map(is_part, records)):
        partial = {}
    differing = check_protocols(dict(zip(names, records, strict=True)), config.allow_differing, apart=partial)
    ranked = [index for index, name in enumerate(names) if name not in partial]
    if len(ranked) < fewest:
        reasons = "; ".join(f"{name}: {why}" for name, why in partial.items())
        number = f"{len(ranked)} of {len(folders)}" + (f" ({reasons})" if reasons else "")
        needed = "two evaluations with a headline" if fewest == 2 else "an evaluation with a headline on each bench"
        raise EvidenceError(
            f"a leaderboard needs {needed}, got {number}",
            do=Advice("name two or more finished folders of `", Command("evaluate"), "`"),
        )
    evaluations = join_evaluations([folders[index] for index in ranked], [records[index] for index in ranked])
    return _Board(evaluations, [names[index] for index in ranked], partial, differing)


def _several(
    parts: Mapping[str, tuple[Sequence[Path], Records]],
    inputs: Mapping[str, Path],
    out: Path,
    config: Config,
    *,
    force: bool,
) -> Run[BenchTable]:
    """Return the record of a table of evaluations of several benches."""
    models = {bench: list(map(EvaluatedModel.of, records)) for bench, (_, records) in parts.items()}
    check_models(models, {bench: folders for bench, (folders, _) in parts.items()})
    check_weights(models)
    boards = {bench: _prepare(*part, config, fewest=1) for bench, part in parts.items()}

    def write(result: Result) -> None:
        ranked = {bench: board.rank(config) for bench, board in boards.items()}
        result.summary = join_boards(ranked, models)
        every = {
            f"{model.name} · {bench}": run
            for bench, (_, records) in parts.items()
            for model, run in zip(models[bench], records, strict=True)
        }
        result.findings = joined_findings(every)
        noted = {"prompts": sum(board.num_prompts for board in ranked.values())}
        result.counts = _counts(list(inputs), list(boards.values()), noted)

    return run_stage(out, TABLE_STAGE, Run[BenchTable], write, config=config, inputs=inputs, force=force)


def _counts(runs: Sequence[object], boards: Sequence[_Board], noted: dict[str, int]) -> Counts:
    num_partial = sum(len(board.partial) for board in boards)
    dropped = {"no headline": num_partial} if num_partial else {}
    return Counts(num_in=len(runs), num_used=len(runs) - num_partial, dropped=dropped, noted=noted)


def _published(table: Path, runs: Sequence[Path], out: Path, config: Config, *, force: bool) -> Run[BenchTable]:
    """Return the record of a published table."""
    if runs:
        raise ConfigError("evaluations and a table are given", do=Advice("leave the runs out, or ", Remedy("table")))
    refuse_ignored(config.changed("num_resamples", "allow_differing"), "on printed numbers", Remedy("table"))

    summary = read_published_benches(table)

    def write(result: Result) -> None:
        result.summary = summary
        result.counts = Counts(num_in=len(summary.rows), num_used=len(summary.rows))

    return run_stage(out, TABLE_STAGE, Run[BenchTable], write, config=config, inputs={"table": table}, force=force)


def report_of(evaluated: Path, out: Path) -> str | None:
    """Return the link from ``out`` to a report of this evaluation in a folder next to it; null if there is none."""
    record = file_hash(evaluated / RUN_FILE)
    for page in sorted(evaluated.parent.glob(f"*/{REPORT_FILE}")):
        with suppress(FileError):  # a folder without a record, or a broken one, that nobody named
            if any(file.sha256 == record for file in read_run(page.parent).inputs.values()):
                return quote(Path(os.path.relpath(page, out)).as_posix())
    return None
