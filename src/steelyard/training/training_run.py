"""A training from its inputs to the model folder: start or continue, check, train, keep the best weights, export."""

from steelyard.core.text import number_of
from steelyard.io.progress import log, log_detail
from steelyard.io.run_folder import Result
from steelyard.networks.devices import World
from steelyard.networks.reward_network import PolicyNetwork
from steelyard.training.callbacks import run_callbacks
from steelyard.training.checkpoints import load_checkpoint, remove_checkpoint
from steelyard.training.config import Config, with_defaults
from steelyard.training.diagnostics import first_tokens, step_findings
from steelyard.training.export import export
from steelyard.training.held_out import held_out_findings
from steelyard.training.inputs import TrainingInputs
from steelyard.training.policy_reference import store_reference
from steelyard.training.trainer import Trainer


def run_training(result: Result, inputs: TrainingInputs, config: Config, world: World) -> None:
    """Train on the inputs, and write model and findings into the folder, where an interrupted training continues.

    Raises ModelError for a training that cannot succeed, and what the callbacks raise.
    """
    examples, held_out = inputs.train.examples, inputs.held_out.examples if inputs.held_out else ()
    num_weights = sum(weight.numel() for weight in inputs.network.parameters())
    config = with_defaults(config, num_weights=num_weights, num_prompts=len(examples))
    size = f"batch_size {config.batch_size}" if config.batching == "whole" else f"batching {config.batching}"
    pairs, ratings = inputs.train.num_pairs, inputs.train.num_ratings
    evidence = " and ".join(number_of(*each) for each in ((ratings, "rating"), (pairs, "pair")) if each[0])
    log(
        f"training ({config.adapter or config.trainable}, {num_weights / 1e6:,.0f} M weights): "
        f"{evidence} of "
        f"{number_of(len(examples), 'prompt')}, learning_rate {config.learning_rate:g}, {size}, epochs {config.epochs}"
    )
    trainer = Trainer(inputs.network, examples, config, held_out=held_out, scale=inputs.evidence.ratings, world=world)
    trainer.distribute()
    checkpoint = load_checkpoint(result.folder, world=world)
    reason = trainer.scorer.layout_reason
    log_detail(
        f"each answer is a padded row of its own ({reason})" if reason else "a prompt is computed once for all answers"
    )
    if isinstance(inputs.network, PolicyNetwork):
        scored = (*examples, *held_out, *inputs.reference.examples)
        store_reference(trainer.scorer, scored, inputs.starts, reference_free=config.reference_free)
    if config.preflight and checkpoint is None:
        log_detail(trainer.check())
        log_detail(first_tokens(examples[trainer.plan[0].slots[0].prompt], inputs.tokenizer))
    shown = {**result.request.config, "num_pairs": inputs.train.num_pairs, "num_prompts": len(examples)}
    with (
        trainer.cached_features() as is_cached,
        run_callbacks(trainer, result.folder, start=checkpoint, settings=shown, is_cached=is_cached) as callbacks,
    ):
        trainer.run(callbacks, start=checkpoint)
    best = trainer.keep_best()
    if best is not None:
        log(f"the weights of step {best.step} are kept: held-out {config.metric} {best.value:.3f}")
    export(trainer, inputs, result)
    findings = (*inputs.findings, *step_findings(trainer.plan, examples, config.reduction))
    result.findings = (*findings, *held_out_findings(result.summary.held_out))
    remove_checkpoint(result.folder, world=world)
