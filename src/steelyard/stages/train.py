"""The train verb: a reward model from a case file, on any Hugging Face decoder; read, train, write."""

import os
from pathlib import Path

import msgspec
from msgspec.structs import replace

from steelyard.core.types import Run
from steelyard.io.cases import read_cases
from steelyard.io.hashing import hashed_ahead
from steelyard.io.progress import log_detail
from steelyard.io.run_folder import read_run
from steelyard.io.trained_on import TRAINED_ON_FILE, write_trained_on
from steelyard.io.verbs import Argument, BackboneName, CaseFile, Option, SettingOption, Verb, settings
from steelyard.networks.pretrained import collection_paused
from steelyard.training.config import Config, TrainingSummary, check_settings

_DEFAULT = Config()


VERB = Verb(
    "Models",
    51,
    (
        Argument("cases", "The case file with rankings, pairs or ratings."),
        Option("model", "A decoder: a folder, or a name on the Hub."),
        Option("out", "The folder for the trained model."),
        Option("held_out", "Cases to measure accuracy on while training."),
        Option("reward_reference", "Cases whose rewards give the stored mean and SD."),
        Option("push_to_hub", "OWNER/NAME on the Hub: upload the model there."),
        Option("public", "Make that repository public. Default: private."),
        SettingOption("allow_overlap"),
        SettingOption("seed"),
        *settings("trainable", "adapter", "dtype", "max_length", "over_length", "chat_template", panel="Model"),
        *settings(
            "learning_rate",
            "epochs",
            "batch_size",
            "warmup_ratio",
            "weight_decay",
            "loss",
            "gradient_checkpointing",
            panel="Optimisation",
        ),
    ),
    is_distributed=True,
)


def train(
    cases: CaseFile,
    out: Path,
    config: Config = _DEFAULT,
    *,
    model: BackboneName,
    held_out: CaseFile | None = None,
    reward_reference: CaseFile | None = None,
    push_to_hub: str | None = None,
    public: bool = False,
    force: bool = False,
) -> Run[TrainingSummary]:
    """Train a reward model with a scalar head on any Hugging Face decoder.

    All responses of a prompt share a step, each is forwarded once, and no pair is lost. The folder loads with
    transformers' AutoModelForSequenceClassification; `steelyard.json` in it fixes template and length for scoring.
    An interrupted run continues with the same call.

    Example: `steelyard train parts/train.jsonl --model Qwen/Qwen2.5-0.5B --out model --held-out parts/held_out.jsonl`

    An optimiser step reads ``batch_size`` whole prompts; with ``batching="packed"`` up to ``tokens_per_step`` tokens.
    ``trackers`` names what records each step (`steelyard list trackers`).

    Raises EvidenceError for cases without a pair (or a rating, where the loss reads these), over the length limit, or
    held out and trained on; ModelError for a model that cannot be used or uploaded; ConfigError for settings that
    contradict each other; OutputError where ``out`` holds what the run reads.

    >>> tiny = sy.backbone(cases, hidden_size=32, num_layers=1, vocabulary=300)
    >>> trained = sy.train(cases, model=tiny, epochs=1, learning_rate=1e-3, out="my-model")
    >>> trained.summary.num_pairs
    40
    >>> scores = sy.score(trained, cases)
    """
    is_folder = Path(model).exists()
    files = {
        "cases": cases,
        "held_out": held_out,
        "reward_reference": reward_reference,
        "model": Path(model) if is_folder else None,
    }
    inputs = {role: path for role, path in files.items() if path is not None}
    settings = msgspec.to_builtins(config) | {"model": Path(model).name if is_folder else model}
    del settings["trackers"]  # trackers change no result
    # Of many processes the first alone records the inputs.
    with hashed_ahead(inputs.values() if os.environ.get("RANK", "0") == "0" else ()):
        with collection_paused():
            from steelyard.networks.devices import best_device, default_number_type
            from steelyard.training.distributed import process_group, shared_folder
            from steelyard.training.publishing import create_repository, publish_model
        with process_group() as world:
            check_settings(config)
            if config.dtype is None:
                config = replace(config, dtype=default_number_type(best_device()))
                log_detail(f"dtype {config.dtype} (the default of this device)")
            folder = shared_folder(out, "train", config=settings, inputs=inputs, force=force, world=world)
            with folder as result:
                if push_to_hub is not None and world.is_first:
                    create_repository(push_to_hub, public=public)
                if not result.is_finished:
                    from steelyard.training.inputs import read_inputs
                    from steelyard.training.training_run import run_training

                    read = read_inputs(cases, held_out, model, config, reward_reference=reward_reference, world=world)
                    run_training(result, read, config, world)
                    if world.is_first:
                        write_trained_on(result.path(TRAINED_ON_FILE), read_cases(cases), base=Path(model))
            if push_to_hub is not None and world.is_first:
                publish_model(out, push_to_hub)
            stored = read_run(out, Run[TrainingSummary]) if world.is_first else None
            run = world.broadcast(stored)
    assert run is not None, "the first process has it"
    return run
