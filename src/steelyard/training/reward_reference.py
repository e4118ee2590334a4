"""The reference set of a model: mean and spread of its rewards, their rounding, and the scale folded into the head."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch

from steelyard.core.errors import EvidenceError, ModelError
from steelyard.core.numerics import Floats
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Case
from steelyard.io.hashing import file_hash
from steelyard.io.progress import log_detail
from steelyard.networks.conversation import Rendering, encode
from steelyard.networks.devices import device_memory, fits
from steelyard.networks.reward_network import PolicyNetwork, RewardNetwork
from steelyard.networks.scorer import Scorer
from steelyard.networks.settings import RewardReference, RewardScale, TargetScale
from steelyard.training.examples import Example, Examples
from steelyard.training.held_out import rewards_of

_NUM_ROUNDED = 8


class ReferenceSet(NamedTuple):
    """The answers whose rewards the manifest describes: name and hash of their source, and their token ids."""

    name: str
    data_hash: str
    examples: tuple[Example, ...]

    def is_part_of(self, examples: Examples) -> bool:
        """Return whether it is the beginning of these examples, whose rewards then include its rewards."""
        return bool(self.examples) and self.examples == examples.examples[: len(self.examples)]


def first_prompts(examples: Examples, path: Path, num_prompts: int, *, role: str) -> ReferenceSet:
    """Return the reference set where no file is named: the first prompts of the held-out or training file."""
    return ReferenceSet(f"{role}: {path.name}", file_hash(path), examples.examples[:num_prompts])


def all_answers(cases: Sequence[Case], tokenizer: Any, rendering: Rendering, *, where: str) -> tuple[Example, ...]:
    """Encode all answers within the limit, also those in no pair. Raises EvidenceError where there is none."""
    examples = []
    for case in cases:
        encoded = [encode(tokenizer, rendering, case, response) for response in case.responses]
        rows = tuple(answer.ids for answer in encoded if not answer.is_over_length or rendering.cuts)
        if rows:
            examples.append(Example(rows, (), name=case.prompt.id))
    if not examples:
        raise EvidenceError("no answer for the reference of rewards", where=where, do="name a file with answers")
    return tuple(examples)


def reward_reference(
    scorer: Scorer, reference: ReferenceSet, *, rewards: Sequence[Floats] | None = None
) -> RewardReference | None:
    """Return mean and spread of the set's rewards by this network; null for an empty set.

    ``rewards`` are those of the set's examples where they are known already. Raises ModelError where one is not finite.
    """
    if not reference.examples:
        return None
    rewards = rewards or rewards_of(scorer, reference.examples, title="rewards of the reference set")
    flat: Floats = np.concatenate(rewards)
    if not np.isfinite(flat).all():
        raise ModelError(
            "the trained model gives rewards that are not finite", do=Advice("lower ", Remedy("learning_rate"))
        )
    within = np.concatenate([values - values.mean() for values in rewards])
    return RewardReference(
        name=reference.name,
        data_hash=reference.data_hash,
        num_prompts=len(rewards),
        num_rewards=len(flat),
        mean=float(flat.mean()),
        spread=float(flat.std()),
        spread_within=float(np.sqrt((within**2).mean())),
    )


class Rounding(NamedTuple):
    """The distance between rewards in bfloat16 and in float32, as shares of the spread of the rewards."""

    num_rewards: int
    typical: float
    most: float


def rounding_of(scorer: Scorer, reference: ReferenceSet) -> Rounding | None:
    """Measure the rounding error of bfloat16 in the rewards of a few answers; the network is not changed.

    Null for a float32 model, a policy, many processes, or a model whose float32 weights would not fit in memory.
    """
    network: RewardNetwork = scorer.network
    size = 4 * sum(weight.numel() for weight in network.parameters())
    is_measured = scorer.is_autocast and not isinstance(network, PolicyNetwork) and scorer.world.is_alone
    if not is_measured or not reference.examples or not fits(2 * size, device_memory()):
        return None
    examples = reference.examples[:_NUM_ROUNDED]
    rounded = np.concatenate(rewards_of(scorer, examples))
    network.backbone.float()
    try:
        exact = np.concatenate(rewards_of(scorer.with_network(network, is_autocast=False), examples))
    finally:
        network.backbone.to(torch.bfloat16)  # exact: these values came from bfloat16
    spread = float(exact.std())
    if not spread > 0:
        return None
    distances = (rounded - exact) / spread
    return Rounding(len(distances), float(np.sqrt((distances**2).mean())), float(np.abs(distances).max()))


def standardise(reference: RewardReference) -> tuple[RewardReference, RewardScale]:
    """Return the reference with a spread of 1, and the scale and shift that achieve it.

    Raises ModelError where all rewards are equal.
    """
    if not reference.spread > 0:
        raise ModelError("all rewards of the reference set are equal", do="leave calibrate_rewards out")
    scale = 1 / reference.spread
    mean, within = reference.mean * scale, reference.spread_within * scale
    scaled = msgspec.structs.replace(reference, mean=mean, spread=1.0, spread_within=within)
    return scaled, RewardScale(scale=scale, shift=-mean)


def fold_scale(network: RewardNetwork, calibration: RewardScale | None) -> None:
    """Multiply the head by the scale: every engine that loads the model gives the scaled reward."""
    if calibration is not None:
        with torch.no_grad():
            for weight in network.head.parameters():
                weight.mul_(calibration.scale)


class MeasuredReference(NamedTuple):
    """The rewards of a reference set as the saved head gives them, and the scales that this head includes."""

    rewards: RewardReference | None
    calibration: RewardScale | None
    ratings: TargetScale | None

    def fold_into(self, network: RewardNetwork) -> None:
        """Put the calibration, and the spread of ratings that were learned as they are, into the head."""
        fold_scale(network, self.calibration)
        if self.ratings is not None and self.ratings.link == "identity":
            fold_scale(network, RewardScale(scale=self.ratings.spread, shift=self.ratings.mean))


def measure_reference(
    scorer: Scorer,
    reference: ReferenceSet,
    *,
    rewards: Sequence[Floats] | None,
    ratings: TargetScale | None,
    is_standardised: bool,
) -> MeasuredReference:
    """Measure the rewards of the set, in the unit of the ratings or with a spread of 1. Raises ModelError as these do.

    ``rewards`` are those of the set's examples where they are known already.
    """
    measured, calibration = reward_reference(scorer, reference, rewards=rewards), None
    if measured is not None and ratings is not None and ratings.link == "identity":
        mean, spread = measured.mean * ratings.spread, measured.spread * ratings.spread
        within = measured.spread_within * ratings.spread
        measured = msgspec.structs.replace(measured, mean=mean, spread=spread, spread_within=within)
    if measured is not None and is_standardised:
        measured, calibration = standardise(measured)
    if measured is not None:
        log_detail(f"rewards of {measured.name}: mean {measured.mean:.3f}, standard deviation {measured.spread:.3f}")
    return MeasuredReference(measured, calibration, ratings)
