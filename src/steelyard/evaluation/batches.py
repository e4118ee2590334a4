"""Evaluate scored cases in batches, also in worker processes: write their lines, and join their columns."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from steelyard.core.checks import is_too_long
from steelyard.core.errors import EvidenceError
from steelyard.core.numerics import Floats
from steelyard.core.plugins import build
from steelyard.core.protocols import FormulaModel, RewardModel
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import num_characters, number_of, verb_for
from steelyard.core.types import Case
from steelyard.curation.input_checks import InputChecks
from steelyard.evaluation.bench_pairs import check_comparable, lay_out_pairs
from steelyard.evaluation.benches import BenchCases
from steelyard.evaluation.columns import (
    BenchColumns,
    ScoreColumns,
    bench_columns,
    case_pairs,
    join_bench,
    join_scores,
    score_columns,
)
from steelyard.evaluation.config import Config, choose_baselines
from steelyard.evaluation.external_scores import SideBySide
from steelyard.evaluation.items import add_units, item_rows
from steelyard.evaluation.pair_verdicts import Judged
from steelyard.evaluation.summary import Evaluation, HeadlineColumns, headline_columns, unscored_report
from steelyard.io.atomic import atomic_write
from steelyard.io.run_folder import Result
from steelyard.io.scored_cases import HashCoverage, ScoredCase
from steelyard.plugins.reward_models import build_model, scored

_CASES_AT_A_TIME = 1024
_CHARACTERS_AT_A_TIME = 2**22
_encoder = msgspec.json.Encoder()


class Source(NamedTuple):
    """The input of an evaluation: the cases of a bench, its settings, and the baselines."""

    cases: BenchCases
    bench: Any
    config: Config
    baselines: dict[str, RewardModel]

    def columns(self, cases: Sequence[Case]) -> BenchColumns:
        """Return the columns of a batch."""
        return bench_columns(
            cases,
            self.config.pairs,
            self.config.exact_rule,
            self.bench.resample_ids,
            counts_unwinnable=self.config.counts_unwinnable(self.bench),
        )

    def check(self) -> None:
        """Raise the errors that would otherwise end the evaluation only after the model has scored all cases.

        These are EvidenceError if no case has a comparable pair, and errors of the baselines, which may read files
        and train when they score their first case.
        """
        num_cases = num_unwinnable = 0
        for batch in _batched(self.cases, lambda case: case):
            num_cases += len(batch)
            columns = self.columns(batch)
            num_unwinnable += columns.unwinnable.shape[1]
            if len(columns.prompt):
                for name, model in self.baselines.items():
                    _scores_of(model, batch[:1], name)
                return
        check_comparable(num_pairs=0, num_cases=num_cases, num_unwinnable=num_unwinnable)


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
    unwinnable = case_pairs(columns.unwinnable, columns.start)
    counted = dict.fromkeys(case_pairs(np.stack([columns.prompt, columns.better, columns.worse]), columns.start))
    winnable = [pair for pair in counted if pair not in set(unwinnable)] if unwinnable else counted
    return BatchResult(
        columns, score_columns(lines), headline, baselines, HashCoverage(lines),
        InputChecks(cases, winnable, unwinnable, columns.names), _encoded(lines), _encoded(rows),
    )  # fmt: skip


def evaluate_lines(config: bytes, train_cases: Path | None, lines: SideBySide) -> BatchResult:
    """Decode, check and evaluate one batch of lines in a worker. ``config`` is encoded as JSON."""
    source = _built(config, train_cases)
    checked = lines.checked(source.bench)
    part = evaluate_batch(source, checked.scored)
    keys = tuple(case.key for case, _ in checked.scored)
    return part._replace(keys=keys, num_without_language=checked.num_without_language)


@lru_cache(maxsize=1)
def _built(config: bytes, train_cases: Path | None) -> Source:
    """Build the bench and the baselines, once per process."""
    settings = msgspec.json.decode(config, type=Config)
    bench = build("benches", settings.bench_kind, settings.bench)
    baselines = {choice.name: build_model(choice) for choice in choose_baselines(settings, train_cases)}
    return Source(BenchCases((), bench), bench, settings, baselines)


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


def _scores_of(model: RewardModel, cases: Sequence[Case], name: str) -> Floats:
    """Return the score of every response by a baseline; shape (response,)."""
    if isinstance(model, FormulaModel):
        return np.array([value for case in cases for value in model.values(case)], np.float64)
    return score_columns(scored(model, cases, name=name, quietly=True)).score


def refuse_unscored(columns: BenchColumns, scores: ScoreColumns) -> None:
    """Raise EvidenceError if a response has no score for a reason other than its length."""
    # A length limit is part of the model's protocol; any other reason may be a mistake of the user.
    reasons = unscored_report(columns, scores).by_reason.items()
    others = {reason: number for reason, number in reasons if not is_too_long(reason)}
    if others:
        listed = ", ".join(f"{reason} {number}" for reason, number in others.items())
        raise EvidenceError(
            f"{number_of(sum(others.values()), 'response')} {verb_for(sum(others.values()), 'has', 'have')} no "
            f"score ({listed})",
            do=Advice(
                "score them, or use ",
                Remedy("allow_unscored", value=True),
                ", which counts their pairs as wrong and reports bounds",
            ),
        )


def _batched(items: Iterable[Any], case_of: Callable[[Any], Case]) -> Iterator[list[Any]]:
    """Yield lists of items of bounded number and text length, which bounds the memory."""
    batch: list[Any] = []
    num_in_batch = 0
    for item in items:
        batch.append(item)
        num_in_batch += sum(map(num_characters, case_of(item).responses))
        if len(batch) == _CASES_AT_A_TIME or num_in_batch >= _CHARACTERS_AT_A_TIME:
            yield batch
            batch, num_in_batch = [], 0
    if batch:
        yield batch


def _encoded(rows: Iterable[Any]) -> bytes:
    return b"".join(_encoder.encode(row) + b"\n" for row in rows)
