"""Which case it was: when a loss is no number, the prompts whose rewards are none."""

from collections.abc import Sequence

import torch

from steelyard.core.errors import ModelError
from steelyard.methods.training.batching import Step
from steelyard.plugins.models._reward_network import RewardNetwork
from steelyard.stages.train.examples import Example
from steelyard.stages.train.scoring import score_within
from steelyard.stages.train.settings import Config

_NUM_NAMED = 3


def loss_error(loss: float, step: int, guilty: Sequence[str], num_prompts: int) -> ModelError:
    """What to say of a loss that is no number: the ``guilty`` cases of the step's prompts, or the rate.

    Where no case alone makes it so, or every one does, the weights themselves are at fault.
    """
    found = f"the loss is {loss} at step {step}"
    if not guilty or len(guilty) == num_prompts > 1:
        return ModelError(found, do="lower --learning-rate; the last checkpoint is as it was")
    named = ", ".join(guilty[:_NUM_NAMED])
    more = f" and {len(guilty) - _NUM_NAMED} more" if len(guilty) > _NUM_NAMED else ""
    found += f": no finite reward for {named}{more} (of {num_prompts} prompts in the step)"
    return ModelError(found, do="look at it: steelyard inspect CASES --id ID; take it out, or --set dtype=float32")


def unscorable(
    slots: Step, network: RewardNetwork, examples: Sequence[Example], config: Config, *, is_packed: bool
) -> list[str]:
    """The names of the step's prompts of which a reward is no number, in the order of the step."""
    guilty: list[str] = []
    for prompt in dict.fromkeys(slot.prompt for slot in slots):
        rows = tuple(examples[prompt].rows[slot.response] for slot in slots if slot.prompt == prompt)
        if not torch.isfinite(score_within(network, [rows], config, is_packed=is_packed)).all():
            guilty.append(repr(examples[prompt].name or f"prompt {prompt}"))
    return guilty
