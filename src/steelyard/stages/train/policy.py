"""Implicit reward models: a policy trained on the same pairs, packs and passes (DPO; Rafailov et al., 2023, eq. 7).

The reference is what the training began from: it says once, before the first step, how likely it finds each answer, and
no second model is kept. Many processes divide the asking as they divide any scoring. Without a reference the answers'
own log-probabilities are compared.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import torch
from torch.nn.functional import softplus

from steelyard.core.errors import ConfigError, ModelError
from steelyard.core.types import Case
from steelyard.files.talk import say
from steelyard.methods.training.batching import Step
from steelyard.plugins.models._answer_tokens import AnswerTokens
from steelyard.plugins.models._conversation import Rendering
from steelyard.plugins.models._network import load_causal
from steelyard.plugins.models._policy import Known, PolicyNetwork, Row
from steelyard.stages.train.examples import Example
from steelyard.stages.train.scoring import score_within
from steelyard.stages.train.settings import Config
from steelyard.stages.train.terms import pairs_in

_NEARLY_ZERO = {"float32": 1e-4, "bfloat16": 0.05}
"""How far rounding may move the log-probability of a token."""


def load_policy_network(model: str, config: Config) -> PolicyNetwork:
    """The language model to be trained. Raises ModelError for anything else."""
    policy = load_causal(model, dtype="float32")
    return PolicyNetwork(policy, beta=config.beta, is_mean=config.answer_reduction == "avg")


def answer_starts(cases: Iterable[Case], tokenizer: Any, rendering: Rendering) -> dict[Row, int]:
    """Where the answer of each row begins, by tokens; rows whose answers are several turns have no entry."""
    answers = AnswerTokens(tokenizer, rendering, with_header=False)
    found = chain.from_iterable(answers.rows(case) for case in cases)
    # Nothing can be likely or not before the first token has been seen.
    return {row.ids: max(row.start, 1) for row in found if row is not None and row.start < len(row.ids)}


def ask_reference(
    network: PolicyNetwork, examples: Sequence[Example], starts: dict[Row, int], config: Config, *, is_packed: bool
) -> None:
    """Tell the network where answers begin, and what its own weights, untrained, say of each of them.

    Raises ConfigError for an answer whose beginning is not known.
    """
    rows = [row for example in examples for row in example.rows]
    unknown = sum(row not in starts for row in rows)
    if unknown:
        raise ConfigError(
            f"{unknown} answers are empty or of several turns: a policy's answer is one turn",
            where="train",
            do="leave them out, or train a classifier",
        )
    network.know({row: Known(starts[row], 0.0) for row in rows})
    if config.reference_free:
        return
    was_training = network.training
    network.eval()
    found = score_within(network, [example.rows for example in examples], config, is_packed=is_packed)
    network.train(was_training)
    logs = (found.double() / network.beta).tolist()
    network.know({row: Known(starts[row], log) for row, log in zip(rows, logs, strict=True)})
    say(f"the reference has said how likely it finds {len(rows):,} answers")


def check_beginning(
    network: PolicyNetwork, slots: Step, examples: Sequence[Example], config: Config, *, is_packed: bool
) -> float:
    """The mean loss of the first step's pairs before training.

    Raises ModelError where a policy that is its own reference rewards an answer, or sees no difference between two.
    """
    pairs = pairs_in(slots, examples)
    assert pairs is not None, "steps without a pair are left out of the plan"
    prompts = list(dict.fromkeys(slot.prompt for slot in slots))
    rows = [tuple(examples[slot.prompt].rows[slot.response] for slot in slots if slot.prompt == one) for one in prompts]
    was_training = network.training
    network.eval()
    rewards = score_within(network, rows, config, is_packed=is_packed).double().cpu()
    network.train(was_training)
    if not torch.isfinite(rewards).all():
        raise ModelError("the model's probabilities are not finite on the first step", do="use --set dtype=float32")
    largest = float(rewards.abs().max())
    if not config.reference_free and largest > _NEARLY_ZERO[config.dtype] * config.beta * max(map(len, sum(rows, ()))):
        raise ModelError(f"a policy that is its own reference rewards an answer by {largest:.4f}", do="report this")
    behind = rewards[pairs.worse] - rewards[pairs.better] + pairs.margin
    return float((softplus(behind) * pairs.weight).sum() / pairs.weight.sum())
