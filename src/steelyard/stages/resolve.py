"""The verb `resolve`: judgments into conflict-free rankings, with a report of the conflicts and of the judges.

Workers receive batches of lines and return rankings and sums; the file is written in the order of the batches.
"""

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from steelyard.core import plugins
from steelyard.core.checks import check_case, check_frame
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError, UserError
from steelyard.core.iteration import batched
from steelyard.core.protocols import Engine
from steelyard.core.types import Case, Counts, Run
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import SplitLine, decode_batch, decode_case, encode_case, line_end, read_cases, split_line
from steelyard.io.lines import LineBatch, check_readable, read_batches
from steelyard.io.progress import bar
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.tables import is_parquet
from steelyard.io.verbs import CASES, ONLY, CaseFile, Option, SettingOption, Verb
from steelyard.ranking.annotation_features import TraitCollector
from steelyard.ranking.author_strength import Ties, author_strengths
from steelyard.ranking.conflicts import NO_SUMS, GroupedSums, add_sums, conflict_tables
from steelyard.ranking.dawid_skene import RaterFit, VoteCollector, VoteColumns, vote_columns
from steelyard.ranking.judge_quality import JudgeQualityCounts, judge_quality_counts
from steelyard.ranking.judge_reliability import PanelCollector
from steelyard.ranking.judge_summary import QualityTables, add_intervals, agreement_summary, judge_summary
from steelyard.ranking.judgment_table import (
    EVERYTHING,
    Aggregate,
    JudgmentTable,
    Only,
    check_admits,
    integers,
    judgment_table,
)
from steelyard.ranking.panel_counts import PanelCounts, panel_counts
from steelyard.ranking.resolution import ResolveCounts, ResolveSummary, resolve_table
from steelyard.statistics.groups import PromptUnits

_CASES_A_BATCH = 1024
_WORTH_PROCESSES_BYTES = 8_000_000
_DIGEST_BYTES = 16


class Config(BaseConfig, frozen=True):
    """Settings of a resolution.

    ``aggregate="dawid-skene"`` estimates each judge's confusions over the whole file, which is read twice, and gives
    each pair its most probable verdict; the graphs of single judges and kinds then use the majority.
    """

    only: Only = EVERYTHING
    """The judgments that count."""
    aggregate: Literal["none", "majority", "dawid-skene"] = "none"
    """Each verdict counts (none), a majority of them with even votes as ties, or dawid-skene weighs the judges."""
    quality: bool = True
    """Whether judges and authors are measured in the same pass; it costs up to a third of the speed."""
    author_ties: Ties = "half"
    """How ties count for the strength of authors."""
    seed: int = 0
    """The seed of the resamples."""

    @property
    def vote(self) -> Aggregate:
        """Return how verdicts are combined where no rater model applies."""
        return "majority" if self.aggregate == "dawid-skene" else self.aggregate


_DEFAULT = Config()


class ResolvedBatch(NamedTuple):
    """The result of one batch: the new ends of its lines, a digest of each case's key, and sums that add up.

    ``names`` are the `prompt_names` of its cases, where judges are measured.
    Line i becomes its first ``num_prefix[i]`` bytes and then ``ends[i]``: the texts of a line are not sent back.
    """

    num_prefix: tuple[int, ...]
    ends: tuple[bytes, ...]
    digests: bytes
    sums: GroupedSums
    counts: ResolveCounts
    names: tuple[tuple[str, ...], ...]
    quality: JudgeQualityCounts | None
    panel: PanelCounts | None


class _Totals(NamedTuple):
    """The sums of all batches."""

    num_cases: int
    sums: GroupedSums
    counts: ResolveCounts
    quality: QualityTables
    panel: PanelCollector
    raters: RaterFit | None


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
        default = 0 if cases.stat().st_size > _WORTH_PROCESSES_BYTES else 1
        settings = {"workers": default if workers is None else workers} if engine == "local" else {}
        totals = _resolve_file(cases, result.path("cases.jsonl"), config, plugins.build("engines", engine, settings))
        result.counts = Counts(num_in=totals.num_cases, num_used=totals.num_cases, noted=totals.counts.warnings())
        result.summary = _summary(totals, config)

    return run_stage(out, "resolve", Run[ResolveSummary], write, config=config, inputs={"cases": cases}, force=force)


def _summary(totals: _Totals, config: Config) -> ResolveSummary:
    conflicts = conflict_tables(totals.sums)
    counts = totals.counts
    summary = ResolveSummary(
        conflicts=conflicts,
        unranked_responses=counts.unranked_responses,
        rater_model=totals.raters.summary() if totals.raters else None,
        share_ordered_by_majority=(
            counts.ordered_by_majority / conflicts.overall.num_pairs if counts.several_judges else None
        ),
    )
    if not config.quality:
        return summary
    draws = totals.quality.draw(seed=config.seed)
    judges = judge_summary(draws)
    return msgspec.structs.replace(
        summary,
        conflicts=add_intervals(conflicts, judges, draws.graphs),
        judges=judges,
        agreement=agreement_summary(draws.agreement),
        reliability=totals.panel.reliability(seed=config.seed),
        authors=author_strengths(draws.authors, ties=config.author_ties),
    )


def _resolve_file(path: Path, out: Path, config: Config, engine: Engine) -> _Totals:
    """Resolve all batches and write them in order. An error in any line leaves no file."""
    raters: RaterFit | None = None
    if config.aggregate == "dawid-skene":
        collector = VoteCollector()
        for columns in engine.map(partial(collect_votes, config), _batches(path)):
            collector.add(columns)
        raters = collector.fit()
    sums, counts, quality, digests = NO_SUMS, ResolveCounts(), QualityTables(), bytearray()
    panel, units = PanelCollector(), PromptUnits()
    megabytes = None if is_parquet(path) else max(1, round(path.stat().st_size / 1e6))
    with atomic_write(out) as file, bar("resolve (MB read)", megabytes) as progress:
        pending: deque[LineBatch] = deque()
        for resolved in engine.map(partial(resolve_batch, config, raters), _remember(_batches(path), pending)):
            lines = pending.popleft().lines
            file.write(_join(lines, resolved))
            digests += resolved.digests
            sums, counts = add_sums(sums, resolved.sums), add_sums(counts, resolved.counts)
            unit = integers(map(units.of_names, resolved.names))
            if resolved.quality is not None:
                quality.add(resolved.quality, unit)
            if resolved.panel is not None:
                panel.add(resolved.panel, unit)
            progress.advance(sum(map(len, lines)) / 1e6)
        if not digests:
            raise EvidenceError("the file holds no cases", where=str(path))
        _check_keys(path, digests)
        if not sums.overall:
            check_admits(config.only, read_cases(path), where=str(path))
    return _Totals(len(digests) // _DIGEST_BYTES, sums, counts, quality, panel, raters)


def collect_votes(config: Config, batch: LineBatch) -> VoteColumns:
    """Decode and check one batch of lines and return its votes: the first pass of a worker."""
    return vote_columns(_decode(config, batch).table)


def resolve_batch(config: Config, raters: RaterFit | None, batch: LineBatch) -> ResolvedBatch:
    """Decode, check and resolve one batch of lines: the work of a worker."""
    decoded = _decode(config, batch)
    table = decoded.table
    resolution = resolve_table(table, config.vote, raters)
    names, quality, panel = (), None, None
    if config.quality:
        traits = decoded.traits.traits(table)
        quality = judge_quality_counts(table, resolution.graphs, traits, config.vote)
        names, panel = traits.names, panel_counts(table, traits)
    ends = tuple(map(line_end, decoded.opened, resolution.rankings))
    num_prefix = tuple([line.num_prefix for line in decoded.opened])
    return ResolvedBatch(num_prefix, ends, decoded.digests, resolution.sums, resolution.counts, names, quality, panel)


class _DecodedBatch(NamedTuple):
    """A batch read once: the lines cut open, a digest of each case's key, and its integer columns."""

    opened: list[SplitLine]
    digests: bytes
    table: JudgmentTable
    traits: TraitCollector


def _decode(config: Config, batch: LineBatch) -> _DecodedBatch:
    opened: list[SplitLine] = []
    digests = bytearray()
    traits = TraitCollector()
    looks_up_all = config.quality and config.only.admits_all
    # The table looks up every id of the judgments that it admits: where it admits all, the frame alone is checked.
    check = check_frame if looks_up_all else check_case

    def cases() -> Iterator[Case]:
        for place, line in batch.placed():
            case = decode_case(line, place, check)
            opened.append(split_line(line, case))
            digests.extend(_digest(case))
            yield case

    try:
        table = judgment_table(cases(), config.only, traits.add if config.quality else None)
    except (KeyError, UserError):
        decode_batch(batch)  # names the first error of the file, whichever check finds it
        raise
    if (table.verdicts.left == table.verdicts.right).any():
        decode_batch(batch)
    return _DecodedBatch(opened, bytes(digests), table, traits)


def _digest(case: Case) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(case.key), digest_size=_DIGEST_BYTES).digest()


def _join(lines: Sequence[bytes], resolved: ResolvedBatch) -> bytes:
    """Return the lines with their new ends. Views copy each byte once, where slices would copy a line for every cut."""
    return b"".join(
        [
            piece
            for line, num_prefix, end in zip(lines, resolved.num_prefix, resolved.ends, strict=True)
            for piece in (memoryview(line)[:num_prefix], end)
        ]
    )


def _batches(path: Path) -> Iterator[LineBatch]:
    """Yield the lines of the file in batches; the rows of a Parquet file are encoded as lines first."""
    if not is_parquet(path):
        yield from read_batches(path, size=_CASES_A_BATCH)
        return
    rows = enumerate(map(encode_case, read_cases(path)), 1)
    for batch in batched(rows, _CASES_A_BATCH):
        numbers, lines = zip(*batch, strict=True)
        yield LineBatch(str(path), numbers, lines)


def _remember(batches: Iterator[LineBatch], pending: deque[LineBatch]) -> Iterator[LineBatch]:
    """Yield the batches; each stays in ``pending`` until its result arrives, in the same order."""
    for batch in batches:
        pending.append(batch)
        yield batch


def _check_keys(path: Path, digests: bytearray) -> None:
    """Check that keys are unique. Only digests are held, so a repeated key is looked up again in the file."""
    keys = np.frombuffer(digests, f"V{_DIGEST_BYTES}")
    if len(np.unique(keys)) < len(keys):
        for _ in read_cases(path):  # raises at the line of the repeated key
            pass
