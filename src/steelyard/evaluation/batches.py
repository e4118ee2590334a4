"""Evaluate scored cases in batches, also in worker processes: write their lines, and join their columns."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np

from steelyard.core.numerics import Floats
from steelyard.curation.input_checks import InputChecks
from steelyard.evaluation.bench_pairs import lay_out_pairs
from steelyard.evaluation.columns import (
    BenchColumns,
    ScoreColumns,
    join_bench,
    join_scores,
    score_columns,
    within_cases,
)
from steelyard.evaluation.evaluated_bench import Evaluation, HeadlineColumns, headline_columns, refuse_unscored
from steelyard.evaluation.items import add_units, item_rows
from steelyard.evaluation.pair_verdicts import Judged
from steelyard.evaluation.source import Source, _batched, _scores_of
from steelyard.io.atomic import atomic_write
from steelyard.io.run_folder import Result
from steelyard.io.scored_cases import HashCoverage, ScoredCase

_encoder = msgspec.json.Encoder()


class BatchResult(NamedTuple):
    """The result of one batch: columns of its cases, scores, headline and baselines, and its encoded lines."""

    columns: BenchColumns
    scores: ScoreColumns
    headline: HeadlineColumns
    baselines: dict[str, Floats]
    hashes: HashCoverage
    checks: InputChecks
    score_lines: bytes
    item_lines: bytes
    keys: tuple[tuple[str, str | None], ...] = ()
    """The key of each case, for lines that are read side by side."""
    num_without_language: int = 0
    """The number of score lines that omit the language of their case."""


def evaluate_batch(source: Source, scored_cases: Sequence[ScoredCase], judged: Judged | None = None) -> BatchResult:
    """Evaluate one batch of scored cases. ``judged`` has the outcomes of all its pairs under a judge."""
    cases, lines = [scored.case for scored in scored_cases], [scored.scores for scored in scored_cases]
    columns = source.columns(cases)
    headline = headline_columns(source.bench, cases, lines, columns, judged)
    rows = item_rows(
        cases,
        lines,
        columns,
        bench=source.config.bench_kind,
        rule=source.config.exact_rule,
        judged=judged,
        bench_columns=headline,
        matched_ratio=source.config.matched_ratio,
    )
    baselines = {name: _scores_of(model, cases, name) for name, model in source.baselines.items()}
    num_responses = len(columns.tier)
    keys, lost = (
        side[0] * num_responses + side[1] for side in ([columns.better, columns.worse], columns.unwinnable[1:])
    )
    once = np.unique(keys, return_index=True)[1]
    winnable = np.sort(once[~np.isin(keys[once], lost)])
    counted = np.stack([columns.prompt, columns.better, columns.worse])[:, winnable]
    pairs, unwinnable = (within_cases(side, columns.start) for side in (counted, columns.unwinnable))
    return BatchResult(
        columns, score_columns(lines), headline, baselines, HashCoverage(lines),
        InputChecks(cases, pairs, unwinnable, columns.names), _encoded(lines), _encoded(rows),
    )  # fmt: skip


def evaluate_scored(source: Source, scored_cases: Iterable[ScoredCase]) -> Iterator[BatchResult]:
    """Evaluate scored cases lazily, batch by batch."""
    return (evaluate_batch(source, batch) for batch in _batched(scored_cases, attrgetter("case")))


def join_parts(
    source: Source, result: Result, parts: Iterable[BatchResult], judged: Judged | None = None, *, prefix: str = ""
) -> Evaluation:
    """Write ``scores.jsonl`` and ``items.jsonl`` while the parts arrive, and return the evaluation of the whole bench.

    ``prefix`` begins the names of both files.
    Raises EvidenceError if a response has no score for a reason other than its length, unless ``allow_unscored``.
    """
    stripped: list[BatchResult] = []
    checks = InputChecks()
    scores_path, items_path = result.path(f"{prefix}scores.jsonl"), result.path(f"{prefix}items.jsonl")
    with ExitStack() as files:
        score_file, item_file = (files.enter_context(atomic_write(path)) for path in (scores_path, items_path))
        for part in parts:
            score_file.write(part.score_lines)
            item_file.write(part.item_lines)
            checks.join(part.checks)
            # The lines are on disk: keeping them would hold all texts in memory.
            stripped.append(part._replace(score_lines=b"", item_lines=b"", keys=(), checks=InputChecks()))
        columns = join_bench([part.columns for part in stripped])
        scores = join_scores([part.scores for part in stripped])
        if judged is None and not source.config.allow_unscored:
            refuse_unscored(columns, scores)
        bench_pairs = lay_out_pairs(columns, source.config.exact_rule)
    add_units(items_path, bench_pairs)
    if not prefix:  # those of the judge's labels are on the same prompts
        is_counted = source.config.counts_unwinnable(source.bench)
        result.findings += checks.findings("counted" if is_counted else "left out")
    headline = HeadlineColumns(
        *(np.concatenate(side) for side in zip(*(part.headline for part in stripped), strict=True))
    )
    baselines = {name: np.concatenate([part.baselines[name] for part in stripped]) for name in source.baselines}
    return Evaluation(bench_pairs, source.bench, source.config, scores, headline, baselines, judged)


def _encoded(rows: Iterable[Any]) -> bytes:
    return b"".join(_encoder.encode(row) + b"\n" for row in rows)
