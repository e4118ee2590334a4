"""The same trainings in one process or in several, for the test that compares them.

Each process runs this as a script; the first writes its results to a file.
"""

import json
import sys
from pathlib import Path

import msgspec
import torch

import packed_models
from steelyard.core.errors import ConfigError, ModelError, UserError
from steelyard.networks.adapters import merge_adapter, saved_adapter
from steelyard.networks.devices import LOCAL
from steelyard.networks.loading import load_network
from steelyard.networks.ratings import IndexedRating
from steelyard.networks.scorer import Scorer
from steelyard.training.checkpoints import Checkpoint, load_checkpoint, save_checkpoint, state_of
from steelyard.training.config import Config
from steelyard.training.distributed import load_on_first, outline_of, process_group, shard, unshard
from steelyard.training.held_out import measure, rewards_of
from steelyard.training.memory import compile_parts, set_recompute
from steelyard.training.optimiser import make_optimiser
from steelyard.training.policy_reference import store_reference
from steelyard.training.trained_network import prepare_network
from steelyard.training.trainer import Callback, Trainer
from training_examples import answers, network, policy

PROMPT = tuple(range(7, 30))
EXAMPLES = tuple(
    answers(
        PROMPT[index:], (20 + index,), tuple(range(40, 45 + index)), (60, 61 + index), pairs=[(0, 1), (1, 2), (0, 2)]
    )
    for index in range(5)
)
RATED = tuple(
    one._replace(ratings=tuple(IndexedRating(place, index - 2.0 + place, 1.0 + index) for place in (0, 2)))
    for index, one in enumerate(EXAMPLES)
)
BASE = Config(epochs=1, batch_size=3, learning_rate=1e-2, max_grad_norm=0.5)
SETTINGS = {
    "plain": {"epochs": 2},
    "many chunks, by prompt": {"tokens_per_forward": 64, "reduction": "prompt"},
    "two passes, steps of tokens": {"tokens_per_forward": 30, "batching": "packed", "tokens_per_step": 90},
    "padded": {"kernel": "padded", "tokens_per_forward": 90},
    "padded, two passes": {"kernel": "padded", "tokens_per_forward": 40},
    "fewer prompts than processes": {"batch_size": 1},
    "answers apart, a learned number": {"batching": "greedy", "responses_per_step": 5, "loss": "davidson"},
    "the head alone": {"trainable": "head"},
    "lora": {"adapter": "lora", "adapter_rank": 4, "epochs": 2, "save_adapter": "adapter"},
    "dora, two passes, layers again": {
        "adapter": "dora", "adapter_rank": 3, "adapter_layers": "q_proj", "tokens_per_forward": 30,
        "gradient_checkpointing": "layers", "save_adapter": "adapter",
    },
    "a policy": {"kind": "implicit", "epochs": 2, "regulariser": 0.01},
    "a policy of means, its head the words, padded, two passes": {
        "kind": "implicit", "answer_reduction": "avg", "kernel": "padded", "tokens_per_forward": 40,
        "gradient_checkpointing": "mlp",
    },
    "a policy without a reference, a learned number": {
        "kind": "implicit", "reference_free": True, "tokens_per_forward": 30, "loss": "rao-kupper",
    },
    "ratings and pairs, a learned factor, two passes": {
        "loss": "mean-squared-error", "pair_weight": 0.5, "tokens_per_forward": 30, "epochs": 2,
    },
    "norms and feed-forward parts again": {"gradient_checkpointing": "mlp", "tokens_per_forward": 64},
    "bfloat16": {"dtype": "bfloat16"},
    "bfloat16, an adapter": {"dtype": "bfloat16", "adapter": "lora"},
}  # fmt: skip


class StopAfter(Callback):
    """Write a checkpoint after a step, and stop."""

    def __init__(self, step, folder):
        self.step, self.folder = step, folder

    def after_step(self, trainer, record):
        if record.step == self.step:
            trainer.save(self.folder, record.step)
        return record.step != self.step


def trained(name, *, start=None, stop_after=None, folder=None, world=LOCAL):
    """Return the curve, the whole weights, the rewards and the final measurements."""
    config = Config(**{**_fields(BASE), **SETTINGS[name]})
    model = load_on_first(lambda: _made(config), world=world)
    prepare_network(model, config)
    outline = outline_of(model, world=world)
    trainer = Trainer(model, RATED if config.reads_ratings else EXAMPLES, config, world=world)
    if config.compile:
        assert compile_parts(model)
    set_recompute(model, "none" if config.gradient_checkpointing == "auto" else config.gradient_checkpointing)
    shard(model, dtype=config.number_type, world=world)
    if config.kind == "implicit":
        starts = {row: len(PROMPT) - index for index, one in enumerate(EXAMPLES) for row in one.rows}
        store_reference(trainer.scorer, EXAMPLES, starts, reference_free=config.reference_free)
    curve = [list(line.values()) for line in trainer.run([StopAfter(stop_after, folder)], start=start)]
    rewards = trainer.scorer.rewards([one.rows for one in EXAMPLES])
    measured = msgspec.to_builtins(measure(rewards_of(trainer.scorer, EXAMPLES), EXAMPLES))
    model = unshard(model, outline, world=world)
    weights = {key: weight.detach().clone() for key, weight in model.named_parameters()}
    if config.save_adapter == "adapter" and world.is_first:
        weights |= saved_adapter(model, base="base", fingerprint="").weights
        merge_adapter(model)
        weights |= {f"merged {key}": weight.detach() for key, weight in model.named_parameters()}
    return {"curve": curve, "weights": weights, "rewards": rewards, "measured": measured}


def everything(folder, world=LOCAL):
    """Run all trainings, and one that stops after its second step and is resumed."""
    folder.mkdir(exist_ok=True)
    found = {name: trained(name, world=world) for name in SETTINGS}
    trained("plain", stop_after=2, folder=folder, world=world)
    found["families"] = {kind: rewards_of_family(kind, world) for kind in ("gemma3_text", "llama", "qwen3_moe")}
    found["gone on"] = trained("plain", start=load_checkpoint(folder, world=world), world=world)
    return found


def _made(config):
    if config.kind == "implicit":
        is_mean = config.answer_reduction == "avg"
        return policy(is_tied=is_mean, is_mean=is_mean)
    return network(double=config.number_type == "float32")


def rewards_of_family(kind, world):
    """Return rewards of a family with other buffers, norms or experts."""
    model = load_on_first(lambda: packed_models.network(kind, torch.float32), world=world)
    return Scorer(shard(model, dtype="float32", world=world), world=world).rewards([EXAMPLES[0].rows])


def refusal(world):
    """Return the error of each process when the first finds no model to load."""

    def load():
        raise ModelError("no model")

    try:
        load_on_first(load, world=world)
    except UserError as error:
        return str(error)


def peak_of_loading(path, world=LOCAL):
    """Return the whole weights after loading, sharding and gathering, and the peak in bytes."""
    before = _new_peak()
    model = load_on_first(lambda: load_network(str(path), dtype="float32")[0], world=world)
    outline = outline_of(model, world=world)
    shard(model, dtype="float32", world=world)
    peak = _memory("VmHWM") - before
    weights = dict(unshard(model, outline, world=world).named_parameters())
    return peak, {name: weight.detach().clone() for name, weight in weights.items() if not weight.is_meta}


def peak_of_saving(path, world):
    """Return the peak in bytes while a checkpoint of a model and its moments is written."""
    model = load_on_first(lambda: load_network(str(path), dtype="float32")[0], world=world)
    shard(model, dtype="float32", world=world)
    optimiser = make_optimiser(model, BASE, world=world)
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    optimiser.step()
    optimiser.zero_grad()
    before = _new_peak()
    save_checkpoint(path, Checkpoint(state_of(model, optimiser, 1), [], None), world=world)
    return _memory("VmHWM") - before


def _new_peak():
    """Reset the peak to the memory in use."""
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _memory(name):
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[name].split()[0]) * 1024


def _fields(config):
    return {name: getattr(config, name) for name in config.__struct_fields__}


def all_that_one_does(work, processes):
    """Return the results of `everything`, and those that only several processes have."""
    result = everything(work / "many", processes)
    own, weights = peak_of_loading(work / "large", processes)
    result["loaded"] = {
        "peaks": processes.all_gather(own),
        "named": processes.all_gather(len(weights)),
        "weights": weights,
    }
    result["peaks of saving"] = processes.all_gather(peak_of_saving(work / "large", processes))
    result["refused"] = processes.all_gather(refusal(processes))
    result["gone on elsewhere"] = trained(
        "plain", start=load_checkpoint(work / "one", world=processes), world=processes
    )
    try:
        make_optimiser(network(), Config(learning_rate=0.5, optimiser="adamw-8bit"), world=processes)
    except ConfigError as error:
        result["8 bits"] = str(error)
    if processes.is_first:
        torch.save(result, work / "many.pt")


def compiled(work, processes):
    """Return the losses of a training with compiled layers, and without."""
    SETTINGS["compiled"] = {"compile": True, "tokens_per_forward": 64}
    SETTINGS["not compiled"] = {"tokens_per_forward": 64}
    found = {
        name: [point[2] for point in trained(name, world=processes)["curve"]] for name in ("compiled", "not compiled")
    }
    if processes.is_first:
        (work / "compiled.json").write_text(json.dumps(found))


if __name__ == "__main__":
    with process_group() as together:
        (compiled if "compiled" in sys.argv else all_that_one_does)(Path(sys.argv[1]), together)
