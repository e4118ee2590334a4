"""The rater model of Dawid and Skene: each judge's confusions and the probable verdict on each pair.

`resolve` uses it in two passes over a file. The first collects three small integers per judgment and runs expectation
maximisation over all of them. The second computes the posterior of each compared pair from the fitted confusions and
the judgments of its case.
"""

from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.core.types import Record
from steelyard.ranking.judgment_table import NONE, JudgmentTable, NameNumbers, Verdicts
from steelyard.statistics.agreement import FIRST, NUM_LABELS, SECOND, TIED, count_labels, orient_labels, vote
from steelyard.statistics.unique_rows import find_codes, unique_codes

_SWAPPED = np.array([SECOND, FIRST, TIED])
"""The labels of a pair whose two responses are exchanged."""
_CLOSE = 1e-7
"""The largest change of a probability in a step at which the iteration has converged."""
_TINY = 1e-300
"""The floor of probabilities: keeps logarithms finite and rows without a count from dividing by 0."""
_DIGITS = 12
"""Probabilities that agree to this many decimals are equal, so that rounding errors do not break a tie."""


class Pairs(NamedTuple):
    """Pairs of responses: the prompt's number, and the positions of the two, ``first`` < ``second``."""

    prompt: Integers
    first: Integers
    second: Integers

    def where(self, mask: Booleans) -> "Pairs":
        """Return the pairs for which the mask is true."""
        return Pairs(*(column[mask] for column in self))


class Votes(NamedTuple):
    """One entry a verdict on a pair: the rater, and whether the first is better (0), the second (1), or neither (2)."""

    pairs: Pairs
    rater: Integers
    label: Integers

    @property
    def num_raters(self) -> int:
        """Return the highest number of a rater, plus one."""
        return int(self.rater.max(initial=-1)) + 1


class DawidSkene(NamedTuple):
    """Answers, each rater's ``confusion`` (rater, truth, label), the ``share`` of each truth, the number of steps."""

    answers: Floats
    confusion: Floats
    share: Floats
    num_steps: int


def fit_dawid_skene(votes: Votes, queries: Pairs, *, shrinkage: float = 1.0, most_steps: int = 500) -> DawidSkene:
    """Estimate the truth of each voted pair and each rater's confusions by expectation maximisation.

    A rater's confusions are shrunk towards those of all raters with the weight of ``shrinkage`` verdicts for each
    truth, so that a rater with one verdict counts as an average one. The iteration starts from the share of each label
    among a pair's votes (Dawid and Skene, 1979). ``answers`` has shape (query, truth); NaN without a vote.

    Differs from: their model, whose labels have fixed meanings and whose confusions are not shrunk. The order of two
    responses has no meaning here, so confusions and shares are symmetric in first and second.
    """
    items, place, query_keys = pair_keys(votes.pairs, queries)
    counts = count_labels(place, votes.label, len(items)).astype(np.float64)
    truth = counts / counts.sum(axis=1, keepdims=True)
    confusion, share, step = np.zeros((votes.num_raters, NUM_LABELS, NUM_LABELS)), np.zeros(NUM_LABELS), 0
    while step < most_steps:
        step += 1
        share, confusion = _maximize(votes, truth[place], truth, shrinkage)
        before, truth = truth, posterior(votes, place, share, confusion)
        if np.abs(truth - before).max(initial=0.0) < _CLOSE:
            break
    return DawidSkene(answers_at(truth, items, query_keys), confusion, share, step)


def posterior(votes: Votes, place: Integers, share: Floats, confusion: Floats) -> Floats:
    """Return the probability of each truth given the votes (Bayes' rule), (pair, truth).

    ``place`` gives for each vote its pair, a row.
    """
    likelihood = np.log(np.maximum(confusion[votes.rater, :, votes.label], _TINY))
    size = int(place.max(initial=-1)) + 1
    logs = np.stack([np.bincount(place, column, size) for column in likelihood.T], axis=1)
    logs += np.log(np.maximum(share, _TINY))
    # Minus the largest: many votes on a pair would otherwise underflow.
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


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
        orient_labels(verdicts.left, verdicts.right, verdicts.verdict).astype(np.int8),
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
        pairs, place = unique_codes(key, columns.num_cases * width**2)
        votes = Votes(Pairs(columns.case, columns.first, columns.second), rater, columns.label.astype(np.int64))
        probability = np.round(posterior(votes, place, self.share, self.confusion), _DIGITS)
        return Verdicts(pairs // width**2, pairs // width % width, pairs % width, vote(probability))

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
        fitted = fit_dawid_skene(votes, Pairs(empty, empty, empty))
        judges = tuple(names[voter] for voter in voters.tolist())
        return RaterFit(judges, fitted.confusion, fitted.share, fitted.num_steps)


def pair_keys(pairs: Pairs, queries: Pairs) -> tuple[Integers, Integers, Integers]:
    """Return the keys of the distinct voted pairs, the place of each vote among them, and the keys of the queries."""
    width = int(max(pairs.second.max(initial=0), queries.second.max(initial=0))) + 1
    key, query_keys = (
        (each.prompt.astype(np.int64) * width + each.first) * width + each.second for each in (pairs, queries)
    )
    items, place = unique_codes(key, int(key.max(initial=-1)) + 1)
    return items, place, query_keys


def answers_at(rows: Floats, items: Integers, wanted: Integers) -> Floats:
    """Return the row of each wanted key, whose place is that of the key among ``items``; NaN for an unknown key."""
    answers = np.full((len(wanted), NUM_LABELS), np.nan)
    place, is_known = find_codes(items, wanted)
    answers[is_known] = rows[place[is_known]]
    return answers


def _maximize(votes: Votes, truth_of_vote: Floats, truth: Floats, shrinkage: float) -> tuple[Floats, Floats]:
    """Return the share of each truth and each rater's confusions, given the probable truths; both symmetric."""
    share = truth.mean(axis=0)
    # Every pair counts in both orders, which makes the estimates symmetric.
    share = (share + share[_SWAPPED]) / 2
    cell = votes.rater * NUM_LABELS + votes.label
    size = votes.num_raters * NUM_LABELS
    counts = np.stack([np.bincount(cell, column, size) for column in truth_of_vote.T], axis=1)
    counts = counts.reshape(votes.num_raters, NUM_LABELS, NUM_LABELS).transpose(0, 2, 1)  # [rater, truth, label]
    counts = counts + counts[:, _SWAPPED][:, :, _SWAPPED]
    pooled = counts.sum(axis=0) + _TINY
    # Twice the shrinkage, because the counts hold every verdict twice.
    counts = counts + 2 * shrinkage * pooled / pooled.sum(axis=1, keepdims=True) + _TINY
    return share, counts / counts.sum(axis=2, keepdims=True)
