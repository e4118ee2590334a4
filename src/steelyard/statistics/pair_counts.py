"""Accuracy and exact match of scores against an ordering: the one implementation for annotation, validation, benches.

Works on flat arrays of comparable pairs; every measure is a sum of the per-prompt statistics made here.
Every listed pair counts once: the weights of ``pairs`` are for training.
"""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

ExactRule = Literal["strict", "cheems"]
Unscored = Literal["wrong", "right", "left_out"]
Policy = Literal["wrong", "right"]
"""How what is neither right nor wrong counts: a tie, or a pair without a verdict."""

PAIRS, CORRECT, PROMPTS, EXACT = range(4)
NUM_COLUMNS = 4
"""The columns of a table of statistics, from which accuracy and exact match are formed. A bench's own follow."""

_REVERSED, _TIED, _CORRECT, _UNSCORED = range(4)


class PromptStatistics(NamedTuple):
    """What became of each prompt's pairs; every array has shape (prompt,)."""

    num_correct: Integers
    num_tied: Integers
    num_reversed: Integers
    num_unscored: Integers

    @property
    def num_pairs(self) -> Integers:
        """How many comparable pairs each prompt has."""
        return self.num_correct + self.num_tied + self.num_reversed + self.num_unscored


def prompt_statistics(prompt: Integers, better: Floats, worse: Floats, num_prompts: int) -> PromptStatistics:
    """Counts each prompt's pairs by outcome.

    ``prompt``, ``better`` and ``worse`` have shape (pair,): the prompt's position and the two scores. A pair is
    correct when the better response's score is strictly greater (CHEEMS, eq. 1). NaN stands for "unscored".
    """
    outcome = np.where(better > worse, _CORRECT, np.where(better == worse, _TIED, _REVERSED))
    outcome[np.isnan(better) | np.isnan(worse)] = _UNSCORED
    counts = np.bincount(prompt * 4 + outcome, minlength=num_prompts * 4).reshape(num_prompts, 4)
    return PromptStatistics(counts[:, _CORRECT], counts[:, _TIED], counts[:, _REVERSED], counts[:, _UNSCORED])


def count_unscored(statistics: PromptStatistics, treatment: Unscored) -> PromptStatistics:
    """The statistics with every unscored pair counted as wrong, as right, or left out."""
    unscored, none = statistics.num_unscored, np.zeros_like(statistics.num_unscored)
    return PromptStatistics(
        statistics.num_correct + (unscored if treatment == "right" else none),
        statistics.num_tied,
        statistics.num_reversed + (unscored if treatment == "wrong" else none),
        none,
    )


def with_policy(statistics: PromptStatistics, policy: Policy) -> PromptStatistics:
    """The statistics with every tie and every unscored pair counted as wrong, or as right."""
    open_pairs, none = statistics.num_tied + statistics.num_unscored, np.zeros_like(statistics.num_tied)
    is_right = policy == "right"
    return PromptStatistics(
        statistics.num_correct + (open_pairs if is_right else none),
        none,
        statistics.num_reversed + (none if is_right else open_pairs),
        none,
    )


def half_credit(statistics: PromptStatistics) -> Integers:
    """Twice the credit of each prompt where a tie and an unscored pair count one half, shape (prompt, 1).

    The rule that RewardBench and M-RewardBench score generative models by; of exact match it says nothing.
    """
    return (2 * statistics.num_correct + statistics.num_tied + statistics.num_unscored)[:, None]


def exact_matches(statistics: PromptStatistics, rule: ExactRule = "strict") -> Booleans:
    """Whether each prompt's pairs are all in order, shape (prompt,) (CHEEMS, eq. 2).

    ``strict``: there is a pair, and every pair is correct; a tied score is wrong.
    """
    if rule == "cheems":
        # Differs from: eq. 2 of the paper. The published evaluation code takes a prompt as right unless some pair is
        # strictly reversed: tied scores pass, and so does a prompt without a comparable pair.
        return (statistics.num_reversed == 0) & (statistics.num_unscored == 0)
    return (statistics.num_correct == statistics.num_pairs) & (statistics.num_pairs > 0)


def statistics_table(statistics: PromptStatistics, included: Booleans, rule: ExactRule = "strict") -> Integers:
    """The columns PAIRS, CORRECT, PROMPTS, EXACT: shape (prompt, 4).

    ``included`` says which prompts are in the denominator of exact match: those with a comparable pair, and under the
    rule ``cheems`` all that have an ordering. One rule for every model, so that no two rows differ in denominators.
    """
    exact = exact_matches(statistics, rule) & included
    return np.stack([statistics.num_pairs, statistics.num_correct, included, exact], axis=1).astype(np.int64)
