"""From trained weights to a model folder: gather, measure, rescale if set, and write with manifest and README.

The text of the README is in ``templates/model_card.md.jinja``. Names come from users' files and may hold any character:
none of them may end a table, a heading, or the YAML at the top.
"""

import json
import math
import re
import shutil
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import msgspec
import torch

from steelyard.core.numerics import Floats
from steelyard.core.types import Counts, InputFinding, JsonObject
from steelyard.io.atomic import atomic_write, move_into_place, write_text
from steelyard.io.progress import log_detail
from steelyard.io.run_folder import Result, installed_versions
from steelyard.io.tables import is_parquet
from steelyard.networks.adapters import SavedAdapter, merge_adapter, saved_adapter, write_adapter
from steelyard.networks.conversation import Rendering, add_no_marks, set_limit
from steelyard.networks.loading import quiet
from steelyard.networks.reward_network import PolicyNetwork, RewardNetwork
from steelyard.networks.settings import (
    Manifest,
    PolicySettings,
    RewardReference,
    RewardScale,
    TargetScale,
    write_manifest,
)
from steelyard.training.batching import share_in_steps
from steelyard.training.checkpoints import translate_disk_full
from steelyard.training.config import Config, GroupAccuracy, HeldOutAccuracy, TrainingSummary
from steelyard.training.distributed import outline_of, shard, unshard
from steelyard.training.examples import Examples
from steelyard.training.held_out import (
    ReferenceSet,
    Rounding,
    fold_scale,
    in_unit_of_ratings,
    measure,
    reward_reference,
    rewards_of,
    rounding_of,
    standardise,
)
from steelyard.training.memory import undo_modes
from steelyard.training.optimiser import loss_parameter
from steelyard.training.trainer import Trainer

_SAVING = ".saving-"
_SIGNS = re.compile(r"([\\`*_{}\[\]()#+!|~$:>\-.=])")
_TASKS = {"classifier": "text-classification", "implicit": "text-generation"}
_LANGUAGE = re.compile(r"([a-z]{2,3})(?:[-_].*)?")
_SETTINGS = (
    "kind", "loss", "dimensions", "rating_center", "pair_weight", "reduction", "weight_of_squares", "centring",
    "label_smoothing", "epochs", "learning_rate", "batch_size", "warmup_ratio", "schedule", "weight_decay", "batching",
    "trainable", "seed",
)  # fmt: skip


class TrainingInputs(NamedTuple):
    """The inputs of a training: the model and its name, the rendering, and the examples of each role.

    ``data_hash`` is that of the file of cases. ``fingerprint`` identifies the backbone before training, the base of an
    adapter; the first process alone has it. ``starts`` has the start of the answer in each of a policy's rows.
    ``findings`` are those of the cases, ``ratings`` the scale of those that are trained on.
    """

    model: str
    cases: Path
    data_hash: str
    tokenizer: Any
    rendering: Rendering
    network: RewardNetwork
    train: Examples
    held_out: Examples | None
    held_out_file: str | None
    reference: ReferenceSet
    fingerprint: str
    starts: dict[tuple[int, ...], int]
    findings: tuple[InputFinding, ...] = ()
    ratings: TargetScale | None = None


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
    held_out, reference, scale, rounding = _measure(trainer, network, inputs)
    network = unshard(network, outline, world=world)
    result.counts = _counts(inputs)
    result.summary = _summary(trainer, network, inputs, held_out)
    if world.is_first:
        fold_scale(network, scale)
        if inputs.ratings is not None and inputs.ratings.link == "identity":
            fold_scale(network, RewardScale(scale=inputs.ratings.spread, shift=inputs.ratings.mean))
        manifest = _manifest(network, inputs, config, reference, scale)
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
) -> tuple[HeldOutAccuracy | None, RewardReference | None, RewardScale | None, Rounding | None]:
    """Measure the weights in their storage type."""
    config, scorer = trainer.config, trainer.scorer.with_network(network)
    rewards: list[Floats] | None = None
    if inputs.held_out is not None:
        is_stored_as_trained = config.number_type == "float32" and config.adapter is None
        rewards = trainer.final_rewards() if is_stored_as_trained else None
        rewards = rewards or rewards_of(scorer, inputs.held_out.examples, title="held-out cases")
    held_out = None
    if inputs.held_out is not None and rewards is not None:
        held_out = measure(rewards, inputs.held_out.examples, scale=inputs.ratings)
    is_scored = rewards is not None and inputs.held_out is not None and inputs.reference.is_part_of(inputs.held_out)
    scored = rewards[: len(inputs.reference.examples)] if rewards is not None and is_scored else None
    reference, calibration = reward_reference(scorer, inputs.reference, rewards=scored), None
    if inputs.ratings is not None:
        reference = in_unit_of_ratings(reference, inputs.ratings)
    if reference is not None and config.calibrate_rewards == "standardise":
        reference, calibration = standardise(reference)
    if reference is not None:
        log_detail(f"rewards of {reference.name}: mean {reference.mean:.3f}, standard deviation {reference.spread:.3f}")
    return held_out, reference, calibration, rounding_of(scorer, inputs.reference)


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


def _manifest(
    network: RewardNetwork,
    inputs: TrainingInputs,
    config: Config,
    reference: RewardReference | None,
    scale: RewardScale | None,
) -> Manifest:
    policy = PolicySettings(
        beta=config.beta, is_reference_free=config.reference_free, reduction=config.answer_reduction
    )
    return Manifest(
        rendering=inputs.rendering,
        template_hash=inputs.rendering.template_hash,
        dtype=config.number_type,
        base_model=Path(inputs.model).name,
        data_hash=inputs.data_hash,
        versions=installed_versions(),
        loss=config.loss,
        tie=loss_parameter(network, config),
        reference=reference,
        calibration=scale,
        kind=config.kind,
        policy=policy if config.kind == "implicit" else None,
        ratings=inputs.ratings,
    )


def save_model(
    network: RewardNetwork,
    tokenizer: Any,
    manifest: Manifest,
    result: Result,
    *,
    adapter: SavedAdapter | None = None,
) -> None:
    """Write weights, configuration, tokenizer with its template, and manifest into the result folder.

    With a separate adapter only its weights and those of the head are written.
    """
    classifier = network.classifier
    if manifest.kind == "classifier":
        classifier.config.num_labels = 1
        # Serving engines squash the one logit of a classifier by a sigmoid unless its problem is named a regression.
        classifier.config.problem_type = "regression"
        classifier.config.pad_token_id = pad_id(tokenizer)
    tokenizer.chat_template = manifest.rendering.template
    if manifest.kind == "classifier":
        add_no_marks(tokenizer)
    set_limit(tokenizer, manifest.rendering)
    for remains in result.folder.glob(f"{_SAVING}*"):  # of a run that was killed while it was saving
        shutil.rmtree(remains)
    saving = tempfile.TemporaryDirectory(dir=result.folder, prefix=_SAVING)
    with translate_disk_full(result.folder), saving as name:
        folder = Path(name)
        if adapter is not None:
            write_adapter(folder, adapter, network.head)
        else:
            with quiet():
                classifier.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        write_manifest(folder, manifest)
        for path in sorted(folder.iterdir()):
            move_into_place(path, result.path(path.name))


def pad_id(tokenizer: Any) -> int | None:
    """Return the padding token for loaders that find the last token by it; null where it also ends texts.

    With such a token transformers would read the reward one token too early.
    """
    if tokenizer.pad_token_id is not None and tokenizer.pad_token_id != tokenizer.eos_token_id:
        return tokenizer.pad_token_id
    return None


def to_storage_type(network: RewardNetwork, dtype: str) -> None:
    """Convert the backbone to its storage type; a head stays in float32, a policy has none."""
    module = network.classifier if isinstance(network, PolicyNetwork) else network.backbone
    module.to(getattr(torch, dtype))


class CardInputs(NamedTuple):
    """The inputs of a card: the model's folder or hub name, the files of cases, settings, manifest and measures.

    ``datasets`` are names on the Hub of the data sets that the training cases come from.
    """

    model: str
    file_name: str
    examples: Examples
    config: Config
    manifest: Manifest
    held_out: HeldOutAccuracy | None = None
    held_out_file: str | None = None
    rounding: Rounding | None = None
    datasets: tuple[str, ...] = ()


def model_card(card: CardInputs) -> str:
    """Return the card in Markdown, with the YAML that model hubs read."""
    examples = card.examples
    notes = [
        *(("length", sentence) for sentence in examples.length.sentences()),
        *((f"dropped: {rule}", number) for rule, number in sorted(examples.dropped.items())),
        *((f"noted: {rule}", number) for rule, number in sorted(examples.noted.items())),
    ]
    return _template().render(
        **card._asdict(),
        name=Path(card.model).name,
        front=_front(card),
        notes=notes,
        settings=[
            (setting, getattr(card.config, setting))
            for setting in _SETTINGS
            if card.config.reads_ratings or setting not in ("dimensions", "rating_center", "pair_weight")
        ],
        number_of=_number_of,
        interval_of=_interval_of,
        percent="{:.2%}".format,
    )


@cache
def _template() -> jinja2.Template:
    loader = jinja2.PackageLoader("steelyard.training")
    environment = jinja2.Environment(loader=loader, keep_trailing_newline=True, autoescape=False)
    environment.filters |= {"plain": escaped, "json": partial(json.dumps, ensure_ascii=False)}
    return environment.get_template("model_card.md.jinja")


def escaped(value: Any) -> str:
    """Return a value as plain Markdown text on one line, whatever signs are in it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _SIGNS.sub(r"\\\1", _one_line(text).replace("&", "&amp;").replace("<", "&lt;"))


def _one_line(text: str) -> str:
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _number_of(number: int, total: int) -> int | str:
    """Return the number, with its share of the total where it is less."""
    return number if number == total else f"{number:,} of {total:,} ({number / total:.1%})"


def _interval_of(group: GroupAccuracy | HeldOutAccuracy) -> str:
    """Return the interval of an accuracy; nothing for one prompt."""
    return "" if group.interval is None else f"{group.interval[0]:.4f} to {group.interval[1]:.4f}"


def _front(card: CardInputs) -> JsonObject:
    """Return the keys of the YAML, by the Hub's specification; their values are written as JSON, which YAML contains.

    No licence: that of the model is not known. ``datasets`` has the names that the records of the cases carry.
    """
    keys: JsonObject = {"library_name": "transformers", "pipeline_tag": _TASKS[card.config.kind]}
    base = _hub_id(card.model)
    if base is not None:
        keys["base_model"] = base
        keys["base_model_relation"] = "adapter" if card.config.save_adapter == "adapter" else "finetune"
    if card.datasets:
        keys["datasets"] = list(card.datasets)
    codes = (_LANGUAGE.fullmatch(example.language or "") for example in card.examples.examples)
    if languages := sorted({code[1] for code in codes if code}):
        keys["language"] = languages
    keys["tags"] = ["reward-model", "steelyard"]
    if card.held_out is not None:
        keys["model-index"] = [_results(card, card.held_out)]
    return keys


def _hub_id(model: str) -> str | None:
    """Return the hub's name of a model, or its folder's; null for a folder whose name the Hub would refuse."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    name = model
    if Path(model).exists():
        *_, cached, kind, name = ("", "", *Path(model).absolute().parts)
        if kind == "snapshots" and cached.startswith("models--"):  # a folder of the Hub library's cache
            name = cached.removeprefix("models--").replace("--", "/")
    try:
        validate_repo_id(name)
    except HFValidationError:
        return None
    return name


def _results(card: CardInputs, held_out: HeldOutAccuracy) -> JsonObject:
    """Return the held-out accuracy as an entry of ``model-index``, from which the Hub shows results."""
    file = Path(card.held_out_file or "")
    between = "" if held_out.interval is None else f"95% interval {_interval_of(held_out)}, "
    number = f"{between}n = {held_out.num_pairs:,} pairs of {held_out.num_prompts:,} prompts"
    is_selected = card.config.keep == "best" or card.config.patience > 0
    selected = "; training was stopped or its weights selected by it" if is_selected else ""
    # A local file has no name on the Hub: its type is that of the loader in `datasets` that reads it.
    dataset = {"type": "parquet" if is_parquet(file) else "json", "name": _one_line(f"held out: {file.name}")}
    metric = {"type": "accuracy", "value": round(held_out.accuracy, 4), "name": f"accuracy ({number}{selected})"}
    result = {"task": {"type": _TASKS[card.config.kind]}, "dataset": dataset, "metrics": [metric]}
    return {"name": _one_line(f"A reward model from {Path(card.model).name}"), "results": [result]}
