"""The verb `train` on the command line."""

from pathlib import Path
from typing import Annotated, Any

import typer


def command(
    cases: Annotated[Path, typer.Argument(help="The case file with rankings or pairs.")],
    *,
    model: Annotated[str, typer.Option(help="A Hugging Face decoder: a folder or a hub name.")],
    out: Annotated[Path, typer.Option(help="The folder for the trained model.")],
    held_out: Annotated[Path | None, typer.Option(help="Cases to measure accuracy on while training.")] = None,
    reference: Annotated[
        Path | None, typer.Option(help="Cases on whose answers the rewards' mean and spread are told.")
    ] = None,
    prompts_per_step: Annotated[
        int | None, typer.Option(help="Whole prompts in one step (default: 8, or 4 or 2 of few).")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="How often the data are gone through (default 2).")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="The highest rate (default: by what is trained).")] = None,
    batching: Annotated[
        str | None, typer.Option(help="whole (default), packed or greedy: what makes one step.")
    ] = None,
    over_length: Annotated[
        str | None,
        typer.Option(help="Answers over the limit: unscored (default: left out), left or right (cut), or refuse."),
    ] = None,
    max_length: Annotated[int | None, typer.Option(help="The limit of a text in tokens (default 2048).")] = None,
    chat_template: Annotated[str | None, typer.Option(help="For models without one: plain, or a Jinja file.")] = None,
    seed: Annotated[int | None, typer.Option(help="The random seed (default 0).")] = None,
    allow_overlap: Annotated[
        bool, typer.Option("--allow-overlap", help="Accept prompts that are both trained on and held out.")
    ] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, as KEY=VALUE; repeat. An unknown KEY lists all.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """Train a reward model with a scalar head on any Hugging Face decoder.

    All responses of a prompt share a step, each is forwarded once, and no pair is lost. The folder loads with
    transformers' AutoModelForSequenceClassification; `steelyard.json` in it fixes template and length for scoring.

    Example: `steelyard train parts/train.jsonl --model Qwen/Qwen2.5-0.5B --out model --held-out parts/held_out.jsonl`

    A step is a number of whole prompts (`whole`), of whole prompts up to `--set tokens_per_step=N` (`packed`), or of
    `--set slots=N` answers (`greedy`). `--set loss=` bradley-terry, plackett-luce (choices among many), rao-kupper or
    davidson (ties too). `--set track=` says who is told of each step (`steelyard list trackers`). Other settings:
    trainable (all, head, last:2), dtype, regulariser, centring, reduction, warm_up, schedule, weight_decay,
    pairs (tiers, reachable, judged, listed), evaluate_every, tokens_per_forward.
    """
    from steelyard.cli.shown import show
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.io.settings import read_toml
    from steelyard.stages.train import Config, train
    from steelyard.training.distributed import process_group

    with process_group():
        from_file: dict[str, Any] = {}
        if config is not None:
            from_file = read_toml(config)
        flags = {
            "prompts_per_step": prompts_per_step,
            "epochs": epochs,
            "learning_rate": learning_rate,
            "batching": batching,
            "over_length": over_length,
            "max_length": max_length,
            "chat_template": chat_template,
            "seed": seed,
            "allow_overlap": allow_overlap or None,
        }
        given = {name: value for name, value in flags.items() if value is not None}
        resolved = resolve_config(Config, from_file | parse_settings(settings or ()) | given, where="train")
        run = train(cases, out, resolved, model=model, held_out=held_out, reference=reference, force=force)
        summary = run.summary
        length = summary["length"]
        trained = (
            f"{out}: trained in {summary['num_steps']:,} steps on {summary['num_pairs']:,} pairs of "
            f"{summary['num_prompts']:,} prompts; that is {summary['share_of_pairs_kept']:.1%} of the data's "
            f"{length['num_pairs']:,} pairs, and {summary['num_prompts'] / max(length['num_prompts'], 1):.1%} of its "
            f"{length['num_prompts']:,} prompts"
        )
        lines = [trained, f"final loss {summary['final_loss']:.4f}"]
        if measured := summary["held_out"]:
            lines.append(f"held-out accuracy {measured['accuracy']:.4f} on {measured['num_pairs']:,} pairs")
        show(run, lines, as_json=as_json)
