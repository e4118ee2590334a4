"""A bench with the scores of a model: its comparable pairs, the bench's own columns, and what has no score."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.core.checks import is_too_long
from steelyard.core.errors import EvidenceError
from steelyard.core.numerics import Floats, Integers
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Case, Counts, Record, Scores
from steelyard.evaluation.bench_pairs import BenchPairs, PairValues, count_pairs, values_of
from steelyard.evaluation.columns import BenchColumns, ScoreColumns
from steelyard.evaluation.config import Config
from steelyard.evaluation.coverage import CoverageCounter
from steelyard.evaluation.pair_verdicts import MOST_UNREAD, Judged, pair_columns
from steelyard.evaluation.relabelled import RelabelledPairs
from steelyard.ranking.pairs import UNLISTED
from steelyard.statistics.pair_counts import PromptStatistics
from steelyard.statistics.stated_label_error import StatedLabelError


class MissingScores(Record, frozen=True, kw_only=True):
    """Responses without a score, by reason and by language, and the numbers of affected pairs and prompts."""

    num_responses: int
    by_reason: dict[str, int]
    by_language: dict[str, int]
    num_pairs: int
    num_prompts: int


class HeadlineColumns(NamedTuple):
    """The columns that the bench's headline needs beyond accuracy and exact match; shape (case, column) each.

    They count pairs without a score or verdict as wrong and as right.
    """

    unscored_wrong: Integers
    unscored_right: Integers


class Evaluation(NamedTuple):
    """The comparable pairs of a bench with the scores of a model and of each baseline.

    ``judged`` has the outcomes of the pairs under a judge; null for a reward model. ``relabelled``: what better judges
    said of a random part of the labels; ``stated``: the label error that the bench states.
    """

    bench_pairs: BenchPairs
    bench: Any
    config: Config
    scores: ScoreColumns
    headline: HeadlineColumns
    baselines: Mapping[str, Floats]
    """The score of every response; shape (response,) each."""
    judged: Judged | None = None
    relabelled: RelabelledPairs | None = None
    stated: StatedLabelError | None = None

    @property
    def values(self) -> PairValues:
        """The model's values of the two responses of each pair."""
        return values_of(self.bench_pairs.columns, self.scores.score) if self.judged is None else self.judged.values

    @property
    def num_left_out(self) -> int:
        """The number of pairs of equal texts, which no measure counts unless a published benchmark does."""
        is_counted = self.config.counts_unwinnable(self.bench)
        return 0 if is_counted else self.bench_pairs.columns.unwinnable.shape[1]

    def counts(self, noted: dict[str, int]) -> Counts:
        """Return the counts of a run: cases that were used, and those that were dropped by reason."""
        columns = self.bench_pairs.columns
        num_cases, num_used = len(columns.start), int(columns.included.sum())
        is_unwinnable = np.bincount(columns.unwinnable[0], minlength=num_cases) > 0
        num_unwinnable = int((is_unwinnable & ~columns.included).sum())
        dropped = {
            "only pairs of equal texts": num_unwinnable,
            "no comparable pair": num_cases - num_used - num_unwinnable,
        }
        left_out = {"pairs of equal texts, left out": self.num_left_out} if self.num_left_out else {}
        unlisted = {UNLISTED: columns.num_unlisted} if columns.num_unlisted else {}
        # Of a model that is asked, the outcomes of the pairs say what was read.
        is_scored = self.judged is None
        coverage = coverage_counter(columns, self.scores).notes() if is_scored else {}
        return Counts(
            num_in=num_cases,
            num_used=num_used,
            dropped={reason: number for reason, number in dropped.items() if number},
            noted={**noted, "pairs": len(columns.prompt), **left_out, **unlisted, **coverage},
        )


def headline_columns(
    bench: Any, cases: Sequence[Case], lines: Sequence[Scores], columns: BenchColumns, judged: Judged | None = None
) -> HeadlineColumns:
    """Return the bench's own columns of a batch of cases."""
    if judged is not None and judged.by_pair:
        both = [pair_columns(bench, cases, columns, judged, open_is_right=is_right) for is_right in (False, True)]
    else:
        both = [bench.columns(cases, lines, unscored_is_right=is_right) for is_right in (False, True)]
    return HeadlineColumns(*both)


def is_withheld(statistics: PromptStatistics) -> bool:
    """Return whether a larger share of pairs than `MOST_UNREAD` has no score, which would dominate a headline."""
    return int(statistics.num_unscored.sum()) > MOST_UNREAD * int(statistics.num_pairs.sum())


def unscored_report(columns: BenchColumns, scores: ScoreColumns) -> MissingScores:
    """Count the responses without a score, by reason and by language."""
    case_of = columns.case_of
    languages = Counter(columns.cells[case_of[response]].language or "unknown" for response in scores.reasons)
    counts = count_pairs(columns, values_of(columns, scores.score))
    return MissingScores(
        num_responses=len(scores.reasons),
        by_reason=dict(sorted(Counter(scores.reasons.values()).items())),
        by_language=dict(sorted(languages.items())),
        num_pairs=int(counts.num_unscored.sum()),
        num_prompts=int((counts.num_unscored > 0).sum()),
    )


def coverage_counter(columns: BenchColumns, scores: ScoreColumns) -> CoverageCounter:
    """Count the responses of each language that were cut or not scored."""
    languages = [cell.language for cell in columns.cells]
    names = sorted(set(languages), key=str)
    language = np.array([names.index(name) for name in languages], np.int64)[columns.case_of]
    chosen = (np.arange(len(language)), scores.cut, np.array(list(scores.reasons), np.int64))
    counts = [np.bincount(language[responses], minlength=len(names)).tolist() for responses in chosen]
    counter = CoverageCounter()
    for name, *numbers in zip(names, *counts, strict=True):
        counter.count(name, *numbers)
    return counter


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
