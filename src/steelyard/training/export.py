"""From trained weights to a model folder: gather, measure, rescale if set, and write with manifest and card."""

import math

import msgspec

from steelyard.core.types import Counts
from steelyard.io.atomic import atomic_write, write_text
from steelyard.io.run_folder import Result
from steelyard.networks.adapters import merge_adapter, saved_adapter
from steelyard.networks.reward_network import RewardNetwork
from steelyard.training.batching import share_in_steps
from steelyard.training.config import HeldOutAccuracy, TrainingSummary
from steelyard.training.distributed import outline_of, shard, unshard
from steelyard.training.held_out import measure_held_out
from steelyard.training.inputs import TrainingInputs
from steelyard.training.memory import undo_modes
from steelyard.training.model_card import CardInputs, model_card
from steelyard.training.reward_reference import MeasuredReference, Rounding, measure_reference, rounding_of
from steelyard.training.saved_model import manifest_of, save_model, to_storage_type
from steelyard.training.trainer import Trainer


def export(trainer: Trainer, inputs: TrainingInputs, result: Result) -> None:
    """Write the model folder, and set counts and summary of the run.

    The weights are measured in their storage type. Where they equal those of the last evaluation, its rewards are used.
    """
    config, world = trainer.config, trainer.world
    network = trainer.gather()
    undo_modes(network)
    is_separate = config.save_adapter == "adapter" and world.is_first
    adapter = saved_adapter(network, base=inputs.model, fingerprint=inputs.fingerprint) if is_separate else None
    if config.adapter is not None:
        merge_adapter(network)
    to_storage_type(network, config.number_type)
    outline = outline_of(network, world=world)
    shard(network, dtype=config.number_type, world=world)
    held_out, reference, rounding = _measure(trainer, network, inputs)
    network = unshard(network, outline, world=world)
    result.counts = _counts(inputs)
    result.summary = _summary(trainer, network, inputs, held_out)
    if world.is_first:
        reference.fold_into(network)
        manifest = manifest_of(network, inputs, config, reference)
        save_model(network, inputs.tokenizer, manifest, result, adapter=adapter)
        source = (inputs.model, inputs.cases.name, inputs.train)
        measures = (held_out, inputs.held_out_file, rounding)
        card = CardInputs(*source, config, manifest, *measures, datasets=result.datasets)
        write_text(result.path("README.md"), model_card(card))
        with atomic_write(result.path("curve.jsonl")) as file:
            for line in trainer.curve:
                file.write(msgspec.json.encode(line) + b"\n")


def _measure(
    trainer: Trainer, network: RewardNetwork, inputs: TrainingInputs
) -> tuple[HeldOutAccuracy | None, MeasuredReference, Rounding | None]:
    """Measure the weights in their storage type."""
    config, scorer = trainer.config, trainer.scorer.with_network(network)
    measured = scored = None
    if inputs.held_out is not None:
        is_stored_as_trained = config.number_type == "float32" and config.adapter is None
        measured = (trainer.final_evaluation() if is_stored_as_trained else None) or measure_held_out(
            scorer, inputs.held_out.examples, scale=inputs.evidence.ratings, title="held-out cases"
        )
        if inputs.reference.is_part_of(inputs.held_out):
            scored = measured.rewards[: len(inputs.reference.examples)]
    is_standardised = config.calibrate_rewards == "standardise"
    reference = measure_reference(
        scorer, inputs.reference, rewards=scored, ratings=inputs.evidence.ratings, is_standardised=is_standardised
    )
    accuracy = None if measured is None else measured.accuracy
    return accuracy, reference, rounding_of(scorer, inputs.reference)


def _counts(inputs: TrainingInputs) -> Counts:
    train = inputs.train
    held_out = inputs.held_out.dropped + inputs.held_out.noted if inputs.held_out else {}
    cut = {
        f"answers over the limit, {language}": counts["num_too_long"]
        for language, counts in train.length.summary().by_language.items()
        if counts["num_too_long"]
    }
    noted = {**train.noted, **cut, **{f"held out: {rule}": number for rule, number in held_out.items()}}
    return Counts(num_in=train.num_in, num_used=len(train.examples), dropped=dict(train.dropped), noted=noted)


def _summary(
    trainer: Trainer, network: RewardNetwork, inputs: TrainingInputs, held_out: HeldOutAccuracy | None
) -> TrainingSummary:
    config, train = trainer.config, inputs.train
    pairs = [[(pair.better, pair.worse) for pair in example.pairs] for example in train.examples]
    epochs = ([step.slots for step in trainer.plan if step.epoch == epoch] for epoch in range(config.epochs))
    shares = [share_in_steps(steps, pairs) for steps in epochs]
    last = [line for line in trainer.curve if "loss" in line][-1]
    return TrainingSummary(
        kernel=trainer.scorer.layout,
        num_steps=len(trainer.plan),
        learning_rate=config.learning_rate,
        prompts_per_step=config.batch_size if config.batching == "whole" else None,
        regulariser=config.weight_of_squares,
        num_prompts=len(train.examples),
        num_responses=train.num_responses,
        num_weights=sum(weight.numel() for weight in network.parameters()),
        num_pairs=train.num_pairs,
        share_of_pairs_kept=math.fsum(shares) / len(shares) * train.num_pairs / max(train.length.num_pairs, 1),
        length=train.length.summary(),
        final_loss=last["loss"],
        held_out=held_out,
        last_step=last["step"],
        num_ratings=train.num_ratings,
    )
