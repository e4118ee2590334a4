"""One training run from a case file to a model folder."""

from pathlib import Path

import msgspec

from steelyard.core.errors import EvidenceError
from steelyard.core.types import Run
from steelyard.files.results import Result, file_hash, installed_versions, read_run, result_folder
from steelyard.files.talk import bar, say
from steelyard.plugins.models._manifest import Manifest
from steelyard.stages.train.checkpoints import forget_checkpoint, load_checkpoint
from steelyard.stages.train.following import Follower
from steelyard.stages.train.held_out import measure
from steelyard.stages.train.loop import fit, plan, why_padded
from steelyard.stages.train.preflight import check_flight, first_tokens
from steelyard.stages.train.preparing import Parts, prepare
from steelyard.stages.train.recording import record, write_curve
from steelyard.stages.train.saving import in_storage_type, save_model
from steelyard.stages.train.settings import Config, check_settings

_DEFAULT = Config()


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
        parts = prepare(cases, held_out, model, config)
        _run(result, parts, config, model=model, data_hash=file_hash(cases))
    return read_run(out)


def _run(result: Result, parts: Parts, config: Config, *, model: str, data_hash: str) -> None:
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
    _save(result, parts, config, model=model, data_hash=data_hash)
    final = measure(parts.network, parts.held_out.examples, config) if parts.held_out else None
    write_curve(result, follower.lines)
    record(result, parts, steps, config, held_out=final, lines=follower.lines)
    forget_checkpoint(result.folder)


def _save(result: Result, parts: Parts, config: Config, *, model: str, data_hash: str) -> None:
    """The weights in the number type they are scored in, and their manifest."""
    in_storage_type(parts.network, config.dtype)
    manifest = Manifest(
        rendering=parts.rendering,
        template_hash=parts.rendering.template_hash,
        dtype=config.dtype,
        base_model=Path(model).name,
        data_hash=data_hash,
        versions=installed_versions(),
    )
    save_model(parts.network, parts.tokenizer, manifest, result)
