"""Accuracy and exact match on held-out cases while training, by the one implementation of the measures."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case
from steelyard.methods.measures.accuracy import exact_matches, prompt_statistics
from steelyard.plugins.models._network import RewardNetwork
from steelyard.stages.train.examples import Example
from steelyard.stages.train.loop import is_packed
from steelyard.stages.train.passes import score_within
from steelyard.stages.train.settings import Config


def measure(network: RewardNetwork, examples: Sequence[Example], config: Config) -> dict[str, Any]:
    """Micro accuracy (over pairs) and exact match (over prompts), with their counts."""
    was_training = network.training
    network.eval()
    packed = is_packed(network, config)
    found = score_within(network, [example.rows for example in examples], config, is_packed=packed).double().cpu()
    network.train(was_training)
    scores = [one.numpy() for one in found.split([len(example.rows) for example in examples])]
    prompt = np.array([index for index, example in enumerate(examples) for _ in example.pairs], np.int64)
    pairs = [(own, pair) for own, example in zip(scores, examples, strict=True) for pair in example.pairs]
    better = np.array([own[pair.better] for own, pair in pairs])
    worse = np.array([own[pair.worse] for own, pair in pairs])
    statistics = prompt_statistics(prompt, better, worse, len(examples))
    return {
        "accuracy": float(statistics.num_correct.sum() / statistics.num_pairs.sum()),
        "exact_match": float(exact_matches(statistics).mean()),
        "num_pairs": int(statistics.num_pairs.sum()),
        "num_prompts": len(examples),
    }


def check_apart(train: Sequence[Case], held_out: Sequence[Case], *, where: str) -> None:
    """Raises EvidenceError when a held-out conversation stands in the training data too."""
    seen = {case.prompt.messages for case in train}
    shared = [case.prompt.id for case in held_out if case.prompt.messages in seen]
    if shared:
        raise EvidenceError(
            f"{len(shared)} of {len(held_out)} held-out prompts are in the training data, the first: {shared[0]!r}",
            where=where,
            do="split by prompt (steelyard split), or say --allow-overlap",
        )
