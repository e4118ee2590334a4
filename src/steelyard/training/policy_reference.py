"""The reference of a policy: where answers begin, and their log-probabilities under the untrained weights."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from steelyard.core.errors import ConfigError
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Case
from steelyard.io.progress import log
from steelyard.networks.answer_tokens import AnswerTokens
from steelyard.networks.conversation import Rendering
from steelyard.networks.reward_network import AnswerReference, PolicyNetwork, Row
from steelyard.networks.scorer import Scorer
from steelyard.training.examples import Example


def answer_starts(cases: Iterable[Case], tokenizer: Any, rendering: Rendering) -> dict[Row, int]:
    """Return where the answer of each row begins, in tokens; rows whose answers are several turns have no entry."""
    answers = AnswerTokens(tokenizer, rendering, with_header=False)
    rows = chain.from_iterable(answers.rows(case) for case in cases)
    # No token can be likely or unlikely before the first one.
    return {row.ids: max(row.start, 1) for row in rows if row is not None and row.start < len(row.ids)}


def store_reference(
    scorer: Scorer, examples: Sequence[Example], starts: dict[Row, int], *, reference_free: bool
) -> None:
    """Store in a policy where answers begin, and their log-probabilities under its untrained weights.

    The reference is the policy before training, so that no second model is kept in memory. Raises ConfigError for an
    answer whose beginning is unknown.
    """
    network: PolicyNetwork = scorer.network
    rows = [row for example in examples for row in example.rows]
    unknown = sum(row not in starts for row in rows)
    if unknown:
        raise ConfigError(
            f"{number_of(unknown, 'answer')} {verb_for(unknown, 'is', 'are')} empty or of several turns: a policy's "
            "answer is one turn",
            where="train",
            do="leave them out, or train a classifier",
        )
    network.references.update({row: AnswerReference(starts[row], 0.0) for row in rows})
    if reference_free:
        return
    with scorer.evaluating():
        rewards = scorer.rewards([example.rows for example in examples])
    logs = (rewards.double() / network.beta).tolist()
    network.references.update({row: AnswerReference(starts[row], value) for row, value in zip(rows, logs, strict=True)})
    log(f"the reference has scored {number_of(len(rows), 'answer')}")
