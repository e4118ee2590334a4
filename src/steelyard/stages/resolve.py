"""The verb `resolve`: judgments into conflict-free rankings, with a report of the conflicts and of the judges.

Workers receive batches of lines and return rankings and sums; the file is written in the order of the batches.
"""

from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from steelyard.core.errors import EvidenceError
from steelyard.core.plugins import build
from steelyard.core.types import Counts, Run
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import read_cases, read_line_batches
from steelyard.io.lines import LineBatch, check_readable
from steelyard.io.progress import bar
from steelyard.io.resolved_lines import collect_votes, num_keys, refuse_repeated_keys, resolve_batch
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.tables import is_parquet
from steelyard.io.verbs import CASES, ONLY, CaseFile, Option, SettingOption, Verb
from steelyard.ranking.batch_totals import ResolveTotals
from steelyard.ranking.dawid_skene import RaterFit, VoteCollector
from steelyard.ranking.judgment_table import check_admits
from steelyard.ranking.resolution import Config, ResolveSummary

_CASES_A_BATCH = 1024
_WORTH_PROCESSES_BYTES = 8_000_000


_DEFAULT = Config()


VERB = Verb(
    "Judgments",
    42,
    (
        CASES,
        Option("out", "The folder for cases.jsonl and run.json."),
        ONLY,
        SettingOption("aggregate"),
        Option("engine", "local, or ray: on a cluster (RAY_ADDRESS names one)."),
        Option("workers", "The number of processes. Default: one for each core, for large files."),
    ),
)


def resolve(
    cases: CaseFile,
    out: Path,
    config: Config = _DEFAULT,
    *,
    workers: int | None = None,
    engine: str = "local",
    force: bool = False,
) -> Run[ResolveSummary]:
    """Turn judgments into conflict-free rankings (CHEEMS, algorithm 1), and report the conflicts and the judges.

    Responses that beat one another in a circle share a tier; a tier is what no remaining response beats. The judgments
    stay as they are: only `ranking` is new. A case to which no judgment counts keeps the ranking it has.

    The table says what share of the judgments, and of the strict ones, the rankings do not keep; in how many prompts
    that happens; and what share of all response pairs is ordered. Judges and kinds are measured on their own graphs.

    Example: `steelyard resolve cases.jsonl --out resolved --only kind=human --only kind=llm --aggregate majority`

    Raises RecordError for an inconsistent case, EvidenceError if ``only`` admits no judgment of the whole file.

    >>> resolved = sy.resolve(cases, only=["kind=human"])
    >>> resolved.cases[0].ranking
    (('a',), ('b',))
    >>> resolved.summary.conflicts.overall.num_strict
    40
    """
    check_readable(cases)

    def write(result: Result) -> None:
        _resolve_file(cases, result, config, engine=engine, workers=workers)

    return run_stage(out, "resolve", Run[ResolveSummary], write, config=config, inputs={"cases": cases}, force=force)


def _resolve_file(path: Path, result: Result, config: Config, *, engine: str, workers: int | None) -> None:
    """Resolve all batches and write them in order. An error in any line leaves no file."""
    default = 0 if path.stat().st_size > _WORTH_PROCESSES_BYTES else 1
    settings = {"workers": default if workers is None else workers} if engine == "local" else {}
    processes = build("engines", engine, settings)
    raters: RaterFit | None = None
    if config.aggregate == "dawid-skene":
        collector = VoteCollector()
        for columns in processes.map(partial(collect_votes, config), read_line_batches(path, size=_CASES_A_BATCH)):
            collector.add(columns)
        raters = collector.fit()
    totals, digests = ResolveTotals(), bytearray()
    megabytes = None if is_parquet(path) else max(1, round(path.stat().st_size / 1e6))
    with atomic_write(result.path("cases.jsonl")) as file, bar("resolve (MB read)", megabytes) as progress:
        pending: deque[LineBatch] = deque()
        batches = _remember(read_line_batches(path, size=_CASES_A_BATCH), pending)
        for resolved in processes.map(partial(resolve_batch, config, raters), batches):
            lines = pending.popleft().lines
            file.write(resolved.join(lines))
            digests += resolved.digests
            totals.add(resolved.sums)
            progress.advance(sum(map(len, lines)) / 1e6)
        if not digests:
            raise EvidenceError("the file holds no cases", where=str(path))
        refuse_repeated_keys(path, digests)
        if not totals.has_judgments:
            check_admits(config.only, read_cases(path), where=str(path))
    num_cases = num_keys(digests)
    result.counts = Counts(num_in=num_cases, num_used=num_cases, noted=totals.counts.warnings())
    result.summary = totals.summary(config, raters)


def _remember(batches: Iterator[LineBatch], pending: deque[LineBatch]) -> Iterator[LineBatch]:
    """Yield the batches; each stays in ``pending`` until its result arrives, in the same order."""
    for batch in batches:
        pending.append(batch)
        yield batch
