"""Train a reward model with a scalar head on any Hugging Face decoder.

All responses of a prompt share a step, each is forwarded once, and no pair is lost. The folder loads with
transformers' AutoModelForSequenceClassification; `steelyard.json` in it fixes template and length for scoring.

Example: `steelyard train parts/train.jsonl --model Qwen/Qwen2.5-0.5B --out model --held-out parts/held_out.jsonl`

A step is a number of whole prompts (`whole`), of whole prompts up to `--set tokens_per_step=N` (`packed`), or of
`--set slots=N` answers (`greedy`). `--set loss=` bradley-terry, plackett-luce (choices among many), rao-kupper or
davidson (ties too). `--set track=` names trackers that record each step (`steelyard list trackers`). `--settings`
lists all settings.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from steelyard.cli.stage_verb import SettingOption, StageArgument, StageOption, StageVerb
from steelyard.core.types import Run

_PROMOTED = (
    "prompts_per_step", "epochs", "learning_rate", "batching", "over_length", "max_length", "chat_template", "seed",
    "allow_overlap",
)  # fmt: skip


def process_group() -> AbstractContextManager[Any]:
    """Join the processes of one training; only the first prints."""
    from steelyard.training import distributed

    return distributed.process_group()


def lines(run: Run, out: Path) -> Iterator[str]:
    """Yield the size of the training, the share of the data that it used, its loss and its held-out accuracy."""
    summary = run.summary
    length = summary.length
    yield (
        f"{out}: trained in {summary.num_steps:,} steps on {summary.num_pairs:,} pairs of "
        f"{summary.num_prompts:,} prompts; that is {summary.share_of_pairs_kept:.1%} of the data's "
        f"{length.num_pairs:,} pairs, and {summary.num_prompts / max(length.num_prompts, 1):.1%} of its "
        f"{length.num_prompts:,} prompts"
    )
    yield f"final loss {summary.final_loss:.4f}"
    if measured := summary.held_out:
        yield f"held-out accuracy {measured.accuracy:.4f} on {measured.num_pairs:,} pairs"


command = StageVerb(
    "train",
    (
        StageArgument("cases", "The case file with rankings or pairs."),
        StageOption("model", "A Hugging Face decoder: a folder or a hub name."),
        StageOption("out", "The folder for the trained model."),
        StageOption("held_out", "Cases to measure accuracy on while training."),
        StageOption("reference", "Cases for the mean and spread of rewards."),
        *map(SettingOption, _PROMOTED),
    ),
    lines,
    around=process_group,
)
