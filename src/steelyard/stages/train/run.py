"""One training run from a case file to a model folder."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch

from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case, Counts, Run
from steelyard.files.atomic import written
from steelyard.files.cases import read_cases
from steelyard.files.results import Result, file_hash, installed_versions, read_run, result_folder
from steelyard.files.talk import bar, say
from steelyard.methods.training.batching import share_kept
from steelyard.plugins.models._conversation import Rendering, choose_special_tokens, choose_template
from steelyard.plugins.models._manifest import Manifest
from steelyard.plugins.models._network import (
    RewardNetwork,
    best_device,
    check_rows,
    initialise_head,
    load_network,
    load_tokenizer,
)
from steelyard.stages.train.checkpoints import forget_checkpoint, load_checkpoint
from steelyard.stages.train.examples import Examples, make_examples
from steelyard.stages.train.following import Follower
from steelyard.stages.train.held_out import check_apart, measure
from steelyard.stages.train.loop import Planned, choose_trainable, fit, is_packed, plan, why_padded
from steelyard.stages.train.preflight import check_flight, first_tokens
from steelyard.stages.train.saving import in_storage_type, save_model
from steelyard.stages.train.settings import Config, check_settings, num_last_layers

_DEFAULT = Config()


class _Parts(NamedTuple):
    tokenizer: Any
    rendering: Rendering
    train: Examples
    held_out: Examples | None
    network: RewardNetwork


def train(
    cases: Path,
    out: Path,
    config: Config = _DEFAULT,
    *,
    model: str,
    held_out: Path | None = None,
    force: bool = False,
) -> Run:
    """Train a reward model and write it to ``out``, with ``curve.jsonl`` and its manifest.

    Raises EvidenceError for cases without a pair, over the length limit, or held out and trained on; ModelError for a
    model that cannot be used; OutputError where ``out`` holds what the run reads.
    """
    check_settings(config)
    inputs = {"cases": cases, **({"held_out": held_out} if held_out else {})}
    if Path(model).exists():
        inputs["model"] = Path(model)
    asked = msgspec.to_builtins(config) | {"model": Path(model).name if Path(model).exists() else model}
    with result_folder(out, "train", config=asked, inputs=inputs, seed=config.seed, force=force) as result:
        if result.is_finished:
            say(f"{out} is finished already: equal inputs and settings")
            return read_run(out)
        parts = _prepare(cases, held_out, model, config)
        _run(result, parts, config, model=model, data_hash=file_hash(cases))
    return read_run(out)


def _prepare(cases: Path, held_out: Path | None, model: str, config: Config) -> _Parts:
    """Everything that can be refused is refused here, before the first step."""
    tokenizer = load_tokenizer(model)
    template = choose_template(tokenizer, config.chat_template, model=model)
    rendering = Rendering(
        template=template,
        special_tokens=choose_special_tokens(tokenizer, template),
        strip=config.strip,
        max_length=config.max_length,
        over_length=config.over_length,
    )
    read = list(read_cases(cases))
    kept = _read_held_out(held_out, read, config)
    train_examples = make_examples(read, tokenizer, rendering, config.pairs, where=str(cases))
    held_out_examples = make_examples(kept, tokenizer, rendering, config.pairs, where=str(held_out)) if kept else None
    network, is_trained = load_network(model, dtype="float32")
    if not is_trained:
        say("the model has no reward head: a fresh one is drawn from the seed")
        initialise_head(network, seed=config.seed)
    for examples in filter(None, (train_examples, held_out_examples)):
        check_rows([row for example in examples.examples for row in example.rows], network, where=model)
    names = list(choose_trainable(network, num_last_layers(config.trainable)))
    if config.dtype == "bfloat16":
        _store_frozen(network)
    say(f"training {len(names)} weight tensors; {_described(train_examples)}")
    return _Parts(tokenizer, rendering, train_examples, held_out_examples, network.to(best_device()))


def _read_held_out(path: Path | None, train_cases: Sequence[Case], config: Config) -> list[Case]:
    if path is None:
        return []
    cases = list(read_cases(path))
    if not config.allow_overlap:
        check_apart(train_cases, cases, where=str(path))
    return cases


def _run(result: Result, parts: _Parts, config: Config, *, model: str, data_hash: str) -> None:
    examples = parts.train.examples
    steps = plan(examples, config)
    if not steps:
        raise EvidenceError("no step has a pair with both its ends", do="raise --slots, or use --batching whole")
    held_out = parts.held_out.examples if parts.held_out else ()
    checkpoint = load_checkpoint(result.folder)
    reason = why_padded(parts.network, config)
    say(
        f"each answer is a padded row of its own ({reason})"
        if reason
        else "a prompt is worked out once for all answers"
    )
    if config.preflight and checkpoint is None:
        flight = check_flight(parts.network, steps[0].slots, examples, config, is_packed=reason is None)
        say(f"equal scores cost {flight.zero_loss:.3f}; a head alone gets one step down to {flight.fitted_loss:.3f}")
        say(first_tokens(examples[steps[0].slots[0].prompt], parts.tokenizer))
    with bar("training", len(steps)) as shown:
        follower = Follower(parts.network, held_out, steps, config, folder=result.folder, advance=shown.advance)
        if checkpoint is not None:
            follower.resume(checkpoint)
        start = checkpoint.state if checkpoint else None
        fit(parts.network, examples, steps, config, after_step=follower.after_step, start=start)
    follower.keep_best()
    lines = follower.lines
    in_storage_type(parts.network, config.dtype)
    final = measure(parts.network, parts.held_out.examples, config) if parts.held_out else None
    with written(result.path("curve.jsonl")) as file:
        for line in lines:
            file.write(msgspec.json.encode(line) + b"\n")
    manifest = Manifest(
        rendering=parts.rendering,
        template_hash=parts.rendering.template_hash,
        dtype=config.dtype,
        base_model=Path(model).name,
        data_hash=data_hash,
        versions=installed_versions(),
    )
    save_model(parts.network, parts.tokenizer, manifest, result)
    forget_checkpoint(result.folder)
    _record(result, parts, steps, config, final=final, last=[line for line in lines if "loss" in line][-1])


def _record(
    result: Result, parts: _Parts, steps: Sequence[Planned], config: Config, *, final: Any, last: dict[str, Any]
) -> None:
    given = parts.train
    pairs = [[(pair.better, pair.worse) for pair in example.pairs] for example in given.examples]
    kept = [share_kept([step.slots for step in steps if step.epoch == epoch], pairs) for epoch in range(config.epochs)]
    held_out = parts.held_out.dropped + parts.held_out.noted if parts.held_out else {}
    noted = {**given.noted, **{f"held out: {rule}": number for rule, number in held_out.items()}}
    result.counts = Counts(num_in=given.num_in, num_used=len(given.examples), dropped=dict(given.dropped), noted=noted)
    result.summary = {
        "kernel": "packed" if is_packed(parts.network, config) else "padded",
        "num_steps": len(steps),
        "num_prompts": len(given.examples),
        "num_responses": given.num_responses,
        "num_pairs": given.num_pairs,
        "share_of_pairs_kept": math.fsum(kept) / len(kept),
        "final_loss": last["loss"],
        "held_out": final,
        "last_step": last["step"],
    }


def _store_frozen(network: RewardNetwork) -> None:
    """Frozen weights need no float32 master: bfloat16 halves their memory and their reading time."""
    for weight in network.parameters():
        if not weight.requires_grad:
            weight.data = weight.data.to(torch.bfloat16)


def _described(given: Examples) -> str:
    return f"{len(given.examples):,} prompts, {given.num_responses:,} responses, {given.num_pairs:,} pairs"
