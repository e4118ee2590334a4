"""Accuracy and exact match of scores against an ordering: the one implementation for annotation, validation, benches.

It works on flat arrays of comparable pairs; every measure is a sum of the per-prompt statistics computed here.
Every listed pair counts once: the weights of ``pairs`` are for training.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from steelyard.core.numerics import Booleans, Floats, Integers

ExactRule = Literal["strict", "cheems"]
UnscoredRule = Literal["wrong", "right", "left_out"]
TiePolicy = Literal["wrong", "right"]
"""Weight of a tie or of a pair without a verdict."""
Pair = tuple[str, str]

PAIRS, CORRECT, PROMPTS, EXACT = range(4)
NUM_COLUMNS = 4
"""The columns of a table of statistics, from which accuracy and exact match are computed. Those of a bench follow."""

_REVERSED, _TIED, _CORRECT, _UNSCORED = range(4)


class PromptStatistics(NamedTuple):
    """The number of each prompt's pairs by outcome; every array has shape (prompt,)."""

    num_correct: Integers
    num_tied: Integers
    num_reversed: Integers
    num_unscored: Integers

    @property
    def num_pairs(self) -> Integers:
        """Return the number of comparable pairs of each prompt."""
        return self.num_correct + self.num_tied + self.num_reversed + self.num_unscored


class UnscoredPairs(NamedTuple):
    """The pairs that a model has no score or verdict for, by row of its table of statistics.

    ``if_right``: EXACT and the bench's columns of these rows if all of these pairs were right.
    """

    pairs: Mapping[int, frozenset[Pair]] = {}
    if_right: Mapping[int, tuple[int, ...]] = {}


def prompt_statistics(prompt: Integers, better: Floats, worse: Floats, num_prompts: int) -> PromptStatistics:
    """Count each prompt's pairs by outcome.

    ``prompt``, ``better`` and ``worse`` have shape (pair,): the prompt's position and the two scores. A pair is
    correct if the better response's score is strictly greater (CHEEMS, eq. 1). NaN means "unscored".
    """
    outcome = np.where(better > worse, _CORRECT, np.where(better == worse, _TIED, _REVERSED))
    # Comparisons with NaN are false and would count as reversed.
    outcome[np.isnan(better) | np.isnan(worse)] = _UNSCORED
    counts = np.bincount(prompt * 4 + outcome, minlength=num_prompts * 4).reshape(num_prompts, 4)
    return PromptStatistics(counts[:, _CORRECT], counts[:, _TIED], counts[:, _REVERSED], counts[:, _UNSCORED])


def count_unscored(statistics: PromptStatistics, rule: UnscoredRule) -> PromptStatistics:
    """Return the statistics with every unscored pair counted as wrong or as right, or left out."""
    unscored = statistics.num_unscored
    return statistics._replace(
        num_correct=statistics.num_correct + unscored * (rule == "right"),
        num_reversed=statistics.num_reversed + unscored * (rule == "wrong"),
        num_unscored=np.zeros_like(unscored),
    )


def with_policy(statistics: PromptStatistics, policy: TiePolicy) -> PromptStatistics:
    """Return the statistics with every tie and every unscored pair counted as wrong, or as right."""
    # Ties become unscored pairs, which the same rule then counts.
    without_ties = PromptStatistics(
        statistics.num_correct,
        np.zeros_like(statistics.num_tied),
        statistics.num_reversed,
        statistics.num_tied + statistics.num_unscored,
    )
    return count_unscored(without_ties, policy)


def half_credit(statistics: PromptStatistics) -> Integers:
    """Return twice the credit of each prompt if a tie and an unscored pair count one half, shape (prompt, 1).

    RewardBench and M-RewardBench score generative models by this rule; it does not define exact match.
    """
    # Twice the credit, because tables hold whole numbers.
    return (2 * statistics.num_correct + statistics.num_tied + statistics.num_unscored)[:, None]


def exact_matches(statistics: PromptStatistics, rule: ExactRule = "strict") -> Booleans:
    """Return whether each prompt's pairs are all in order, shape (prompt,) (CHEEMS, eq. 2).

    ``strict``: there is a pair, and every pair is correct; a tied score is wrong.
    """
    if rule == "cheems":
        # Differs from: eq. 2 of the paper. The published evaluation code takes a prompt as right unless some pair is
        # strictly reversed: tied scores pass, and so does a prompt without a comparable pair.
        return (statistics.num_reversed == 0) & (statistics.num_unscored == 0)
    return (statistics.num_correct == statistics.num_pairs) & (statistics.num_pairs > 0)


def statistics_table(statistics: PromptStatistics, included: Booleans, rule: ExactRule = "strict") -> Integers:
    """Return the columns PAIRS, CORRECT, PROMPTS, EXACT: shape (prompt, 4).

    ``included`` marks the prompts in the denominator of exact match: those with a comparable pair, and under the rule
    ``cheems`` all that have an ordering. The rule is the same for every model, so that denominators are equal.
    """
    exact = exact_matches(statistics, rule) & included
    return np.stack([statistics.num_pairs, statistics.num_correct, included, exact], axis=1).astype(np.int64)


def with_unscored_right(table: Integers, unscored: UnscoredPairs, other: UnscoredPairs) -> Integers | None:
    """Return a model's table with every pair right that it alone has no score for; None without such pairs.

    ``other`` belongs to the model that it is compared with. Pairs that neither has scored stay as they are. Exact match
    and the bench's columns of a row with such a pair are those of all its unscored pairs right.
    """
    num_alone = {row: len(pairs - other.pairs.get(row, frozenset())) for row, pairs in unscored.pairs.items()}
    rows = [row for row, number in num_alone.items() if number]
    if not rows:
        return None
    favourable = table.copy()
    favourable[rows, CORRECT] += np.array([num_alone[row] for row in rows])
    for row in rows:
        favourable[row, [EXACT, *range(NUM_COLUMNS, table.shape[1])]] = unscored.if_right[row]
    return favourable
