"""Dawid-Skene verdicts in two passes over a file: fit the judges' confusions once, then combine each batch's verdicts.

The first pass collects three small integers a judgment and runs expectation maximisation over all of them. The second
pass computes the posterior of each compared pair from the fitted confusions and the judgments of its case.
"""

from typing import NamedTuple

import numpy as np

from steelyard.core.arrays import Floats, Integers
from steelyard.core.types import Record
from steelyard.ranking.judgment_table import NONE, JudgmentTable, NameNumbers, Verdicts
from steelyard.ranking.rater_models import Pairs, Votes, by_dawid_skene, posterior
from steelyard.statistics.agreement import FIRST, SECOND, TIED, distinct, oriented

_DIGITS = 12
"""Probabilities that agree to so many digits are equal."""


class JudgeConfusion(Record, frozen=True, kw_only=True):
    """The diagonal of a judge's confusions: how probably the judge gives the true label, by whether it is strict."""

    strict: float
    tie: float


class RaterModelSummary(Record, frozen=True, kw_only=True):
    """The fitted model: each judge's diagonal, the share of pairs that are truly tied, and the number of steps."""

    model: str
    by_judge: dict[str, JudgeConfusion]
    share_of_ties: float
    num_steps: int


class VoteColumns(NamedTuple):
    """The readable judgments of one batch: ``case`` and ``judge`` are positions in the batch and in ``judges``."""

    num_cases: int
    case: Integers
    first: Integers
    second: Integers
    judge: Integers
    label: Integers
    judges: tuple[str, ...]


def vote_columns(table: JudgmentTable) -> VoteColumns:
    """Return the readable judgments with every pair turned so that its lower position is the first."""
    readable = table.verdicts.verdict != NONE
    verdicts = table.verdicts.where(readable)
    return VoteColumns(
        len(table.cases),
        verdicts.graph.astype(np.int32),
        np.minimum(verdicts.left, verdicts.right).astype(np.int32),
        np.maximum(verdicts.left, verdicts.right).astype(np.int32),
        table.judge[readable].astype(np.int32),
        oriented(verdicts.left, verdicts.right, verdicts.verdict).astype(np.int8),
        table.judges,
    )


class RaterFit(NamedTuple):
    """Fitted confusions, (judge, truth, label), and the share of each truth."""

    judges: tuple[str, ...]
    confusion: Floats
    share: Floats
    num_steps: int

    def combine(self, table: JudgmentTable) -> Verdicts:
        """Return one verdict a compared pair: the most probable label, a tie where two are equally probable.

        ``left`` is the lower position. All judges of the table must be among the fitted ones.
        """
        columns = vote_columns(table)
        number = {name: index for index, name in enumerate(self.judges)}
        # A judge without a readable judgment was not fitted and has no entry here: its number is not used.
        rater = np.array([number.get(name, 0) for name in columns.judges], np.int64)[columns.judge]
        width = int(columns.second.max(initial=0)) + 1
        key = (columns.case.astype(np.int64) * width + columns.first) * width + columns.second
        pairs, place = distinct(key, columns.num_cases * width**2)
        votes = Votes(Pairs(columns.case, columns.first, columns.second), rater, columns.label.astype(np.int64))
        probability = np.round(posterior(votes, place, self.share, self.confusion), _DIGITS)
        first, second, tied = (probability[:, label] for label in (FIRST, SECOND, TIED))
        label = np.select([first > np.maximum(second, tied), second > np.maximum(first, tied)], [FIRST, SECOND], TIED)
        return Verdicts(pairs // width**2, pairs // width % width, pairs % width, label)

    def summary(self) -> RaterModelSummary:
        """Return the fit as ``run.json`` holds it."""
        by_judge = {
            name: JudgeConfusion(strict=float(confusion[FIRST, FIRST]), tie=float(confusion[TIED, TIED]))
            for name, confusion in sorted(zip(self.judges, self.confusion, strict=True), key=lambda item: item[0])
        }
        return RaterModelSummary(
            model="dawid-skene", by_judge=by_judge, share_of_ties=float(self.share[TIED]), num_steps=self.num_steps
        )


class VoteCollector:
    """Collects the votes of all batches, about 20 bytes a judgment, and fits the model to them."""

    def __init__(self) -> None:
        self._numbers = NameNumbers()
        self._columns: list[tuple[Integers, ...]] = []
        self._num_cases = 0

    def add(self, columns: VoteColumns) -> None:
        """Add a batch."""
        number = np.array([self._numbers[name] for name in columns.judges], np.int32)
        self._columns.append(
            (columns.case + self._num_cases, columns.first, columns.second, number[columns.judge], columns.label)
        )
        self._num_cases += columns.num_cases

    def fit(self) -> RaterFit | None:
        """Fit the confusions; None without a readable judgment."""
        if not any(len(case) for case, *_ in self._columns):
            return None
        case, first, second, rater, label = (np.concatenate(column) for column in zip(*self._columns, strict=True))
        voters, rater = np.unique(rater, return_inverse=True)
        names = tuple(self._numbers)
        votes = Votes(Pairs(case, first, second), rater, label.astype(np.int64))
        empty = np.zeros(0, np.int64)
        fitted = by_dawid_skene(votes, Pairs(empty, empty, empty))
        judges = tuple(names[voter] for voter in voters.tolist())
        return RaterFit(judges, fitted.confusion, fitted.share, fitted.num_steps)
