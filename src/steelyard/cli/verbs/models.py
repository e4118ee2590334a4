"""Models: train a reward model, score responses with one, and evaluate it."""

import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.cli.options import (
    MODEL,
    MODEL_SETTINGS,
    SettingOption,
    StageArgument,
    StageOption,
    in_panel,
)
from steelyard.cli.output import next_line
from steelyard.cli.verb import StageVerb
from steelyard.cli.verbs.evaluation import EVALUATE
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.training.config import TrainingSummary


def _process_group() -> AbstractContextManager[Any]:
    """Join the processes of one training: only the first prints. A process alone has nothing to join."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return nullcontext()  # without torch: a wrong setting is refused at once
    from steelyard.training import distributed

    return distributed.process_group()


def _evaluation(run: "Run[TrainingSummary]", out: Path) -> str:
    """Return the evaluation on the test cases beside the training's."""
    cases = Path(run.inputs["cases"].path)
    test = cases.with_name("test.jsonl")
    overlap = ("--train-cases", cases) if test.exists() else ()
    bench = test if test.exists() else "TEST.jsonl"
    return next_line("evaluate", "--bench", bench, "--model", out, *overlap, "--out", "evaluated")


TRAIN = StageVerb(
    "train",
    """Train a reward model with a scalar head on any Hugging Face decoder.

    All responses of a prompt share a step, each is forwarded once, and no pair is lost. The folder loads with
    transformers' AutoModelForSequenceClassification; `steelyard.json` in it fixes template and length for scoring.

    Example: `steelyard train parts/train.jsonl --model Qwen/Qwen2.5-0.5B --out model --held-out parts/held_out.jsonl`

    An optimiser step reads `--batch-size` whole prompts; with `--set batching=packed` up to `--set tokens_per_step=N`
    tokens. `--set trackers=` names what records each step (`steelyard list trackers`). `--settings` lists all settings.
    """,
    (
        StageArgument("cases", "The case file with rankings or pairs."),
        StageOption("model", "A decoder: a folder, or a name on the Hub."),
        StageOption("out", "The folder for the trained model."),
        StageOption("held_out", "Cases to measure accuracy on while training."),
        StageOption("reward_reference", "Cases whose rewards give the stored mean and SD."),
        StageOption("push_to_hub", "OWNER/NAME on the Hub: upload the model there."),
        StageOption("public", "Make that repository public. Default: private."),
        SettingOption("allow_overlap"),
        SettingOption("seed"),
        *in_panel(
            "Model",
            *map(
                SettingOption,
                ("trainable", "adapter", "dtype", "max_length", "over_length", "chat_template"),
            ),
        ),
        *in_panel(
            "Optimisation",
            *map(
                SettingOption,
                (
                    "learning_rate",
                    "epochs",
                    "batch_size",
                    "warmup_ratio",
                    "weight_decay",
                    "loss",
                    "gradient_checkpointing",
                ),
            ),
        ),
    ),
    next_step=_evaluation,
    around=_process_group,
)


SCORE = StageVerb(
    "score",
    """Score every response of case files with a reward model.

    OUT/scores.jsonl has one line for each case: the score of each response id, or null and the reason. Before it
    scores, a model is tested on a few of the cases: batches, equal bits, packing, BOS token, last token, head, length.

    Example: `steelyard score cases.jsonl --model my-model --out scored`
    """,
    (
        StageArgument("cases", "A case file, a folder of case files, or a quoted pattern."),
        MODEL,
        StageOption("out", "The folder for scores.jsonl and run.json."),
        *MODEL_SETTINGS,
        SettingOption("self_test", "--no-self-test"),
    ),
)


VERBS = (TRAIN, SCORE, EVALUATE)
